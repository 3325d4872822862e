//! Restoring: the originals of a journal, in reverse, as often as it takes.

use std::collections::BTreeSet;
use std::path::Path;

use becalm_units::CpuList;

use crate::journal::{Folder, Journal, JournalStep, Record, State};
use crate::machine::{Machine, online};
use crate::moment::{Moment, Observer};
use crate::{Attempt, Knob, Outcome, TuneError, bystanders, knob, value};

/// What came of restoring.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Restored {
    /// Every change that was open, the last one first.
    pub changes: Vec<Attempt>,
    /// Threads that were started meanwhile by moved ones, and were given the CPUs that those had.
    pub heirs: usize,
    /// Whether the journal is of an earlier boot of the machine, so that there was nothing to restore.
    pub earlier_boot: bool,
}

impl Restored {
    /// Whether everything is as it was.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.changes.iter().any(|attempt| attempt.outcome.is_open())
    }
}

/// Undoes what the journal says was changed; nothing if there is no journal.
///
/// A knob that others changed meanwhile is left alone, unless `force`. As long as one is, the journal stays.
///
/// # Errors
/// If the journal cannot be read, understood or written; or, unless `force`, if a process that is still alive runs a command on
/// the settings. That a value is refused is no error.
pub fn restore(
    machine: &dyn Machine,
    folder: &Folder,
    force: bool,
    observer: &mut Observer<'_>,
) -> Result<Option<Restored>, TuneError> {
    let Some(mut journal) = folder.resume()? else { return Ok(None) };
    let owner = journal.state().owner.clone();
    let mut restored = Restored::default();
    if !owner.is_of_this_boot(machine) {
        restored.earlier_boot = true;
        journal.close()?;
        return Ok(Some(restored));
    }
    let own = std::process::id().cast_signed();
    if owner.runs_command && owner.pid != own && owner.is_alive(machine) && !force {
        return Err(TuneError::InUse { owner });
    }
    if journal.state().is_unsettled() {
        // Those that were started meanwhile.
        bystanders::note(machine, &mut journal)?;
    }
    let mut groups_are_back = false;
    for (turn, number) in order(journal.state()) {
        if turn > 0 && !groups_are_back {
            bystanders::settle(machine, &mut journal, observer)?;
            groups_are_back = true;
        }
        let mut step = journal.state().steps[number].clone();
        if let Some(cpus) = bystanders::noted(journal.state(), &step.change.knob) {
            step.original = Some(cpus.to_string());
        }
        let attempt = put_back(machine, step, force, observer);
        if !attempt.outcome.is_open() {
            journal.write(Record::Restored { step: number, gone: attempt.outcome == Outcome::Gone })?;
            observer(Moment::Recorded);
        }
        restored.changes.push(attempt);
    }
    bystanders::settle(machine, &mut journal, observer)?;
    restored.heirs = widen_heirs(machine, &journal);
    if journal.state().is_spent() {
        journal.close()?;
        observer(Moment::Ended);
    }
    Ok(Some(restored))
}

/// The numbers of the open steps in the order in which they are undone, each with its turn: in reverse, but threads behind all else, when the CPUs
/// that they had are online and in no cpuset of others; and last what lies in a group that was made, since that goes with it.
fn order(state: &State) -> Vec<(i32, usize)> {
    let made: BTreeSet<&Path> = state.steps.iter().filter_map(made_group).collect();
    let turn = |step: &JournalStep| match &step.change.knob {
        Knob::Affinity { .. } => 1,
        Knob::File { path, .. } if path.parent().is_some_and(|group| made.contains(group)) => 2,
        _ => 0,
    };
    let open = state.steps.iter().enumerate().rev().filter(|(_, step)| step.is_open());
    let mut open: Vec<(i32, usize)> = open.map(|(number, step)| (turn(step), number)).collect();
    open.sort_by_key(|(turn, _)| *turn);
    open
}

/// The folder of a group that a step made.
fn made_group(step: &JournalStep) -> Option<&Path> {
    let was_absent = step.original.as_deref() == Some("absent");
    match &step.change.knob {
        Knob::Group { path } if was_absent => Some(path),
        _ => None,
    }
}

/// Brings back the original of one knob.
fn put_back(machine: &dyn Machine, step: JournalStep, force: bool, observer: &mut Observer<'_>) -> Attempt {
    let JournalStep { change, original, done, .. } = step;
    let original = original.unwrap_or_default();
    let (outcome, now, why) = bring_back(machine, &change.knob, &original, done.as_deref(), force, observer);
    let before = if outcome == Outcome::Unchanged { original } else { change.to.clone() };
    let attempt = Attempt::new(change, &before, &now, outcome);
    match why {
        Some(why) => attempt.because(why),
        None => attempt,
    }
}

/// Brings back an original: what came of it, the value to be shown then, and why.
fn bring_back(
    machine: &dyn Machine,
    knob: &Knob,
    original: &str,
    done: Option<&str>,
    force: bool,
    observer: &mut Observer<'_>,
) -> (Outcome, String, Option<String>) {
    let failed = |why: String| (Outcome::Failed, original.to_owned(), Some(why));
    let gone = || (Outcome::Gone, String::new(), None);
    let online = online(machine);
    let now = match value::read(machine, knob) {
        Ok(Some(now)) => now,
        Ok(None) => return gone(),
        Err(error) => return failed(format!("it cannot be read: {error}")),
    };
    if knob::same(knob, &now, original, &online) {
        return (Outcome::Unchanged, original.to_owned(), None);
    }
    // Killed before it was noted what the kernel made of a value, nobody knows that: then every value may be ours.
    let ours = done.is_none_or(|done| knob::same(knob, &now, done, &online));
    if !ours && !force {
        return (Outcome::Foreign, now, Some(format!("others changed it; it was {original}")));
    }
    let written = value::write(machine, knob, knob.value(original));
    observer(Moment::Written);
    match (written, value::read(machine, knob)) {
        (_, Ok(None)) => gone(),
        (_, Ok(Some(now))) if knob::same(knob, &now, original, &online) => {
            (Outcome::Restored, original.to_owned(), None)
        }
        (Err(error), _) => failed(error.to_string()),
        (Ok(()), Ok(Some(now))) => failed(format!("the kernel made it '{}'", now.trim())),
        (Ok(()), Err(error)) => failed(format!("it cannot be read any more: {error}")),
    }
}

/// Threads inherit the CPUs of the one that starts them. Those that were started since by threads that had been moved are told
/// by their CPUs, which are exactly those of a moved thread; they are given what that had. Doing it twice does no harm.
fn widen_heirs(machine: &dyn Machine, journal: &Journal) -> usize {
    let state = journal.state();
    let online = online(machine);
    let mut known = BTreeSet::new();
    let mut moves: Vec<(CpuList, CpuList)> = Vec::new();
    for step in &state.steps {
        let Knob::Affinity { tid, start_ticks, .. } = step.change.knob else { continue };
        known.insert((tid, start_ticks));
        let cpus = |text: &Option<String>| text.as_ref()?.parse::<CpuList>().ok();
        if let (Some(from), Some(to)) = (cpus(&step.original), cpus(&step.done)) {
            let pair = (to, from.intersection(&online));
            if !moves.contains(&pair) {
                moves.push(pair);
            }
        }
    }
    if moves.is_empty() {
        return 0;
    }
    let mut heirs = 0;
    for placed in machine.tasks().unwrap_or_default() {
        let late = placed.start_ticks >= state.begin_ticks && !placed.bound && !placed.task.kthread;
        if !late || known.contains(&(placed.task.pid, placed.start_ticks)) {
            continue;
        }
        let mut from = moves.iter().filter(|(to, _)| *to == placed.cpus);
        // Where threads with different CPUs were moved to the same ones, nobody knows whose heir it is.
        let (Some((_, wide)), None) = (from.next(), from.next()) else { continue };
        if machine.set_affinity(placed.task.pid, wide).is_ok() {
            heirs += 1;
        }
    }
    heirs
}
