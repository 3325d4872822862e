//! Observed threads as a bundle: the document of the crate `observe`, and tables.
//!
//! ```text
//! NAME.becalm/
//!   runs/node=HOST.json                the document
//!   threads/node=HOST/0000.parquet     thread i32, tid i32, process i32, parent i32, name, command, cgroup, start_ns i64, end_ns i64, chosen bool,
//!                                      kernel bool
//!   stays/node=HOST/0000.parquet       thread i32, cpu i32, start_ns i64, duration_ns i64, state, why, context, waker i32
//!   detours/node=HOST/0000.parquet     thread i32, cpu i32, start_ns i64, duration_ns i64
//!   activities/node=HOST/0000.parquet  detour i64, self_ns i64, visits i64, owner, kind, source, taker i32
//! ```
//!
//! `thread`, `parent`, `waker` and `taker` are numbers of the recording, -1 for none. The stays of a thread follow each other without gap or overlap. The rows of
//! each table are in the order of their ends.

mod reader;
mod writer;

use becalm_model::node::{MachineDoc, TracingDoc, Warning};
use becalm_model::observed::{ObservedRows, OwnedActivity, Stay, StayReason, ThreadDetour, ThreadId};
use becalm_model::{Document, Label, ThreadState};
use serde::{Deserialize, Serialize};

use crate::{Contents, Stored};

pub use reader::ObservedTables;
pub use writer::ObservedWriter;

/// The parts of the document of observed threads that belong to the tables.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ObservedHead {
    schema: String,
    /// The node.
    pub node: String,
    /// The kernel's trace; `None` if it could not be traced.
    #[serde(default)]
    pub tracing: Option<TracingDoc>,
    /// The machine.
    #[serde(default)]
    pub machine: MachineDoc,
    /// The rows of the tables.
    pub rows: ObservedRows,
    /// The warnings.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

impl Document for ObservedHead {
    const SCHEMA: &'static str = Contents::Observed.schema();

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Stored for ObservedHead {
    const CONTENTS: Contents = Contents::Observed;
}

/// A row of the table of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadRow {
    /// Its number in the recording.
    pub thread: i32,
    /// The kernel's number.
    pub tid: i32,
    /// The number of its process.
    pub process: i32,
    /// The thread that created it; -1 if that was not observed.
    pub parent: i32,
    /// Its name.
    pub name: Label,
    /// The command line of its process.
    pub command: Label,
    /// The path of its control group.
    pub group: Label,
    /// The start of its books or of its life, since the run's origin.
    pub start_ns: i64,
    /// The end.
    pub end_ns: i64,
    /// Whether it was observed; the others had the CPU meanwhile.
    pub chosen: bool,
    /// Whether it is a kernel thread.
    pub kernel: bool,
}

/// The parts of a segment.
#[derive(Clone, Debug, Default)]
pub struct ObservedSegment {
    /// The stays that ended.
    pub stays: Vec<Stay>,
    /// The interruptions that ended.
    pub detours: Vec<ThreadDetour>,
    /// The activities of each interruption, in the same order, with its place in `detours`.
    pub activities: Vec<(usize, OwnedActivity)>,
}

impl ObservedSegment {
    /// The number of rows.
    pub const fn len(&self) -> usize {
        self.stays.len() + self.detours.len() + self.activities.len()
    }

    /// Whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A thread's number as stored.
fn number(thread: Option<ThreadId>) -> i32 {
    thread.and_then(|thread| i32::try_from(thread.0).ok()).unwrap_or(-1)
}

/// The names of reasons, in the order of [`reason`].
const REASONS: [&str; 12] = ["", "preempted", "woken", "new", "?", "S", "D", "T", "t", "I", "P", "X"];

/// The place of a reason among these.
fn reason(reason: StayReason) -> usize {
    REASONS.iter().position(|known| *known == reason.name()).unwrap_or(0)
}

/// The reason with such a name.
fn reason_from(name: &str) -> Option<StayReason> {
    Some(match name {
        "" => StayReason::None,
        "preempted" => StayReason::Preempted,
        "woken" => StayReason::Woken,
        "new" => StayReason::New,
        "?" => StayReason::Left(ThreadState::UNKNOWN),
        letter => StayReason::Left(ThreadState::from_letter(letter.parse().ok()?)?),
    })
}

/// The thread with a stored number.
fn thread(number: i32) -> Option<ThreadId> {
    u32::try_from(number).ok().map(ThreadId)
}

#[cfg(test)]
mod tests;
