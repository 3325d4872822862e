//! The comparison as `becalm.compare/1`.

use becalm_analyze::compare::{Basis, ComparedFigure, ComparedRun, FLOOR, LEVEL, Limit, Side};
use becalm_model::node::{Rung, Warning};
use becalm_stats::CONFIDENCE;
use serde::Serialize;

use super::{CompareReport, LimitCheck, headline};
use crate::form::field::Object;

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct CompareDocument<'a> {
    headline: String,
    a: SideDoc<'a>,
    b: SideDoc<'a>,
    /// `within runs` or `between runs`.
    basis: &'static str,
    shortest_ns: i64,
    method: MethodDoc,
    rows: Vec<Object<ComparedFigure>>,
    checks: Vec<CheckDoc>,
    notes: &'a [Warning],
}

/// The first run of a side; all of them, the first one again, are in `runs`.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct SideDoc<'a> {
    #[serde(flatten)]
    first: Option<RunDoc<'a>>,
    runs: Vec<RunDoc<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct RunDoc<'a> {
    path: String,
    nodes: Vec<&'a str>,
    cpus: String,
    observed_ns: i64,
    duration_ns: i64,
    t_min_ns: Option<i64>,
    threshold_ns: Option<i64>,
    rung: Rung,
    detours: u64,
    dropped_detours: u64,
    dropped_ns: i64,
    incomplete: u64,
}

/// The method for several recordings per side.
const BETWEEN: &str = "welch's t of the means of the runs' logarithms, or of the runs where one has none of a figure; the variance within \
                       runs as its floor";

/// How the intervals and verdicts are made.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct MethodDoc {
    sums: &'static str,
    quantiles: &'static str,
    stretches: &'static str,
    adjustment: &'static str,
    confidence_ratio: f64,
    level_ratio: f64,
    floor_ratio: f64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct CheckDoc {
    what: &'static str,
    limit_ratio: f64,
    outcome: &'static str,
}

/// Builds `becalm.compare/1`. A row's `a`, `b`, `difference`, `low` and `high` are in its `unit`, which also ends the name in `what`; `effect` is b /
/// a.
pub(super) fn document(report: &CompareReport<'_>) -> impl Serialize {
    let comparison = report.comparison;
    let check = |check: &LimitCheck| CheckDoc {
        what: check.metric.name(),
        limit_ratio: check.share,
        outcome: match check.outcome {
            Limit::Exceeded => "exceeded",
            Limit::NotShown => "not shown",
            Limit::Unknown => "not enough data",
        },
    };
    let basis_name = |between: &'static str, within: &'static str| match comparison.basis {
        Basis::BetweenRuns => between,
        Basis::WithinRuns => within,
    };
    CompareDocument {
        headline: headline(comparison),
        a: side_doc(&comparison.a),
        b: side_doc(&comparison.b),
        basis: comparison.basis.name(),
        shortest_ns: comparison.shortest_ns,
        method: MethodDoc {
            sums: basis_name(
                BETWEEN,
                "welch's t of logarithms; variance by blocks and drift, and between recordings as learned elsewhere",
            ),
            quantiles: basis_name(
                BETWEEN,
                "welch's t of logarithms; variance by woodruff and blocks, and between recordings as learned elsewhere",
            ),
            stretches: basis_name(
                BETWEEN,
                "welch's t of logarithms of medians; variance by ranks, and between recordings as learned elsewhere",
            ),
            adjustment: "holm, in each family",
            confidence_ratio: CONFIDENCE,
            level_ratio: LEVEL,
            floor_ratio: FLOOR,
        },
        rows: comparison.rows.iter().map(Object::new).collect(),
        checks: report.checks.iter().map(check).collect(),
        notes: &comparison.notes,
    }
}

fn side_doc(side: &Side) -> SideDoc<'_> {
    SideDoc { first: side.runs.first().map(run_doc), runs: side.runs.iter().map(run_doc).collect() }
}

fn run_doc(run: &ComparedRun) -> RunDoc<'_> {
    RunDoc {
        path: run.path.display().to_string(),
        nodes: run.docs.iter().map(|doc| doc.node.as_str()).collect(),
        cpus: run.cpus().to_string(),
        observed_ns: run.observed_ns,
        duration_ns: run.length_ns,
        t_min_ns: run.t_min_ns,
        threshold_ns: run.threshold_ns,
        rung: run.rung,
        detours: run.detours,
        dropped_detours: run.dropped,
        dropped_ns: run.dropped_ns,
        incomplete: run.incomplete,
    }
}
