//! An open stored run.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use becalm_analyze::summary::Selection;
use becalm_bundle::{Bundle, Contents};
use becalm_units::fault;
use pyo3::prelude::*;

use crate::error::{BecalmError, exception, usage};
use crate::record_batch;
use crate::table::Table;
use crate::threads::ObservedRun;
use crate::values;

/// A bundle of recordings.
#[pyclass(frozen, module = "becalm")]
pub struct StoredRun(Stored);

/// The contents of a bundle with tables.
enum Stored {
    /// What CPUs were interrupted by, or samples of work.
    Cpus(Bundle),
    /// The lives of observed threads.
    Threads(ObservedRun),
}

impl Stored {
    fn open(path: &Path) -> fault::Result<Self> {
        match Contents::read(path) {
            Ok(Contents::Observed) => Ok(Self::Threads(ObservedRun::open(path)?)),
            // A bundle that cannot be read has an error of its own.
            _ => Ok(Self::Cpus(Bundle::open(path)?)),
        }
    }
}

impl StoredRun {
    fn table(
        &self,
        py: Python<'_>,
        (node, cpus): (Option<String>, Option<Vec<u32>>),
        read: fn(&Bundle, &Selection) -> fault::Result<RecordBatch>,
    ) -> PyResult<Table> {
        let selection = values::selection(node, cpus, false)?;
        match &self.0 {
            Stored::Cpus(bundle) => py.detach(|| read(bundle, &selection)).map(Table::new).map_err(exception),
            Stored::Threads(run) => Err(usage(format!(
                "{} holds {}, and has the tables threads, stays and takers",
                run.path().display(),
                Contents::Observed.words()
            ))),
        }
    }

    fn of_threads(
        &self,
        py: Python<'_>,
        node: Option<&str>,
        read: fn(&ObservedRun, Option<&str>) -> fault::Result<RecordBatch>,
    ) -> PyResult<Table> {
        match &self.0 {
            Stored::Threads(run) => py.detach(|| read(run, node)).map(Table::new).map_err(exception),
            Stored::Cpus(bundle) => Err(usage(format!(
                "{} holds no observed threads; becalm observe records them",
                bundle.path().display()
            ))),
        }
    }
}

#[pymethods]
impl StoredRun {
    /// Opens the bundle at a path.
    #[new]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Stored::open(&path)).map(Self).map_err(exception)
    }

    /// Its path.
    #[getter]
    fn path(&self) -> PathBuf {
        match &self.0 {
            Stored::Cpus(bundle) => bundle.path().to_owned(),
            Stored::Threads(run) => run.path().to_owned(),
        }
    }

    /// Whether it contains samples of work and no detours.
    #[getter]
    fn is_work(&self) -> bool {
        match &self.0 {
            Stored::Cpus(bundle) => bundle.nodes().iter().any(|doc| doc.settings.work.is_some()),
            Stored::Threads(_) => false,
        }
    }

    /// The documents of its nodes, sorted by name, as JSON.
    fn documents(&self) -> PyResult<String> {
        let text = match &self.0 {
            Stored::Cpus(bundle) => serde_json::to_string(bundle.nodes()),
            Stored::Threads(run) => serde_json::to_string(run.documents()),
        };
        text.map_err(|error| BecalmError::new_err(error.to_string()))
    }

    /// The observed threads.
    #[pyo3(signature = (*, node))]
    fn threads(&self, py: Python<'_>, node: Option<&str>) -> PyResult<Table> {
        self.of_threads(py, node, ObservedRun::threads)
    }

    /// The parts of the lives of observed threads.
    #[pyo3(signature = (*, node))]
    fn stays(&self, py: Python<'_>, node: Option<&str>) -> PyResult<Table> {
        self.of_threads(py, node, ObservedRun::stays)
    }

    /// The takers of the CPU while observed threads waited.
    #[pyo3(signature = (*, node))]
    fn takers(&self, py: Python<'_>, node: Option<&str>) -> PyResult<Table> {
        self.of_threads(py, node, ObservedRun::takers)
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
