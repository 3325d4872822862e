//! The books of one detour: rows to which time is credited as it passes, and the closing that makes them add up.

use becalm_model::{Activity, Detour, Kind, Label};
use becalm_units::{CpuId, Nanos};

/// A row of the detour that is open.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct LedgerRow(u32);

/// The names under which tables show the two rests.
#[derive(Clone, Copy, Debug)]
pub(super) struct RestNames {
    pub edge: Label,
    pub unseen: Label,
}

/// The books. Time is credited from left to right, so that every instant of the step goes to exactly one row, and
/// rows come into being in the order of their start.
#[derive(Debug)]
pub(super) struct Ledger {
    cpu: CpuId,
    names: RestNames,
    rows: Vec<Activity>,
    /// The row of the loop's own time.
    edge: Option<LedgerRow>,
    number: u64,
    start: Nanos,
    /// Up to where time has been credited.
    credited: Nanos,
    open: bool,
    incomplete: bool,
}

impl Ledger {
    pub fn new(cpu: CpuId, names: RestNames) -> Self {
        Self {
            cpu,
            names,
            rows: Vec::new(),
            edge: None,
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
        self.edge = None;
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

    /// A new row that starts here.
    pub fn row(&mut self, start: Nanos, kind: Kind, source: Label, detail: Label) -> LedgerRow {
        // A detour of 2^32 rows would fill the memory long before.
        let row = LedgerRow(self.rows.len() as u32);
        let (cpu, detour) = (self.cpu, self.number);
        self.rows.push(Activity { cpu, detour, start, self_time: Nanos::ZERO, kind, source, detail });
        row
    }

    /// Credits the time up to `until` to a row.
    pub fn credit(&mut self, row: LedgerRow, until: Nanos) {
        self.rows[row.0 as usize].self_time += until - self.credited;
        self.credited = until;
    }

    /// Credits the time up to `until` to the loop itself.
    pub fn credit_loop(&mut self, until: Nanos) {
        if until > self.credited {
            let row = match self.edge {
                Some(row) => row,
                None => self.row(self.credited, Kind::Edge, self.names.edge, Label::EMPTY),
            };
            self.edge = Some(row);
            self.credit(row, until);
        }
    }

    /// Closes the books at the time up to which everything is credited. Returns the detour and its rows, whose self
    /// times add up to its duration.
    ///
    /// A step without any event is one `unseen` row. Else `t_min`, which the loop needs even undisturbed, comes off
    /// the edge; where the edge is shorter, the longest rows make up for it, as they bear the smallest relative error.
    pub fn close(&mut self, t_min: Nanos) -> (Detour, &[Activity]) {
        let length = self.credited - self.start;
        let t_min = t_min.clamp(Nanos::ZERO, length);
        let duration = length - t_min;
        if self.rows.len() == usize::from(self.edge.is_some()) {
            self.rows.clear();
            let row = self.row(self.start, Kind::Unseen, self.names.unseen, Label::EMPTY);
            self.rows[row.0 as usize].self_time = duration;
        } else {
            let mut owed = t_min;
            if let Some(LedgerRow(edge)) = self.edge {
                let edge = edge as usize;
                owed = take(&mut self.rows[edge], owed);
                if self.rows[edge].self_time == Nanos::ZERO {
                    self.rows.remove(edge);
                }
            }
            while owed > Nanos::ZERO
                && let Some(longest) = longest(&mut self.rows)
            {
                owed = take(longest, owed);
            }
        }
        let detour = Detour { cpu: self.cpu, start: self.start, duration, incomplete: self.incomplete };
        self.open = false;
        self.number += 1;
        (detour, &self.rows)
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
