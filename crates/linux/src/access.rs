//! Who may read what becalm makes, and whose it is.

use std::env;
use std::fs::File;
use std::os::unix::fs::fchown;

/// A user and a group, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    pub user: u32,
    pub group: u32,
}

/// The rights and the owner of a new file or folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Whether nobody but the owner gets any right, whatever the umask is.
    closed: bool,
    /// The user and the group that it is given to.
    owner: Option<Owner>,
}

impl Access {
    /// Creates the access of the process's user, with the rights that the umask leaves.
    pub const fn from_umask() -> Self {
        Self { closed: false, owner: None }
    }

    /// Of what tells about others' programs. What root makes is closed to everybody else, and given to the user who called `sudo`,
    /// where that user may write: whoever may run nothing but becalm as root gets nothing elsewhere. Of other users the umask says
    /// how open they are.
    #[must_use]
    pub fn guarded() -> Self {
        if rustix::process::geteuid().is_root() {
            Self { closed: true, owner: user_behind_sudo() }
        } else {
            Self::from_umask()
        }
    }

    /// Of what nobody but the process's user gets any right to.
    pub const fn closed() -> Self {
        Self { closed: true, owner: None }
    }

    pub(crate) const fn file_mode(self) -> u32 {
        if self.closed { 0o600 } else { 0o666 }
    }

    pub(crate) const fn folder_mode(self) -> u32 {
        if self.closed { 0o700 } else { 0o777 }
    }

    /// Whether it changes its owner.
    pub const fn is_given(self) -> bool {
        self.owner.is_some()
    }

    /// The user and the group that it is to be given to.
    pub(crate) const fn owner(self) -> Option<Owner> {
        self.owner
    }

    /// Gives an open file or folder to its owner. Where the file system does not let root do that, it stays root's.
    pub(crate) fn give(self, file: &File) {
        if let Some(Owner { user, group }) = self.owner {
            let _ = fchown(file, Some(user), Some(group));
        }
    }
}

/// The user and the group of whoever called `sudo`, as its variables `SUDO_UID` and `SUDO_GID` say; nobody where this process is not
/// root's, as anybody can set them.
pub(crate) fn user_behind_sudo() -> Option<Owner> {
    let variable = |name| env::var(name).ok();
    rustix::process::geteuid().is_root().then(|| numbers(variable("SUDO_UID"), variable("SUDO_GID")))?
}

/// A user and a group by their numbers.
fn numbers(user: Option<String>, group: Option<String>) -> Option<Owner> {
    // The largest number stands for no user.
    let number = |text: Option<String>| text?.parse().ok().filter(|number| *number != u32::MAX);
    Some(Owner { user: number(user)?, group: number(group)? })
}

#[cfg(test)]
impl Access {
    /// Of what root makes for this user and this group.
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

    /// What a process that [`environment_and_user_decide`] starts says.
    #[cfg(target_arch = "x86_64")]
    #[test]
    #[ignore = "that test starts it"]
    fn says_what_is_guarded() {
        writeln!(std::io::stdout(), "guarded: {:?}", Access::guarded()).unwrap();
    }

    // The lane of the other architecture emulates this program, and the kernel cannot start it by itself.
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
