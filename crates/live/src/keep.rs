//! The recording that goes on behind the view, under a hidden name until it is saved.
//!
//! It is a bundle as `becalm record` writes it. After a kill -9 it stays, and opens.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// Names of runs: what is saved, and what is hidden until then.
#[derive(Clone, Debug)]
pub struct RunNames {
    folder: PathBuf,
    stem: String,
}

impl RunNames {
    /// Runs that are saved under this path, the later ones with a number.
    pub fn new(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(".becalm").unwrap_or(&name).to_owned();
        Self { folder: path.parent().unwrap_or(Path::new("")).to_owned(), stem }
    }

    /// A hidden name beside them, so that saving is only renaming.
    pub fn hidden(&self) -> PathBuf {
        self.free(&format!(".{}.top-{}", self.stem, process::id()))
    }

    pub fn next(&self) -> PathBuf {
        self.free(&self.stem)
    }

    /// The first name of its kind that nothing has.
    fn free(&self, stem: &str) -> PathBuf {
        let taken = |path: &PathBuf| path.symlink_metadata().is_ok();
        let numbered = (2_u64..).map(|number| format!("{stem}-{number}.becalm"));
        let names = std::iter::once(format!("{stem}.becalm")).chain(numbered);
        let mut paths = names.map(|name| self.folder.join(name)).skip_while(taken);
        paths.next().unwrap_or_else(|| self.folder.join(stem))
    }
}

/// A hidden bundle. Dropped without having been saved, it is removed.
#[derive(Debug)]
pub struct HiddenBundle {
    path: PathBuf,
}

impl HiddenBundle {
    /// The hidden bundle that the next recording is written into.
    pub fn new(names: &RunNames) -> Self {
        Self { path: names.hidden() }
    }

    /// The folder of the bundle while it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name. Fails if it cannot be renamed; it is removed then.
    pub fn save(self, names: &RunNames) -> io::Result<PathBuf> {
        let name = names.next();
        fs::rename(&self.path, &name)?;
        Ok(name)
    }
}

impl Drop for HiddenBundle {
    fn drop(&mut self) {
        // Where it was saved, or was never written, there is nothing.
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
