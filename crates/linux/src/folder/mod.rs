//! Directories that are held open while output is created in them, so no link of another user can redirect it.
//!
//! A path is walked part by part. Files are then created, renamed or removed by name within the open directory, which excludes exchanges on the way.

mod walk;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, flock};
use rustix::io::Errno;

pub(crate) use self::walk::walk;
use crate::access::{Access, Owner};

/// The mode bit that lets the group write.
const GROUP_WRITES: u32 = 0o020;
/// The mode bit that lets all others write.
const ALL_WRITE: u32 = 0o002;

/// An open directory.
#[derive(Debug)]
pub struct Folder(pub(crate) OwnedFd);

impl Folder {
    /// Opens a directory by its path. Fails if it is missing or not a directory, or if a link on the way belongs to another user and must not be
    /// followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        walk(path, false).map(|(folder, _)| folder)
    }

    /// Duplicates the handle.
    pub fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// A path to the directory that only this process can use, even if it may no longer search a directory on the way. Valid as long as this value
    /// lives.
    pub fn own_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Opens a directory below this one, following no links. Fails if it is missing, or if a part of the path is a link or a file.
    pub fn open_below(self, path: &Path) -> io::Result<Self> {
        path.components().try_fold(self, |folder, part| {
            let Component::Normal(name) = part else {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not below its directory"));
            };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match fs::openat(&folder.0, name, flags, Mode::empty()) {
                Ok(next) => Ok(Self(next)),
                Err(Errno::NOTDIR | Errno::LOOP) => Err(io::Error::new(
                    io::ErrorKind::NotADirectory,
                    format!("'{}' is a link or a file where a directory should be", name.display()),
                )),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Creates a new file. Fails if anything has this name, including a link, or if the system refuses.
    pub fn create(&self, name: &OsStr, access: Access) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(fs::openat(&self.0, name, flags, Mode::from_raw_mode(access.file_mode()))?);
        if self.can_give(access)? {
            access.give(&file);
        }
        Ok(file)
    }

    /// Creates a file that this process keeps locked (flock) until it is closed, which tells it from one whose creator was killed. A killed process's
    /// file of that name is removed. `None` if something else has the name.
    pub fn create_held(&self, name: &OsStr, access: Access) -> io::Result<Option<File>> {
        for _ in 0..2 {
            match self.create(name, access) {
                // Another process is removing it, because it was not locked yet.
                Ok(file) if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) => {
                    return Ok(None);
                }
                // Or has removed it already. If files cannot be locked, no process considers one abandoned.
                Ok(file) if fs::fstat(&file)?.st_nlink == 0 => {}
                Ok(file) => return Ok(Some(file)),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if self.remove_left(name).is_ok() => {}
                Err(_) => break,
            }
        }
        Ok(None)
    }

    /// Removes a file of [`Self::create_held`] that no process holds any more.
    fn remove_left(&self, name: &OsStr) -> io::Result<()> {
        let is_file = |found: &Stat| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        let named = || fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW);
        if !is_file(&named()?) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = fs::openat(&self.0, name, flags, Mode::empty())?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // Meanwhile, its creator may have renamed it to its final name, and another process may have taken this one.
        let (locked, now) = (fs::fstat(&file)?, named()?);
        if (locked.st_dev, locked.st_ino) != (now.st_dev, now.st_ino) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.remove(name)
    }

    /// Creates a directory in this one; returns false if the name exists.
    pub fn make(&self, name: &OsStr, access: Access) -> io::Result<bool> {
        self.make_and_give(name, access, self.can_give(access)?)
    }

    fn make_and_give(&self, name: &OsStr, access: Access, give: bool) -> io::Result<bool> {
        match fs::mkdirat(&self.0, name, Mode::from_raw_mode(access.folder_mode())) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if give {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = fs::openat(&self.0, name, flags, Mode::empty())?;
            // A user who may write here may have replaced it with another directory of root's.
            if is_new(&made)? {
                access.give(&File::from(made));
            }
        }
        Ok(true)
    }

    /// Renames a file in this directory. Replaces an existing file or link of the new name.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Renames a file in this directory to a new name; returns false if that exists.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<bool> {
        match fs::renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => return Ok(false),
            // Unsupported by the file system, or by kernels before 3.15.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        match fs::linkat(&self.0, from, &self.0, to, AtFlags::empty()) {
            Ok(()) => self.remove(from).map(|()| true),
            Err(Errno::EXIST) => Ok(false),
            // File systems without hard links return one of these. Checking before renaming leaves a race with another writer; nothing better works
            // everywhere.
            Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) => {
                match fs::statat(&self.0, to, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Ok(false),
                    Err(_) => self.rename(from, to).map(|()| true),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file in this directory.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Makes the names in the directory survive a crash, as far as its file system supports that. Fails if the directory cannot be opened or its file
    /// system cannot be written.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = match fs::openat(&self.0, ".", flags, Mode::empty()) {
            Ok(folder) => File::from(folder).sync_all(),
            Err(error) => Err(error.into()),
        };
        match synced {
            Err(cause) if matches!(cause.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            synced => synced,
        }
    }

    /// Whether files created here may be given to the user of `access`, who could have created them without root's help.
    pub fn can_give(&self, access: Access) -> io::Result<bool> {
        let found = fs::fstat(&self.0)?;
        Ok(access.owner().is_some_and(|Owner { user, group }| {
            found.st_uid == user
                || (found.st_gid == group && found.st_mode & GROUP_WRITES != 0)
                || found.st_mode & ALL_WRITE != 0
        }))
    }

    /// Whether it is in the file system `proc`, where some links lead to objects without a path.
    pub(crate) fn is_proc(&self) -> io::Result<bool> {
        Ok(fs::fstatfs(&self.0)?.f_type == fs::PROC_SUPER_MAGIC)
    }
}

/// Creates a directory by its path; returns false if the name exists. Fails if its parent is missing, a link on the way belongs to another user, or
/// the system refuses.
pub fn make(path: &Path, access: Access) -> io::Result<bool> {
    let Some(name) = path.file_name() else { return Folder::open(path).map(|_| false) };
    Folder::open(path.parent().unwrap_or(Path::new("")))?.make(name, access)
}

/// Creates a directory that is given to its user wherever it is; returns false if the name exists. Only for names that no program but becalm looks
/// for: among settings, it would be read as the administrator's.
pub fn make_given(path: &Path, access: Access) -> io::Result<bool> {
    let Some(name) = path.file_name() else { return Folder::open(path).map(|_| false) };
    Folder::open(path.parent().unwrap_or(Path::new("")))?.make_and_give(name, access, true)
}

/// Creates a directory by its path.
pub fn make_new(path: &Path, access: Access) -> io::Result<()> {
    if make(path, access)? { Ok(()) } else { Err(Errno::EXIST.into()) }
}

/// Creates a directory and its missing parents, with the permissions that the umask leaves. Succeeds if it exists.
pub fn make_all(path: &Path) -> io::Result<()> {
    match Folder::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened.map(drop),
    }
    if let Some(parent) = path.parent() {
        make_all(parent)?;
    }
    make(path, Access::from_umask())?;
    Folder::open(path).map(drop)
}

/// Whether a directory is this user's, and empty.
fn is_new(folder: &OwnedFd) -> io::Result<bool> {
    let is_own = fs::fstat(folder)?.st_uid == rustix::process::geteuid().as_raw();
    // Every directory has entries for itself and its parent.
    Ok(is_own && Dir::read_from(folder)?.take(3).count() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::{Need, machine_has};
    use rustix::fs::CWD;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    const NOBODY: u32 = 65_534;

    #[test]
    fn a_held_folder_is_reached_wherever_it_lies() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("a")).unwrap();
        let held = Folder::open(&place.path().join("a")).unwrap();
        std::fs::rename(place.path().join("a"), place.path().join("b")).unwrap();
        std::fs::write(place.path().join("b/file"), "text").unwrap();
        assert_eq!(std::fs::read_to_string(held.again().unwrap().own_path().join("file")).unwrap(), "text");
    }

    #[test]
    fn below_a_folder_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        symlink("a", folder.path().join("way")).unwrap();
        let open = |path: &str| Folder::open(folder.path()).unwrap().open_below(Path::new(path));
        assert!(open("a/b").is_ok() && open("").is_ok());
        assert!(open("way/b").unwrap_err().to_string().contains("'way' is a link or a file"));
        assert!(open("../x").is_err() && open("/etc").is_err());
    }

    #[test]
    fn files_are_made_once_and_renamed_over_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let open = Folder::open(folder.path()).unwrap();
        let [draft, link, file] = ["draft", "link", "file"].map(OsStr::new);
        std::fs::write(path("kept"), "kept").unwrap();
        symlink("kept", path("link")).unwrap();
        assert_eq!(open.create(link, Access::from_umask()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(open.create(draft, Access::from_umask()).unwrap());
        assert!(!open.rename_new(draft, link).unwrap());
        assert!(open.rename_new(draft, file).unwrap());
        open.rename(file, link).unwrap();
        assert!(std::fs::symlink_metadata(path("link")).unwrap().is_file());
        assert_eq!(std::fs::read_to_string(path("kept")).unwrap(), "kept");
        open.sync().unwrap();
        open.remove(link).unwrap();
        assert!(open.make(link, Access::from_umask()).unwrap() && !open.make(link, Access::from_umask()).unwrap());
    }

    pub(super) fn set_mode(folder: &Path, mode: u32) {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The owners, groups and modes of a file and a directory created here.
    fn made(folder: &Path, access: Access) -> [(u32, u32, u32); 2] {
        let open = Folder::open(folder).unwrap();
        drop(open.create(OsStr::new("file"), access).unwrap());
        assert!(open.make(OsStr::new("folder"), access).unwrap());
        let found = ["file", "folder"].map(|name| std::fs::metadata(folder.join(name)).unwrap());
        std::fs::remove_file(folder.join("file")).unwrap();
        std::fs::remove_dir(folder.join("folder")).unwrap();
        found.map(|found| (found.mode() & 0o7777, found.uid(), found.gid()))
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let open = Folder::open(folder.path()).unwrap();
        let [left, link, pipe, way] = ["left", "link", "pipe", "way"].map(OsStr::new);
        let make = |name| open.create_held(name, Access::from_umask()).unwrap();
        let held = make(left).unwrap();
        assert!(make(left).is_none(), "a live process holds it");
        std::fs::write(folder.path().join("left"), "half").unwrap();
        // The kernel releases the lock, however the process ends.
        drop(held);
        assert_eq!(make(left).unwrap().metadata().unwrap().len(), 0);
        symlink("left", folder.path().join("link")).unwrap();
        fs::mkfifoat(CWD, folder.path().join("pipe"), Mode::RUSR).unwrap();
        std::fs::create_dir(folder.path().join("way")).unwrap();
        assert!([link, pipe, way].into_iter().all(|name| make(name).is_none()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn what_is_guarded_is_closed_and_given_to_its_user() {
        if !machine_has(&[Need::Root]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let access = Access::given_to(65_534, 65_533);
        let (given, kept) = ([(0o600, 65_534, 65_533), (0o700, 65_534, 65_533)], [(0o600, 0, 0), (0o700, 0, 0)]);
        // Its owner, its group and its mode; given away only if that user may write.
        for (owner, group, mode, expected) in [
            (0, 0, 0o755, kept),
            (0, 65_533, 0o755, kept),
            (0, 0, 0o775, kept),
            (1, 1, 0o775, kept),
            (65_534, 0, 0o700, given),
            (0, 65_533, 0o775, given),
            (0, 0, 0o1777, given),
        ] {
            chown(folder.path(), Some(owner), Some(group)).unwrap();
            set_mode(folder.path(), mode);
            assert_eq!(made(folder.path(), access), expected, "{owner} {group} {mode:o}");
        }
    }

    #[test]
    fn a_folder_is_new_while_it_is_empty_and_own() {
        let folder = tempfile::tempdir().unwrap();
        let readable = || OwnedFd::from(File::open(folder.path()).unwrap());
        assert!(is_new(&readable()).unwrap());
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(!is_new(&readable()).unwrap());
        std::fs::remove_file(folder.path().join("file")).unwrap();
        if machine_has(&[Need::Root]) {
            chown(folder.path(), Some(NOBODY), None).unwrap();
            assert!(!is_new(&readable()).unwrap());
        }
    }
}
