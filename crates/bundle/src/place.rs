//! Creates the directory of a bundle, or joins the one that other nodes created.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::contents::Contents;
use super::document::{self, Stored};
use super::held::HeldFolder;
use super::{BundleError, draft, layout, nodes};

/// Creates a bundle, or joins that of other nodes, with this document. Its new directories are removed again unless they are kept.
pub(crate) fn create<D: Stored>(bundle: &Path, doc: &D) -> Result<MadeFolders, BundleError> {
    layout::check_node_name(doc.node())?;
    let mut made = MadeFolders::new(bundle);
    make_bundle(bundle, D::CONTENTS, &mut made)?;
    let target = layout::document(bundle, doc.node());
    let held = HeldFolder::open(bundle).map_err(BundleError::io("create", &target))?;
    let (draft, _) = document::write(&held, &target, doc)?;
    if draft.publish_new()? {
        return Ok(made);
    }
    // The faster writer needs the directories, even if this one created them.
    made.keep();
    Err(BundleError::recorded(bundle, doc.node(), &target))
}

/// Creates the bundle's directory, or checks that an existing bundle has the same contents.
pub(super) fn make_bundle(path: &Path, holds: Contents, made: &mut MadeFolders) -> Result<(), BundleError> {
    let occupied = |what| {
        let path = path.display();
        Err(BundleError::Other(format!("cannot record into {path}: {what}; choose another path, or remove it")))
    };
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => return occupied("it is a file"),
        // The order of the checks matters: another writer may be creating the bundle meanwhile, and this directory is its first one.
        Ok(_) if !is_empty(path)? && !path.join(layout::RUNS).is_dir() => {
            return occupied("it is a directory that is not a run bundle");
        }
        Ok(_) if path.join(layout::RUNS).is_dir() => {
            // Only documents of other nodes matter: an unreadable one of this node keeps it out anyway.
            for document in nodes::documents(path)?.values() {
                let there = document::contents(document).unwrap_or(holds);
                if there != holds {
                    return occupied(there.occupies());
                }
            }
        }
        Ok(_) => {}
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            let parent = match path.parent() {
                Some(parent) if parent != Path::new("") => parent,
                _ => Path::new("."),
            };
            // Not `exists`: the kernel does not follow another user's link in a directory that others may write to, and the creation of the directory
            // then explains why becalm does not write through it.
            if fs::metadata(parent).is_err_and(|cause| cause.kind() == io::ErrorKind::NotFound) {
                let (path, parent) = (path.display(), parent.display());
                return Err(BundleError::Other(format!(
                    "cannot create {path}: the directory {parent} does not exist; create it first, or choose another place"
                )));
            }
            made.make(path)?;
        }
        Err(cause) => return Err(BundleError::io("create the directory", path)(cause)),
    }
    // This one first, because it marks the directory as a bundle for other nodes.
    made.make(&path.join(layout::RUNS))
}

/// Whether a directory contains only hidden files, such as those of network file systems and desktops.
fn is_empty(folder: &Path) -> Result<bool, BundleError> {
    for entry in fs::read_dir(folder).map_err(BundleError::io("read the directory", folder))? {
        let name = entry.map_err(BundleError::io("read the directory", folder))?.file_name();
        if !name.as_encoded_bytes().starts_with(b".") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Directories created for a writer. Unless kept, those that are still empty are removed. A node that joins at that very moment gets an error, and
/// can be started again.
#[derive(Debug)]
pub(crate) struct MadeFolders {
    bundle: PathBuf,
    made: Vec<PathBuf>,
}

impl MadeFolders {
    pub(crate) fn new(bundle: &Path) -> Self {
        Self { bundle: bundle.to_owned(), made: Vec::new() }
    }

    /// Creates a directory, unless another node has created it.
    pub(super) fn make(&mut self, folder: &Path) -> Result<(), BundleError> {
        if draft::make_folder(&self.bundle, folder).map_err(BundleError::io("create the directory", folder))? {
            self.made.push(folder.to_owned());
        }
        Ok(())
    }

    pub(crate) fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in self.made.iter().rev() {
            // Fails if another node has put something into it meanwhile, as intended.
            let _ = fs::remove_dir(folder);
        }
    }
}
