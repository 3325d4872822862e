//! `becalm.report`, for recordings of detours.

use std::path::PathBuf;

use becalm_answer::{Asker, open, recording};
use becalm_bundle::Contents;
use becalm_units::fault;
use pyo3::prelude::*;

use crate::caller::{self, Answer};
use crate::error::exception;
use crate::values;

/// The equivalent of `becalm report --json` for a recording of detours; nothing else in a bundle is reported.
#[pyfunction]
#[pyo3(signature = (run, *, node, cpus, with_self, ranks))]
pub fn report(
    py: Python<'_>,
    run: PathBuf,
    node: Option<String>,
    cpus: Option<Vec<u32>>,
    with_self: bool,
    ranks: Option<u64>,
) -> PyResult<Option<Answer>> {
    let selection = values::selection(node, cpus, with_self)?;
    let contents = py.detach(|| Contents::read(&run)).map_err(exception)?;
    match contents {
        Contents::Recording => {}
        Contents::Summary => {
            let answer = |caller: &mut caller::Caller<'_>| {
                let bundle = open::summary(&run, |text| caller.tell(text))?;
                recording::report_summary(&bundle, &selection, ranks, caller)
            };
            return caller::ask(py, answer).map(Some);
        }
        _ => return Ok(None),
    }
    let mut is_work = false;
    let answer = |caller: &mut caller::Caller<'_>| -> fault::Result<()> {
        let bundle = open::recording(&run, |text| caller.tell(text))?;
        is_work = bundle.nodes().iter().any(|doc| doc.settings.work.is_some());
        if is_work { Ok(()) } else { recording::report(&bundle, &selection, ranks, caller) }
    };
    let answer = caller::ask(py, answer);
    if is_work { Ok(None) } else { answer.map(Some) }
}
