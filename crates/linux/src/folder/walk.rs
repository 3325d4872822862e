//! The walk to a directory, part by part of its path, and the links that it follows.
//!
//! Links of this user or of root are followed. A link of another user is followed only into a directory of that same user, who could create and
//! remove files there anyway; and never from a directory of someone else that others may write. This is the kernel's rule for
//! `fs.protected_symlinks`, applied whatever that setting is.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Folder;
use crate::private::{LINKS, OTHERS_WRITE, trusted_users};

/// A remaining step of a walk.
enum Step {
    /// Continue with a part of the path.
    Part(OsString),
    /// Check where a link of another user has led.
    EndOf(ForeignLink),
}

/// A link that belongs neither to this user nor to root.
struct ForeignLink {
    user: u32,
    shown: PathBuf,
}

impl ForeignLink {
    /// `None` for a link that is followed wherever it leads. Fails if the link is in a directory that users other than the link's owner and the
    /// directory's owner may write.
    fn find(folder: &Folder, link: &Stat, shown: PathBuf) -> io::Result<Option<Self>> {
        if trusted_users()?.contains(&link.st_uid) {
            return Ok(None);
        }
        let (around, found) = (fs::fstat(&folder.0)?, Self { user: link.st_uid, shown });
        if around.st_mode & OTHERS_WRITE != 0 && around.st_uid != found.user {
            return Err(found.refused("is in a directory that others may write"));
        }
        Ok(Some(found))
    }

    /// Refuses a link that leads to another user's directory, or to a file that a process has open.
    fn check(&self, end: &Folder) -> io::Result<()> {
        match fs::fstat(&end.0)?.st_uid {
            user if user != self.user => Err(self.refused(&format!("leads to a directory of user {user}"))),
            _ if end.is_proc()? => Err(self.refused("leads to a process")),
            _ => Ok(()),
        }
    }

    fn refused(&self, why: &str) -> io::Error {
        io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} is a link that belongs to user {} and {why}, and nothing is written through such a link; give another name",
                self.shown.display(),
                self.user
            ),
        )
    }
}

/// Walks to a directory; with `to_file`, to that of the path's last name, which is returned as well unless it is a directory.
pub(crate) fn walk(path: &Path, to_file: bool) -> io::Result<(Folder, Option<OsString>)> {
    let mut at = Folder(folder_at(CWD, OsStr::new("."))?);
    let mut shown = PathBuf::new();
    let mut left = Vec::new();
    push_parts(&mut left, path);
    let mut links = 0;
    // The link that led here: the parent of its owner's directory may be another user's.
    let mut followed: Option<ForeignLink> = None;
    let name = loop {
        let part = match left.pop() {
            None => break None,
            Some(Step::EndOf(link)) => {
                link.check(&at)?;
                followed = Some(link);
                continue;
            }
            Some(Step::Part(part)) => part,
        };
        if part == "/" {
            (at, shown) = (Folder(folder_at(CWD, OsStr::new("/"))?), PathBuf::from("/"));
            continue;
        }
        let is_end = to_file && part != ".." && !left.iter().any(|step| matches!(step, Step::Part(_)));
        let found = match fs::openat(&at.0, &*part, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Ok(found) => found,
            Err(Errno::NOENT) if is_end => break Some(part),
            Err(error) => return Err(error.into()),
        };
        let status = fs::fstat(&found)?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Symlink => {
                links += 1;
                if links > LINKS {
                    return Err(Errno::LOOP.into());
                }
                left.extend(ForeignLink::find(&at, &status, shown.join(&part))?.map(Step::EndOf));
                let target = fs::readlinkat(&found, "", Vec::new())?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                // The target of such a `proc` link is not a path: `pipe:[123]`.
                if is_end && target.is_relative() && at.is_proc()? {
                    break Some(part);
                }
                push_parts(&mut left, &target);
                followed = None;
            }
            FileType::Directory => {
                (at, shown) = (Folder(found), shown.join(&part));
                if let Some(link) = followed.as_ref().filter(|_| part == "..") {
                    link.check(&at)?;
                }
            }
            _ if is_end => break Some(part),
            _ => return Err(Errno::NOTDIR.into()),
        }
    };
    // The last part of a link may be the name of a file: then it ends in that file's directory.
    for step in left {
        if let Step::EndOf(link) = step {
            link.check(&at)?;
        }
    }
    Ok((at, name))
}

/// Pushes the parts of a path onto the remaining steps, whose next step is the last.
fn push_parts(left: &mut Vec<Step>, path: &Path) {
    let parts = path.components().rev().filter(|part| *part != Component::CurDir);
    left.extend(parts.map(|part| Step::Part(part.as_os_str().to_owned())));
}

pub(super) fn folder_at(base: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(fs::openat(base, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use crate::folder::tests::set_mode;
    use crate::folder::{make, make_all};
    use becalm_testing::{Need, machine_has};
    use std::os::unix::fs::{chown, lchown, symlink};

    const NOBODY: u32 = 65_534;

    /// The last name in a path.
    fn name(path: &Path) -> io::Result<OsString> {
        walk(path, true)?.1.ok_or(io::ErrorKind::IsADirectory.into())
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
        assert_eq!(name(&path("link")).unwrap(), "file");
        assert_eq!(name(&path("dangling")).unwrap(), "new");
        for folder in ["way", "deep/.."] {
            assert_eq!(name(&path(folder)).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        }
        assert!(name(&path("round")).is_err() && name(&path("none/file")).is_err());
        assert!(name(&path("deep/file/x")).is_err() && name(Path::new("/")).is_err());
    }

    /// A directory of root's with a subdirectory `deep` that has a file, and links of another user to both.
    fn with_links_of_another() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("deep")).unwrap();
        std::fs::write(path("deep/file"), "kept").unwrap();
        for (link, target) in [("link", "deep/file"), ("new", "deep/new"), ("way", "deep")] {
            symlink(target, path(link)).unwrap();
            lchown(path(link), Some(NOBODY), None).unwrap();
        }
        folder
    }

    const THROUGH_LINKS: [&str; 4] = ["link", "new", "way/file", "way/new"];

    #[test]
    fn links_of_others_do_not_lead_out_of_their_folders() {
        if !machine_has(&[Need::Root]) {
            return;
        }
        let folder = with_links_of_another();
        let path = |name: &str| folder.path().join(name);
        let refused = |why: &str| {
            for name in THROUGH_LINKS {
                let refused = walk(&path(name), true).unwrap_err().to_string();
                assert!(
                    refused.contains("a link that belongs to user 65534") && refused.contains(why),
                    "{name}: {refused}"
                );
            }
            assert!(make(&path("way/folder"), Access::from_umask()).is_err());
            assert!(make_all(&path("way/folder")).is_err() && Folder::open(&path("way")).is_err());
        };
        for open in [0o777, 0o1777, 0o775] {
            set_mode(folder.path(), open);
            refused("is in a directory that others may write");
        }
        // The owner of a link's directory decides where it leads, but not what root does there.
        for owner in [0, NOBODY] {
            chown(folder.path(), Some(owner), None).unwrap();
            set_mode(folder.path(), 0o755);
            refused("leads to a directory of user 0");
        }
        set_mode(folder.path(), 0o1777);
        refused("leads to a directory of user 0");
    }

    #[test]
    fn links_of_others_lead_to_their_own_folders() {
        if !machine_has(&[Need::Root]) {
            return;
        }
        let folder = with_links_of_another();
        let path = |name: &str| folder.path().join(name);
        set_mode(folder.path(), 0o755);
        chown(path("deep"), Some(NOBODY), None).unwrap();
        for (link, end) in THROUGH_LINKS.into_iter().zip(["file", "new", "file", "new"]) {
            assert_eq!(name(&path(link)).unwrap(), end);
        }
        // Root's own directories in there are entered, because root chose their names.
        std::fs::create_dir(path("deep/made")).unwrap();
        assert_eq!(name(&path("way/made/file")).unwrap(), "file");
        symlink("../deep/file", path("deep/own")).unwrap();
        assert_eq!(name(&path("way/own")).unwrap(), "file");
        // The parent belongs to another user, and no third user's link is followed.
        assert!(name(&path("way/../file")).is_err());
        symlink("../deep/file", path("deep/third")).unwrap();
        lchown(path("deep/third"), Some(NOBODY - 1), None).unwrap();
        assert!(
            name(&path("way/third"))
                .unwrap_err()
                .to_string()
                .contains("user 65533 and leads to a directory of user 65534")
        );
    }
}
