//! The subjects of a recording: the threads whose lives it has, or the CPUs.

use std::collections::HashMap;

use becalm_bundle::ThreadRow;
use becalm_model::node::CpuDoc;
use becalm_model::observed::ThreadId;
use becalm_units::{CpuId, CpuList};

use crate::spans::ReadSpan;

/// A thread of a recording, with the start and the end of its life.
#[derive(Clone, Copy, Debug)]
struct KnownThread {
    thread: ThreadId,
    start: i64,
    end: i64,
}

/// The subjects of a recording.
#[derive(Clone, Debug)]
pub enum Subjects {
    /// Observed threads.
    Threads(KnownThreads),
    /// Measured CPUs.
    Cpus(KnownCpus),
}

/// Observed threads, with the start and the end of the recording.
#[derive(Clone, Debug)]
pub struct KnownThreads {
    /// A number may be used by several threads in turn.
    by_tid: HashMap<i32, Vec<KnownThread>>,
    tids: Vec<i32>,
    books: (i64, i64),
}

/// Measured CPUs.
#[derive(Clone, Debug)]
pub struct KnownCpus {
    cpus: Vec<CpuDoc>,
    /// The CPU of spans that name none.
    default: Option<CpuId>,
}

/// Why a span has no subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absent {
    /// It is not within the time of the recording: how far from its start.
    Outside(i64),
    /// The thread or CPU with this number is not in the recording.
    Stranger(i64),
}

impl Subjects {
    /// The chosen ones of these threads, in a recording with this start and end.
    pub fn threads(rows: &[ThreadRow], books: (i64, i64)) -> Self {
        let mut by_tid: HashMap<i32, Vec<KnownThread>> = HashMap::new();
        for row in rows.iter().filter(|row| row.chosen) {
            if let Ok(thread) = u32::try_from(row.thread) {
                let known = KnownThread { thread: ThreadId(thread), start: row.start_ns, end: row.end_ns };
                by_tid.entry(row.tid).or_default().push(known);
            }
        }
        let tids = rows.iter().map(|row| row.tid).collect();
        Self::Threads(KnownThreads { by_tid, tids, books })
    }

    /// These CPUs, which have the numbers of their places; `default` is the CPU of spans that name none.
    pub const fn cpus(cpus: Vec<CpuDoc>, default: Option<CpuId>) -> Self {
        Self::Cpus(KnownCpus { cpus, default })
    }

    /// The subject of a span from `start` to `end`, which may be off by `error`.
    pub fn find(&self, span: &ReadSpan, start: i64, end: i64, error: i64) -> Result<ThreadId, Absent> {
        let is_within = |from: i64, to: i64| start >= from - error && end <= to + error;
        match self {
            Self::Threads(KnownThreads { by_tid, books, .. }) => {
                if !is_within(books.0, books.1) {
                    return Err(Absent::Outside(start.saturating_sub(books.0)));
                }
                let overlap = |known: &&KnownThread| known.end.min(end) - known.start.max(start);
                let known = span.tid.and_then(|tid| by_tid.get(&tid)).into_iter().flatten().max_by_key(overlap);
                let known = known.filter(|known| overlap(known) >= -error);
                known.map(|known| known.thread).ok_or(Absent::Stranger(span.tid.unwrap_or(0).into()))
            }
            Self::Cpus(KnownCpus { cpus, default }) => {
                let wanted = span.cpu.or(*default);
                let Some(place) = cpus.iter().position(|doc| Some(doc.cpu) == wanted) else {
                    return Err(Absent::Stranger(wanted.map_or(-1, |cpu| cpu.get().into())));
                };
                let from = cpus[place].start_ns;
                if !is_within(from.get(), (from + cpus[place].duration_ns).get()) {
                    return Err(Absent::Outside(start.saturating_sub(from.get())));
                }
                Ok(ThreadId(place as u32))
            }
        }
    }

    /// The kernel's number of a thread.
    pub fn tid(&self, subject: ThreadId) -> Option<i32> {
        match self {
            Self::Threads(known) => known.tids.get(subject.0 as usize).copied(),
            Self::Cpus(_) => None,
        }
    }

    /// The number of a CPU.
    pub fn cpu(&self, subject: ThreadId) -> Option<CpuId> {
        match self {
            Self::Threads(_) => None,
            Self::Cpus(known) => known.cpus.get(subject.0 as usize).map(|doc| doc.cpu),
        }
    }

    /// What spans of strangers with these numbers are of, and what the recording has instead.
    pub fn strangers(&self, numbers: &str) -> String {
        match self {
            Self::Threads(_) => format!(
                "of threads that were not observed then, such as {numbers}; becalm report RUN --full lists the observed ones"
            ),
            Self::Cpus(known) => {
                let cpus: CpuList = known.cpus.iter().map(|doc| doc.cpu).collect();
                format!(
                    "on CPUs that were not measured, such as {numbers}; the recording has {}",
                    becalm_units::cpus(&cpus)
                )
            }
        }
    }
}
