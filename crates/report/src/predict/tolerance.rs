//! The number of ranks and the length of detours up to which a job stays within its tolerance.

use becalm_scale::tolerance::{TRIED_RANKS, Tolerance, ToleratedDetours};
use becalm_units::{Count, Nanos};
use serde::Serialize;

use super::PredictReport;
use crate::Value;
use crate::form::section::{Block, Opening, Section};
use crate::form::value::{grouped, time};

/// The answers for one grain in JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(super) struct ToleranceDoc {
    grain_ns: i64,
    /// The share of the job's time that may be lost.
    lost_ratio: f64,
    /// Up to so many ranks no more is lost; 0 if even one node loses more.
    ranks: u64,
    ranks_low: Option<u64>,
    ranks_high: Option<u64>,
    /// Whether more ranks were not tried.
    ranks_limited: bool,
    detours: Vec<DetoursDoc>,
}

/// What would have to go.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct DetoursDoc {
    ranks: u64,
    longest_ns: i64,
    longer_hz: f64,
}

pub(super) fn docs(report: &PredictReport<'_>) -> Vec<ToleranceDoc> {
    let Some((share, answers)) = report.tolerance else { return Vec::new() };
    let detours = |detours: &ToleratedDetours| DetoursDoc {
        ranks: detours.ranks,
        longest_ns: detours.longest.get(),
        longer_hz: detours.longer_hz,
    };
    let doc = |tolerance: &Tolerance| ToleranceDoc {
        grain_ns: tolerance.grain.get(),
        lost_ratio: share.ratio(),
        ranks: tolerance.ranks.ranks,
        ranks_low: tolerance.ranks.interval.map(|interval| interval.low),
        ranks_high: tolerance.ranks.interval.map(|interval| interval.high),
        ranks_limited: is_limit(report, tolerance.ranks.ranks),
        detours: tolerance.detours.iter().map(detours).collect(),
    };
    answers.iter().map(doc).collect()
}

/// Whether more ranks than these were not tried.
fn is_limit(report: &PredictReport<'_>, ranks: u64) -> bool {
    ranks.saturating_add(report.question.per_node) > TRIED_RANKS
}

/// The answers in sentences; `None` unless requested.
pub(super) fn section(report: &PredictReport<'_>) -> Option<Section> {
    let (share, answers) = report.tolerance?;
    let sentences = answers
        .iter()
        .flat_map(|tolerance| std::iter::once(up_to(report, tolerance)).chain(tolerance.detours.iter().map(without)));
    let title = format!("The limits of a job that may lose {share} of its time");
    let opening = Opening::Title(format!("Tolerance: noise may take {share} of the job's time"));
    Some(Section::new("tolerance", "Tolerance", title, Block::texts(sentences)).opened(opening))
}

fn up_to(report: &PredictReport<'_>, tolerance: &Tolerance) -> String {
    let ranks = |ranks: u64| match ranks {
        0 => "none".to_owned(),
        ranks if is_limit(report, ranks) => format!("{} and more", Count::new(ranks)),
        ranks => grouped(ranks),
    };
    let interval =
        tolerance.ranks.interval.map(|ends| format!(" (95 % CI {} to {})", ranks(ends.low), ranks(ends.high)));
    let interval = interval.unwrap_or_default();
    let answer = match (tolerance.ranks.ranks, report.question.per_node) {
        (0, 1) => "a single rank loses more".to_owned(),
        (0, per_node) => format!("a single node of {per_node} ranks loses more"),
        (found, _) => format!("up to {} ranks lose no more", ranks(found)),
    };
    format!("grain {}: {answer}{interval}", tolerance.grain)
}

fn without(detours: &ToleratedDetours) -> String {
    let ranks = Count::new(detours.ranks);
    let rate = Value::Rate(detours.longer_hz).cell();
    match detours.longest {
        Nanos::ZERO => format!("{ranks} ranks must have no interruptions; each CPU has {rate}"),
        longest => {
            let longest = time(longest.get());
            format!("{ranks} ranks must have no interruptions longer than {longest}; each CPU has {rate} of them")
        }
    }
}
