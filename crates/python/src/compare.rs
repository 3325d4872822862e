//! `becalm.compare`.

use std::path::PathBuf;

use becalm_answer::compare::{self as comparison, CompareQuestion};
use becalm_units::Nanos;
use pyo3::prelude::*;

use crate::caller::{self, Answer};
use crate::values;

/// The selected part of the runs of a side: node, CPUs.
type Side = (Option<String>, Option<Vec<u32>>);

/// The equivalent of `becalm compare --json`.
#[pyfunction]
#[pyo3(signature = (before, after, *, side_before, side_after, with_self))]
pub fn compare(
    py: Python<'_>,
    before: Vec<PathBuf>,
    after: Vec<PathBuf>,
    side_before: Side,
    side_after: Side,
    with_self: bool,
) -> PyResult<Answer> {
    let selection = |(node, cpus): Side| values::selection(node, cpus, with_self);
    let question = CompareQuestion {
        selection_before: selection(side_before)?,
        selection_after: selection(side_after)?,
        before,
        after,
        limit: None,
    };
    caller::ask(py, |caller| {
        let runs = [question.before.as_slice(), &question.after].concat();
        if comparison::are_jobs(&runs)? {
            return comparison::jobs(&runs, caller);
        }
        if comparison::are_distributions(&runs) {
            let sides = [question.before.as_slice(), &question.after];
            let selections = [&question.selection_before, &question.selection_after];
            return becalm_foreign::distribution::compare(sides, selections, Nanos::ZERO, caller);
        }
        question.answer(caller).map(|_| ())
    })
}
