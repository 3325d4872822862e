//! Applying a plan: the original on disk, then the change, then a look at what the kernel made of it.

use std::collections::BTreeSet;

use becalm_linux::file::is_gone;
use becalm_linux::sysfs::cpu::CpuSets;
use becalm_units::CpuList;

use crate::families::affinity_changes;
use crate::journal::{Begun, Folder, Journal, Owner, Record};
use crate::request::Division;
use crate::{Change, Family, Knob, Machine, Plan, TuneError, bystanders, value};

/// How often threads that were started amidst the moving are looked for.
const ROUNDS: u32 = 4;

/// A moment of a transaction, at each of which it may be killed without harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The journal has its plan.
    Begun,
    /// The value before a change is on disk.
    Noted,
    /// A value was written to the knob.
    Written,
    /// What came of it is on disk.
    Recorded,
    /// The journal is complete, or put away.
    Ended,
}

/// Is told of every moment.
pub type Observer<'a> = dyn FnMut(Moment) + 'a;

/// What came of one change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was made; the knob shows this value.
    Made(String),
    /// The knob had the value already.
    Already,
    /// The knob is not there any more: a thread that ended, a device that went.
    Gone,
    /// The kernel did not take it, for this reason; the knob is as it was.
    Refused(String),
    /// Another change that it needs was not made.
    Needless,
}

/// A change, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// The change.
    pub change: Change,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    /// Every change, in order.
    pub changes: Vec<Made>,
}

impl Applied {
    /// The changes that the kernel refused, with its reasons.
    pub fn refused(&self) -> impl Iterator<Item = (&Change, &str)> {
        self.changes.iter().filter_map(|made| match &made.outcome {
            Outcome::Refused(why) => Some((&made.change, why.as_str())),
            _ => None,
        })
    }
}

/// Applies a plan where nothing is changed yet.
///
/// # Errors
/// If a journal says that something is changed already, or none can be written. That a change is refused is no error.
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

/// Applies a plan on top of what is changed already, if anything is.
///
/// # Errors
/// As [`apply`], but that something is changed is none; and if a command runs on it.
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
            let first = journal.state().steps.len();
            journal.write(Record::Extend { owner: owner.clone(), plan: Box::new(plan.clone()) })?;
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
    bystanders::note(machine, &mut journal)?;
    let mut applied = Applied::default();
    let mut rounds = 0;
    let mut number = first;
    loop {
        let all = &journal.state().steps;
        let moving = all[first..].iter().any(|step| step.change.family == Family::Affinity);
        let at_end = number == all.len();
        if at_end {
            bystanders::keep(machine, journal.state(), observer);
        }
        // Threads that were started amidst the moving by others that had not been moved yet.
        if at_end && moving && rounds < ROUNDS {
            rounds += 1;
            let late = late_threads(machine, &journal);
            if !late.is_empty() {
                journal.write(Record::More { steps: late })?;
            }
        }
        let Some(step) = journal.state().steps.get(number) else { break };
        let change = step.change.clone();
        let before = applied.changes.last().filter(|made| made.change.family == change.family);
        let ready = before.is_none_or(|made| matches!(made.outcome, Outcome::Made(_) | Outcome::Already));
        let outcome = if change.after && !ready {
            Outcome::Needless
        } else {
            make(machine, &mut journal, number, &change, observer)?
        };
        applied.changes.push(Made { change, outcome });
        number += 1;
    }
    journal.write(Record::Applied)?;
    observer(Moment::Ended);
    Ok(applied)
}

/// Makes one change.
fn make(
    machine: &dyn Machine,
    journal: &mut Journal,
    step: usize,
    change: &Change,
    observer: &mut Observer<'_>,
) -> Result<Outcome, TuneError> {
    let knob = &change.knob;
    let original = match value::read(machine, knob) {
        Ok(Some(original)) => original,
        Ok(None) => return Ok(Outcome::Gone),
        Err(error) => return Ok(Outcome::Refused(format!("it cannot be read: {error}"))),
    };
    let online = online(machine);
    if knob.same(&original, &change.to, &online) {
        return Ok(Outcome::Already);
    }
    journal.write(Record::Original { step, value: original.clone() })?;
    observer(Moment::Noted);
    let mut why = String::new();
    for wanted in std::iter::once(&change.to).chain(&change.or_else) {
        let written = value::write(machine, knob, wanted);
        observer(Moment::Written);
        let now = value::read(machine, knob);
        let reason = match (written, now) {
            (Ok(()), Ok(Some(now))) if knob.same(&now, wanted, &online) => {
                journal.write(Record::Done { step, value: now.clone() })?;
                observer(Moment::Recorded);
                return Ok(Outcome::Made(now));
            }
            (Err(error), _) if is_gone(&error) => "it is gone".to_owned(),
            (Err(error), _) => error.to_string(),
            (Ok(()), Ok(Some(now))) => format!("the kernel made it '{}'", now.trim()),
            (Ok(()), Ok(None)) => "it is gone".to_owned(),
            (Ok(()), Err(error)) => format!("it cannot be read any more: {error}"),
        };
        why += &format!("{}'{wanted}': {reason}", if why.is_empty() { "" } else { "; " });
    }
    // Something may have changed although it was not what was wanted.
    let as_before =
        |machine| matches!(value::read(machine, knob), Ok(Some(now)) if knob.same(&now, &original, &online));
    let gone = matches!(value::read(machine, knob), Ok(None));
    if !gone && !as_before(machine) {
        let _ = value::write(machine, knob, knob.writable(&original));
        observer(Moment::Written);
        if !as_before(machine) {
            // It stays open, so that restoring tries again.
            return Ok(Outcome::Refused(format!("{why}; and its value before cannot be brought back yet")));
        }
    }
    journal.write(Record::Refused { step, why: why.clone() })?;
    observer(Moment::Recorded);
    Ok(if gone { Outcome::Gone } else { Outcome::Refused(why) })
}

/// The changes that move threads which are not in the journal.
fn late_threads(machine: &dyn Machine, journal: &Journal) -> Vec<Change> {
    let state = journal.state();
    let Some(plan) = state.plans.last() else { return Vec::new() };
    let known: BTreeSet<(i32, u64)> = state
        .steps
        .iter()
        .filter_map(|step| match &step.change.knob {
            Knob::Affinity { tid, start_ticks, .. } => Some((*tid, *start_ticks)),
            _ => None,
        })
        .collect();
    // Where they cannot be listed, the plan said so.
    let tasks = machine.tasks().unwrap_or_default();
    affinity_changes(&tasks, &Division::of_plan(plan, online(machine)), &known)
}

/// The CPUs that run now.
pub(crate) fn online(machine: &dyn Machine) -> CpuList {
    CpuSets::read(machine.root()).map(|sets| sets.online).unwrap_or_default()
}
