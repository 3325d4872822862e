//! Reads the tables of a node whose rows its document counts.

use std::path::{Path, PathBuf};

use becalm_model::{Kind, Label, Labels};
use becalm_units::{Named, Nanos};

use crate::decode::TableDecoder;
use crate::names::SourcePool;
use crate::rows::{NameColumn, Rows};
use crate::schema::Table;
use crate::{BundleError, layout};

/// The tables of a node of a bundle.
#[derive(Clone, Debug)]
pub(super) struct NodeTables {
    bundle: PathBuf,
    node: String,
}

impl NodeTables {
    /// The tables of a node of the bundle in this directory.
    pub(super) fn new(bundle: &Path, node: &str) -> Self {
        Self { bundle: bundle.to_owned(), node: node.to_owned() }
    }

    pub(super) fn segments(&self, table: &Table) -> Result<u32, BundleError> {
        layout::count_segments(&layout::table_folder(&self.bundle, table.name, &self.node))
    }

    pub(super) fn file(&self, table: &Table, segment: u32) -> PathBuf {
        layout::table_folder(&self.bundle, table.name, &self.node).join(layout::segment(segment))
    }

    /// Reads all segments of a table, and compares the number of its rows.
    pub(super) fn read(
        &self,
        table: &'static Table,
        expected: u64,
        take: &mut dyn FnMut(Rows) -> Result<usize, String>,
    ) -> Result<(), BundleError> {
        let mut count = 0;
        for segment in 0..self.segments(table)? {
            self.read_segment(table, segment, &mut |rows| {
                count += take(rows)? as u64;
                Ok(())
            })?;
        }
        self.check_count(table, count, expected)
    }

    pub(super) fn read_segment(
        &self,
        table: &'static Table,
        segment: u32,
        take: &mut dyn FnMut(Rows) -> Result<(), String>,
    ) -> Result<(), BundleError> {
        let path = self.file(table, segment);
        let mut decoder = TableDecoder::open(&path, table, &SourcePool::default())?;
        while let Some(rows) = decoder.next().map_err(|cause| BundleError::parquet(&path, &cause))? {
            take(rows).map_err(|why| BundleError::Table { path: path.clone(), table: table.name, why })?;
        }
        Ok(())
    }

    pub(super) fn check_count(&self, table: &Table, found: u64, expected: u64) -> Result<(), BundleError> {
        if found == expected {
            return Ok(());
        }
        let path = layout::table_folder(&self.bundle, table.name, &self.node);
        let why = format!("it has {found} rows, and the document tells of {expected}; copy the recording again");
        Err(BundleError::Table { path, table: table.name, why })
    }
}

/// The values of the names of a column, by key.
pub(super) fn by_key<T>(names: &NameColumn, value: impl Fn(&str) -> Option<T>) -> Vec<Option<T>> {
    names.values().into_iter().map(value).collect()
}

pub(super) fn named<T: Named>(name: &str) -> Option<T> {
    T::ALL.iter().copied().find(|value| value.name() == name)
}

pub(super) fn kind(name: &str) -> Option<Kind> {
    name.parse().ok()
}

/// The names of a column's rows, interned.
pub(super) fn interned(names: &NameColumn, rows: usize, labels: &mut Labels) -> Vec<Label> {
    let by_key: Vec<Label> = names.values().into_iter().map(|name| labels.intern(name)).collect();
    (0..rows).map(|row| by_key[names.key(row)]).collect()
}

/// A length of time from `start`, which is not negative and has an end.
pub(super) fn length(start: i64, length: i64) -> Result<Nanos, String> {
    if length < 0 || start.checked_add(length).is_none() {
        return Err(format!("something starts at {start} ns and takes {length} ns"));
    }
    Ok(Nanos::new(length))
}
