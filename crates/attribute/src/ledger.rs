//! The books of one detour: rows to which time is credited as it passes, and the closing that makes them add up.

use becalm_model::{Activity, Detour, Kind, Label, Labels, Platform, Step, root, unseen};
use becalm_units::{CpuId, Nanos};

use super::causes::Causes;
use super::explanations::Explanations;
use super::host::Host;

/// A row of the detour that is open.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct LedgerRow(u32);

/// The longest step without events, from its start to its end, that is taken for the aftermath of the detour right before it:
/// of those seen behind interrupts, nine in ten took less than 1.4 us.
pub const AFTERMATH_LONGEST: Nanos = Nanos::new(2_000);
/// How many steps after a detour at most are its aftermath. What goes on for longer has another cause.
pub const AFTERMATH_STEPS: u8 = 4;

/// A row that begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub start: Nanos,
    pub kind: Kind,
    pub source: Label,
    pub detail: Label,
    /// Its root, as `kind:source`.
    pub cause: Label,
}

/// The names of the loop's own time in a detour, and of detours without events.
#[derive(Clone, Copy, Debug)]
struct RestNames {
    entry: Label,
    between: Label,
    exit: Label,
    after: Label,
}

/// Of what the next step without events can be the aftermath.
#[derive(Clone, Copy, Debug)]
struct Aftermath {
    /// The end of the last step.
    since: Nanos,
    /// The root of what it ended with.
    cause: Label,
    /// How many more steps it can have.
    left: u8,
}

/// A detour whose books are closed.
#[derive(Debug)]
pub(super) struct Closed<'a> {
    pub detour: Detour,
    /// In order of their start. Their self times add up to the detour's duration.
    pub rows: &'a [Activity],
    /// How many of them are what the host took in the middle of an activity.
    pub preempted: u64,
}

/// The books. Time is credited from left to right, so that every instant of the step goes to exactly one row, and
/// rows come into being in the order of their start.
#[derive(Debug)]
pub(super) struct Ledger {
    cpu: CpuId,
    platform: Platform,
    names: RestNames,
    /// On a guest, what is known of its host.
    host: Option<Host>,
    rows: Vec<Activity>,
    /// The row of the loop's own time that has no cause yet: what follows it, or at the end what came before it.
    rest: Option<LedgerRow>,
    /// The root of the activity that ended last.
    ended: Label,
    aftermath: Aftermath,
    number: u64,
    start: Nanos,
    /// Up to where time has been credited.
    credited: Nanos,
    open: bool,
    incomplete: bool,
}

impl Ledger {
    pub fn new(cpu: CpuId, platform: Platform, labels: &mut Labels) -> Self {
        let names = RestNames {
            entry: labels.intern("entry"),
            between: labels.intern("between"),
            exit: labels.intern("exit"),
            after: labels.intern("after"),
        };
        Self {
            cpu,
            platform,
            names,
            host: (platform == Platform::Guest).then(|| Host::new(labels)),
            rows: Vec::new(),
            rest: None,
            ended: Label::EMPTY,
            aftermath: Aftermath { since: Nanos::ZERO, cause: Label::EMPTY, left: 0 },
            number: 0,
            start: Nanos::ZERO,
            credited: Nanos::ZERO,
            open: false,
            incomplete: false,
        }
    }

    /// Opens the books of the next detour. Between detours nothing is credited.
    pub fn open(&mut self, start: Nanos, incomplete: bool) {
        self.rows.clear();
        self.rest = None;
        self.start = start;
        self.credited = start;
        self.open = true;
        self.incomplete = incomplete;
    }

    pub const fn is_open(&self) -> bool {
        self.open
    }

    /// The number of the detour that is open, or of the next.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Up to where time has been credited.
    pub const fn credited(&self) -> Nanos {
        self.credited
    }

    pub const fn mark_incomplete(&mut self) {
        self.incomplete = true;
    }

    /// A new row that starts here. It is what the rest before it led to.
    pub fn row(&mut self, entry: Entry) -> LedgerRow {
        if let Some(LedgerRow(rest)) = self.rest.take() {
            self.rows[rest as usize].detail = entry.cause;
        }
        let Entry { start, kind, source, detail, cause } = entry;
        self.ended = cause;
        self.new_row(start, kind, source, detail)
    }

    fn new_row(&mut self, start: Nanos, kind: Kind, source: Label, detail: Label) -> LedgerRow {
        // A detour of 2^32 rows would fill the memory long before.
        let row = LedgerRow(self.rows.len() as u32);
        let (cpu, detour) = (self.cpu, self.number);
        self.rows.push(Activity { cpu, detour, start, self_time: Nanos::ZERO, kind, source, detail });
        row
    }

    /// Says otherwise which instance a row is.
    pub fn rename(&mut self, row: LedgerRow, detail: Label) {
        self.rows[row.0 as usize].detail = detail;
    }

    /// An activity with this root ended.
    pub const fn end(&mut self, cause: Label) {
        self.ended = cause;
    }

    /// Credits the time up to `until` to a row.
    pub fn credit(&mut self, row: LedgerRow, until: Nanos) {
        self.rows[row.0 as usize].self_time += until - self.credited;
        self.credited = until;
    }

    /// Credits the time up to `until` to the loop itself.
    pub fn credit_loop(&mut self, until: Nanos) {
        if until > self.credited {
            let source = if self.rows.is_empty() { self.names.entry } else { self.names.between };
            let row = match self.rest {
                Some(row) => row,
                None => self.new_row(self.credited, Kind::Edge, source, Label::EMPTY),
            };
            self.rest = Some(row);
            self.credit(row, until);
        }
    }

    /// Closes the books at the time up to which everything is credited.
    ///
    /// A step without any event is one row. Else `t_min`, which the loop needs even undisturbed, comes off the exit, then
    /// off the other rests from the first on; where these are shorter, the longest rows make up for it, as they bear the
    /// smallest relative error.
    pub fn close(
        &mut self,
        t_min: Nanos,
        explanations: &mut Explanations,
        causes: &mut Causes,
        labels: &mut Labels,
    ) -> Closed<'_> {
        let length = self.credited - self.start;
        let t_min = t_min.clamp(Nanos::ZERO, length);
        let duration = length - t_min;
        let mut preempted = 0;
        if self.rows.len() == usize::from(self.rest.is_some()) {
            self.close_without_events(duration, explanations, causes, labels);
        } else {
            if let Some(LedgerRow(exit)) = self.rest {
                let exit = &mut self.rows[exit as usize];
                (exit.source, exit.detail) = (self.names.exit, self.ended);
            }
            self.take_off(t_min);
            if let Some(host) = &mut self.host {
                preempted = host.take_out(&mut self.rows, |row| {
                    let (kind, source) = root::row_root(row.kind, labels.text(row.source), labels.text(row.detail));
                    let text = root::text(kind, source);
                    labels.intern(&text)
                });
            }
            self.aftermath = Aftermath { since: self.credited, cause: self.ended, left: AFTERMATH_STEPS };
        }
        let detour = Detour { cpu: self.cpu, start: self.start, duration, incomplete: self.incomplete };
        self.open = false;
        self.number += 1;
        Closed { detour, rows: &self.rows, preempted }
    }

    /// The one row of a step in which nothing was seen.
    fn close_without_events(
        &mut self,
        duration: Nanos,
        explanations: &mut Explanations,
        causes: &mut Causes,
        labels: &mut Labels,
    ) {
        self.rows.clear();
        let step = Step { start: self.start, end: self.credited };
        let length = step.end - step.start;
        let Aftermath { since, cause, left } = self.aftermath;
        let row = if self.start == since && length <= AFTERMATH_LONGEST && left > 0 {
            self.aftermath = Aftermath { since: self.credited, cause, left: left - 1 };
            self.new_row(self.start, Kind::Edge, self.names.after, cause)
        } else {
            let source = labels.intern(explanations.source(step, duration, self.platform));
            // What is short itself leaves nothing to recover from.
            let left = if duration < unseen::SHORTEST_OF_SYSTEM { 0 } else { AFTERMATH_STEPS };
            let cause = causes.label(Kind::Unseen, source, labels);
            self.aftermath = Aftermath { since: self.credited, cause, left };
            self.new_row(self.start, Kind::Unseen, source, Label::EMPTY)
        };
        self.rows[row.0 as usize].self_time = duration;
    }

    /// Takes `t_min` off the rows, and removes rests of which nothing is left.
    fn take_off(&mut self, t_min: Nanos) {
        let mut owed = t_min;
        if let Some(LedgerRow(exit)) = self.rest {
            owed = take(&mut self.rows[exit as usize], owed);
        }
        for rest in self.rows.iter_mut().filter(|row| row.kind == Kind::Edge) {
            owed = take(rest, owed);
        }
        self.rows.retain(|row| row.kind != Kind::Edge || row.self_time > Nanos::ZERO);
        while owed > Nanos::ZERO
            && let Some(longest) = longest(&mut self.rows)
        {
            owed = take(longest, owed);
        }
    }
}

/// Takes from a row what it has, up to what is owed; returns what is still owed.
fn take(row: &mut Activity, owed: Nanos) -> Nanos {
    let taken = owed.min(row.self_time);
    row.self_time -= taken;
    owed - taken
}

/// The first of the longest rows that have any time.
fn longest(rows: &mut [Activity]) -> Option<&mut Activity> {
    rows.iter_mut().rev().max_by_key(|row| row.self_time).filter(|row| row.self_time > Nanos::ZERO)
}
