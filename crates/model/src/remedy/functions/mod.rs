//! The kernel's functions that interrupt a CPU: what each does, and its fix.
//!
//! The symbols are those of `/proc/kallsyms`, as trace events name them. `symbols.txt` lists the kernels that have them.

mod calls;
mod deferred;
mod timers;
mod works;

pub(super) use calls::{CODE_CHANGE, FLUSH_TLB, RPS};
pub(super) use timers::{LOCKUP_TIMER, TICK};
pub(super) use works::{ALLOCATION_GATE, VMSTAT_UPDATE, WRITEBACK};

use super::{Fix, Need};
use crate::Kind;
use crate::carried::{self, Carrier};
use crate::family::Family;
use crate::node::MachineDoc;

/// A row of the catalogue: a function of the kernel and its fix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its runner.
    pub carrier: Carrier,
    /// Its symbol, followed by its names in other versions of the kernel.
    pub names: &'static [&'static str],
    /// The effect: a clause that starts with a verb, without a period.
    pub does: &'static str,
    /// What removes or reduces it.
    pub fix: Fix,
}

/// The rows of a carrier.
type Rows = &'static [Function];

/// A fix of several functions. `None` if nothing helps.
type Advice = Option<&'static str>;

const WITHOUT: Fix = Fix { families: &[], advice: None, needs: None };

impl Function {
    const fn new(carrier: Carrier, names: &'static [&'static str], does: &'static str) -> Self {
        Self { carrier, names, does, fix: WITHOUT }
    }

    /// The same row with advice.
    const fn fix(self, advice: &'static str) -> Self {
        self.advised(Some(advice))
    }

    /// The same row with the advice of several rows.
    const fn advised(mut self, advice: Advice) -> Self {
        self.fix.advice = advice;
        self
    }

    /// The same row with the families of knobs that remove it.
    const fn by(mut self, families: &'static [Family]) -> Self {
        self.fix.families = families;
        self
    }

    /// The same row with a requirement of its advice.
    const fn needs(mut self, need: Need) -> Self {
        self.fix.needs = Some(need);
        self
    }

    /// All rows.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        [calls::ROWS, works::ROWS, timers::ROWS, deferred::ROWS].into_iter().flatten()
    }

    /// A sentence about what removes or reduces it on these machines, or about the missing requirement. `None` if nothing helps.
    pub fn advice<'a>(&self, machines: impl IntoIterator<Item = &'a MachineDoc>) -> Option<&'static str> {
        self.fix.on(machines)
    }

    /// Whether activities of this kind run the carrier's functions and are named by them.
    const fn names_kind(&self, kind: Kind) -> bool {
        match self.carrier {
            Carrier::Timer | Carrier::Wheel => matches!(kind, Kind::Irq | Kind::Softirq),
            Carrier::Call | Carrier::IrqWork => matches!(kind, Kind::Irq),
            Carrier::Work => matches!(kind, Kind::Workqueue),
            // Recordings have tasklets only in the details of their softirq.
            Carrier::Tasklet => false,
        }
    }
}

/// The row of a function; `None` if it is not in the catalogue. The kind of a timer does not matter: some changed theirs.
pub fn function(carrier: Carrier, name: &str) -> Option<&'static Function> {
    let (prefix, name) = (carried::prefix(carrier), carried::plain(name));
    Function::all().find(|row| carried::prefix(row.carrier) == prefix && row.names.contains(&name))
}

/// The row of a source that is named by a function: `ipi:flush_tlb_func`, `kworker:vmstat_update`, `timer:delayed_work_timer_fn`.
pub fn of_source(kind: Kind, source: &str) -> Option<&'static Function> {
    let named = |row: &&Function| {
        let name = source.strip_prefix(carried::prefix(row.carrier));
        row.names_kind(kind) && name.is_some_and(|name| row.names.contains(&name))
    };
    Function::all().find(named)
}

#[cfg(test)]
mod tests;
