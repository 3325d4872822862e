//! `becalm.why/1`: who requested the activities of a recording.

use becalm_model::Kind;
use becalm_model::cause::Requester;
use becalm_units::Nanos;
use serde::Serialize;

/// The version of the document that this program writes.
pub const SCHEMA: &str = "becalm.why/1";

/// The causes of the activities of a recording. Durations are integers in `_ns` fields.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WhyDoc {
    /// The schema that the document follows: [`SCHEMA`].
    pub schema: String,
    /// The host of the recording.
    pub node: String,
    /// Who wrote it: `becalm 0.1.0`.
    pub program: String,
    /// The CPUs.
    pub cpus: String,
    /// How much of the activities has a known cause, without the kernel's tick.
    pub coverage: CoverageDoc,
    /// The causes, those that brought about most time first.
    pub causes: Vec<CauseDoc>,
    /// The same by those who made the requests.
    pub requesters: Vec<RequesterDoc>,
    /// The kernel functions among the first sources, and what to do about them.
    pub functions: Vec<FunctionDoc>,
    /// Events that the kernel lacks, and what remains unknown without each.
    pub missing: Vec<String>,
    /// Events of the trace of requests that were lost.
    pub lost_events: u64,
}

/// Interrupts, softirqs, work items and threads whose cause is known, as far as they are charged to themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CoverageDoc {
    /// How many there are.
    pub activities: u64,
    /// How many of them have a cause.
    pub known: u64,
    /// Their time, with everything that is charged to them.
    pub total_ns: Nanos,
    /// The part of this time of those with a cause.
    pub known_ns: Nanos,
}

/// The activities of a source that have one cause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CauseDoc {
    /// The kind of the activities.
    pub kind: Kind,
    /// Their source.
    pub source: String,
    /// The function of an interrupt, a timer or a work item; for others as `source`.
    pub function: String,
    /// The requester: a thread, a device or a timer's function; empty if that is not known.
    pub by: String,
    /// The number of that thread; `None` for several, and if it is none.
    pub tid: Option<i32>,
    /// The kind of requester.
    pub owner: Requester,
    /// The activities that the requests passed through, the nearest first; or why the cause is not known.
    pub context: String,
    /// The code that made the requests; empty if the kernel does not report it.
    pub site: String,
    /// How many activities.
    pub count: u64,
    /// Their own time.
    pub total_ns: Nanos,
    /// Their time with everything that is charged to them.
    pub whole_ns: Nanos,
    /// The median time from the request to the start; `None` if it is not known.
    pub delay_median_ns: Option<Nanos>,
}

/// A function of the kernel that took much time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct FunctionDoc {
    /// The source that runs it.
    pub source: String,
    /// Its effect: a clause that starts with a verb.
    pub does: String,
    /// What removes or reduces it on this machine; `None` if nothing is known to.
    pub fix: Option<String>,
}

/// The activities of one requester.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RequesterDoc {
    /// The requester, as in [`CauseDoc`].
    pub by: String,
    /// The kind of requester.
    pub owner: Requester,
    /// How many activities it requested.
    pub count: u64,
    /// Their time with everything that is charged to them.
    pub whole_ns: Nanos,
    /// Their sources, those with most time first.
    pub sources: Vec<String>,
}
