//! `becalm.sources`.

use std::path::PathBuf;

use becalm_answer::sources::{SourcesQuestion, SourcesWanted};
use becalm_bundle::Contents;
use becalm_units::Nanos;
use pyo3::prelude::*;

use crate::caller::{self, Answer};
use crate::values;

/// The equivalent of `becalm report --sources --json`.
#[pyfunction]
#[pyo3(signature = (run, *, node, cpus, with_self, per_cpu, detour, longest, together_within_ns))]
#[expect(clippy::too_many_arguments, reason = "they have names where they are given")]
pub fn sources(
    py: Python<'_>,
    run: PathBuf,
    node: Option<String>,
    cpus: Option<Vec<u32>>,
    with_self: bool,
    per_cpu: bool,
    detour: Option<String>,
    longest: Option<u32>,
    together_within_ns: Option<i64>,
) -> PyResult<Answer> {
    let wanted = match (together_within_ns, detour, longest) {
        (Some(within), ..) => SourcesWanted::Together { within: Nanos::new(within) },
        (_, Some(detour), _) => SourcesWanted::Detour(values::parsed(&detour)?),
        (.., Some(count)) => SourcesWanted::Longest(count),
        _ => SourcesWanted::Ranked { per_cpu },
    };
    let question = SourcesQuestion { run, selection: values::selection(node, cpus, with_self)?, wanted };
    caller::ask(py, |caller| match Contents::read(&question.run)? {
        Contents::Observed => becalm_observe::detours::answer(&question, caller),
        _ => question.answer(caller),
    })
}
