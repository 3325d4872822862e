//! /proc/PID/status: who a process is, what it may do, where it may run, and how often it was switched out.

use std::path::Path;

use becalm_units::CpuList;

use crate::file::{FileError, FormatError, optional, parse, read};

/// What a process or thread may do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// The number of the effective user; 0 is root.
    pub uid: u32,
    /// The effective group, and the supplementary ones.
    pub groups: Vec<u32>,
    /// The effective capabilities, which are those that the kernel checks.
    pub capabilities: Capabilities,
    /// The CPUs that it may run on.
    pub cpus_allowed: CpuList,
    /// How often it gave its CPU away.
    pub voluntary_switches: u64,
    /// How often its CPU was taken from it.
    pub involuntary_switches: u64,
}

/// A set of capabilities, as in capabilities(7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities(pub u64);

/// The capabilities that becalm asks about, by their numbers in `linux/capability.h`. Their names are the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::IntoStaticStr, strum::VariantArray)]
#[repr(u8)]
pub enum Capability {
    /// Give files to other users.
    #[strum(serialize = "CAP_CHOWN")]
    Chown = 0,
    /// Open files whatever their permissions are.
    #[strum(serialize = "CAP_DAC_OVERRIDE")]
    DacOverride = 1,
    /// Read files and search folders whatever their permissions are.
    #[strum(serialize = "CAP_DAC_READ_SEARCH")]
    DacReadSearch = 2,
    /// Do to files what only their owner may, as to replace them in folders for everybody.
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
    /// The set of these.
    #[must_use]
    pub const fn from_list(capabilities: &[Capability]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < capabilities.len() {
            bits |= 1 << capabilities[at] as u8;
            at += 1;
        }
        Self(bits)
    }

    /// The set and this one.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        Self(self.0 | 1 << capability as u8)
    }

    /// Whether the set holds the capability.
    #[must_use]
    pub const fn has(self, capability: Capability) -> bool {
        self.0 >> capability as u8 & 1 == 1
    }
}

impl Status {
    /// From the file's text.
    ///
    /// # Errors
    /// If a field is missing or is not of its form.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let field = |name: &'static str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.map(str::trim).ok_or_else(|| FormatError::new(name, "no such line"))
        };
        let number = |text: &str| text.parse().map_err(|_| FormatError::new("a number was expected", text));
        // Real, effective, saved and file system identity.
        let effective = |name| match field(name)?.split_whitespace().nth(1) {
            Some(id) => id.parse().map_err(|_| FormatError::new("an identity was expected", id)),
            None => Err(FormatError::new("four identities were expected", name)),
        };
        let mut groups = vec![effective("Gid")?];
        for group in field("Groups")?.split_whitespace() {
            groups.push(group.parse().map_err(|_| FormatError::new("a group was expected", group))?);
        }
        let mask = field("CapEff")?;
        let cpus = field("Cpus_allowed_list")?;
        Ok(Self {
            uid: effective("Uid")?,
            groups,
            capabilities: Capabilities(
                u64::from_str_radix(mask, 16).map_err(|_| FormatError::new("a mask was expected", mask))?,
            ),
            cpus_allowed: cpus.parse().map_err(|_| FormatError::new("a list of CPUs was expected", cpus))?,
            voluntary_switches: number(field("voluntary_ctxt_switches")?)?,
            involuntary_switches: number(field("nonvoluntary_ctxt_switches")?)?,
        })
    }

    /// Reads `proc/self/status`: of the main thread.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        parse(root, "proc/self/status", "this process's rights", Self::parse)
    }
}

/// Whether this process lives in the machine's first user namespace. In any other, its capabilities do not reach the
/// machine. A kernel without user namespaces has only the first.
///
/// # Errors
/// If the map exists and cannot be read.
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
        let status = Status::parse(TEXT).unwrap();
        assert_eq!((status.uid, &status.groups[..]), (1001, &[6, 4, 27][..]));
        assert!(status.capabilities.has(Capability::SysNice) && status.capabilities.has(Capability::IpcLock));
        assert!(!status.capabilities.has(Capability::SysAdmin));
        assert_eq!(status.cpus_allowed.to_string(), "0-1,1030");
        assert_eq!((status.voluntary_switches, status.involuntary_switches), (7, 3));
        for field in ["Uid", "Groups", "CapEff", "Cpus_allowed_list", "voluntary"] {
            let broken = TEXT.replacen(&format!("\n{field}"), "\nX", 1);
            assert!(Status::parse(&broken).is_err(), "{field}");
        }
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
