//! A writer of a node's part of a bundle with one table.

use std::path::{Path, PathBuf};

use crate::document::Stored;
use crate::draft::Draft;
use crate::place::{self, MadeFolders};
use crate::schema::Table;
use crate::{BundleError, document, draft, layout};

/// The part that a node writes. If nothing was stored, dropping it leaves nothing behind.
#[derive(Debug)]
pub(super) struct NodePart {
    bundle: PathBuf,
    node: String,
    /// `None` once something is stored.
    made: Option<MadeFolders>,
}

impl NodePart {
    /// Creates the bundle, or joins that of other nodes, and writes the first document.
    pub(super) fn create<D: Stored>(bundle: &Path, doc: &D) -> Result<Self, BundleError> {
        let made = place::create(bundle, doc)?;
        Ok(Self { bundle: bundle.to_owned(), node: doc.node().to_owned(), made: Some(made) })
    }

    pub(super) fn table(&self, table: &Table) -> PathBuf {
        table_path(&self.bundle, table, &self.node)
    }

    /// Stores the table that `encode` writes.
    pub(super) fn store_table(
        &self,
        table: &Table,
        encode: impl FnOnce(&Draft) -> Result<(), BundleError>,
    ) -> Result<(), BundleError> {
        let mut made = MadeFolders::new(&self.bundle);
        made.make(&self.bundle.join(table.name))?;
        made.make(&layout::table_folder(&self.bundle, table.name, &self.node))?;
        let draft = Draft::for_bundle(&self.bundle, self.table(table))?;
        encode(&draft)?;
        draft.sync()?;
        draft.publish()?;
        made.keep();
        Ok(())
    }

    /// Stores the document, and keeps the part from then on.
    pub(super) fn store_document<D: Stored>(&mut self, doc: &D) -> Result<(), BundleError> {
        document::replace(&self.bundle, &self.node, doc)?;
        self.made.take().into_iter().for_each(MadeFolders::keep);
        Ok(())
    }
}

impl Drop for NodePart {
    fn drop(&mut self) {
        if self.made.is_some() {
            // A leftover document would block the place for others. The directories are removed after it.
            draft::remove(&self.bundle, &layout::document(&self.bundle, &self.node));
        }
    }
}

pub(super) fn table_path(bundle: &Path, table: &Table, node: &str) -> PathBuf {
    layout::table_folder(bundle, table.name, node).join(layout::segment(0))
}
