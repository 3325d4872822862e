//! The kernel's view of this process, and what it may therefore do with a file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::procfs::status::{Capability, Status, in_first_user_namespace};

/// The identity and the rights of this process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// Its rights; none if they cannot be read.
    pub status: Status,
    /// Whether its capabilities apply to the machine: only in the initial user namespace.
    pub on_the_machine: bool,
    /// Whether it runs in a container, as far as container engines leave a mark.
    pub in_container: bool,
}

impl Identity {
    /// Reads the identity of this process. An unreadable right counts as missing.
    pub fn read(root: &Path) -> Self {
        let on_the_machine = in_first_user_namespace(root).unwrap_or(false);
        let marked = ["run/.containerenv", ".dockerenv"].iter().any(|name| root.join(name).exists());
        match Status::read(root) {
            Ok(status) => Self { status, on_the_machine, in_container: marked || !on_the_machine },
            Err(_) => Self { status: Status::default(), on_the_machine: false, in_container: marked },
        }
    }

    /// Whether it has a capability that applies to the machine.
    pub fn can(&self, capability: Capability) -> bool {
        self.on_the_machine && self.status.capabilities.has(capability)
    }

    /// Whether the permissions of a directory let it list, enter and change its content. Ignores access lists of security modules.
    pub fn may_change(&self, folder: &fs::Metadata) -> bool {
        self.may(folder, 0o7)
    }

    /// Whether the permissions of a directory let it list and enter.
    pub fn may_enter(&self, folder: &fs::Metadata) -> bool {
        self.may(folder, 0o5)
    }

    /// Only the first matching class counts: the group's permissions do not help an owner.
    fn may(&self, file: &fs::Metadata, wanted: u32) -> bool {
        let class = if file.uid() == self.status.uid {
            6
        } else if self.status.groups.contains(&file.gid()) {
            3
        } else {
            0
        };
        self.can(Capability::DacOverride) || file.mode() >> class & wanted == wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs::status::Capabilities;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn permissions_depend_on_owner_group_and_rights() {
        let folder = tempfile::tempdir().unwrap();
        let allows = |mode, uid_matches: bool, group_matches: bool, capabilities| {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            let file = fs::metadata(folder.path()).unwrap();
            let uid = if uid_matches { file.uid() } else { file.uid() + 1 };
            let groups = vec![if group_matches { file.gid() } else { file.gid() + 1 }];
            let status = Status { uid, groups, capabilities: Capabilities(capabilities), ..Status::default() };
            Identity { status, on_the_machine: true, in_container: false }.may_change(&file)
        };
        assert!(allows(0o700, true, false, 0) && !allows(0o070, true, true, 0));
        assert!(allows(0o770, false, true, 0) && !allows(0o750, false, true, 0));
        assert!(!allows(0o700, false, false, 0) && allows(0o707, false, false, 0));
        assert!(allows(0o000, false, false, 1 << 1));
    }
}
