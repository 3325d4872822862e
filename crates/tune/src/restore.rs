//! Restores the originals of a journal, in reverse; it can be repeated.

use std::collections::BTreeSet;
use std::path::Path;

use becalm_linux::procfs::placement::Placed;
use becalm_units::{CpuId, CpuList};

use crate::bystanders::ThreadKey;
use crate::heirs::{self, Heir, Heirs};
use crate::journal::{Damage, Folder, JournalStep, Owner, Record, State};
use crate::machine::{Machine, online};
use crate::moment::{Moment, Observer};
use crate::{Attempt, Change, Knob, Outcome, TuneError, bystanders, knob, value};

/// Options of restoring.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestoreOptions<'a> {
    /// Whose changes to restore.
    pub whose: Whose<'a>,
    /// What to do with knobs that others changed meanwhile.
    pub foreign: Foreign,
}

/// Whose changes are to be restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Whose<'a> {
    /// Those of any owner.
    #[default]
    Anybodys,
    /// Only those of this process.
    Process(&'a Owner),
    /// Those made by a dead process to run a command. Permanent changes are excluded.
    DeadRuns,
}

impl Whose<'_> {
    fn includes(self, machine: &dyn Machine, owner: &Owner) -> bool {
        match self {
            Self::Anybodys => true,
            Self::Process(wanted) => wanted == owner,
            Self::DeadRuns => owner.runs_command && !owner.is_alive(machine),
        }
    }
}

/// What restoring does with knobs that others changed meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Foreign {
    /// Leaves them as they are, and keeps the journal with the originals.
    #[default]
    Leave,
    /// Leaves them as they are for good: the originals are forgotten, and so are damaged lines of the journal. Threads started meanwhile stay on
    /// their CPUs.
    Keep,
    /// Restores the originals, even while a command is still running on the settings.
    Force,
}

/// The outcome of restoring.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Restored {
    /// Every open change, the last one first.
    pub changes: Vec<Attempt>,
    /// Threads started meanwhile.
    pub heirs: Heirs,
    /// Whether the journal is of an earlier boot, so there was nothing to restore.
    pub earlier_boot: bool,
    /// CPUs that were offline and are online again. Interrupts that only the kernel can place have left them, and return only at a reboot.
    pub returned: CpuList,
    /// The error that kept the journal from being updated completely; restoring can be repeated.
    pub unwritten: Option<String>,
    /// The damaged lines of the journal: what only they recorded is not restored, and the journal stays.
    pub damage: Vec<Damage>,
    /// The changes whose original value is unknown, because the line that recorded it is damaged.
    pub lost: Vec<Change>,
}

impl Restored {
    /// Whether everything is restored.
    pub fn is_complete(&self) -> bool {
        self.damage.is_empty() && !self.changes.iter().any(|attempt| attempt.outcome.is_open())
    }
}

/// Undoes the changes in the journal; `None` if there is no journal, or only one of another owner than meant.
///
/// A knob that others changed meanwhile is left alone, unless [`Foreign`] says otherwise. The journal stays as long as a knob has to be restored.
/// Restoring continues if the journal cannot be written. If lines of it are damaged, everything in the others is restored, and the journal stays
/// until [`Foreign::Keep`]. Fails if the journal cannot be read or is invalid, or the boot ID is unknown; or, unless forced, if a living process runs
/// a command on the settings. A refused value is not an error.
pub fn restore(
    machine: &dyn Machine,
    folder: &Folder,
    restoring: RestoreOptions<'_>,
    observer: &mut Observer<'_>,
) -> Result<Option<Restored>, TuneError> {
    let force = restoring.foreign == Foreign::Force;
    let is_meant = |state: &State| restoring.whose.includes(machine, &state.owner);
    // Other owners may hold the lock of their journal for as long as they like.
    if folder.read().is_ok_and(|found| found.is_some_and(|state| !is_meant(&state))) {
        return Ok(None);
    }
    let Some(mut journal) = folder.resume()?.filter(|journal| is_meant(journal.state())) else { return Ok(None) };
    let owner = journal.state().owner.clone();
    let mut restored = Restored::default();
    if !owner.is_of_this_boot(machine)? {
        restored.earlier_boot = true;
        journal.close()?;
        return Ok(Some(restored));
    }
    if restoring.foreign != Foreign::Keep {
        restored.damage.clone_from(&journal.state().damage);
        restored.lost = journal.state().lost().cloned().collect();
    }
    let own = std::process::id().cast_signed();
    if owner.runs_command && owner.pid != own && owner.is_alive(machine) && !force {
        return Err(TuneError::InUse { owner });
    }
    // The CPUs of threads before anything is restored: they show which thread started which.
    let tasks = machine.tasks().unwrap_or_default().tasks;
    // Threads started meanwhile. A failure to write them matters only if this process is killed.
    let late = Some(journal.state()).filter(|state| state.is_unsettled());
    if let Some(threads) = late.and_then(|state| bystanders::unnoted(machine, state)) {
        journal.write_if_possible(threads)?;
    }
    let noted = bystanders::noted(journal.state());
    let is_damaged = !journal.state().damage.is_empty();
    let mut groups_are_back = false;
    let mut at_turn = (0, online(machine));
    let mut returned = Vec::new();
    for (turn, index) in order(journal.state()) {
        if turn > 0 && !groups_are_back {
            bystanders::settle(machine, &mut journal, observer)?;
            groups_are_back = true;
        }
        // Reads the online CPUs once for all threads: becalm does not change them meanwhile, and there may be thousands of threads.
        if turn == 0 || turn != at_turn.0 {
            at_turn = (turn, online(machine));
        }
        let mut step = journal.state().steps[index].clone();
        let number = step.number;
        if let Knob::Affinity { tid, start_ticks, .. } = step.change.knob
            && let Some(cpus) = noted.get(&ThreadKey { tid, start_ticks })
        {
            step.original = Some(cpus.to_string());
        }
        let restorer = Restorer { machine, online: &at_turn.1, is_damaged, foreign: restoring.foreign };
        let attempt = restorer.put_back(step, observer);
        if !attempt.outcome.is_open() {
            let gone = matches!(attempt.outcome, Outcome::Gone | Outcome::Kept);
            journal.write_if_possible(Record::Restored { step: number, gone })?;
            observer(Moment::Recorded);
        }
        returned.extend(cpu_that_returned(&attempt));
        restored.changes.push(attempt);
    }
    bystanders::settle(machine, &mut journal, observer)?;
    restored.returned = returned.into_iter().collect();
    restored.heirs = heirs_of_the_moved(machine, journal.state(), &tasks, restoring.foreign);
    if journal.state().is_restored() && restored.damage.is_empty() {
        journal.close()?;
        observer(Moment::Ended);
    } else {
        restored.unwritten = journal.unwritten().map(ToString::to_string);
    }
    Ok(Some(restored))
}

/// How often to look for threads started while others were put back. Each look reads /proc; threads found may start others until put back.
const LOOKS: usize = 20;

/// Gives threads started by moved ones the CPUs that those had before, unless foreign changes are to be kept.
fn heirs_of_the_moved(machine: &dyn Machine, state: &State, tasks: &[Placed], foreign: Foreign) -> Heirs {
    let online = online(machine);
    let mut search = heirs::Search::new(machine.root(), state, &online);
    let mut found = search.find_first(tasks);
    found.online.clone_from(&online);
    if foreign == Foreign::Keep {
        found.left.extend(found.widened.drain(..).map(|heir| heir.name));
        return found;
    }
    // A thread that has ended, or whose group has none of these CPUs, stays as it is.
    let widen = |heir: &Heir| machine.set_affinity(heir.tid, &heir.cpus).is_ok();
    found.widened.retain(widen);
    for _ in 0..LOOKS {
        let mut later = search.find_later(&machine.tasks().unwrap_or_default().tasks);
        found.left.append(&mut later.left);
        if later.widened.is_empty() {
            break;
        }
        later.widened.retain(widen);
        found.widened.append(&mut later.widened);
    }
    found
}

/// The CPU that this attempt brought online again.
fn cpu_that_returned(attempt: &Attempt) -> Option<CpuId> {
    let Knob::File { path, .. } = &attempt.change.knob else { return None };
    let cpu =
        path.strip_prefix("/sys/devices/system/cpu").ok()?.to_str()?.strip_suffix("/online")?.strip_prefix("cpu")?;
    let is_back = attempt.outcome == Outcome::Restored && attempt.after == "1";
    cpu.parse().ok().filter(|_| is_back).map(CpuId::new)
}

/// The indices of the open steps in the order of undoing, each with its turn: in reverse, but threads after everything else, when their CPUs are
/// online and in no other cpuset; files of a created group last, because they vanish with it.
fn order(state: &State) -> Vec<(i32, usize)> {
    let made: BTreeSet<&Path> = state.steps.iter().filter_map(made_group).collect();
    let turn = |step: &JournalStep| match &step.change.knob {
        Knob::Affinity { .. } => 1,
        Knob::File { path, .. } if path.parent().is_some_and(|group| made.contains(group)) => 2,
        _ => 0,
    };
    let open = state.steps.iter().enumerate().rev().filter(|(_, step)| step.is_open());
    let mut open: Vec<(i32, usize)> = open.map(|(index, step)| (turn(step), index)).collect();
    open.sort_by_key(|(turn, _)| *turn);
    open
}

/// The directory of a group created by a step.
fn made_group(step: &JournalStep) -> Option<&Path> {
    let was_absent = step.original.as_deref() == Some("absent");
    match &step.change.knob {
        Knob::Group { path } if was_absent => Some(path),
        _ => None,
    }
}

/// The result of restoring one knob.
struct KnobResult {
    outcome: Outcome,
    /// The resulting value.
    value: String,
    why: Option<String>,
}

impl KnobResult {
    fn new(outcome: Outcome, value: &str, why: Option<String>) -> Self {
        Self { outcome, value: value.to_owned(), why }
    }
}

/// Restores knobs.
struct Restorer<'a> {
    machine: &'a dyn Machine,
    /// The online CPUs.
    online: &'a CpuList,
    /// Whether lines of the journal are damaged.
    is_damaged: bool,
    foreign: Foreign,
}

impl Restorer<'_> {
    /// Restores one knob.
    fn put_back(&self, step: JournalStep, observer: &mut Observer<'_>) -> Attempt {
        let JournalStep { change, original, done, .. } = step;
        let original = original.unwrap_or_default();
        let same = |a: &str, b: &str| knob::same(&change.knob, a, b, self.online);
        let is_ours = |now: &str| match &done {
            Some(done) => same(now, done),
            // The line with the kernel's version of the value may be a damaged one.
            None if self.is_damaged => {
                std::iter::once(&change.to).chain(&change.or_else).any(|wanted| same(now, wanted))
            }
            // Killed before that was noted: any value may be from becalm.
            None => true,
        };
        let KnobResult { outcome, value, why } = self.bring_back(&change.knob, &original, &is_ours, observer);
        let before = if outcome == Outcome::Unchanged { original } else { change.to.clone() };
        let attempt = Attempt::new(change, &before, &value, outcome);
        match why {
            Some(why) => attempt.because(why),
            None => attempt,
        }
    }

    /// Writes an original value.
    fn bring_back(
        &self,
        knob: &Knob,
        original: &str,
        is_ours: &dyn Fn(&str) -> bool,
        observer: &mut Observer<'_>,
    ) -> KnobResult {
        let Self { machine, online, .. } = *self;
        let failed = |why: String| KnobResult::new(Outcome::Failed, original, Some(why));
        let gone = || KnobResult::new(Outcome::Gone, "", None);
        if let Err(why) = knob::check_place(knob, machine.root()) {
            return failed(why);
        }
        let now = match value::read(machine, knob) {
            Ok(Some(now)) => now,
            Ok(None) => return gone(),
            Err(error) => return failed(format!("it cannot be read: {error}")),
        };
        let ours = is_ours(&now);
        // A thread without a CPU that is offline now would lack it for good.
        let is_whole = || !ours || knob::is_whole(knob, &now, original);
        if knob::same(knob, &now, original, online) && is_whole() {
            return KnobResult::new(Outcome::Unchanged, original, None);
        }
        if !ours {
            let why = || Some(format!("others changed it; it was {original}"));
            match self.foreign {
                Foreign::Leave => return KnobResult::new(Outcome::Foreign, &now, why()),
                Foreign::Keep => return KnobResult::new(Outcome::Kept, &now, why()),
                Foreign::Force => {}
            }
        }
        let written = value::write(machine, knob, knob.value(original));
        observer(Moment::Written);
        match (written, value::read(machine, knob)) {
            (_, Ok(None)) => gone(),
            (_, Ok(Some(now))) if knob::same(knob, &now, original, online) => {
                KnobResult::new(Outcome::Restored, original, None)
            }
            (Err(error), _) => failed(error.to_string()),
            (Ok(()), Ok(Some(now))) => failed(format!("the kernel made it '{}'", now.trim())),
            (Ok(()), Err(error)) => failed(format!("it cannot be read any more: {error}")),
        }
    }
}
