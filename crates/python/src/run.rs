//! An open stored run.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_units::fault;
use pyo3::prelude::*;

use crate::error::{BecalmError, exception};
use crate::record_batch;
use crate::table::Table;
use crate::values;

/// A bundle of recordings.
#[pyclass(frozen, module = "becalm")]
pub struct StoredRun(Bundle);

impl StoredRun {
    fn table(
        &self,
        py: Python<'_>,
        (node, cpus): (Option<String>, Option<Vec<u32>>),
        read: fn(&Bundle, &Selection) -> fault::Result<RecordBatch>,
    ) -> PyResult<Table> {
        let selection = values::selection(node, cpus, false)?;
        py.detach(|| read(&self.0, &selection)).map(Table::new).map_err(exception)
    }
}

#[pymethods]
impl StoredRun {
    /// Opens the bundle at a path.
    #[new]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Bundle::open(&path)).map(Self).map_err(exception)
    }

    /// Its path.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    /// Whether it contains samples of work and no detours.
    #[getter]
    fn is_work(&self) -> bool {
        self.0.nodes().iter().any(|doc| doc.settings.work.is_some())
    }

    /// The documents of its nodes, sorted by name, as JSON.
    fn documents(&self) -> PyResult<String> {
        serde_json::to_string(self.0.nodes()).map_err(|error| BecalmError::new_err(error.to_string()))
    }

    /// Its detours.
    #[pyo3(signature = (*, node, cpus))]
    fn detours(&self, py: Python<'_>, node: Option<String>, cpus: Option<Vec<u32>>) -> PyResult<Table> {
        self.table(py, (node, cpus), record_batch::detours)
    }

    /// Its samples of work.
    #[pyo3(signature = (*, node, cpus))]
    fn samples(&self, py: Python<'_>, node: Option<String>, cpus: Option<Vec<u32>>) -> PyResult<Table> {
        self.table(py, (node, cpus), record_batch::samples)
    }

    /// Its activities.
    #[pyo3(signature = (*, node, cpus))]
    fn activities(&self, py: Python<'_>, node: Option<String>, cpus: Option<Vec<u32>>) -> PyResult<Table> {
        self.table(py, (node, cpus), record_batch::activities)
    }
}
