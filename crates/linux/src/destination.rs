//! Resolves where a file is or can be created, and opens special files there, which a new file cannot replace.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, Stat};

use crate::access;
use crate::folder::{Folder, walk};
use crate::private::trusted_users;

/// A name in an open directory.
#[derive(Debug)]
pub struct Destination {
    /// The directory, with all links resolved.
    pub folder: Folder,
    /// The name in it.
    pub name: OsString,
}

impl Destination {
    /// Resolves a path, following a link to its target. Fails if a directory on the way is missing or cannot be searched, or a link belongs to
    /// another user and must not be followed.
    pub fn find(path: &Path) -> io::Result<Self> {
        let (folder, name) = walk(path, true)?;
        match name {
            Some(name) => Ok(Self { folder, name }),
            None => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        }
    }

    /// The ownership and permissions of the regular file there. `None` if there is none, or if it belongs neither to this user nor (for root) to the
    /// directory's owner: someone may have put it there to get data not meant for them.
    pub fn rights(&self) -> io::Result<Option<Rights>> {
        let found = match fs::statat(&self.folder.0, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let own = rustix::process::geteuid();
        let is_own = found.st_uid == own.as_raw();
        let is_of_folder = || Ok::<_, io::Error>(own.is_root() && found.st_uid == fs::fstat(&self.folder.0)?.st_uid);
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        Ok((is_file && (is_own || is_of_folder()?)).then_some(Rights(found)))
    }

    /// Opens a special file such as a pipe or a terminal for writing; `None` if there is a regular file, or none. Fails if the system refuses, or if
    /// it is a pipe that another user created, who would read the output.
    pub fn open_special(&self) -> io::Result<Option<File>> {
        // The walk has followed every link except those of `proc`, which users cannot create.
        let in_proc = self.folder.is_proc()?;
        let follow = if in_proc { OFlags::empty() } else { OFlags::NOFOLLOW };
        let found =
            match fs::openat(&self.folder.0, &*self.name, OFlags::PATH | OFlags::CLOEXEC | follow, Mode::empty()) {
                Ok(found) => found,
                Err(rustix::io::Errno::NOENT) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        let status = fs::fstat(&found)?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => return Ok(None),
            // It appeared after the walk.
            FileType::Symlink => return Err(rustix::io::Errno::LOOP.into()),
            FileType::Fifo if !in_proc => check_pipe(status.st_uid)?,
            _ => {}
        }
        // Open exactly the inspected file, whatever has its name by now.
        let path = format!("/proc/self/fd/{}", found.as_raw_fd());
        Ok(Some(fs::openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())?.into()))
    }
}

/// Ownership and permissions of a file, for the file that replaces it.
#[derive(Debug)]
pub struct Rights(Stat);

impl Rights {
    /// Applies them to a new file, which no other user may open yet. If the owner cannot be set, only the owner's permissions remain; if the group
    /// cannot be set, the group's are dropped.
    pub fn give_to(&self, file: &File) -> io::Result<()> {
        let (Stat { st_uid: user, st_gid: group, .. }, made) = (self.0, file.metadata()?);
        let mut mode = self.0.st_mode & 0o777;
        if made.uid() != user && fchown(file, Some(user), None).is_err() {
            mode &= 0o700;
        }
        if made.gid() != group && fchown(file, None, Some(group)).is_err() {
            mode &= 0o707;
        }
        file.set_permissions(Permissions::from_mode(mode))
    }
}

/// Refuses a pipe of a user who must not read the output: the kernel's rule for `fs.protected_fifos`, applied whatever that setting is, and in every
/// directory.
fn check_pipe(user: u32) -> io::Result<()> {
    let behind_sudo = access::user_behind_sudo().map(|caller| caller.user);
    if trusted_users()?.contains(&user) || behind_sudo == Some(user) {
        return Ok(());
    }
    let why = format!("it is a pipe of user {user}, who would read what is written; give another name");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::{Need, machine_has};
    use std::io::{Read, Write};
    use std::os::unix::fs::{OpenOptionsExt, chown, lchown};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    fn special(path: &Path) -> io::Result<Option<File>> {
        Destination::find(path)?.open_special()
    }

    #[test]
    fn what_has_no_path_is_written_as_it_is() {
        let mut pair = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", pair.1.as_raw_fd());
        special(Path::new(&path)).unwrap().unwrap().write_all(b"text").unwrap();
        drop(pair.1);
        let mut text = String::new();
        pair.0.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        assert!(special(Path::new("/dev/null")).unwrap().is_some());
    }

    #[test]
    fn regular_files_and_folders_are_no_special_ones() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert!(special(&file).unwrap().is_none());
        std::fs::write(&file, "").unwrap();
        assert!(special(&file).unwrap().is_none());
        assert_eq!(special(folder.path()).unwrap_err().to_string(), "it is a directory");
        // Something was exchanged after the walk.
        let destination = Destination::find(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/null", &file).unwrap();
        assert!(destination.open_special().is_err());
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(destination.open_special().is_err());
    }

    #[test]
    fn pipes_of_others_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        fs::mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
        let reader = || std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe).unwrap();
        let held = reader();
        assert!(special(&pipe).unwrap().is_some());
        if !machine_has(&[Need::Root]) {
            return;
        }
        std::fs::set_permissions(&pipe, std::fs::Permissions::from_mode(0o666)).unwrap();
        chown(&pipe, Some(65_534), None).unwrap();
        for mode in [0o1777, 0o777, 0o755] {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let refused = special(&pipe).unwrap_err().to_string();
            assert!(refused.starts_with("it is a pipe of user 65534") && refused.ends_with("give another name"));
        }
        drop(held);
    }

    #[test]
    fn links_of_others_do_not_lead_to_what_their_processes_read() {
        if !machine_has(&[Need::Root]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let mut theirs = Command::new("sleep");
        let mut theirs = theirs.arg("60").uid(65_534).gid(65_534).stdin(Stdio::piped()).spawn().unwrap();
        std::os::unix::fs::symlink(format!("/proc/{}/fd/0", theirs.id()), &link).unwrap();
        lchown(&link, Some(65_534), None).unwrap();
        let refused = special(&link).unwrap_err().to_string();
        theirs.kill().unwrap();
        theirs.wait().unwrap();
        assert!(refused.contains("65534 and leads to a process"), "{refused}");
    }

    #[test]
    fn only_rights_of_own_files_and_of_the_folder_s_owner_are_taken_over() {
        if !machine_has(&[Need::Root]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        let taken = |user: u32, group: u32, mode: u32| {
            std::fs::write(&old, "").unwrap();
            chown(&old, Some(user), Some(group)).unwrap();
            std::fs::set_permissions(&old, Permissions::from_mode(mode)).unwrap();
            let rights = Destination::find(&old).unwrap().rights().unwrap()?;
            let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).unwrap();
            rights.give_to(&file).unwrap();
            let found = file.metadata().unwrap();
            std::fs::remove_file(&new).unwrap();
            Some((found.uid(), found.gid(), found.mode() & 0o7777))
        };
        assert_eq!(taken(0, 0, 0o600), Some((0, 0, 0o600)));
        assert_eq!(taken(0, 7, 0o6664), Some((0, 7, 0o664)));
        assert_eq!(taken(65_534, 7, 0o644), None);
        chown(folder.path(), Some(65_534), None).unwrap();
        assert_eq!(taken(65_534, 7, 0o640), Some((65_534, 7, 0o640)));
        assert_eq!(taken(65_533, 7, 0o640), None);
        std::fs::remove_file(&old).unwrap();
        assert!(Destination::find(&old).unwrap().rights().unwrap().is_none());
    }
}
