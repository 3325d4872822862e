//! The place of a bundle: its folder is made, or joined where other nodes have made it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::contents::Contents;
use super::document::{self, Stored};
use super::held::HeldFolder;
use super::{BundleError, draft, layout, nodes};

/// Makes a bundle, or joins the one of other nodes, with this document. The folders that were made for it are removed
/// again unless they are kept.
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
    // Whoever was faster needs the folders, whoever made them.
    made.keep();
    Err(BundleError::recorded(bundle, doc.node(), &target))
}

/// Makes the bundle's folder, or finds out that a bundle is there which holds the same.
pub(super) fn make_bundle(path: &Path, holds: Contents, made: &mut MadeFolders) -> Result<(), BundleError> {
    let occupied = |what| {
        let path = path.display();
        Err(BundleError::Other(format!("cannot record into {path}: {what}; choose another path, or remove it")))
    };
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => return occupied("it is a file"),
        // In this order: another writer may be making the bundle meanwhile, and this folder is its first one.
        Ok(_) if !is_empty(path)? && !path.join(layout::RUNS).is_dir() => {
            return occupied("it is a folder that is not a run bundle");
        }
        Ok(_) if path.join(layout::RUNS).is_dir() => {
            // Only of other nodes: a document of this one that cannot be read keeps it out anyway.
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
            // Not `exists`: the kernel refuses to look through a link of another user where others may write, and why becalm writes
            // nothing through it is said by whoever makes the folder.
            if fs::metadata(parent).is_err_and(|cause| cause.kind() == io::ErrorKind::NotFound) {
                let (path, parent) = (path.display(), parent.display());
                return Err(BundleError::Other(format!(
                    "cannot create {path}: the folder {parent} does not exist; create it first, or choose another place"
                )));
            }
            made.make(path)?;
        }
        Err(cause) => return Err(BundleError::io("create the folder", path)(cause)),
    }
    // This one first: it is what tells other nodes that the folder is a bundle.
    made.make(&path.join(layout::RUNS))
}

/// Whether a folder holds nothing but hidden files, as servers of network file systems and desktops leave them.
fn is_empty(folder: &Path) -> Result<bool, BundleError> {
    for entry in fs::read_dir(folder).map_err(BundleError::io("read the folder", folder))? {
        let name = entry.map_err(BundleError::io("read the folder", folder))?.file_name();
        if !name.as_encoded_bytes().starts_with(b".") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Folders that were made for a writer; unless kept, those that are still empty are removed again. A node that joins
/// in that very instant gets an error, and can be started again.
#[derive(Debug)]
pub(crate) struct MadeFolders {
    bundle: PathBuf,
    made: Vec<PathBuf>,
}

impl MadeFolders {
    pub(crate) fn new(bundle: &Path) -> Self {
        Self { bundle: bundle.to_owned(), made: Vec::new() }
    }

    /// Makes a folder, unless another node has made it.
    pub(super) fn make(&mut self, folder: &Path) -> Result<(), BundleError> {
        if draft::make_folder(&self.bundle, folder).map_err(BundleError::io("create the folder", folder))? {
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
            // Fails where another node has put something into it meanwhile, and that is right.
            let _ = fs::remove_dir(folder);
        }
    }
}
