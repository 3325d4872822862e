//! The accounts of one detour: rows that time is credited to in order, and a final step that makes them add up.

use becalm_model::{Activity, Detour, Kind, Label, Labels, Platform, Step, root, unseen};
use becalm_units::{CpuId, Nanos};

use super::explanations::Explanations;
use super::host::Host;
use super::roots::RootLabels;

/// A row of the current detour.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct LedgerRow(u32);

/// The longest step without events that counts as aftermath of the detour right before it: 90 % of those after interrupts take less than
/// 1.4 us.
pub const AFTERMATH_LONGEST: Nanos = Nanos::new(2_000);
/// The maximum number of aftermath steps per detour; later ones have another cause.
pub const AFTERMATH_STEPS: u8 = 4;

/// A new row.
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

/// The detour that the next step without events may be the aftermath of.
#[derive(Clone, Copy, Debug)]
struct Aftermath {
    /// The end of the last step.
    since: Nanos,
    /// The root of its last activity.
    cause: Label,
    /// The number of aftermath steps left.
    left: u8,
}

/// A detour with final accounts.
#[derive(Debug)]
pub(super) struct Closed<'a> {
    pub detour: Detour,
    /// In order of their start. Their self times add up to the detour's duration.
    pub rows: &'a [Activity],
    /// The number of rows with time that the host took within an activity.
    pub preempted: u64,
}

/// The accounts. Time is credited from left to right, so every instant of the step goes to exactly one row, and rows are created in the
/// order of their start.
#[derive(Debug)]
pub(super) struct Ledger {
    cpu: CpuId,
    platform: Platform,
    names: RestNames,
    /// On a guest: usual lengths, to detect time of the host.
    host: Option<Host>,
    rows: Vec<Activity>,
    /// The row of the loop's own time that has no cause yet: the next activity, or the last one at the end.
    rest: Option<LedgerRow>,
    /// The root of the activity that ended last.
    ended: Label,
    aftermath: Aftermath,
    number: u64,
    start: Nanos,
    /// The time up to which all is credited.
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

    /// Opens the accounts of the next detour. Nothing is credited between detours.
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

    /// The number of the current detour, or of the next.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The time up to which all is credited.
    pub const fn credited(&self) -> Nanos {
        self.credited
    }

    pub const fn mark_incomplete(&mut self) {
        self.incomplete = true;
    }

    /// Adds a row that starts here. It becomes the cause of the loop's time before it.
    pub fn row(&mut self, entry: Entry) -> LedgerRow {
        if let Some(LedgerRow(rest)) = self.rest.take() {
            self.rows[rest as usize].detail = entry.cause;
        }
        let Entry { start, kind, source, detail, cause } = entry;
        self.ended = cause;
        self.new_row(start, kind, source, detail)
    }

    fn new_row(&mut self, start: Nanos, kind: Kind, source: Label, detail: Label) -> LedgerRow {
        // A detour of 2^32 rows would run out of memory first.
        let row = LedgerRow(self.rows.len() as u32);
        let (cpu, detour) = (self.cpu, self.number);
        self.rows.push(Activity { cpu, detour, start, self_time: Nanos::ZERO, kind, source, detail });
        row
    }

    /// Changes which instance a row shows.
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

    /// Closes the accounts at the time up to which everything is credited.
    ///
    /// A step without any event becomes one row. Otherwise `t_min`, the loop's time without disturbance, is subtracted from the exit, then
    /// from the other edges in order. If these are too short, the longest rows pay the rest, which causes the smallest relative error.
    pub fn close(
        &mut self,
        t_min: Nanos,
        explanations: &mut Explanations,
        causes: &mut RootLabels,
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

    /// Makes the single row of a step without events.
    fn close_without_events(
        &mut self,
        duration: Nanos,
        explanations: &mut Explanations,
        causes: &mut RootLabels,
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
            // A short interruption leaves no cold caches.
            let left = if duration < unseen::SHORTEST_OF_SYSTEM { 0 } else { AFTERMATH_STEPS };
            let cause = causes.label(Kind::Unseen, source, labels);
            self.aftermath = Aftermath { since: self.credited, cause, left };
            self.new_row(self.start, Kind::Unseen, source, Label::EMPTY)
        };
        self.rows[row.0 as usize].self_time = duration;
    }

    /// Subtracts `t_min` from the rows and removes empty edges.
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

/// Subtracts from a row as much of `owed` as it has; returns the rest.
fn take(row: &mut Activity, owed: Nanos) -> Nanos {
    let taken = owed.min(row.self_time);
    row.self_time -= taken;
    owed - taken
}

/// The first of the longest rows that have any time.
fn longest(rows: &mut [Activity]) -> Option<&mut Activity> {
    rows.iter_mut().rev().max_by_key(|row| row.self_time).filter(|row| row.self_time > Nanos::ZERO)
}
