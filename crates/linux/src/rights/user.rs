//! The user who called `sudo`.

use std::env;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Gid, Uid, getegid, geteuid, getgroups, getuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::access::{Owner, user_behind_sudo};
use crate::procfs::status::{Capabilities, Capability};

use super::capabilities::{effective, keep_of_this_thread};

/// The variables that `sudo` sets in the environment. They are meaningless for a program that runs as the user who called it.
const SUDO: [&str; 6] = ["SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND", "SUDO_HOME", "SUDO_TTY"];

/// The rights for a program that this process starts because the environment or an option names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// Those of this process.
    Itself,
    /// Those of the user who called `sudo`.
    User(Box<User>),
    /// Another user called this process, through `doas`, `pkexec` or a set-user-ID program, and it cannot become that user. It must not start the
    /// program: permission to run becalm as root is not permission to run everything as root.
    Unknown,
}

impl Caller {
    /// Finds the caller of this process. The variables of `sudo` and the like count only for root, because any user can set them.
    pub fn for_this_process() -> Self {
        if let Some(user) = User::from_sudo() {
            return Self::User(Box::new(user));
        }
        let another = |(name, root): (&str, &str)| env::var_os(name).is_some_and(|caller| caller != root);
        let callers = [("SUDO_UID", "0"), ("PKEXEC_UID", "0"), ("DOAS_USER", "root")];
        let is_lent = geteuid().is_root() && callers.into_iter().any(another);
        if is_lent || getuid() != geteuid() { Self::Unknown } else { Self::Itself }
    }
}

/// A user of this machine, as their programs see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// The user's number; never 0.
    pub uid: u32,
    /// The number of the group that `sudo` was called with.
    pub gid: u32,
    /// All groups of the user.
    pub groups: Vec<u32>,
    name: Option<OsString>,
    home: OsString,
    shell: OsString,
}

impl User {
    /// Finds the user who called `sudo`, from its variables `SUDO_UID` and `SUDO_GID`.
    ///
    /// `None` if the process is not root's, root itself called `sudo`, or the process may not become another user, as in a container without
    /// `CAP_SETUID`. Must be called while the process has one thread, because looking up user names may use the network.
    pub fn from_sudo() -> Option<Self> {
        let Owner { user: uid, group: gid } = user_behind_sudo()?;
        let has = |capability| effective().is_ok_and(|held| held.has(capability));
        if uid == 0 || !has(Capability::SetUid) || !has(Capability::SetGid) {
            return None;
        }
        Some(Self::look_up(uid, gid))
    }

    /// Looks up this user in the machine's user database. An unknown one has no home.
    fn look_up(uid: u32, gid: u32) -> Self {
        let entry = Entry::find(uid);
        let name = entry.as_ref().map(|entry| entry.name.clone());
        let groups = name.as_ref().and_then(|name| groups(name, gid)).unwrap_or_else(|| vec![gid]);
        let name = name.map(|name| OsString::from_vec(name.into_bytes())).or_else(|| env::var_os("SUDO_USER"));
        let (home, shell) = entry.map(|entry| (entry.home, entry.shell)).unwrap_or_default();
        let or = |text: OsString, other: &str| if text.is_empty() { other.into() } else { text };
        Self { uid, gid, groups, name, home: or(home, "/"), shell: or(shell, "/bin/sh") }
    }

    /// The value of a variable in the environment of this user's programs: the home directory for `HOME`, that of the login session for
    /// `XDG_RUNTIME_DIR`, and the current value for others, such as the cache directory.
    pub(crate) fn variable(&self, name: &str) -> Option<PathBuf> {
        match name {
            "HOME" => Some(self.home.clone().into()),
            "XDG_RUNTIME_DIR" => Some(format!("/run/user/{}", self.uid).into()),
            _ => env::var_os(name).map(PathBuf::from),
        }
    }

    /// Gives a program this user's environment, as far as `sudo` has changed it: home, name and shell. The search path remains as `sudo` set it.
    pub fn equip(&self, command: &mut Command) {
        SUDO.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.env("HOME", &self.home).env("SHELL", &self.shell);
        for variable in ["USER", "LOGNAME"] {
            match &self.name {
                Some(name) => command.env(variable, name),
                None => command.env_remove(variable),
            };
        }
    }
}

/// An entry of the user database.
struct Entry {
    name: CString,
    home: OsString,
    shell: OsString,
}

impl Entry {
    /// The entry of the user with this number, if there is one.
    fn find(uid: u32) -> Option<Self> {
        let mut texts = vec![0; 4096];
        loop {
            // SAFETY: all-zero bytes are a valid passwd.
            let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
            let mut found = std::ptr::null_mut();
            // SAFETY: all places live during the call, and `texts` is as long as stated.
            let error = unsafe {
                libc::getpwuid_r(uid, &raw mut entry, texts.as_mut_ptr().cast(), texts.len(), &raw mut found)
            };
            if error == libc::ERANGE && texts.len() < 1 << 20 {
                texts = vec![0_u8; texts.len() * 2];
                continue;
            }
            if error != 0 || found.is_null() {
                return None;
            }
            // SAFETY: the entry was found; its texts end in a zero and are in `texts`, which is alive here.
            let text = |text: *const libc::c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
            let owned =
                |field| text(field).map_or_else(OsString::new, |text| OsStr::from_bytes(text.to_bytes()).to_owned());
            return Some(Self {
                name: text(entry.pw_name)?.to_owned(),
                home: owned(entry.pw_dir),
                shell: owned(entry.pw_shell),
            });
        }
    }
}

/// All groups of the user with this name, including the given one; `None` if they are more than a user can have.
fn groups(name: &CStr, gid: u32) -> Option<Vec<u32>> {
    let mut groups = vec![0; 64];
    loop {
        let mut count = libc::c_int::try_from(groups.len()).ok()?;
        // SAFETY: the name ends in a zero, and `groups` has room for `count` numbers.
        let result = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        if result >= 0 {
            groups.truncate(usize::try_from(count).ok()?);
            return Some(groups);
        }
        if groups.len() >= 1 << 16 {
            return None;
        }
        groups = vec![0; groups.len() * 2];
    }
}

/// Makes this process run as this user: all of its threads, through the C library. That ends a process if only some of its threads may change the
/// user; so none may have given up its capabilities by then.
pub(super) fn become_user(user: &User) -> io::Result<()> {
    let checked = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // In this order: without user 0, the other two would be refused.
    // SAFETY: the list of groups is as long as stated; the other two take integers.
    unsafe {
        checked(libc::setgroups(user.groups.len(), user.groups.as_ptr()))?;
        checked(libc::setresgid(user.gid, user.gid, user.gid))?;
        checked(libc::setresuid(user.uid, user.uid, user.uid))
    }
}

/// A function that makes a child run as this user, right after fork. It makes the raw system calls, which apply to one thread: the child has no
/// other, and the C library's own may take a lock that another thread held at the fork.
pub(crate) fn becoming_in_child(user: &User) -> impl Fn() -> io::Result<()> + Send + Sync + 'static {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let groups: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    move || {
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        // Leaving user 0 cleared all capabilities except those that programs would inherit.
        keep_of_this_thread(Capabilities::default())
    }
}

/// The effective identity of a thread.
#[derive(Debug)]
pub(super) struct Acting {
    groups: Vec<Gid>,
    gid: Gid,
    uid: Uid,
}

impl Acting {
    /// The identity of the calling thread.
    pub(super) fn now() -> io::Result<Self> {
        Ok(Self { groups: getgroups()?, gid: getegid(), uid: geteuid() })
    }

    pub(super) fn as_user(user: &User) -> Self {
        let groups = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        Self { groups, gid: Gid::from_raw(user.gid), uid: Uid::from_raw(user.uid) }
    }

    /// Applies it to the calling thread alone, by raw system calls; the real and the saved user remain, which lets the thread switch back.
    pub(super) fn assume(&self) -> io::Result<()> {
        // A thread that switches back must be root first to do the rest.
        if self.uid.is_root() {
            set_thread_res_uid(None, self.uid, None)?;
        }
        set_thread_groups(&self.groups)?;
        set_thread_res_gid(None, self.gid, None)?;
        Ok(set_thread_res_uid(None, self.uid, None)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_with_home_and_groups() {
        let root = User::look_up(0, 0);
        assert_eq!((root.name.as_deref(), root.groups.contains(&0)), (Some(OsStr::new("root")), true));
        assert!(root.home.as_bytes().starts_with(b"/") && root.shell.as_bytes().starts_with(b"/"));
    }

    #[test]
    fn who_is_not_known_has_a_number_and_nothing_else() {
        let nobody = User::look_up(3_999_999_999, 77);
        assert_eq!(
            (nobody.uid, &nobody.groups[..], nobody.home.as_os_str()),
            (3_999_999_999, &[77][..], OsStr::new("/"))
        );
        let mut command = Command::new("true");
        nobody.equip(&mut command);
        let set: Vec<_> = command.get_envs().collect();
        assert!(set.contains(&(OsStr::new("HOME"), Some(OsStr::new("/")))), "{set:?}");
        assert!(set.contains(&(OsStr::new("SUDO_UID"), None)), "{set:?}");
    }
}
