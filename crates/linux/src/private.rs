//! Files and folders of one user: made for nobody else, and refused where somebody else could have put or changed them.
//!
//! What root keeps for later, such as the values that it is to write back, must not be another user's to choose. So nothing
//! here follows a link in the last part of a path, and what is made has the modes 0700 and 0600 whatever the umask is.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The mode bits of everybody but the owner.
const OTHERS: u32 = 0o077;
/// The mode bits by which others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;

/// The users who may decide what this process does: this one, root, and whoever has the first folder of all and so everything, who in
/// a container or a user namespace need not be user 0.
///
/// # Errors
/// If the first folder of all cannot be looked at.
pub(crate) fn trusted_users() -> io::Result<[u32; 3]> {
    Ok([0, rustix::process::geteuid().as_raw(), fs::symlink_metadata("/")?.uid()])
}

/// Makes a folder, and those above it that are missing, for this user alone. One that is there must be this user's, and
/// nobody else may write in it.
///
/// # Errors
/// If it cannot be made, or others could have put something there.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    check_folder(path)
}

/// Refuses a folder in which others than this user may write.
///
/// # Errors
/// If it is a link or no folder, belongs to another user, or others may write in it.
pub fn check_folder(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is no folder"));
    }
    check_owner(&found)
}

/// Makes a file in place of what has this name, for this user alone.
///
/// # Errors
/// If it cannot be made.
pub fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Opens a file of this user, which `options` may make.
///
/// # Errors
/// If it cannot be opened, is a link or no regular file, belongs to another user, or others may write it.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Without O_NONBLOCK the opening of a pipe would wait for somebody at its other end.
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

/// Takes a file's rights from everybody but its owner.
///
/// # Errors
/// If the system refuses.
pub fn close_to_others(file: &File) -> io::Result<()> {
    let mode = file.metadata()?.mode();
    if mode & OTHERS == 0 { Ok(()) } else { file.set_permissions(Permissions::from_mode(mode & 0o700)) }
}

/// Holds space on the disk for what will be written behind a file's end. File systems that cannot do it hold none.
///
/// # Errors
/// If there is not enough space.
pub fn hold_space(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    let end = file.metadata()?.len();
    match fallocate(file, FallocateFlags::KEEP_SIZE, end, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        result => Ok(result?),
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

    #[test]
    fn modes_do_not_depend_on_the_umask() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        // Whoever wants rights for others must ask for them: the umask can only take away from these modes.
        make_folder(&folder).unwrap();
        assert_eq!((mode(&folder), mode(&place.path().join("a"))), (0o700, 0o700));
        let file = folder.join("f");
        drop(create(&file).unwrap());
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        close_to_others(&open(&file, OpenOptions::new().read(true)).unwrap()).unwrap();
        assert_eq!(mode(&file), 0o600);
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
        // What is made replaces a link, and leaves alone what that leads to.
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
}
