//! `becalm.law`.

use becalm_answer::law::LawQuestion;
use becalm_report::LawOften;
use pyo3::prelude::*;

use crate::caller::{self, Answer};
use crate::error::usage;
use crate::values;

/// The equivalent of `becalm predict --law --json`. Times are in nanoseconds, rates in Hz, shares from 0 to 1.
#[pyfunction]
#[pyo3(signature = (*, grains_ns, delays_ns, rates_hz, probabilities, ranks, tolerate))]
pub fn law(
    py: Python<'_>,
    grains_ns: Vec<i64>,
    delays_ns: Vec<i64>,
    rates_hz: Option<Vec<f64>>,
    probabilities: Option<Vec<f64>>,
    ranks: Vec<u64>,
    tolerate: Option<f64>,
) -> PyResult<Answer> {
    let often = match (rates_hz, probabilities) {
        (Some(rates), None) => rates.into_iter().map(LawOften::Rate).collect(),
        (None, Some(shares)) => {
            shares.into_iter().map(|share| values::share(share).map(LawOften::Probability)).collect::<PyResult<_>>()?
        }
        _ => return Err(usage("either rate_hz or probability must say how often a rank is delayed")),
    };
    let tolerated = tolerate.map(values::tolerated).transpose()?;
    let (grains, delays) = (values::times(grains_ns), values::times(delays_ns));
    let question = LawQuestion { grains, delays, often, ranks, tolerated };
    caller::ask(py, |caller| question.answer(caller))
}
