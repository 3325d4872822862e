//! Applies a plan: writes the original to disk, makes the change, then reads the kernel's version of it.

use std::collections::BTreeSet;
use std::ops::Range;

use becalm_linux::file::is_gone;
use becalm_units::CpuList;

use crate::bystanders::ThreadKey;
use crate::families::affinity_changes;
use crate::journal::{Begun, Folder, Journal, JournalStep, Owner, Record};
use crate::machine::{Machine, online};
use crate::moment::{Moment, Observer};
use crate::request::Division;
use crate::{Attempt, Change, Family, Knob, Outcome, Plan, TuneError, bystanders, knob, value};

/// How often to look for threads started while others were moved.
const ROUNDS: u32 = 4;

/// The number of threads moved between two writes of the journal. Their originals are on disk before the first is moved.
const AT_ONCE: usize = 256;

/// The outcome of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    /// Every change, in order.
    pub changes: Vec<Attempt>,
}

impl Applied {
    /// The changes that the kernel refused, with its reasons.
    pub fn refused(&self) -> impl Iterator<Item = (&Change, &str)> {
        let refused = self.changes.iter().filter(|attempt| attempt.outcome == Outcome::Refused);
        refused.map(|attempt| (&attempt.change, attempt.why.as_deref().unwrap_or_default()))
    }

    /// The number of changes with an outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.changes.iter().filter(|attempt| attempt.outcome == outcome).count()
    }
}

/// Applies a plan if nothing is changed yet. Fails if the journal contains changes already, or none can be written. A refused change is not an error.
pub fn apply(
    machine: &dyn Machine,
    folder: &Folder,
    plan: &Plan,
    owner: &Owner,
    observer: &mut Observer<'_>,
) -> Result<Applied, TuneError> {
    match folder.begin(owner, plan)? {
        Begun::New(journal) => carry_out(machine, journal, 0, observer),
        Begun::There(journal) => {
            let owner = journal.state().owner.clone();
            Err(TuneError::AlreadyTuned { owner, journal: folder.journal() })
        }
    }
}

/// Applies a plan in addition to existing changes, if there are any.
pub fn extend(
    machine: &dyn Machine,
    folder: &Folder,
    plan: &Plan,
    owner: &Owner,
    observer: &mut Observer<'_>,
) -> Result<Applied, TuneError> {
    match folder.begin(owner, plan)? {
        Begun::New(journal) => carry_out(machine, journal, 0, observer),
        Begun::There(mut journal) => {
            let before = journal.state().owner.clone();
            if before.runs_command && before.is_alive(machine) {
                return Err(TuneError::InUse { owner: before });
            }
            if let Some(damage) = journal.state().damage.first().cloned() {
                return Err(TuneError::Damaged { damage, journal: folder.journal() });
            }
            let first = journal.state().steps.len();
            let (plan, steps) = Record::parts(plan.clone());
            let extend = Record::Extend { owner: owner.clone(), plan };
            let steps = Record::steps(journal.state().next(), steps);
            journal.write(std::iter::once(extend).chain(steps).collect())?;
            carry_out(machine, journal, first, observer)
        }
    }
}

fn carry_out(
    machine: &dyn Machine,
    mut journal: Journal,
    first: usize,
    observer: &mut Observer<'_>,
) -> Result<Applied, TuneError> {
    observer(Moment::Begun);
    if let Some(threads) = bystanders::unnoted(machine, journal.state()) {
        journal.write(vec![threads])?;
    }
    let mut applied = Applied::default();
    let mut rounds = 0;
    let mut number = first;
    let is_move = |step: &JournalStep| step.change.family == Family::Affinity;
    let mut moving = journal.state().steps[first..].iter().any(is_move);
    loop {
        let at_end = number == journal.state().steps.len();
        if at_end {
            bystanders::keep(machine, journal.state(), observer);
        }
        // Threads started meanwhile by others that had not been moved yet.
        if at_end && moving && rounds < ROUNDS {
            rounds += 1;
            let late = late_threads(machine, &journal);
            moving = !late.is_empty();
            if moving {
                let steps = Record::steps(journal.state().next(), late);
                journal.write(steps.collect())?;
            }
        }
        let left = journal.state().steps.get(number..).unwrap_or_default();
        let Some(step) = left.first() else { break };
        let moves = left.iter().take(AT_ONCE).take_while(|step| is_move(step)).count();
        let next = step.change.clone();
        let before = applied.changes.last().filter(|attempt| attempt.change.family == next.family);
        let ready = before.is_none_or(|attempt| matches!(attempt.outcome, Outcome::Changed | Outcome::Already));
        let count = moves.max(1);
        if next.after && !ready {
            applied.changes.push(left_alone(next, Outcome::LeftOut, "a change that it needs was refused"));
        } else {
            applied.changes.extend(make(machine, &mut journal, number..number + count, observer)?);
        }
        number += count;
    }
    journal.write(vec![Record::Applied])?;
    observer(Moment::Ended);
    Ok(applied)
}

/// A change that was not made, with the reason: the knob keeps its value.
fn left_alone(change: Change, outcome: Outcome, why: impl Into<String>) -> Attempt {
    let value = change.from.clone();
    Attempt::new(change, &value, &value, outcome).because(why)
}

/// A change whose knob no longer exists.
fn gone(change: Change) -> Attempt {
    let value = change.from.clone();
    Attempt::new(change, &value, "", Outcome::Gone)
}

/// Notes changes in the journal, makes them, and returns their outcomes.
fn make(
    machine: &dyn Machine,
    journal: &mut Journal,
    range: Range<usize>,
    observer: &mut Observer<'_>,
) -> Result<Vec<Attempt>, TuneError> {
    let online = online(machine);
    let steps = journal.state().steps[range].iter().map(|step| (step.number, step.change.clone()));
    let inspection: Vec<_> = steps.map(|(step, change)| (step, inspect(machine, change, &online))).collect();
    let originals: Vec<Record> =
        inspection.iter().filter_map(|(step, inspection)| original(*step, inspection)).collect();
    if !originals.is_empty() {
        journal.write(originals)?;
        observer(Moment::Noted);
    }
    let mut attempts = Vec::new();
    let mut results = Vec::new();
    for (step, inspection) in inspection {
        match inspection {
            Inspection::Not(attempt) => attempts.push(attempt),
            Inspection::Ready { change, original } => {
                let (attempt, result) = change_one(machine, step, change, &original, &online, observer);
                attempts.push(attempt);
                results.extend(result);
            }
        }
    }
    if !results.is_empty() {
        journal.write(results)?;
        observer(Moment::Recorded);
    }
    Ok(attempts)
}

/// The inspection of a knob before its change.
enum Inspection {
    /// The change can be made; `original` is the value before.
    Ready { change: Change, original: String },
    /// Nothing has to be done, or can be.
    Not(Attempt),
}

fn inspect(machine: &dyn Machine, change: Change, online: &CpuList) -> Inspection {
    let original = match value::read(machine, &change.knob) {
        Ok(Some(original)) => original,
        Ok(None) => return Inspection::Not(gone(change)),
        Err(error) => {
            let why = format!("it cannot be read: {error}");
            return Inspection::Not(left_alone(change, Outcome::Refused, why));
        }
    };
    if knob::same(&change.knob, &original, &change.to, online) {
        let value = change.to.clone();
        return Inspection::Not(Attempt::new(change, &value, &value, Outcome::Already));
    }
    Inspection::Ready { change, original }
}

fn original(step: usize, inspection: &Inspection) -> Option<Record> {
    match inspection {
        Inspection::Ready { original, .. } => Some(Record::Original { step, value: original.clone() }),
        Inspection::Not(_) => None,
    }
}

/// Makes a noted change; returns its outcome, and its record for the journal. Without a record the change stays open, so restoring tries again.
fn change_one(
    machine: &dyn Machine,
    step: usize,
    change: Change,
    original: &str,
    online: &CpuList,
    observer: &mut Observer<'_>,
) -> (Attempt, Option<Record>) {
    let knob = &change.knob;
    let mut why = String::new();
    for wanted in std::iter::once(&change.to).chain(&change.or_else) {
        match set(machine, knob, wanted, online, observer) {
            Ok(now) => {
                let before = change.from.clone();
                let attempt = Attempt::new(change, &before, &now, Outcome::Changed);
                return (attempt, Some(Record::Done { step, value: now }));
            }
            Err(reason) => why += &format!("{}'{wanted}': {reason}", if why.is_empty() { "" } else { "; " }),
        }
    }
    // The value may have changed, although not to the wanted one.
    let as_before =
        |machine| matches!(value::read(machine, knob), Ok(Some(now)) if knob::same(knob, &now, original, online));
    let is_gone = matches!(value::read(machine, knob), Ok(None));
    if !is_gone && !as_before(machine) {
        let _ = value::write(machine, knob, knob.value(original));
        observer(Moment::Written);
        if !as_before(machine) {
            let why = format!("{why}; and its value before cannot be brought back yet");
            return (left_alone(change, Outcome::Refused, why), None);
        }
    }
    let refused = Record::Refused { step, why: why.clone() };
    (if is_gone { gone(change) } else { left_alone(change, Outcome::Refused, why) }, Some(refused))
}

/// Writes a value and returns the one that the knob then shows, or why they differ.
fn set(
    machine: &dyn Machine,
    knob: &Knob,
    wanted: &str,
    online: &CpuList,
    observer: &mut Observer<'_>,
) -> Result<String, String> {
    let written = value::write(machine, knob, wanted);
    observer(Moment::Written);
    match (written, value::read(machine, knob)) {
        (Ok(()), Ok(Some(now))) if knob::same(knob, &now, wanted, online) => Ok(now),
        (Err(error), _) if is_gone(&error) => Err("it is gone".to_owned()),
        (Err(error), _) => Err(error.to_string()),
        (Ok(()), Ok(Some(now))) => Err(format!("the kernel made it '{}'", now.trim())),
        (Ok(()), Ok(None)) => Err("it is gone".to_owned()),
        (Ok(()), Err(error)) => Err(format!("it cannot be read any more: {error}")),
    }
}

/// The changes that move threads not yet in the journal.
fn late_threads(machine: &dyn Machine, journal: &Journal) -> Vec<Change> {
    let state = journal.state();
    let Some(plan) = state.plans.last() else { return Vec::new() };
    let known: BTreeSet<ThreadKey> = state
        .steps
        .iter()
        .filter_map(|step| match &step.change.knob {
            Knob::Affinity { tid, start_ticks, .. } => Some(ThreadKey { tid: *tid, start_ticks: *start_ticks }),
            _ => None,
        })
        .collect();
    // If they cannot be listed, the plan has reported that.
    let tasks = machine.tasks().unwrap_or_default().tasks;
    affinity_changes(&tasks, &Division::from_plan(plan, online(machine)), &known)
}
