//! Folders that are held open while output is made in them, so that no link of another user leads it elsewhere.
//!
//! A path is walked part by part. A link on it is followed only where nobody else can have put it there, which is the kernel's
//! rule under `fs.protected_symlinks`, held here whatever that setting is, and in every folder that others may write. What is
//! then made, renamed or removed is named within the open folder, so that nothing can be exchanged under way.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};

use crate::access::Access;

/// The mode bits by which others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;
/// So many links stand on a path at most, as for the kernel.
const LINKS: u32 = 40;

/// A folder, held open.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// Where a file is or may be made.
#[derive(Debug)]
pub struct Place {
    /// The folder, behind all links.
    pub folder: Folder,
    /// The name in it.
    pub name: OsString,
}

impl Place {
    /// Finds the place that a path means. If there is a link, the place is where that leads to.
    ///
    /// # Errors
    /// If a folder on the way is missing or cannot be searched, or a link is another user's; see [`Folder::open`].
    pub fn find(path: &Path) -> io::Result<Self> {
        let (folder, name) = walk(path, true)?;
        match name {
            Some(name) => Ok(Self { folder, name }),
            None => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")),
        }
    }

    /// Whether something is there that is no regular file, and so cannot be replaced by one.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn is_special(&self) -> io::Result<bool> {
        // What `proc` shows as a link is looked at behind it. Another link can have come only since the walk.
        match fs::statat(&self.folder.0, &*self.name, AtFlags::empty()) {
            Ok(found) => Ok(FileType::from_raw_mode(found.st_mode) != FileType::RegularFile),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens what is no regular file, such as a pipe or a terminal, to be written as it is.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn open_special(&self) -> io::Result<File> {
        // The walk has followed every link but those of `proc`, which nobody can make.
        let follow = if self.folder.is_proc()? { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY | follow;
        Ok(fs::openat(&self.folder.0, &*self.name, flags, Mode::empty())?.into())
    }
}

impl Folder {
    /// Opens a folder by its path.
    ///
    /// # Errors
    /// If it is missing or none, or on the way stands a link that another user may have put there: one in a folder that others may
    /// write, which belongs neither to this user nor to the folder's owner.
    pub fn open(path: &Path) -> io::Result<Self> {
        walk(path, false).map(|(folder, _)| folder)
    }

    /// Opens a folder below this one, following no link at all.
    ///
    /// # Errors
    /// If it is missing, or a link or a file stands in its way.
    pub fn below(self, path: &Path) -> io::Result<Self> {
        path.components().try_fold(self, |folder, part| {
            let Component::Normal(name) = part else {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it does not lie below its folder"));
            };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match fs::openat(&folder.0, name, flags, Mode::empty()) {
                Ok(next) => Ok(Self(next)),
                Err(rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => Err(io::Error::new(
                    io::ErrorKind::NotADirectory,
                    format!("'{}' is a link or a file where a folder should be", name.display()),
                )),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Makes a file that is not there yet.
    ///
    /// # Errors
    /// If anything has this name, a link included, and if the system refuses.
    pub fn create(&self, name: &OsStr, access: Access) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(fs::openat(&self.0, name, flags, Mode::from_raw_mode(access.file_mode()))?);
        access.give(&file);
        Ok(file)
    }

    /// Makes a folder in this one; no if something has that name already.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn make(&self, name: &OsStr, access: Access) -> io::Result<bool> {
        match fs::mkdirat(&self.0, name, Mode::from_raw_mode(access.folder_mode())) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if access.is_given() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            access.give(&File::from(fs::openat(&self.0, name, flags, Mode::empty())?));
        }
        Ok(true)
    }

    /// Gives a file of this folder another name, which may be that of another file: that is replaced, and a link is as well.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Gives a file of this folder another name that nothing bears; no if something does.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<bool> {
        use rustix::io::Errno;
        match fs::renameat_with(&self.0, from, &self.0, to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => return Ok(false),
            // The file system cannot, or a kernel before 3.15.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        match fs::linkat(&self.0, from, &self.0, to, AtFlags::empty()) {
            Ok(()) => self.remove(from).map(|()| true),
            Err(Errno::EXIST) => Ok(false),
            // File systems without hard links say one of these. To look first and then rename leaves an instant in which another
            // writer could get in between; there is nothing better that works everywhere.
            Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) => {
                match fs::statat(&self.0, to, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Ok(false),
                    Err(_) => self.rename(from, to).map(|()| true),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file of this folder.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Makes the names in the folder survive a crash, as far as its file system can do that.
    ///
    /// # Errors
    /// If the folder cannot be opened or its file system cannot be written.
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

    /// Whether it is of the file system `proc`, some of whose links lead to what has no path.
    fn is_proc(&self) -> io::Result<bool> {
        Ok(fs::fstatfs(&self.0)?.f_type == fs::PROC_SUPER_MAGIC)
    }
}

/// Makes a folder by its path; no if something has that name already.
///
/// # Errors
/// If the folder above it is missing, or a link on the way is another user's, and if the system refuses.
pub fn make(path: &Path, access: Access) -> io::Result<bool> {
    let Some(name) = path.file_name() else { return Folder::open(path).map(|_| false) };
    Folder::open(path.parent().unwrap_or(Path::new("")))?.make(name, access)
}

/// Makes a folder by its path.
///
/// # Errors
/// As of [`make`], and if something has that name already.
pub fn make_new(path: &Path, access: Access) -> io::Result<()> {
    if make(path, access)? { Ok(()) } else { Err(rustix::io::Errno::EXIST.into()) }
}

/// Makes a folder and those above it that are missing, with the rights that the umask leaves. One that is there is good.
///
/// # Errors
/// As of [`make`].
pub fn make_all(path: &Path) -> io::Result<()> {
    match Folder::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened.map(drop),
    }
    if let Some(parent) = path.parent() {
        make_all(parent)?;
    }
    make(path, Access::by_umask())?;
    Folder::open(path).map(drop)
}

/// Walks to a folder; with `to_file` to that of the path's last name, which is given beside it unless it is a folder.
fn walk(path: &Path, to_file: bool) -> io::Result<(Folder, Option<OsString>)> {
    let mut at = Folder(folder_at(CWD, OsStr::new("."))?);
    let mut shown = PathBuf::new();
    let mut left = Vec::new();
    push_parts(&mut left, path);
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == "/" {
            (at, shown) = (Folder(folder_at(CWD, OsStr::new("/"))?), PathBuf::from("/"));
            continue;
        }
        let is_end = to_file && left.is_empty() && part != "..";
        let found = match fs::openat(&at.0, &*part, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Ok(found) => found,
            Err(rustix::io::Errno::NOENT) if is_end => return Ok((at, Some(part))),
            Err(error) => return Err(error.into()),
        };
        let status = fs::fstat(&found)?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Symlink => {
                check_link(&at, &status, &shown.join(&part))?;
                links += 1;
                if links > LINKS {
                    return Err(rustix::io::Errno::LOOP.into());
                }
                let target = fs::readlinkat(&found, "", Vec::new())?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                // What such a link of `proc` shows is no path: `pipe:[123]`.
                if is_end && target.is_relative() && at.is_proc()? {
                    return Ok((at, Some(part)));
                }
                push_parts(&mut left, &target);
            }
            FileType::Directory if is_end => return Ok((Folder(found), None)),
            FileType::Directory => (at, shown) = (Folder(found), shown.join(&part)),
            _ if is_end => return Ok((at, Some(part))),
            _ => return Err(rustix::io::Errno::NOTDIR.into()),
        }
    }
    Ok((at, None))
}

/// Puts the parts of a path on what is still to be walked, whose next part is the last.
fn push_parts(left: &mut Vec<OsString>, path: &Path) {
    left.extend(
        path.components().rev().filter(|part| *part != Component::CurDir).map(|part| part.as_os_str().to_owned()),
    );
}

fn folder_at(base: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(fs::openat(base, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Refuses a link that another user may have put there.
fn check_link(folder: &Folder, link: &Stat, shown: &Path) -> io::Result<()> {
    let around = fs::fstat(&folder.0)?;
    let own = rustix::process::geteuid().as_raw();
    if around.st_mode & OTHERS_WRITE == 0 || link.st_uid == own || link.st_uid == around.st_uid {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{} is a link that belongs to user {}, in a folder that others may write, and nothing is written through such a link; \
             give another name",
            shown.display(),
            link.st_uid
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

    const NOBODY: u32 = 65_534;

    /// Whether it is special, and its name.
    fn place(path: &Path) -> io::Result<(bool, OsString)> {
        let place = Place::find(path)?;
        Ok((place.is_special()?, place.name))
    }

    #[test]
    fn own_links_are_followed_to_their_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("deep")).unwrap();
        std::fs::write(path("deep/file"), "").unwrap();
        symlink("deep", path("way")).unwrap();
        symlink("way/../way/file", path("link")).unwrap();
        symlink(path("deep/new"), path("dangling")).unwrap();
        symlink("round", path("round")).unwrap();
        assert_eq!(place(&path("link")).unwrap(), (false, "file".into()));
        assert_eq!(place(&path("dangling")).unwrap(), (false, "new".into()));
        assert_eq!(place(&path("way")).unwrap_err().to_string(), "it is a folder");
        assert!(place(&path("round")).is_err() && place(&path("none/file")).is_err());
        assert!(
            place(&path("deep/file/x")).is_err() && place(Path::new("/")).is_err() && place(&path("deep/..")).is_err()
        );
    }

    #[test]
    fn what_has_no_path_is_written_as_it_is() {
        let mut pair = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pair.1));
        let place = Place::find(Path::new(&path)).unwrap();
        assert!(place.is_special().unwrap());
        io::Write::write_all(&mut place.open_special().unwrap(), b"text").unwrap();
        drop(pair.1);
        let mut text = String::new();
        io::Read::read_to_string(&mut pair.0, &mut text).unwrap();
        assert_eq!(text, "text");
        assert!(super::Place::find(Path::new("/dev/null")).unwrap().is_special().unwrap());
    }

    #[test]
    fn links_of_others_are_followed_only_where_others_cannot_write() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mode = |mode| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        std::fs::create_dir(path("deep")).unwrap();
        std::fs::write(path("deep/file"), "kept").unwrap();
        for (link, target) in [("link", "deep/file"), ("way", "deep")] {
            symlink(target, path(link)).unwrap();
            lchown(path(link), Some(NOBODY), None).unwrap();
        }
        for open in [0o777, 0o1777, 0o775] {
            mode(open);
            for name in ["link", "way/file", "way/new"] {
                let refused = Place::find(&path(name)).unwrap_err();
                assert!(
                    refused.to_string().contains("a link that belongs to user 65534"),
                    "{open:o} {name}: {refused}"
                );
            }
            assert!(make(&path("way/folder"), Access::by_umask()).is_err());
            assert!(make_all(&path("way/folder")).is_err());
        }
        mode(0o755);
        assert_eq!(place(&path("link")).unwrap().1, "file");
        // A folder of whoever made the link is that user's affair.
        mode(0o1777);
        std::os::unix::fs::chown(folder.path(), Some(NOBODY), None).unwrap();
        assert_eq!(place(&path("link")).unwrap().1, "file");
    }

    #[test]
    fn below_a_folder_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        symlink("a", folder.path().join("way")).unwrap();
        let below = |path: &str| Folder::open(folder.path()).unwrap().below(Path::new(path));
        assert!(below("a/b").is_ok() && below("").is_ok());
        assert!(below("way/b").unwrap_err().to_string().contains("'way' is a link or a file"));
        assert!(below("../x").is_err() && below("/etc").is_err());
    }

    #[test]
    fn files_are_made_once_and_renamed_over_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let open = Folder::open(folder.path()).unwrap();
        let [draft, link, file] = ["draft", "link", "file"].map(OsStr::new);
        std::fs::write(path("kept"), "kept").unwrap();
        symlink("kept", path("link")).unwrap();
        assert_eq!(open.create(link, Access::by_umask()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(open.create(draft, Access::by_umask()).unwrap());
        assert!(!open.rename_new(draft, link).unwrap());
        assert!(open.rename_new(draft, file).unwrap());
        open.rename(file, link).unwrap();
        assert!(std::fs::symlink_metadata(path("link")).unwrap().is_file());
        assert_eq!(std::fs::read_to_string(path("kept")).unwrap(), "kept");
        open.sync().unwrap();
        open.remove(link).unwrap();
        assert!(open.make(link, Access::by_umask()).unwrap() && !open.make(link, Access::by_umask()).unwrap());
    }

    #[test]
    fn what_is_guarded_is_closed_and_given_to_its_user() {
        let folder = tempfile::tempdir().unwrap();
        let open = Folder::open(folder.path()).unwrap();
        let access = Access::of_user(true, Some("65534"), Some("65533"));
        let file = open.create(OsStr::new("file"), access).unwrap();
        assert!(open.make(OsStr::new("folder"), access).unwrap());
        let made = std::fs::metadata(folder.path().join("folder")).unwrap();
        assert_eq!((file.metadata().unwrap().mode() & 0o7777, made.mode() & 0o7777), (0o600, 0o700));
        if rustix::process::geteuid().is_root() {
            assert_eq!((file.metadata().unwrap().uid(), made.uid(), made.gid()), (65_534, 65_534, 65_533));
        }
    }
}
