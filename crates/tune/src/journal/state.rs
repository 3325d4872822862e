//! The contents of a journal: the state of every step.

use std::collections::BTreeMap;

use becalm_units::CpuList;

use super::line::opened;
use super::owner::Owner;
use super::record::{NotedThread, Record, VERSION};
use crate::{Attempt, Change, Knob, Outcome, Plan};

/// One change and its progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalStep {
    /// The step's number in the journal. Numbers rise, with gaps for damaged lines.
    pub number: usize,
    /// The step's change.
    pub change: Change,
    /// The value before; `None` if nothing was changed.
    pub original: Option<String>,
    /// The value after the change, in the kernel's notation; `None` if it is unknown.
    pub done: Option<String>,
    /// Why it was refused.
    pub refused: Option<String>,
    /// Whether the original is back.
    pub restored: bool,
}

impl JournalStep {
    /// Whether something may be changed that is not restored.
    pub const fn is_open(&self) -> bool {
        self.original.is_some() && self.refused.is_none() && !self.restored
    }

    /// The change if it is in force, else `None`.
    fn in_force(&self) -> Option<Attempt> {
        let original = self.original.as_deref().filter(|_| self.is_open())?;
        let value = self.done.as_deref().unwrap_or(&self.change.to);
        Some(Attempt::new(self.change.clone(), original, value, Outcome::Changed))
    }
}

/// A damaged line of a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The number of the line, from 1.
    pub line: usize,
    /// The kind of damage.
    pub why: String,
}

/// The contents of a journal: the owner, the changes and their progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// The process that owns it: the last one that changed something.
    pub owner: Owner,
    /// The start of the first owner, in clock ticks since boot.
    pub begin_ticks: u64,
    /// The plans, in order of application, without their steps.
    pub plans: Vec<Plan>,
    /// The steps of all plans.
    pub steps: Vec<JournalStep>,
    /// Whether all changes were tried; if not, the process died before the last.
    pub applied: bool,
    /// The CPUs of threads before control groups were changed.
    pub threads: Vec<NotedThread>,
    /// Whether these threads have their CPUs again.
    pub settled: bool,
    /// The damaged lines. What only they recorded is unknown.
    pub damage: Vec<Damage>,
}

/// A parsed journal.
pub(crate) struct ParsedJournal {
    pub state: State,
    /// The length of its lines, in bytes. An unfinished line may follow.
    pub len: usize,
    /// Whether the last line is terminated.
    pub is_ended: bool,
    /// The number of the last line.
    pub last: usize,
}

/// The lines of a journal by number: their records, or why these are unknown.
#[derive(Default)]
struct Lines {
    read: BTreeMap<usize, Result<Record, String>>,
    len: usize,
    is_ended: bool,
}

impl Lines {
    fn read(bytes: &[u8]) -> Self {
        let mut lines = Self { is_ended: true, ..Self::default() };
        // A journal has fewer lines than bytes.
        let opened = |text: &[u8]| match opened(text) {
            Ok((number, _)) if number > bytes.len() => Err("its number is that of no line"),
            read => read,
        };
        // The expected number of the next line.
        let mut due = 1;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_ended) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            match opened(text) {
                Ok((number, record)) => {
                    lines.add(number, &record);
                    (lines.len, lines.is_ended) = (lines.len + piece.len(), is_ended);
                    due = number + 1;
                }
                Err(why) if is_ended => {
                    lines.read.entry(due).or_insert_with(|| Err(why.to_owned()));
                    lines.len += piece.len();
                    due += 1;
                }
                Err(_) => {
                    // The line end is written last: a line is complete if only that is damaged; otherwise it was torn.
                    let text = text.split_last().map_or(text, |(_, text)| text);
                    if let Ok((number, record)) = opened(text) {
                        lines.add(number, &record);
                        (lines.len, lines.is_ended) = (lines.len + text.len(), false);
                    }
                }
            }
        }
        // No line may be missing in between.
        let last = lines.last();
        for number in 1..=last {
            lines.read.entry(number).or_insert_with(|| Err("it is missing".to_owned()));
        }
        lines
    }

    /// Adds a line with a valid checksum. A duplicate has the same record, unless it is from another journal.
    fn add(&mut self, number: usize, record: &str) {
        let record = serde_json::from_str(record).map_err(|error| error.to_string());
        match self.read.get(&number) {
            Some(Ok(known)) if record.as_ref() != Ok(known) => {
                self.read.insert(number, Err("it is there twice, and says two different things".to_owned()));
            }
            _ => {
                self.read.insert(number, record);
            }
        }
    }

    fn last(&self) -> usize {
        self.read.keys().next_back().copied().unwrap_or(0)
    }
}

impl State {
    /// Parses a journal; `None` if not even the first line is complete, so nothing was changed. Fails if the first line is damaged, or, as line 0, if
    /// its version is unknown.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<ParsedJournal>, Damage> {
        let Lines { read, len, is_ended } = Lines::read(bytes);
        let last = read.keys().next_back().copied().unwrap_or(0);
        let mut lines = read.into_iter();
        let Some((line, first)) = lines.next() else { return Ok(None) };
        let mut state = match first {
            Ok(Record::Begin { version: VERSION, owner, plan }) => Self::begin(owner, *plan),
            Ok(Record::Begin { version, .. }) => return Err(Damage { line: 0, why: version.to_string() }),
            Ok(_) => return Err(Damage { line, why: "it is not the start of a journal".to_owned() }),
            Err(why) => return Err(Damage { line, why }),
        };
        for (line, record) in lines {
            if let Err(why) = record.and_then(|record| state.note(record)) {
                state.damage.push(Damage { line, why });
            }
        }
        Ok(Some(ParsedJournal { state, len, is_ended, last }))
    }

    /// The state of a new journal with this plan, before its steps.
    pub(crate) fn begin(owner: Owner, plan: Plan) -> Self {
        Self {
            begin_ticks: owner.start_ticks,
            owner,
            plans: vec![plan],
            steps: Vec::new(),
            applied: false,
            threads: Vec::new(),
            settled: false,
            damage: Vec::new(),
        }
    }

    /// The number of the next step.
    pub(crate) fn next(&self) -> usize {
        self.steps.last().map_or(0, |step| step.number + 1)
    }

    fn add(&mut self, number: usize, change: Change) -> Result<(), String> {
        let next = self.next();
        // Numbers may have a gap only after damaged lines. The largest number has no successor.
        if number == usize::MAX || number < next || (number > next && self.damage.is_empty()) {
            return Err(format!("its change has the number {number}, and the next one is {next}"));
        }
        let (original, done, refused, restored) = (None, None, None, false);
        self.steps.push(JournalStep { number, change, original, done, refused, restored });
        Ok(())
    }

    /// Applies another line.
    pub(crate) fn note(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Begin { .. } => return Err("it is the start of another journal".to_owned()),
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
            Record::Step { step, change } => self.add(step, *change)?,
            Record::Extend { owner, plan } => {
                (self.owner, self.applied) = (owner, false);
                self.plans.push(*plan);
            }
        }
        Ok(())
    }

    fn step(&mut self, number: usize) -> Result<&mut JournalStep, String> {
        match self.steps.binary_search_by_key(&number, |step| step.number) {
            Ok(index) => Ok(&mut self.steps[index]),
            Err(_) => Err(format!("it belongs to change {number}, whose own line is lost")),
        }
    }

    /// Whether nothing is changed any more, for certain.
    pub fn is_spent(&self) -> bool {
        self.is_restored() && self.damage.is_empty()
    }

    /// Whether nothing is changed any more according to the journal.
    pub(crate) fn is_restored(&self) -> bool {
        !self.steps.iter().any(JournalStep::is_open) && !self.is_unsettled()
    }

    /// The changes whose original value is unknown, because the line that recorded it is damaged.
    pub(crate) fn lost(&self) -> impl Iterator<Item = &Change> {
        let lost = self.steps.iter().filter(|step| step.done.is_some() && step.original.is_none() && !step.restored);
        lost.map(|step| &step.change)
    }

    /// Every change in force, in order of application.
    pub fn in_force(&self) -> Vec<Attempt> {
        self.steps.iter().filter_map(JournalStep::in_force).collect()
    }

    /// The CPUs made quiet by any of the plans.
    pub fn quiet(&self) -> CpuList {
        self.plans.iter().flat_map(|plan| plan.cpus.iter()).collect()
    }

    /// Whether there may be threads whose CPUs the kernel changed and that do not have them back.
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

#[cfg(test)]
mod tests {
    use super::super::line::sealed;
    use super::*;

    /// Only root can write such a line; it must neither abort the program nor fill its memory.
    #[test]
    fn a_number_beyond_all_lines_is_damage() {
        for number in [usize::MAX, usize::MAX - 1, 1 << 40] {
            let text = format!("{}\n", sealed(number, r#"{"record":"restored","step":0}"#));
            let damage = State::parse(text.as_bytes()).err();
            let why = "its number is that of no line".to_owned();
            assert_eq!(damage, Some(Damage { line: 1, why }), "{number}");
        }
    }
}
