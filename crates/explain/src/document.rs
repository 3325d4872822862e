//! `becalm.explained/1`: why the slow spans of a program were slow.

use becalm_model::observed::Owner;
use becalm_units::{CpuId, Nanos};
use serde::Serialize;

use crate::causes::{Class, Side};
use crate::clocks::SpanClock;

/// The version of the document that this program writes.
pub const SCHEMA: &str = "becalm.explained/1";

/// The spans of a program, explained by a recording. Durations are integers in `_ns` fields.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ExplainedDoc {
    /// The schema that the document follows: [`SCHEMA`].
    pub schema: String,
    /// The host of the recording; of a job that ran on several, all of them.
    pub node: String,
    /// Who wrote it: `becalm 0.1.0`.
    pub program: String,
    /// The clock of the spans.
    pub clock: SpanClock,
    /// Whether it was found by where it puts the spans.
    pub clock_found: bool,
    /// The largest error of their times.
    pub clock_error_ns: Nanos,
    /// Spans outside of the recording, which are left out.
    pub outside: u64,
    /// Spans of threads that were not observed, or on CPUs that were not measured, which are left out.
    pub strangers: u64,
    /// The share of slow spans.
    pub slowest: f64,
    /// All spans together.
    #[serde(flatten)]
    pub all: ExplanationDoc,
    /// The spans by name, or by another column, in the order of the excess of all their slow ones.
    pub by: Vec<GroupDoc>,
    /// The longest spans, the longest first.
    pub worst: Vec<WorstDoc>,
    /// Everything the reader must know before believing the numbers.
    pub notes: Vec<String>,
}

/// The spans of a group.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct GroupDoc {
    /// The name, or the value of the column.
    pub name: String,
    /// How many spans it has.
    pub spans: u64,
    /// Their explanation; `None` if there are too few.
    pub explanation: Option<ExplanationDoc>,
}

/// Why slow spans were slow.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ExplanationDoc {
    /// What slow spans have more than ordinary ones, in a word.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub sentence: String,
    /// What to do about it; empty if nothing is known.
    pub advice: String,
    /// The number of spans.
    pub spans: u64,
    /// Their median length.
    pub median_ns: Nanos,
    /// The 99th percentile of their lengths.
    pub p99_ns: Nanos,
    /// The longest.
    pub longest_ns: Nanos,
    /// The share of their time whose cause is known.
    pub covered: f64,
    /// The number of slow spans.
    pub slow: u64,
    /// The number of ordinary ones: the middle half.
    pub ordinary: u64,
    /// The mean length of slow spans less that of ordinary ones.
    pub excess_ns: Nanos,
    /// The excess by sides; the parts add up to it.
    pub sides: Vec<SideDoc>,
    /// The excess by causes, the largest part first; the parts add up to it.
    pub sources: Vec<SourceDoc>,
}

/// The verdict on slow spans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The system makes most of the excess.
    System,
    /// The program does: it computes more.
    Program,
    /// Other threads of the program do: they had the CPU, or it waited for them while they computed.
    Threads,
    /// They sleep longer.
    Waiting,
    /// No side makes half of it.
    Mixed,
    /// Slow spans are hardly longer than ordinary ones.
    Even,
    /// The recording does not show where most of it went.
    Unknown,
}

/// A side's part of the excess.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SideDoc {
    /// The side.
    pub side: Side,
    /// Its part per slow span.
    pub ns: Nanos,
    /// Its share of the excess.
    pub share_of_excess: f64,
    /// The lower end of the share's 95 % interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// A cause's part of the excess.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SourceDoc {
    /// The name; empty for the program itself.
    pub source: String,
    /// The owner, relative to the observed threads.
    pub owner: Owner,
    /// How it takes time.
    pub class: Class,
    /// The side to which it belongs.
    pub side: Side,
    /// The observed thread that ended such sleep; empty if it is not known. Other causes with it are what that thread had while the span slept.
    pub waker: String,
    /// Its part per slow span.
    pub ns: Nanos,
    /// Its share of the excess.
    pub share_of_excess: f64,
    /// The lower end of the share's 95 % interval; only for the largest.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// In how many slow spans it was.
    pub in_slow: u64,
    /// In how many ordinary ones.
    pub in_ordinary: u64,
    /// How reports show it.
    #[serde(skip)]
    pub shown: String,
}

/// One of the longest spans.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorstDoc {
    /// Its name.
    pub name: String,
    /// The number of its thread, or of the one with most of it; `None` if the recording is one of CPUs.
    pub tid: Option<i32>,
    /// The number of its CPU; `None` if the recording is one of threads.
    pub cpu: Option<CpuId>,
    /// Its start, since the origin of the recording.
    pub start_ns: Nanos,
    /// Its length.
    pub ns: Nanos,
    /// Its causes, which add up to its length.
    pub causes: Vec<SpanCauseDoc>,
    /// The first thousand stretches of it, those of several threads one after the other.
    pub timeline: Vec<StretchDoc>,
}

/// The time of a cause in a span.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SpanCauseDoc {
    /// The name, as in the list of sources.
    pub source: String,
    /// How it takes time.
    pub class: Class,
    /// Its time.
    pub ns: Nanos,
    /// How reports show it.
    #[serde(skip)]
    pub shown: String,
}

/// A stretch of a span.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct StretchDoc {
    /// The end, in time of the span.
    pub until_ns: Nanos,
    /// The name of what has most of it.
    pub source: String,
    /// How that takes time.
    pub class: Class,
    /// How reports show it.
    #[serde(skip)]
    pub shown: String,
}
