//! Files that get their name only when they are complete and on the disk.

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

/// A file under a hidden name in the folder of the final one. Dropped without having been published, it is removed.
#[derive(Debug)]
pub struct Draft {
    file: File,
    folder: Folder,
    /// The name that it has until it is published; `None` once it has none of its own any more, or where it never had one.
    hidden: Option<OsString>,
    name: OsString,
    /// The path of that, for messages.
    target: PathBuf,
}

impl Draft {
    /// Begins a file in place of what may stand at `target`, which stays as it is until [`Self::finish`]. Where `target` is a link,
    /// the file that it points to is replaced, unless another user can have put the link there: that is refused. What is no
    /// regular file, such as a pipe, cannot be replaced and is written as it is. The new file has the rights of the one that it
    /// replaces, unless another user can have put that there. Fails if no file can be made there, a folder has that
    /// name, or a link on the way or a pipe there is not to be trusted.
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

    /// Begins a file of a bundle or of another folder that becalm keeps, at a path below that. No link below the folder
    /// is followed. Fails if no file can be made there.
    pub fn for_bundle(bundle: &Path, target: PathBuf) -> Result<Self, BundleError> {
        let held = HeldFolder::open(bundle).map_err(BundleError::io("create", &target))?;
        Self::for_held(&held, target)
    }

    /// The same in a folder that is held open.
    pub(crate) fn for_held(bundle: &HeldFolder, target: PathBuf) -> Result<Self, BundleError> {
        let (folder, name) = bundle.parent_of(&target).map_err(BundleError::io("create", &target))?;
        let name = name.to_owned();
        Self::begin(folder, name, target, bundle.access)
    }

    /// Opens a draft under a name that no other writer uses. What a killed one left of the same file is removed.
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

    /// The path under which the file will be published.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Brings the contents onto the disk, and returns how many bytes they are.
    pub(crate) fn sync(&self) -> Result<u64, BundleError> {
        let error = |cause| BundleError::io("write", &self.target)(cause);
        self.file.sync_all().map_err(error)?;
        Ok(self.file.metadata().map_err(error)?.len())
    }

    /// Gives the file its name, in place of a file that may bear it already. To be called after [`Self::sync`].
    pub(crate) fn publish(mut self) -> Result<(), BundleError> {
        let Some(hidden) = &self.hidden else { return Ok(()) };
        self.folder.rename(hidden, &self.name).map_err(BundleError::io("write", &self.target))?;
        // Another writer may take the hidden name from now on.
        self.hidden = None;
        self.sync_folder()
    }

    /// Brings the contents onto the disk, and gives the file its name. Fails if what was written does not reach the
    /// disk, or the name cannot be given.
    pub fn finish(self) -> Result<(), BundleError> {
        if self.hidden.is_some() {
            self.sync()?;
        }
        self.publish()
    }

    /// Gives the file its name if no other bears it, and says whether it did.
    pub(crate) fn publish_new(mut self) -> Result<bool, BundleError> {
        let Some(hidden) = &self.hidden else { return Ok(false) };
        if !self.folder.rename_new(hidden, &self.name).map_err(BundleError::io("write", &self.target))? {
            return Ok(false);
        }
        self.hidden = None;
        self.sync_folder()?;
        Ok(true)
    }

    /// Makes the names in the file's folder last.
    fn sync_folder(&self) -> Result<(), BundleError> {
        self.folder.sync().map_err(BundleError::io("sync the folder of", &self.target))
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
            // If this fails, a hidden file stays that no reader looks at, until the next writer of this name comes.
            let _ = self.folder.remove(hidden);
        }
    }
}

/// Makes a folder of a bundle, or the bundle's own; no if something has that name already.
pub(crate) fn make_folder(bundle: &Path, wanted: &Path) -> io::Result<bool> {
    if wanted == bundle {
        // Under `sudo`, what has becalm's own ending is the calling user's also in a folder of root's.
        let is_named = bundle.as_os_str().as_encoded_bytes().ends_with(layout::SUFFIX.as_bytes());
        let make = if is_named { folder::make_given } else { folder::make };
        return make(bundle, Access::guarded());
    }
    let held = HeldFolder::open(bundle)?;
    let (parent, name) = held.parent_of(wanted)?;
    parent.make(name, held.access)
}

/// Removes a file of a bundle that is not to count. If that fails, it stays.
pub(crate) fn remove(bundle: &Path, file: &Path) {
    if let Ok(held) = HeldFolder::open(bundle) {
        remove_below(&held, file);
    }
}

/// The same in a folder that is held open.
pub(crate) fn remove_below(bundle: &HeldFolder, file: &Path) {
    let _ = bundle.parent_of(file).and_then(|(folder, name)| folder.remove(name));
}

/// Space on the disk that is held for the closing document, so that a disk which the recording itself filled does not
/// keep the run from being closed.
///
/// The file has no name from the start: dropping it, or the death of the process, gives the space back. On file
/// systems that compress or copy on write this helps as far as they honor what was written.
pub(crate) struct Reserve(#[expect(dead_code, reason = "held for the space that it takes")] File);

impl Reserve {
    /// Takes `bytes` in the folder of `target`, a file of the bundle.
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
        // One that is written at the same time is left alone.
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
        assert!(error.to_string().ends_with("it is a folder"), "{error}");
    }
    #[test]
    fn a_planted_link_is_refused_and_what_it_leads_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, link) = (folder.path().join("kept"), folder.path().join("open/page.html"));
        fs::write(&kept, "kept").unwrap();
        fs::create_dir(folder.path().join("open")).unwrap();
        fs::set_permissions(folder.path().join("open"), fs::Permissions::from_mode(0o1777)).unwrap();
        symlink(&kept, &link).unwrap();
        // Only root can plant for others.
        if !machine_has(&[Need::Root]) {
            return;
        }
        lchown(&link, Some(65_534), None).unwrap();
        let error = Draft::replace(&link).expect_err("the link is another user's").to_string();
        assert!(error.starts_with(&format!("cannot create {}: ", link.display())), "{error}");
        assert!(error.contains("a link that belongs to user 65534") && error.ends_with("give another name"), "{error}");
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
        // A file of another user is another matter: a new one takes its name.
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
