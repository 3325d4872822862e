//! What a journal says: the state of every step.

use becalm_units::CpuList;

use super::owner::Owner;
use super::record::{Noted, Record, VERSION};
use crate::{Attempt, Change, Knob, Outcome, Plan};

/// One change, and how far it got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalStep {
    /// The step's number in the journal. They rise, and leave out those of a line that is damaged.
    pub number: usize,
    /// The change that the step makes.
    pub change: Change,
    /// The value before; `None` if nothing was changed.
    pub original: Option<String>,
    /// The value after, as the kernel shows it; `None` if that is not known.
    pub done: Option<String>,
    /// Why it was not made.
    pub refused: Option<String>,
    /// Whether the original is back.
    pub restored: bool,
}

impl JournalStep {
    /// Whether something may have been changed that is not restored.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.original.is_some() && self.refused.is_none() && !self.restored
    }

    /// The change as it is in force; `None` for one that is not.
    fn in_force(&self) -> Option<Attempt> {
        let original = self.original.as_deref().filter(|_| self.is_open())?;
        let value = self.done.as_deref().unwrap_or(&self.change.to);
        Some(Attempt::new(self.change.clone(), original, value, Outcome::Changed))
    }
}

/// What a journal says when it is read back: whose the changes are, which, and how far they came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// The process that owns it: that changed something last.
    pub owner: Owner,
    /// When the first owner was started, in clock ticks since boot.
    pub begin_ticks: u64,
    /// The plans, in the order in which they were applied.
    pub plans: Vec<Plan>,
    /// The steps of all plans.
    pub steps: Vec<JournalStep>,
    /// Whether all changes were tried; if not, their process died before it came to the last.
    pub applied: bool,
    /// Where threads might run before control groups were changed.
    pub threads: Vec<Noted>,
    /// Whether they may run there again.
    pub settled: bool,
    /// How many lines were passed over, as they are damaged.
    pub damaged: usize,
}

impl State {
    /// From the bytes of a journal; tells also how many of them are whole lines. Nothing if not even the first is whole, so that
    /// nothing had been changed. `lenient`, damaged lines behind the first are passed over.
    ///
    /// # Errors
    /// The line, counted from 1, that makes no sense, and why; or, as line 0, the version that is not known.
    pub(crate) fn parse(bytes: &[u8], lenient: bool) -> Result<Option<(Self, usize)>, (usize, String)> {
        let mut state: Option<Self> = None;
        let mut whole = 0;
        for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            // A line is written in one call, its end last.
            let Some(text) = line.strip_suffix(b"\n") else { break };
            let damaged = |why: String| (number + 1, why);
            let record = serde_json::from_slice(text).map_err(|error| error.to_string());
            let taken = match (&mut state, record) {
                (None, Ok(Record::Begin { version, owner, plan })) => {
                    if version != VERSION {
                        return Err((0, version.to_string()));
                    }
                    state = Some(Self::begin(owner, *plan));
                    Ok(())
                }
                (Some(state), record) => record.and_then(|record| state.note(record)),
                (None, record) => {
                    let why = record.err().unwrap_or_else(|| "the journal does not begin with a plan".to_owned());
                    return Err(damaged(why));
                }
            };
            match (taken, &mut state) {
                (Err(_), Some(state)) if lenient => state.damaged += 1,
                (taken, _) => taken.map_err(damaged)?,
            }
            whole += line.len();
        }
        Ok(state.map(|state| (state, whole)))
    }

    /// The state of a journal that begins with this plan.
    pub(crate) fn begin(owner: Owner, plan: Plan) -> Self {
        let begin_ticks = owner.start_ticks;
        let mut state = Self {
            owner,
            begin_ticks,
            plans: Vec::new(),
            steps: Vec::new(),
            applied: false,
            threads: Vec::new(),
            settled: false,
            damaged: 0,
        };
        state.add(0, plan.steps.clone());
        state.plans.push(plan);
        state
    }

    /// The number of the next step that is added.
    pub(crate) fn next(&self) -> usize {
        self.steps.last().map_or(0, |step| step.number + 1)
    }

    fn add(&mut self, first: usize, changes: Vec<Change>) {
        let step = |(number, change)| JournalStep {
            number,
            change,
            original: None,
            done: None,
            refused: None,
            restored: false,
        };
        self.steps.extend((first..).zip(changes).map(step));
    }

    /// The number of the first of some steps that come on top. Behind a damaged line, which may have held others, only the steps'
    /// own line tells it.
    fn first(&self, first: Option<usize>) -> Result<usize, String> {
        let next = self.next();
        match first {
            None if self.damaged == 0 => Ok(next),
            None => Err("nobody knows the numbers of its steps, as a line before it is damaged".to_owned()),
            Some(first) if first == next || (first > next && self.damaged > 0) => Ok(first),
            Some(first) => Err(format!("its first step is {first}, and the next one is {next}")),
        }
    }

    /// Takes in another line.
    ///
    /// # Errors
    /// Why it makes no sense behind the others.
    pub(crate) fn note(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Begin { .. } => return Err("it begins the journal a second time".to_owned()),
            Record::Original { step, value } => self.step(step)?.original = Some(value),
            Record::Done { step, value } => self.step(step)?.done = Some(value),
            Record::Refused { step, why } => self.step(step)?.refused = Some(why),
            Record::Restored { step, .. } => self.step(step)?.restored = true,
            Record::Threads { threads } => {
                self.threads.extend(threads);
                self.settled = false;
            }
            Record::Settled => self.settled = true,
            Record::Applied => self.applied = true,
            Record::More { steps, first } => self.add(self.first(first)?, steps),
            Record::Extend { owner, plan, first } => {
                (self.owner, self.applied) = (owner, false);
                let first = self.first(first);
                let steps = plan.steps.clone();
                self.plans.push(*plan);
                self.add(first?, steps);
            }
        }
        Ok(())
    }

    fn step(&mut self, number: usize) -> Result<&mut JournalStep, String> {
        match self.steps.binary_search_by_key(&number, |step| step.number) {
            Ok(index) => Ok(&mut self.steps[index]),
            Err(_) => Err(format!("there is no step {number} of {}", self.steps.len())),
        }
    }

    /// Whether nothing is changed any more.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        !self.steps.iter().any(JournalStep::is_open) && !self.is_unsettled()
    }

    /// Every change that is in force, in the order in which they were made.
    #[must_use]
    pub fn in_force(&self) -> Vec<Attempt> {
        self.steps.iter().filter_map(JournalStep::in_force).collect()
    }

    /// The CPUs that are quiet by one plan or another.
    #[must_use]
    pub fn quiet(&self) -> CpuList {
        self.plans.iter().flat_map(|plan| plan.cpus.iter()).collect()
    }

    /// Whether the kernel may have changed threads that do not have their CPUs again.
    pub(crate) fn is_unsettled(&self) -> bool {
        let changed = || self.steps.iter().any(|step| step.original.is_some() && gives_cpus(&step.change));
        !self.threads.is_empty() && !self.settled && changed()
    }
}

/// Whether a change makes the kernel give CPUs to threads that it does not name.
pub(crate) fn gives_cpus(change: &Change) -> bool {
    match &change.knob {
        Knob::File { path, .. } => path.file_name().is_some_and(|name| name == "cpuset.cpus.partition"),
        Knob::Property { .. } => true,
        _ => false,
    }
}
