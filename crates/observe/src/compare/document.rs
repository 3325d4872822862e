//! `becalm.compare-observed/1`: two sides of observed threads.

use becalm_analyze::compare::{Basis, ComparedFigure};
use becalm_model::Kind;
use becalm_model::observed::Owner;
use becalm_report::form::field::Object;
use becalm_units::Nanos;
use serde::Serialize;

use super::report::{CompareObservedReport, headline, notes};
use super::sides::ReadRun;
use crate::totals::Totals;

/// The version of the document.
pub const SCHEMA: &str = "becalm.compare-observed/1";

/// Two sides of observed threads. Durations are integers in `_ns` fields, summed over threads and recordings.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CompareObservedDoc {
    /// The answer in a sentence.
    pub headline: String,
    /// The recordings before the change.
    pub a: Vec<RunDoc>,
    /// The recordings after it.
    pub b: Vec<RunDoc>,
    /// The basis of the verdicts: `within runs` or `between runs`.
    pub basis: &'static str,
    /// All compared threads together: those whose names both sides have, without those that nearly always sleep.
    pub total: PairDoc,
    /// The threads of each name that both sides have.
    pub threads: Vec<NamePairDoc>,
    /// The names of threads that only A has.
    pub only_a: Vec<String>,
    /// The names of threads that only B has.
    pub only_b: Vec<String>,
    /// The takers of the compared threads' time, the largest difference first.
    pub takers: Vec<TakerPairDoc>,
    /// The limit on the time lost to others, if one was given.
    pub check: Option<LimitDoc>,
    /// Everything the reader must know before believing the numbers.
    pub notes: Vec<String>,
}

/// A recording.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RunDoc {
    /// Its path.
    pub path: String,
    /// Its node.
    pub node: String,
    /// The length of its books.
    pub duration_ns: Nanos,
    /// The number of observed threads.
    pub threads: u64,
    /// Kernel events that were lost.
    pub lost_events: u64,
}

/// The same threads on both sides.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PairDoc {
    /// Their lives in A.
    pub a: LivesDoc,
    /// Their lives in B.
    pub b: LivesDoc,
    /// The share of their lives that others took, with its difference and verdict.
    pub lost: Object<ComparedFigure>,
}

/// The threads of one name.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NamePairDoc {
    /// The name.
    pub name: String,
    /// Whether they nearly always sleep on both sides, and so are in no other figure.
    pub left_out: bool,
    /// Both sides.
    #[serde(flatten)]
    pub pair: PairDoc,
}

/// The lives of threads. `ran_ns`, `waited_ns`, `asleep_ns` and `unknown_ns` add up to `wall_ns` exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LivesDoc {
    /// How many threads.
    pub threads: u64,
    /// The length of their lives.
    pub wall_ns: Nanos,
    /// Time on a CPU, with interrupts on top.
    pub ran_ns: Nanos,
    /// Interrupts on top of it.
    pub interrupts_ns: Nanos,
    /// Time that the hypervisor took from it.
    pub host_ns: Nanos,
    /// Time that they could have run: queued, on the way, or kept by a quota.
    pub waited_ns: Nanos,
    /// Time on a run queue without a CPU.
    pub queued_ns: Nanos,
    /// Time between being woken and being on a run queue.
    pub on_the_way_ns: Nanos,
    /// Time on a run queue while their group had used up its CPU time.
    pub quota_ns: Nanos,
    /// Time asleep or stopped.
    pub asleep_ns: Nanos,
    /// Time that the trace does not show.
    pub unknown_ns: Nanos,
    /// Waits for other observed threads.
    pub siblings_ns: Nanos,
    /// How much longer they could have run: waits without those for each other, interrupts on top, the hypervisor.
    pub lost_ns: Nanos,
}

impl From<&Totals<'_>> for LivesDoc {
    fn from(totals: &Totals<'_>) -> Self {
        Self {
            threads: totals.shown.len() as u64,
            wall_ns: Nanos::new(totals.wall),
            ran_ns: Nanos::new(totals.sum(|thread| thread.ran_ns)),
            interrupts_ns: Nanos::new(totals.interrupts),
            host_ns: Nanos::new(totals.host),
            waited_ns: Nanos::new(totals.waited),
            queued_ns: Nanos::new(totals.sum(|thread| thread.queued_ns)),
            on_the_way_ns: Nanos::new(totals.sum(|thread| thread.on_the_way_ns)),
            quota_ns: Nanos::new(totals.sum(|thread| thread.quota_ns)),
            asleep_ns: Nanos::new(totals.sum(|thread| thread.asleep_ns)),
            unknown_ns: Nanos::new(totals.sum(|thread| thread.unknown_ns)),
            siblings_ns: Nanos::new(totals.siblings),
            lost_ns: Nanos::new(totals.lost()),
        }
    }
}

/// A taker on both sides.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TakerPairDoc {
    /// Whether it interrupted running threads; otherwise it had the CPU while they waited.
    pub on_top: bool,
    /// The kind of activity.
    pub kind: Kind,
    /// The name.
    pub source: String,
    /// Its owner, relative to the choice.
    pub owner: Owner,
    /// Its time in A.
    pub a_ns: Nanos,
    /// Its time in B.
    pub b_ns: Nanos,
    /// Its share of the lives of all compared threads, with its difference and verdict.
    pub share: Object<ComparedFigure>,
}

/// The limit on the time lost to others.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LimitDoc {
    /// By how much it may grow, relative to A.
    pub share_ratio: f64,
    /// Whether it grew significantly more.
    pub exceeded: bool,
    /// The result in a sentence.
    pub text: String,
}

/// The document of a comparison.
pub(super) fn document(report: &CompareObservedReport<'_>) -> CompareObservedDoc {
    let compared = report.compared;
    let sides = &compared.sides;
    let pair = |name: Option<usize>, row: &ComparedFigure| PairDoc {
        a: LivesDoc::from(&sides.totals(0, name)),
        b: LivesDoc::from(&sides.totals(1, name)),
        lost: Object::new(row),
    };
    let named = |((place, name), row): ((usize, &String), &ComparedFigure)| NamePairDoc {
        name: name.clone(),
        left_out: !sides.shown[place],
        pair: pair(Some(place), row),
    };
    let takers = compared.takers.iter().zip(&compared.lives.takers).map(|((key, times), row)| TakerPairDoc {
        on_top: key.on_top,
        kind: key.kind,
        source: key.source.clone(),
        owner: key.owner,
        a_ns: Nanos::new(times[0]),
        b_ns: Nanos::new(times[1]),
        share: Object::new(row),
    });
    let [only_a, only_b] = sides.alone.clone();
    CompareObservedDoc {
        headline: headline(compared),
        a: sides.runs[0].iter().map(run_doc).collect(),
        b: sides.runs[1].iter().map(run_doc).collect(),
        basis: Basis::name(compared.lives.basis),
        total: pair(None, &compared.lives.total),
        threads: sides.names.iter().enumerate().zip(&compared.lives.groups).map(named).collect(),
        only_a,
        only_b,
        takers: takers.collect(),
        check: report.limited.map(|limited| LimitDoc {
            share_ratio: limited.share,
            exceeded: limited.is_exceeded(),
            text: limited.text.clone(),
        }),
        notes: notes(compared),
    }
}

fn run_doc(run: &ReadRun) -> RunDoc {
    RunDoc {
        path: run.path.display().to_string(),
        node: run.doc.node.clone(),
        duration_ns: run.doc.duration_ns,
        threads: run.doc.threads.len() as u64,
        lost_events: run.doc.lost_events,
    }
}
