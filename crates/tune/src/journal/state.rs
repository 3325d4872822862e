//! What a journal says: the state of every step.

use becalm_units::CpuList;

use super::owner::Owner;
use super::record::{Noted, Record, VERSION};
use crate::{Attempt, Change, Knob, Outcome, Plan};

/// One change, and how far it got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalStep {
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
}

impl State {
    /// From the text of a journal; tells also how many bytes of it are whole lines. Nothing if not even the first is whole, so
    /// that nothing had been changed. `lenient`, damaged lines behind the first are passed over.
    ///
    /// # Errors
    /// The line, counted from 1, that makes no sense, and why; or, as line 0, the version that is not known.
    pub(crate) fn parse(text: &str, lenient: bool) -> Result<Option<(Self, usize)>, (usize, String)> {
        let mut state: Option<Self> = None;
        let mut whole = 0;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            // A line is written in one call, its end last.
            let Some(line) = line.strip_suffix('\n') else { break };
            let damaged = |why: String| (number + 1, why);
            let record = serde_json::from_str(line).map_err(|error| error.to_string());
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
            if !lenient {
                taken.map_err(damaged)?;
            }
            whole += line.len() + 1;
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
        };
        state.add(plan.steps.clone());
        state.plans.push(plan);
        state
    }

    fn add(&mut self, changes: Vec<Change>) {
        let step = |change| JournalStep { change, original: None, done: None, refused: None, restored: false };
        self.steps.extend(changes.into_iter().map(step));
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
            Record::More { steps } => self.add(steps),
            Record::Extend { owner, plan } => {
                (self.owner, self.applied) = (owner, false);
                self.add(plan.steps.clone());
                self.plans.push(*plan);
            }
        }
        Ok(())
    }

    fn step(&mut self, number: usize) -> Result<&mut JournalStep, String> {
        let count = self.steps.len();
        self.steps.get_mut(number).ok_or_else(|| format!("there is no step {number} of {count}"))
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
