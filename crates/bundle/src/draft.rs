//! Files that get their name only when they are complete and on disk.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use becalm_linux::access::Access;
use becalm_linux::destination::Destination;
use becalm_linux::folder::{self, Folder};

use super::BundleError;
use super::held::HeldFolder;
use super::layout;

/// A file under a hidden name in the directory of the final one. It is removed if dropped before it was published.
#[derive(Debug)]
pub struct Draft {
    file: File,
    folder: Folder,
    /// Its name until it is published; `None` afterwards, or if it never had a hidden name.
    hidden: Option<OsString>,
    name: OsString,
    /// The final path, for messages.
    target: PathBuf,
}

impl Draft {
    /// Starts a file that replaces `target`, which stays unchanged until [`Self::finish`]. If `target` is a link, this replaces the file that it
    /// points to, and refuses if another user could have created the link. A special file, such as a pipe, cannot be replaced and is written
    /// directly. The new file gets the mode and owner of the one that it replaces, unless another user could have created that. Fails if no file can
    /// be created there, a directory has that name, or a link on the way or a pipe there is not trusted.
    pub fn replace(target: &Path) -> Result<Self, BundleError> {
        let failed = || BundleError::io("create", target);
        let place = Destination::find(target).map_err(failed())?;
        if let Some(file) = place.open_special().map_err(failed())? {
            return Ok(Self { file, folder: place.folder, hidden: None, name: place.name, target: target.to_owned() });
        }
        let rights = place.rights().map_err(failed())?;
        let access = if rights.is_some() { Access::closed() } else { Access::from_umask() };
        let draft = Self::begin(place.folder, place.name, target.to_owned(), access)?;
        if let Some(rights) = rights {
            rights.give_to(&draft.file).map_err(failed())?;
        }
        Ok(draft)
    }

    /// Starts a file of a bundle or of another directory that becalm manages, at a path below it. Follows no link below that directory. Fails if no
    /// file can be created there.
    pub fn for_bundle(bundle: &Path, target: PathBuf) -> Result<Self, BundleError> {
        let held = HeldFolder::open(bundle).map_err(BundleError::io("create", &target))?;
        Self::for_held(&held, target)
    }

    /// The same in an open directory.
    pub(crate) fn for_held(bundle: &HeldFolder, target: PathBuf) -> Result<Self, BundleError> {
        let (folder, name) = bundle.parent_of(&target).map_err(BundleError::io("create", &target))?;
        let name = name.to_owned();
        Self::begin(folder, name, target, bundle.access)
    }

    /// Opens a draft under a name that no other writer uses. Removes a draft of the same file that a killed writer left.
    fn begin(folder: Folder, name: OsString, target: PathBuf, access: Access) -> Result<Self, BundleError> {
        let mut number = 0_u64;
        loop {
            let hidden = OsString::from(format!(".{}.{number}.draft", name.to_string_lossy()));
            match folder.create_held(&hidden, access).map_err(BundleError::io("create", &target))? {
                Some(file) => return Ok(Self { file, folder, hidden: Some(hidden), name, target }),
                None => number += 1,
            }
        }
    }

    /// The final path of the file.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Syncs the contents to disk and returns their size in bytes.
    pub(crate) fn sync(&self) -> Result<u64, BundleError> {
        let error = |cause| BundleError::io("write", &self.target)(cause);
        self.file.sync_all().map_err(error)?;
        Ok(self.file.metadata().map_err(error)?.len())
    }

    /// Renames the file to its final name, replacing any existing file. To be called after [`Self::sync`].
    pub(crate) fn publish(mut self) -> Result<(), BundleError> {
        let Some(hidden) = &self.hidden else { return Ok(()) };
        self.folder.rename(hidden, &self.name).map_err(BundleError::io("write", &self.target))?;
        // Another writer may now use the hidden name.
        self.hidden = None;
        self.sync_folder()
    }

    /// Syncs the contents to disk and renames the file to its final name. Fails if either fails.
    pub fn finish(self) -> Result<(), BundleError> {
        if self.hidden.is_some() {
            self.sync()?;
        }
        self.publish()
    }

    /// Renames the file to its final name unless that is taken; returns whether it did.
    pub(crate) fn publish_new(mut self) -> Result<bool, BundleError> {
        let Some(hidden) = &self.hidden else { return Ok(false) };
        if !self.folder.rename_new(hidden, &self.name).map_err(BundleError::io("write", &self.target))? {
            return Ok(false);
        }
        self.hidden = None;
        self.sync_folder()?;
        Ok(true)
    }

    /// Syncs the directory of the file, to make its new name durable.
    fn sync_folder(&self) -> Result<(), BundleError> {
        self.folder.sync().map_err(BundleError::io("sync the directory of", &self.target))
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            // If this fails, a hidden file stays, which readers ignore, until the next writer of this name removes it.
            let _ = self.folder.remove(hidden);
        }
    }
}

/// Creates a directory of a bundle, or the bundle's own; `false` if the name is taken.
pub(crate) fn make_folder(bundle: &Path, wanted: &Path) -> io::Result<bool> {
    if wanted == bundle {
        // Under `sudo`, a directory with becalm's suffix belongs to the calling user, even inside a directory of root's.
        let is_named = bundle.as_os_str().as_encoded_bytes().ends_with(layout::SUFFIX.as_bytes());
        let make = if is_named { folder::make_given } else { folder::make };
        return make(bundle, Access::guarded());
    }
    let held = HeldFolder::open(bundle)?;
    let (parent, name) = held.parent_of(wanted)?;
    parent.make(name, held.access)
}

/// Removes an invalid file of a bundle. If that fails, it stays.
pub(crate) fn remove(bundle: &Path, file: &Path) {
    if let Ok(held) = HeldFolder::open(bundle) {
        remove_below(&held, file);
    }
}

/// The same in an open directory.
pub(crate) fn remove_below(bundle: &HeldFolder, file: &Path) {
    let _ = bundle.parent_of(file).and_then(|(folder, name)| folder.remove(name));
}

/// Disk space reserved for the closing document, so a disk that the recording itself filled does not prevent closing the run.
///
/// The file has no name from the start: dropping it, or the death of the process, frees the space. On file systems with compression or copy-on-write,
/// this is not guaranteed to help.
pub(crate) struct Reserve(#[expect(dead_code, reason = "held for the space that it takes")] File);

impl Reserve {
    /// Reserves `bytes` in the directory of `target`, a file of the bundle.
    pub(crate) fn new(bundle: &HeldFolder, target: &Path, bytes: usize) -> Result<Self, BundleError> {
        let draft = Draft::for_held(bundle, target.with_extension("reserve"))?;
        let error = |cause| BundleError::io("reserve space for", target)(cause);
        let mut file = draft.file().try_clone().map_err(error)?;
        drop(draft);
        let block = [0_u8; 1 << 14];
        for _ in 0..bytes.div_ceil(block.len()) {
            file.write_all(&block).map_err(error)?;
        }
        file.sync_all().map_err(error)?;
        Ok(Self(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::{Need, machine_has};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("page.html");
        fs::write(&target, "before").unwrap();
        let mut draft = Draft::replace(&target).unwrap();
        draft.write_all(b"half").unwrap();
        drop(draft);
        assert_eq!(fs::read_to_string(&target).unwrap(), "before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_finished_replaces_also_behind_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("page.html"), folder.path().join("link.html"));
        fs::write(&target, "before").unwrap();
        symlink(&target, &link).unwrap();
        let mut draft = Draft::replace(&link).unwrap();
        draft.write_all(b"after").unwrap();
        draft.finish().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn rights_of_what_is_replaced_stay() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("page.html");
        let mode = || fs::metadata(&target).unwrap().mode() & 0o7777;
        for before in [0o600, 0o640, 0o664] {
            fs::write(&target, "before").unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(before)).unwrap();
            Draft::replace(&target).unwrap().finish().unwrap();
            assert_eq!(mode(), before, "{before:o}");
        }
        assert_eq!(fs::read(&target).unwrap(), b"");
    }

    #[test]
    fn what_a_killed_writer_left_is_removed_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("page.html");
        fs::write(folder.path().join(".page.html.0.draft"), "half").unwrap();
        fs::write(folder.path().join(".other.html.0.draft"), "another's").unwrap();
        // A draft that is being written at the same time is left alone.
        let (first, second) = (Draft::replace(&target).unwrap(), Draft::replace(&target).unwrap());
        second.finish().unwrap();
        first.finish().unwrap();
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".other.html.0.draft", "page.html"]);
    }

    #[test]
    fn a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Draft::replace(folder.path()).expect_err("a folder cannot be replaced");
        assert!(error.to_string().ends_with("it is a directory"), "{error}");
    }
    #[test]
    fn a_planted_link_is_refused_and_what_it_leads_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, link) = (folder.path().join("kept"), folder.path().join("open/page.html"));
        fs::write(&kept, "kept").unwrap();
        fs::create_dir(folder.path().join("open")).unwrap();
        fs::set_permissions(folder.path().join("open"), fs::Permissions::from_mode(0o1777)).unwrap();
        symlink(&kept, &link).unwrap();
        // Only root can create files as other users.
        if !machine_has(&[Need::Root]) {
            return;
        }
        lchown(&link, Some(65_534), None).unwrap();
        let error = Draft::replace(&link).expect_err("the link is another user's").to_string();
        assert!(error.starts_with(&format!("cannot create {}: ", link.display())), "{error}");
        assert!(error.contains("a link that belongs to user 65534") && error.ends_with("give another name"), "{error}");
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
        // A regular file of another user, on the other hand, is replaced.
        fs::remove_file(&link).unwrap();
        fs::write(&link, "theirs").unwrap();
        lchown(&link, Some(65_534), None).unwrap();
        let mut draft = Draft::replace(&link).unwrap();
        draft.write_all(b"ours").unwrap();
        draft.finish().unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), "ours");
        assert_ne!(fs::metadata(&link).unwrap().uid(), 65_534);
    }

    #[test]
    fn files_of_a_bundle_go_through_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("run.becalm");
        fs::create_dir_all(folder.path().join("elsewhere")).unwrap();
        fs::create_dir(&bundle).unwrap();
        symlink("../elsewhere", bundle.join("runs")).unwrap();
        let error = Draft::for_bundle(&bundle, bundle.join("runs/node=a.json")).expect_err("it is a link").to_string();
        assert!(error.contains("'runs' is a link or a file"), "{error}");
        assert!(make_folder(&bundle, &bundle.join("runs/more")).is_err());
        assert_eq!(fs::read_dir(folder.path().join("elsewhere")).unwrap().count(), 0);
        assert!(Draft::for_bundle(&bundle, folder.path().join("file")).is_err());
    }

    #[test]
    fn what_root_keeps_is_closed() {
        if !machine_has(&[Need::Root]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("run.becalm");
        assert!(make_folder(&bundle, &bundle).unwrap() && !make_folder(&bundle, &bundle).unwrap());
        Draft::for_bundle(&bundle, bundle.join("file")).unwrap().finish().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&bundle), mode(&bundle.join("file"))), (0o700, 0o600));
    }
}
