//! Files and directories of one user: created for no other user, and refused if other users could have put or changed them.
//!
//! Other users must not influence what root keeps for later, such as values to restore. So directories are found on paths that no other user can
//! change, files are never opened through links, and new ones have the modes 0700 and 0600 whatever the umask is.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The mode bits for everyone but the owner.
const OTHERS: u32 = 0o077;
/// The mode bits that let users other than the owner write.
pub(crate) const OTHERS_WRITE: u32 = 0o022;
/// The maximum number of links on a path, as in the kernel.
pub(crate) const LINKS: u32 = 40;

/// The users who may decide what this process does: its own, root, and the owner of the root directory, who controls everything and need not be user
/// 0 in a container or a user namespace. Fails if the root directory cannot be read.
pub(crate) fn trusted_users() -> io::Result<[u32; 3]> {
    Ok([0, rustix::process::geteuid().as_raw(), fs::symlink_metadata("/")?.uid()])
}

/// Creates a directory and its missing parents for this user alone; returns its path with all links resolved. Existing ones must not let other users
/// write in them or replace them. Fails if it cannot be created, or others could have put something there.
pub fn make_folder(path: &Path) -> io::Result<PathBuf> {
    let folder = walk(path, true)?;
    check_folder(&folder)?;
    Ok(folder)
}

/// The path of this user's directory with all links resolved, with the checks of [`make_folder`]. Fails if it is missing, or others could have put
/// something there.
pub fn find_folder(path: &Path) -> io::Result<PathBuf> {
    let folder = walk(path, false)?;
    check_folder(&folder)?;
    Ok(folder)
}

/// Follows a path. Fails if another user can replace anything in its directories, or created one of its links.
fn walk(path: &Path, make: bool) -> io::Result<PathBuf> {
    let trusted = trusted_users()?;
    // The next part is last.
    let parts = |path: &Path| path.iter().rev().map(OsStr::to_owned).collect::<Vec<_>>();
    let mut left = parts(&std::path::absolute(path)?);
    let mut way = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop() {
        match part.as_bytes() {
            // The parts of an absolute link start with the root directory.
            b"/" => way = PathBuf::from("/"),
            b"." => {}
            b".." => drop(way.pop()),
            _ => {
                check_above(&way, trusted, true)?;
                let next = way.join(part);
                let found = match fs::symlink_metadata(&next) {
                    Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                        DirBuilder::new().recursive(true).mode(0o700).create(&next)?;
                        fs::symlink_metadata(&next)?
                    }
                    found => found?,
                };
                if !found.is_symlink() {
                    way = next;
                    continue;
                }
                links += 1;
                let refused = |why: String| io::Error::other(format!("{} is a link {why}", next.display()));
                if !trusted.contains(&found.uid()) {
                    return Err(refused(format!("that belongs to user {}", found.uid())));
                }
                if links > LINKS {
                    return Err(refused("of too many".to_owned()));
                }
                left.extend(parts(&fs::read_link(&next)?));
            }
        }
    }
    Ok(way)
}

/// Fails if untrusted users could replace an entry of the directory or, unless `may_be_sticky`, recreate a removed one; or if it is not a directory.
pub(crate) fn check_above(folder: &Path, trusted: [u32; 3], may_be_sticky: bool) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    let refused = |why: String| Err(io::Error::other(format!("{} {why}", folder.display())));
    if !found.is_dir() {
        return refused("is not a directory".to_owned());
    }
    if !trusted.contains(&found.uid()) {
        return refused(format!("belongs to user {}", found.uid()));
    }
    // In a sticky directory (01000), only the owner of an entry may rename it.
    let is_kept = may_be_sticky && found.mode() & 0o1000 != 0;
    if found.mode() & OTHERS_WRITE != 0 && !is_kept {
        return refused(format!("may be written by others (its mode is {:04o})", found.mode() & 0o7777));
    }
    Ok(())
}

/// Fails if it is a link or not a directory, belongs to another user, or others may write in it.
pub fn check_folder(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory"));
    }
    check_owner(&found)
}

/// Creates a file for this user alone, replacing any of this name.
pub fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Opens a file of this user; `options` may create it. Fails if it cannot be opened, is a link or not a regular file, belongs to another user, or
/// others may write it.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Without O_NONBLOCK, opening a pipe would wait for its other end.
    let file =
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).map_err(
            |error| match error.raw_os_error() {
                Some(libc::ELOOP) => io::Error::other("it is a link, and none is followed here"),
                _ => error,
            },
        )?;
    let found = file.metadata()?;
    if !found.is_file() {
        let kind = if found.file_type().is_fifo() { "a pipe" } else { "no regular file" };
        return Err(io::Error::other(format!("it is {kind}")));
    }
    check_owner(&found)?;
    Ok(file)
}

/// Removes all permissions of a file except the owner's.
pub fn close_to_others(file: &File) -> io::Result<()> {
    let mode = file.metadata()?.mode();
    if mode & OTHERS == 0 { Ok(()) } else { file.set_permissions(Permissions::from_mode(mode & 0o700)) }
}

/// Reserves disk space for data that will be written after the end of a file. File systems without support reserve none.
pub fn hold_space(file: &File, bytes: u64) -> io::Result<()> {
    let end = file.metadata()?.len();
    allocate(file, end, bytes)
}

fn allocate(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::KEEP_SIZE, from, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        result => Ok(result?),
    }
}

/// The space reserved after the end of a growing file, refilled as it is used up.
#[derive(Debug, Default)]
pub struct Reserve {
    /// Its end in the file; truncating the file releases it.
    end: u64,
}

impl Reserve {
    /// Reserves at least this many bytes after the end of the file. If that fails, earlier reservations remain: a tmpfs releases only what it was
    /// just asked for.
    pub fn hold(&mut self, file: &File, bytes: u64) -> io::Result<()> {
        let len = file.metadata()?.len();
        // Ask for no page twice.
        let wanted = len.saturating_add(bytes).next_multiple_of(rustix::param::page_size() as u64);
        let from = self.end.max(len);
        if wanted > from {
            allocate(file, from, wanted - from)?;
            self.end = wanted;
        }
        Ok(())
    }
}

fn check_owner(found: &fs::Metadata) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        return Err(io::Error::other(format!(
            "it belongs to user {}, and this process runs as user {own}",
            found.uid()
        )));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(io::Error::other(format!("others may write it (its mode is {:04o})", found.mode() & 0o7777)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    /// Runs something in a thread with its own umask.
    fn with_umask(umask: u32, what: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                // SAFETY: the calling thread gets its own umask and working directory, and ends soon.
                assert_eq!(unsafe { libc::unshare(libc::CLONE_FS) }, 0, "{}", io::Error::last_os_error());
                rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
                what();
            });
            thread.join().unwrap();
        });
    }

    #[test]
    fn modes_do_not_depend_on_the_umask() {
        for umask in [0o000, 0o022, 0o077] {
            let place = tempfile::tempdir().unwrap();
            let (folder, file) = (place.path().join("a/b"), place.path().join("a/b/f"));
            with_umask(umask, || {
                // The mask is in effect: without explicit modes, this would be open to all.
                fs::write(place.path().join("plain"), "").unwrap();
                assert_eq!(mode(&place.path().join("plain")), 0o666 & !umask);
                assert_eq!(make_folder(&folder).unwrap(), folder.canonicalize().unwrap());
                drop(create(&file).unwrap());
                drop(open(&folder.join("g"), OpenOptions::new().write(true).create(true).truncate(false)).unwrap());
            });
            assert_eq!((mode(&folder), mode(&place.path().join("a"))), (0o700, 0o700));
            assert_eq!((mode(&file), mode(&folder.join("g"))), (0o600, 0o600));
            fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
            close_to_others(&open(&file, OpenOptions::new().read(true)).unwrap()).unwrap();
            assert_eq!(mode(&file), 0o600);
        }
    }

    #[test]
    fn nobody_else_can_exchange_what_is_on_the_way() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let real = make_folder(&path("a/b/own")).unwrap();
        symlink("a/../a", path("way")).unwrap();
        symlink(path("way/b"), path("far")).unwrap();
        symlink("round", path("round")).unwrap();
        for name in ["a/b/own", "way/b/own", "far/own", "far/../b/./own"] {
            assert_eq!(find_folder(&path(name)).unwrap(), real, "{name}");
        }
        assert_eq!(make_folder(&path("far/new/one")).unwrap(), real.parent().unwrap().join("new/one"));
        assert_eq!(mode(&path("a/b/new")), 0o700);
        assert!(find_folder(&path("round/x")).unwrap_err().to_string().contains("of too many"));
        assert_eq!(find_folder(&path("none/own")).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(path("file"), "").unwrap();
        assert!(find_folder(&path("file/own")).unwrap_err().to_string().contains("is not a directory"));
        // A user who may write to a directory on the path can replace its entries.
        let why = |name: &str| make_folder(&path(name)).unwrap_err().to_string();
        let chmod = |name: &str, mode| fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        for mode in [0o777, 0o775, 0o722] {
            chmod("a", mode);
            assert!(why("far/own").contains("a may be written by others"), "{mode:o}");
            assert!(why("a/missing/own").contains("a may be written by others"));
        }
        chmod("a", 0o1777);
        assert_eq!(find_folder(&path("a/b/own")).unwrap(), real);
        if rustix::process::geteuid().is_root() {
            use std::os::unix::fs::{chown, lchown};
            lchown(path("way"), Some(65534), None).unwrap();
            assert!(why("far/own").contains("way is a link that belongs to user 65534"));
            chown(path("a/b"), Some(65534), None).unwrap();
            assert!(why("a/b/own").contains("b belongs to user 65534"));
            assert!(why("a/b").contains("it belongs to user 65534"));
        }
    }

    #[test]
    fn what_others_could_have_made_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let (file, link, pipe) = (place.path().join("f"), place.path().join("link"), place.path().join("pipe"));
        fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        let refused = |path: &Path| open(path, OpenOptions::new().read(true)).unwrap_err().to_string();
        assert!(refused(&link).contains("it is a link"));
        assert!(refused(&pipe).contains("it is a pipe"));
        fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        assert!(refused(&file).contains("others may write it (its mode is 0666)"));
        let folder = place.path().join("open");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        assert!(make_folder(&folder).unwrap_err().to_string().contains("0777"));
        symlink(place.path(), place.path().join("way")).unwrap();
        assert!(check_folder(&place.path().join("way")).is_err());
        if rustix::process::geteuid().is_root() {
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
            assert!(refused(&file).contains("it belongs to user 65534"));
        }
        // A created file replaces a link, and leaves its target alone.
        let kept = place.path().join("kept");
        fs::write(&kept, "kept").unwrap();
        fs::remove_file(&link).unwrap();
        symlink(&kept, &link).unwrap();
        drop(create(&link).unwrap());
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
    }

    #[test]
    fn space_is_held_without_growing_the_file() {
        let place = tempfile::tempdir().unwrap();
        let file = create(&place.path().join("f")).unwrap();
        hold_space(&file, 100_000).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 0);
        assert!(hold_space(&file, u64::MAX / 4).is_err());
    }

    #[test]
    fn what_is_held_grows_with_its_file_and_outlives_a_refusal() {
        // A file system of pages, as used for root's journals.
        let Ok(place) = tempfile::tempdir_in("/dev/shm") else { return };
        let mut file = create(&place.path().join("f")).unwrap();
        let held = |file: &File| file.metadata().unwrap().blocks() * 512;
        let mut reserve = Reserve::default();
        for _ in 0..100 {
            reserve.hold(&file, 100_000).unwrap();
            let len = file.metadata().unwrap().len();
            assert!(held(&file) >= len + 100_000, "{} of {len}", held(&file));
            io::Write::write_all(&mut file, &[0; 7_777]).unwrap();
        }
        let before = held(&file);
        assert!(reserve.hold(&file, u64::MAX / 4).is_err());
        assert_eq!(held(&file), before);
    }
}
