//! Updates for scripts: one line of JSON each, `becalm.top-observed/1`.

use std::io::{self, Write};

use becalm_observe::document::{TakerDoc, ThreadDoc};
use becalm_units::Nanos;
use serde::Serialize;

use super::{ROWS, Shown};
use crate::since::SinceStart;

/// An update of the live view of threads. Durations are integers in `_ns` fields.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TopObservedDocument<'a> {
    /// The name and version of the document.
    schema: &'static str,
    /// The answer in a sentence: how much longer the threads could have run, and because of whom.
    headline: String,
    /// The start of the update, since that of the observation.
    start_ns: Nanos,
    /// The length of the update.
    duration_ns: Nanos,
    /// Kernel events that were dropped in the update.
    lost_events: u64,
    /// The sums since the start of the observation.
    since_start: SinceStartDoc,
    /// The threads, those that waited longest in the update first.
    threads: Vec<TopThreadDoc<'a>>,
    /// The takers of the CPU during waits, the most costly of the update first; then those that had it only before.
    takers: Vec<TopTakerDoc>,
}

/// Sums since the start of the observation, also of threads that have ended.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct SinceStartDoc {
    /// The time observed.
    observed_ns: Nanos,
    /// The time that threads could have run: queued, on the way, or kept by a quota.
    waited_ns: Nanos,
    /// The part of it that takers share: queued, or kept by a quota.
    taken_ns: Nanos,
    /// Kernel events that were dropped.
    lost_events: u64,
}

/// A thread in the update, and since the start.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct TopThreadDoc<'a> {
    /// Its time in the update.
    #[serde(flatten)]
    update: &'a ThreadDoc,
    /// How long it has waited since the start.
    since_waited_ns: Nanos,
}

/// A taker in the update, and since the start.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct TopTakerDoc {
    /// Its time in the update.
    #[serde(flatten)]
    update: TakerDoc,
    /// Its time since the start.
    since_ns: Nanos,
    /// How often it has come since the start.
    since_count: u64,
    /// The most that one wait has lost to it since the start.
    since_longest_ns: Nanos,
}

impl<'a> TopThreadDoc<'a> {
    fn new(update: &'a ThreadDoc, since: &SinceStart) -> Self {
        Self { update, since_waited_ns: since.waited(update.process, update.tid) }
    }
}

fn document(shown: &Shown) -> TopObservedDocument<'_> {
    let Shown { update, since } = shown;
    let taker = |update: TakerDoc| {
        let sum = since.of(&update);
        TopTakerDoc { since_ns: sum.ns, since_count: sum.count, since_longest_ns: sum.longest, update }
    };
    TopObservedDocument {
        schema: "becalm.top-observed/1",
        headline: shown.answer(),
        start_ns: since.elapsed - update.duration_ns,
        duration_ns: update.duration_ns,
        lost_events: update.lost_events,
        since_start: SinceStartDoc {
            observed_ns: since.elapsed,
            waited_ns: since.waited,
            taken_ns: since.taken,
            lost_events: since.lost_events,
        },
        threads: update.threads.iter().map(|thread| TopThreadDoc::new(thread, since)).collect(),
        takers: update.takers.iter().cloned().chain(since.others(&update.takers, ROWS)).map(taker).collect(),
    }
}

/// Prints an update as one line. Fails if `out` cannot be written.
pub(super) fn print(shown: &Shown, out: &mut impl Write) -> io::Result<()> {
    let mut line = serde_json::to_vec(&document(shown))?;
    line.push(b'\n');
    // At once, because several processes may read it.
    out.write_all(&line)?;
    out.flush()
}
