//! `becalm.compare`.

use std::path::PathBuf;

use becalm_answer::compare::{self as comparison, CompareQuestion};
use becalm_units::{Nanos, fault};
use pyo3::prelude::*;

use crate::caller::{self, Answer, Caller};
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
        if becalm_observe::are_observed(&runs)? {
            return compare_observed(&question, caller);
        }
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

/// Compares observed threads. Fails if arguments are given that are for recordings of CPUs.
fn compare_observed(question: &CompareQuestion, caller: &mut Caller<'_>) -> fault::Result<()> {
    let selections = [&question.selection_before, &question.selection_after];
    let of_cpus = [
        ("cpus=", selections.iter().any(|selection| selection.cpus.is_some())),
        ("with_self=", selections.iter().any(|selection| selection.with_self)),
    ];
    if let Some((argument, _)) = of_cpus.into_iter().find(|(_, is_given)| *is_given) {
        return Err(becalm_observe::not_for_threads(argument).into());
    }
    let question = becalm_observe::CompareQuestion {
        sides: [&question.before, &question.after],
        nodes: selections.map(|selection| selection.node.as_deref()),
        limit: None,
    };
    question.answer(caller).map(|_| ())
}
