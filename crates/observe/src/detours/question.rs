//! The question, and the waits and interruptions that answer it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use becalm_answer::Asker;
use becalm_answer::sources::{DetourName, SourcesQuestion, SourcesWanted};
use becalm_bundle::node_document::NodeDocument;
use becalm_bundle::{Contents, ObservedTables};
use becalm_model::Labels;
use becalm_model::observed::{LifePart, OwnedActivity, Owner, StayReason, ThreadDetour, ThreadId};
use becalm_units::Nanos;
use becalm_units::fault::{self, UsageError, Wording};

use super::report::{ActivityRow, DetoursObservedReport, FoundDetour};
use crate::command;
use crate::document::ObservedDoc;
use crate::places::places;
use crate::words::{taker_names, taker_thread};

/// The detours that are asked for.
#[derive(Clone, Copy)]
enum Wanted {
    /// The longest, at most this many.
    Longest(usize),
    /// The one with this number.
    One(u64),
}

/// A detour as stored, with its number.
struct StoredDetour {
    number: u64,
    detour: ThreadDetour,
    activities: Vec<OwnedActivity>,
}

impl StoredDetour {
    /// Whether its place is not known: the hypervisor's time is known only when the kernel accounts for it.
    fn is_of_host(&self) -> bool {
        self.activities.iter().all(|row| row.owner == Owner::Host)
    }
}

/// Shows single waits and interruptions of observed threads. Fails if the recording cannot be read, has no trace or lacks the wanted ones, or the
/// answer cannot be shown.
pub fn answer(question: &SourcesQuestion, asker: &mut impl Asker) -> fault::Result<()> {
    let wanted = wanted(question)?;
    let stored = command::load(&question.run, question.selection.node.as_deref())?;
    fault::ensure!(
        stored.doc.tracing.is_some(),
        "{} has no trace of the kernel, which alone shows single waits; observe with sudo",
        question.run.display()
    );
    let detours = find(&stored, wanted)?;
    if let (Wanted::One(number), true) = (wanted, detours.is_empty()) {
        let all = stored.doc.rows.detours;
        let text = format!("there is no detour {number}: the recording has {all} of them, numbered from 0");
        return Err(UsageError::new(text).into());
    }
    asker.show(&DetoursObservedReport { node: &stored.doc.node, detours: &detours })
}

/// The wanted detours. Fails if the question is about CPUs.
fn wanted(question: &SourcesQuestion) -> Result<Wanted, UsageError> {
    let (run, holds) = (question.run.display(), Contents::Observed.words());
    let refusal = match &question.wanted {
        _ if question.selection.cpus.is_some() => {
            Wording::new("{} holds {}, which move between CPUs; leave {cpus} out").with(&run).with(holds)
        }
        _ if question.selection.with_self => {
            Wording::new("{} holds {}, and becalm is among those that had their CPU; leave {with_self} out")
                .with(&run)
                .with(holds)
        }
        SourcesWanted::Longest(count) => return Ok(Wanted::Longest(*count as usize)),
        SourcesWanted::Detour(DetourName { cpu: None, number }) => return Ok(Wanted::One(*number)),
        SourcesWanted::Detour(DetourName { cpu: Some(_), number }) => {
            Wording::new("{} holds {}, whose detours have numbers without a CPU: {detour=}")
                .with(&run)
                .with(holds)
                .with(number)
        }
        SourcesWanted::Together { .. } => Wording::from(format!(
            "{run} holds {holds}, and only a recording of CPUs shows what comes on several at once: becalm record"
        )),
        SourcesWanted::Ranked { .. } => {
            Wording::from(format!("{run} holds {holds}; becalm report {run} shows who had the CPU while they waited"))
        }
    };
    Err(UsageError::new(refusal))
}

/// Finds detours with their threads and activities, the longest first.
fn find(stored: &NodeDocument<ObservedDoc>, wanted: Wanted) -> fault::Result<Vec<FoundDetour<'_>>> {
    let doc = &stored.doc;
    let tables = ObservedTables::new(&stored.bundle, &doc.node, doc.rows);
    let mut labels = Labels::new();
    let rows = tables.threads(&mut labels)?;
    let places = places(&rows, doc.threads.iter());
    let mut kept = BTreeMap::new();
    let mut number = 0;
    tables.detours(&mut labels, &mut |detour, activities, _| {
        // Of equally long ones, the first in the table counts as longer.
        let rank = (detour.duration, Reverse(number));
        let (is_wanted, most) = match wanted {
            Wanted::Longest(most) => (places.contains_key(&detour.thread), most),
            Wanted::One(wanted) => (wanted == number, 1),
        };
        if is_wanted && (kept.len() < most || kept.first_key_value().is_some_and(|(least, _)| *least < rank)) {
            kept.insert(rank, StoredDetour { number, detour: *detour, activities: activities.to_vec() });
            if kept.len() > most {
                kept.pop_first();
            }
        }
        number += 1;
    })?;
    let waits = waits(&tables, &mut labels, kept.values().filter(|stored| !stored.is_of_host()))?;
    let names = taker_names(&rows, &labels);
    let row = |row: &OwnedActivity, whole: Nanos| {
        let thread = row.thread.and_then(|thread| rows.get(thread.0 as usize)).map(taker_thread);
        ActivityRow {
            owner: row.owner,
            kind: row.kind,
            source: names.source(row.owner, labels.text(row.source), thread),
            time: row.time,
            whole,
            visits: row.visits,
            tid: thread.map(|thread| thread.tid),
        }
    };
    let found = |stored: StoredDetour| {
        let StoredDetour { number, detour, activities } = stored;
        let mut rows: Vec<ActivityRow> = activities.iter().map(|activity| row(activity, detour.duration)).collect();
        rows.sort_by_key(|row| Reverse(row.time));
        Some(FoundDetour {
            number,
            thread: doc.threads.get(*places.get(&detour.thread)?)?,
            detour,
            wait: waits.get(&(detour.thread, detour.start)).copied(),
            rows,
        })
    };
    Ok(kept.into_values().rev().filter_map(found).collect())
}

/// Which of these detours are waits, and why each started, by thread and start.
fn waits<'a>(
    tables: &ObservedTables,
    labels: &mut Labels,
    detours: impl Iterator<Item = &'a StoredDetour>,
) -> fault::Result<HashMap<(ThreadId, Nanos), StayReason>> {
    let mut starts: HashMap<(ThreadId, Nanos), Option<StayReason>> =
        detours.map(|stored| ((stored.detour.thread, stored.detour.start), None)).collect();
    tables.stays(labels, &mut |stay, _| {
        let is_wait = matches!(stay.part, LifePart::Queued | LifePart::Quota);
        if let Some(reason) = starts.get_mut(&(stay.thread, stay.start)).filter(|_| is_wait) {
            *reason = Some(stay.reason);
        }
    })?;
    Ok(starts.into_iter().filter_map(|(start, reason)| Some((start, reason?))).collect())
}
