//! The recording behind the view, under a hidden name until it is saved.
//!
//! It is a recording as written by `becalm record`. After a kill -9 it remains and can be opened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// Names of recordings: saved ones, and hidden ones until then.
#[derive(Clone, Debug)]
pub struct RunNames {
    folder: PathBuf,
    stem: String,
}

impl RunNames {
    /// Recordings saved under this path, with a number from the second on.
    pub fn new(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(".becalm").unwrap_or(&name).to_owned();
        Self { folder: path.parent().unwrap_or(Path::new("")).to_owned(), stem }
    }

    /// A hidden name in the same directory, so saving is a rename.
    pub fn hidden(&self) -> PathBuf {
        self.free(&format!(".{}.top-{}", self.stem, process::id()))
    }

    pub fn next(&self) -> PathBuf {
        self.free(&self.stem)
    }

    /// The first such name that is not taken.
    fn free(&self, stem: &str) -> PathBuf {
        let taken = |path: &PathBuf| path.symlink_metadata().is_ok();
        let numbered = (2_u64..).map(|number| format!("{stem}-{number}.becalm"));
        let names = std::iter::once(format!("{stem}.becalm")).chain(numbered);
        let mut paths = names.map(|name| self.folder.join(name)).skip_while(taken);
        paths.next().unwrap_or_else(|| self.folder.join(stem))
    }
}

/// A hidden recording. It is removed on drop unless it was saved.
#[derive(Debug)]
pub struct HiddenBundle {
    path: PathBuf,
}

impl HiddenBundle {
    /// The hidden place of the next recording.
    pub fn new(names: &RunNames) -> Self {
        Self { path: names.hidden() }
    }

    /// The directory of the recording while it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames it to its final name. Fails if it cannot be renamed; it is then removed.
    pub fn save(self, names: &RunNames) -> io::Result<PathBuf> {
        let name = names.next();
        fs::rename(&self.path, &name)?;
        Ok(name)
    }
}

impl Drop for HiddenBundle {
    fn drop(&mut self) {
        // Nothing exists if it was saved or never written.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saves_do_not_overwrite_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let names = RunNames::new(&folder.path().join("quiet.becalm"));
        let mut saved = Vec::new();
        for content in ["a", "b"] {
            let keep = HiddenBundle::new(&names);
            fs::create_dir(keep.path()).unwrap();
            fs::write(keep.path().join("content"), content).unwrap();
            saved.push(keep.save(&names).unwrap());
        }
        assert_eq!(saved, ["quiet.becalm", "quiet-2.becalm"].map(|name| folder.path().join(name)));
        assert_eq!(fs::read_to_string(saved[1].join("content")).unwrap(), "b");
        assert_eq!(fs::read_to_string(saved[0].join("content")).unwrap(), "a");
    }

    #[test]
    fn what_is_not_saved_goes() {
        let folder = tempfile::tempdir().unwrap();
        let keep = HiddenBundle::new(&RunNames::new(&folder.path().join("x")));
        fs::create_dir(keep.path()).unwrap();
        fs::write(keep.path().join("content"), "").unwrap();
        drop(keep);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
