//! Who may read what becalm makes, and whose it is.

use std::env;
use std::fs::File;
use std::os::unix::fs::fchown;

/// The rights and the owner of a new file or folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Whether nobody but the owner gets any right, whatever the umask is.
    closed: bool,
    /// The user and the group that it is given to.
    owner: Option<(u32, u32)>,
}

impl Access {
    /// The process's user, and the rights that the umask leaves.
    #[must_use]
    pub const fn by_umask() -> Self {
        Self { closed: false, owner: None }
    }

    /// Of what tells about others' programs. What root makes is closed to everybody else, and given to the user who called `sudo`,
    /// as its variables `SUDO_UID` and `SUDO_GID` say. Of other users the umask says how open they are.
    #[must_use]
    pub fn guarded() -> Self {
        let variable = |name| env::var(name).ok();
        let is_root = rustix::process::geteuid().is_root();
        Self::of_user(is_root, variable("SUDO_UID").as_deref(), variable("SUDO_GID").as_deref())
    }

    /// What [`Self::guarded`] says for this user, whose name and group `sudo` told.
    pub(crate) fn of_user(is_root: bool, user: Option<&str>, group: Option<&str>) -> Self {
        if !is_root {
            return Self::by_umask();
        }
        // The largest number stands for no user.
        let number = |text: Option<&str>| text?.parse().ok().filter(|number| *number != u32::MAX);
        Self { closed: true, owner: number(user).zip(number(group)) }
    }

    pub(crate) const fn file_mode(self) -> u32 {
        if self.closed { 0o600 } else { 0o666 }
    }

    pub(crate) const fn folder_mode(self) -> u32 {
        if self.closed { 0o700 } else { 0o777 }
    }

    /// Whether it changes its owner.
    pub(crate) const fn is_given(self) -> bool {
        self.owner.is_some()
    }

    /// Gives an open file or folder to its owner. Where the file system does not let root do that, it stays root's.
    pub(crate) fn give(self, file: &File) {
        if let Some((user, group)) = self.owner {
            let _ = fchown(file, Some(user), Some(group));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_closes_and_only_whole_numbers_are_users() {
        assert_eq!(Access::of_user(false, Some("1000"), Some("1000")), Access::by_umask());
        let owner = |user, group| Access::of_user(true, user, group).owner;
        assert_eq!(owner(Some("1000"), Some("100")), Some((1000, 100)));
        for (user, group) in [(None, None), (Some("1000"), None), (Some("x"), Some("1")), (Some("-1"), Some("1"))] {
            assert_eq!(owner(user, group), None);
        }
        assert_eq!(owner(Some("4294967295"), Some("1")), None);
        assert_eq!(Access::of_user(true, None, None).file_mode(), 0o600);
    }
}
