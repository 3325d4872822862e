//! Ownership and permissions of the files that becalm creates.

use std::env;
use std::fs::File;
use std::os::unix::fs::fchown;

/// A user ID and a group ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    pub user: u32,
    pub group: u32,
}

/// The permissions and the owner of a new file or directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Whether only the owner gets permissions, whatever the umask is.
    closed: bool,
    /// The user and the group that become its owner.
    owner: Option<Owner>,
}

impl Access {
    /// The access of the process's user, with the permissions that the umask leaves.
    pub const fn from_umask() -> Self {
        Self { closed: false, owner: None }
    }

    /// The access of files that reveal other users' programs. Files of root are closed to all others, and given to the user who called `sudo` if that
    /// user may write to the directory, so permission to run only becalm as root gives no more access. For other users, the umask decides.
    #[must_use]
    pub fn guarded() -> Self {
        if rustix::process::geteuid().is_root() {
            Self { closed: true, owner: user_behind_sudo() }
        } else {
            Self::from_umask()
        }
    }

    /// The access of files that only the process's user may use.
    pub const fn closed() -> Self {
        Self { closed: true, owner: None }
    }

    pub(crate) const fn file_mode(self) -> u32 {
        if self.closed { 0o600 } else { 0o666 }
    }

    pub(crate) const fn folder_mode(self) -> u32 {
        if self.closed { 0o700 } else { 0o777 }
    }

    /// Whether the owner changes.
    pub const fn is_given(self) -> bool {
        self.owner.is_some()
    }

    /// The new owner.
    pub(crate) const fn owner(self) -> Option<Owner> {
        self.owner
    }

    /// Gives an open file or directory to its new owner. If the file system does not let root do that, root keeps it.
    pub(crate) fn give(self, file: &File) {
        if let Some(Owner { user, group }) = self.owner {
            let _ = fchown(file, Some(user), Some(group));
        }
    }
}

/// The user and the group that called `sudo`, from its variables `SUDO_UID` and `SUDO_GID`; `None` if this process is not root's, because any user
/// can set them.
pub(crate) fn user_behind_sudo() -> Option<Owner> {
    let variable = |name| env::var(name).ok();
    rustix::process::geteuid().is_root().then(|| numbers(variable("SUDO_UID"), variable("SUDO_GID")))?
}

/// Parses a user ID and a group ID.
fn numbers(user: Option<String>, group: Option<String>) -> Option<Owner> {
    // The largest number means no user.
    let number = |text: Option<String>| text?.parse().ok().filter(|number| *number != u32::MAX);
    Some(Owner { user: number(user)?, group: number(group)? })
}

#[cfg(test)]
impl Access {
    /// The access of files that root creates for this user and this group.
    pub(crate) const fn given_to(user: u32, group: u32) -> Self {
        Self { closed: true, owner: Some(Owner { user, group }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use {
        becalm_testing::{Need, machine_has},
        std::io::Write,
        std::process::Command,
    };

    #[test]
    fn only_whole_numbers_are_users() {
        let owner =
            |user: Option<&str>, group: Option<&str>| numbers(user.map(str::to_owned), group.map(str::to_owned));
        assert_eq!(owner(Some("1000"), Some("100")), Some(Owner { user: 1000, group: 100 }));
        for (user, group) in [(None, None), (Some("1000"), None), (Some("x"), Some("1")), (Some("-1"), Some("1"))] {
            assert_eq!(owner(user, group), None);
        }
        assert_eq!(owner(Some("4294967295"), Some("1")), None);
        assert_eq!((Access::closed().file_mode(), Access::from_umask().file_mode()), (0o600, 0o666));
    }

    /// The output of a process that [`environment_and_user_decide`] starts.
    #[cfg(target_arch = "x86_64")]
    #[test]
    #[ignore = "that test starts it"]
    fn says_what_is_guarded() {
        writeln!(std::io::stdout(), "guarded: {:?}", Access::guarded()).unwrap();
    }

    // On the other architecture, tests run this program in an emulator, and the kernel cannot start it directly.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn environment_and_user_decide() {
        let said = |user: u32, through: Option<&str>| {
            let own = std::env::current_exe().unwrap();
            let mut command = Command::new(own);
            command.args(["--ignored", "--exact", "--nocapture", "access::tests::says_what_is_guarded"]);
            command.env_remove("SUDO_UID").env_remove("SUDO_GID");
            if let Some(through) = through {
                command.env("SUDO_UID", through).env("SUDO_GID", "100");
            }
            if user != 0 {
                std::os::unix::process::CommandExt::uid(&mut command, user);
            }
            let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
            text.lines().find_map(|line| line.split_once("guarded: ").map(|(_, said)| said.to_owned())).unwrap()
        };
        if !machine_has(&[Need::Root]) {
            return;
        }
        assert_eq!(said(0, None), format!("{:?}", Access::closed()));
        assert_eq!(said(0, Some("no number")), format!("{:?}", Access::closed()));
        assert_eq!(said(0, Some("1000")), format!("{:?}", Access::given_to(1000, 100)));
        assert_eq!(said(65_534, Some("1000")), format!("{:?}", Access::from_umask()));
    }
}
