//! The report and the document of single waits and interruptions.

use becalm_model::Kind;
use becalm_model::observed::{Owner, StayReason, ThreadDetour};
use becalm_report::catalogue;
use becalm_report::form::field::{Field, Object, fields};
use becalm_report::form::figure::{Number, Share};
use becalm_report::form::section::{Block, Page, Section};
use becalm_report::form::table::Table;
use becalm_report::form::value::time;
use becalm_report::{Form, Report};
use becalm_units::{CpuId, Named, Nanos, printable};
use serde::Serialize;

use crate::document::ThreadDoc;
use crate::report::thread_name;
use crate::totals::ratio;
use crate::words;

/// The name and version of the document.
const SCHEMA: &str = "becalm.detours-observed/1";

/// A wait or an interruption of an observed thread.
#[derive(Debug)]
pub struct FoundDetour<'a> {
    /// Its number in the recording, counted from 0.
    pub number: u64,
    /// The thread.
    pub thread: &'a ThreadDoc,
    /// Its place and length.
    pub detour: ThreadDetour,
    /// Why the thread waited; `None` if it was interrupted while it ran.
    pub wait: Option<StayReason>,
    /// The takers of its CPU meanwhile, the longest first. The times add up to the duration.
    pub rows: Vec<ActivityRow>,
}

/// The part of a detour that one taker of the CPU had.
#[derive(Debug)]
pub struct ActivityRow {
    /// Its owner, relative to the choice.
    pub owner: Owner,
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub source: String,
    /// Its time.
    pub time: Nanos,
    /// The length of the detour.
    pub whole: Nanos,
    /// How often it came.
    pub visits: u64,
    /// The kernel's number of the thread, if it was one.
    pub tid: Option<i32>,
}

fields! {
    ACTIVITY, activity: ActivityRow {
        SELF_NS = "self_ns", "own", |row| row.time;
        SHARE_RATIO = "share_ratio", "share", |row| Share(ratio(row.time.get(), row.whole.get()));
        KIND = catalogue::KIND, |row| row.kind.name();
        SOURCE = catalogue::SOURCE, |row| row.source.clone();
        OWNER = "owner", "whose", |row| row.owner.name();
        COUNT = "count", "times", |row| row.visits;
        TID = "tid", "thread", |row| row.tid.and_then(|tid| Some(Number(tid.try_into().ok()?)));
    }
}

fields! {
    /// Fields only for people: names in words.
    drawn: ActivityRow {
        SOURCE = "source", "who had the CPU", |row| words::taker_name(row.kind, &row.source);
        OWNER = "owner", "whose", |row| words::owner(row.owner);
    }
}

/// The columns of a timeline.
const SHOWN: [&Field<ActivityRow>; 7] = [
    &activity::SELF_NS,
    &activity::SHARE_RATIO,
    &activity::KIND,
    &drawn::SOURCE,
    &drawn::OWNER,
    &activity::COUNT,
    &activity::TID,
];

/// Single waits and interruptions of observed threads. Durations are integers in `_ns` fields.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DetoursObservedDoc {
    /// The host's name.
    node: String,
    /// The waits and interruptions, the longest first.
    detours: Vec<DetourDoc>,
}

/// A wait or an interruption of a thread.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct DetourDoc {
    /// Its number in the recording, counted from 0, also in the table of activities.
    detour: u64,
    /// The number of the thread in the tables.
    thread: u32,
    /// The kernel's number of the thread.
    tid: i32,
    /// The number of its process.
    process: i32,
    /// The name of the thread.
    name: String,
    /// The thread's rank in an MPI job.
    rank: Option<u32>,
    /// The CPU that the thread waited for at the end, or ran on.
    cpu: u32,
    /// The start, since the origin of the recording.
    start_ns: Nanos,
    /// The duration.
    duration_ns: Nanos,
    /// Whether the thread waited for a CPU; otherwise it was interrupted while it ran.
    waited: bool,
    /// Why it waited: `preempted`, `woken`, `new`; empty if it is not known, and if it did not wait.
    why: &'static str,
    /// The takers of its CPU meanwhile, the longest first; the times add up to the duration.
    activities: Vec<Object<ActivityRow>>,
}

impl From<&FoundDetour<'_>> for DetourDoc {
    fn from(found: &FoundDetour<'_>) -> Self {
        let FoundDetour { number, thread, detour, wait, rows } = found;
        Self {
            detour: *number,
            thread: detour.thread.0,
            tid: thread.tid,
            process: thread.process,
            name: thread.name.clone(),
            rank: thread.rank,
            cpu: detour.cpu.get(),
            start_ns: detour.start,
            duration_ns: detour.duration,
            waited: wait.is_some(),
            why: wait.map_or("", StayReason::name),
            activities: rows.iter().map(Object::new).collect(),
        }
    }
}

/// Waits and interruptions as timelines, as `becalm.detours-observed/1`.
#[derive(Debug)]
pub struct DetoursObservedReport<'a> {
    /// The node.
    pub node: &'a str,
    /// The waits and interruptions, in the order of the output.
    pub detours: &'a [FoundDetour<'a>],
}

impl FoundDetour<'_> {
    /// The thread, the place and the length in a sentence.
    fn title(&self, node: &str) -> String {
        let ThreadDetour { cpu, start, duration, .. } = self.detour;
        let (name, length) = (thread_name(self.thread), time(duration.get()));
        let place =
            |cpu: CpuId| format!("CPU {cpu} of {}, {:.6}s into the recording", printable(node), start.as_secs_f64());
        let number = self.number;
        match self.wait {
            Some(reason) => {
                let why = match reason {
                    StayReason::Preempted => ", after it was preempted",
                    StayReason::Woken => ", after it was woken",
                    StayReason::New => ", after it was created",
                    StayReason::None | StayReason::Left(_) => "",
                };
                format!("Detour {number}: {name} waited {length} for {}{why}", place(cpu))
            }
            None => format!("Detour {number}: {name} was interrupted for {length} on {}", place(cpu)),
        }
    }
}

impl Report for DetoursObservedReport<'_> {
    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn document(&self) -> impl Serialize {
        DetoursObservedDoc { node: self.node.to_owned(), detours: self.detours.iter().map(DetourDoc::from).collect() }
    }

    fn view(&self, _: Form) -> Page {
        let mut blocks = Vec::new();
        for (at, found) in self.detours.iter().enumerate() {
            let title = found.title(self.node);
            let gap = (at > 0).then(Block::gap);
            blocks.push(Block::OnTerminal(gap.into_iter().chain([Block::Lead(title.clone())]).collect()));
            blocks.push(Block::OnPage(vec![Block::Heading(title)]));
            let mut table = Table::filled(&SHOWN, &found.rows);
            table.may_leave_out(6);
            table.sorts = false;
            blocks.push(Block::Table(table));
        }
        if blocks.is_empty() {
            blocks.push(Block::Text("no wait and no interruption of an observed thread was recorded".to_owned()));
        }
        Page {
            title: "Single waits and interruptions".to_owned(),
            subtitle: format!("Observed threads of {}", printable(self.node)),
            sections: vec![Section::new("detours", "Detours", "Single waits and interruptions", blocks)],
            foot: Vec::new(),
        }
    }
}
