//! /proc/PID/status: the identity of a process, its rights, and where it may run.

use std::path::Path;

use becalm_units::CpuList;

use crate::file::{FileError, optional, read};

/// The rights of a process or thread. Kernels that only imitate Linux, such as gVisor, lack lines of the file: a line that is missing or cannot be
/// parsed is a right that the process does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// The effective user ID; 0 is root, and [`u32::MAX`] is one that no file belongs to.
    pub uid: u32,
    /// The effective group, and the supplementary ones.
    pub groups: Vec<u32>,
    /// The effective capabilities, which the kernel checks.
    pub capabilities: Capabilities,
    /// The CPUs that it may run on.
    pub cpus_allowed: CpuList,
}

impl Default for Status {
    /// A user that no file belongs to, without rights.
    fn default() -> Self {
        Self { uid: u32::MAX, groups: Vec::new(), capabilities: Capabilities(0), cpus_allowed: CpuList::default() }
    }
}

/// A set of capabilities, as in capabilities(7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities(pub u64);

/// The capabilities that becalm uses, numbered as in `linux/capability.h`, named as in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::IntoStaticStr, strum::VariantArray)]
#[repr(u8)]
pub enum Capability {
    /// Give files to other users.
    #[strum(serialize = "CAP_CHOWN")]
    Chown = 0,
    /// Open files whatever their permissions are.
    #[strum(serialize = "CAP_DAC_OVERRIDE")]
    DacOverride = 1,
    /// Read files and search directories whatever their permissions are.
    #[strum(serialize = "CAP_DAC_READ_SEARCH")]
    DacReadSearch = 2,
    /// Do what only a file's owner may do, such as replacing it in a sticky directory.
    #[strum(serialize = "CAP_FOWNER")]
    FileOwner = 3,
    /// Take other groups.
    #[strum(serialize = "CAP_SETGID")]
    SetGid = 6,
    /// Become another user.
    #[strum(serialize = "CAP_SETUID")]
    SetUid = 7,
    /// Lock any amount of memory.
    #[strum(serialize = "CAP_IPC_LOCK")]
    IpcLock = 14,
    /// Mount file systems, and much else.
    #[strum(serialize = "CAP_SYS_ADMIN")]
    SysAdmin = 21,
    /// Use real-time scheduling classes, and move any thread to other CPUs.
    #[strum(serialize = "CAP_SYS_NICE")]
    SysNice = 23,
    /// Read the addresses of kernel symbols.
    #[strum(serialize = "CAP_SYSLOG")]
    Syslog = 34,
    /// Open perf events whatever `perf_event_paranoid` says.
    #[strum(serialize = "CAP_PERFMON")]
    Perfmon = 38,
}

impl Capabilities {
    /// A set of these capabilities.
    pub const fn from_list(capabilities: &[Capability]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < capabilities.len() {
            bits |= 1 << capabilities[at] as u8;
            at += 1;
        }
        Self(bits)
    }

    /// Adds a capability to the set.
    #[must_use]
    pub const fn with_capability(self, capability: Capability) -> Self {
        Self(self.0 | 1 << capability as u8)
    }

    /// Whether the set holds the capability.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 >> capability as u8 & 1 == 1
    }
}

impl Status {
    /// Parses the file's text.
    pub fn parse(text: &str) -> Self {
        let field = |name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.map(str::trim).unwrap_or_default()
        };
        // Real, effective, saved and file system identity.
        let effective = |name| field(name).split_whitespace().nth(1)?.parse().ok();
        let supplementary = field("Groups").split_whitespace().filter_map(|group| group.parse().ok());
        Self {
            uid: effective("Uid").unwrap_or(u32::MAX),
            groups: effective("Gid").into_iter().chain(supplementary).collect(),
            capabilities: Capabilities(u64::from_str_radix(field("CapEff"), 16).unwrap_or(0)),
            cpus_allowed: field("Cpus_allowed_list").parse().unwrap_or_default(),
        }
    }

    /// Reads `proc/self/status`: of the main thread.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        Ok(Self::parse(&read(root, "proc/self/status", "this process's rights")?))
    }
}

/// Whether this process is in the initial user namespace. In any other, its capabilities do not apply to the machine. A kernel without user
/// namespaces has only the initial one.
pub(crate) fn in_first_user_namespace(root: &Path) -> Result<bool, FileError> {
    let map = optional(read(root, "proc/self/uid_map", "the user namespace"))?;
    Ok(map.is_none_or(|map| map.split_whitespace().eq(["0", "0", "4294967295"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Name:\tcat\nUid:\t1000\t1001\t1000\t1000\nGid:\t5\t6\t5\t5\nGroups:\t4 27 \n\
        CapInh:\t0000000000000000\nCapEff:\t0000000000804000\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1,1030\n\
        voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n";

    #[test]
    fn reads_rights() {
        let status = Status::parse(TEXT);
        assert_eq!((status.uid, &status.groups[..]), (1001, &[6, 4, 27][..]));
        assert!(status.capabilities.has(Capability::SysNice) && status.capabilities.has(Capability::IpcLock));
        assert!(!status.capabilities.has(Capability::SysAdmin));
        assert_eq!(status.cpus_allowed.to_string(), "0-1,1030");
    }

    #[test]
    fn a_line_that_cannot_be_read_costs_only_what_it_says() {
        let whole = Status::parse(TEXT);
        for (line, without) in [
            ("Uid", Status { uid: u32::MAX, ..whole.clone() }),
            ("Gid", Status { groups: vec![4, 27], ..whole.clone() }),
            ("Groups", Status { groups: vec![6], ..whole.clone() }),
            ("CapEff", Status { capabilities: Capabilities(0), ..whole.clone() }),
            ("Cpus_allowed_list", Status { cpus_allowed: CpuList::default(), ..whole.clone() }),
            ("voluntary_ctxt_switches", whole.clone()),
        ] {
            for broken in ["X", &format!("{line}:\tx x x\nX")] {
                let broken = TEXT.replacen(&format!("\n{line}:"), &format!("\n{broken}:"), 1);
                assert_eq!(Status::parse(&broken), without, "{broken}");
            }
        }
        assert_eq!(Status::parse(""), Status::default());
    }

    #[test]
    fn this_machine() {
        assert!(!Status::read(Path::new("/")).unwrap().cpus_allowed.is_empty());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }

    #[test]
    fn namespaces() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        assert!(in_first_user_namespace(root.path()).unwrap());
        let map = |text| std::fs::write(root.path().join("proc/self/uid_map"), text).unwrap();
        map("         0          0 4294967295\n");
        assert!(in_first_user_namespace(root.path()).unwrap());
        map("         0       1000          1\n");
        assert!(!in_first_user_namespace(root.path()).unwrap());
    }
}
