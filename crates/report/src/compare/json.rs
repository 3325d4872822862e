//! The comparison as `becalm.compare/1`.

use becalm_analyze::compare::{LEVEL, Limit, Side};
use becalm_model::node::{Rung, Warning};
use becalm_stats::{CONFIDENCE, RESAMPLES, SEED};
use serde::Serialize;

use super::figures::ROW;
use super::{CompareReport, LimitCheck, headline};
use crate::form::field::Object;

#[derive(Serialize)]
struct CompareDocument<'a> {
    headline: String,
    a: SideDoc<'a>,
    b: SideDoc<'a>,
    shortest_ns: i64,
    method: MethodDoc,
    rows: Vec<Object>,
    checks: Vec<CheckDoc>,
    notes: &'a [Warning],
}

#[derive(Serialize)]
struct SideDoc<'a> {
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

/// How the intervals and verdicts are made.
#[derive(Serialize)]
struct MethodDoc {
    sums: &'static str,
    quantiles: &'static str,
    stretches: &'static str,
    adjustment: &'static str,
    confidence_ratio: f64,
    level_ratio: f64,
    resamples: usize,
    seed: u64,
}

#[derive(Serialize)]
struct CheckDoc {
    what: &'static str,
    limit_ratio: f64,
    outcome: &'static str,
}

/// As `becalm.compare/1`. `a`, `b`, `difference`, `low` and `high` of a row are in its `unit`, which the name in `what` ends
/// with; `effect` is b / a.
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
    CompareDocument {
        headline: headline(comparison),
        a: side_doc(&comparison.a),
        b: side_doc(&comparison.b),
        shortest_ns: comparison.shortest_ns,
        method: MethodDoc {
            sums: "circular block bootstrap, studentized, and welch's t",
            quantiles: "woodruff, by blocks; differences by variance recovery",
            stretches: "mann-whitney; hodges-lehmann",
            adjustment: "holm, in each family",
            confidence_ratio: CONFIDENCE,
            level_ratio: LEVEL,
            resamples: RESAMPLES,
            seed: SEED,
        },
        rows: comparison.rows.iter().map(|row| Object::new(ROW, row)).collect(),
        checks: report.checks.iter().map(check).collect(),
        notes: &comparison.notes,
    }
}

fn side_doc(side: &Side) -> SideDoc<'_> {
    SideDoc {
        path: side.path.display().to_string(),
        nodes: side.docs.iter().map(|doc| doc.node.as_str()).collect(),
        cpus: side.cpus().to_string(),
        observed_ns: side.observed_ns,
        duration_ns: side.length_ns,
        t_min_ns: side.t_min_ns,
        threshold_ns: side.threshold_ns,
        rung: side.rung,
        detours: side.detours,
        dropped_detours: side.dropped,
        dropped_ns: side.dropped_ns,
        incomplete: side.incomplete,
    }
}
