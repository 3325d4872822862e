//! The needs of a quiet CPU, family by family: each module examines its knobs and adds changes to a draft.

mod affinity;
mod cpuset;
mod frequency;
mod idle;
mod irq;
mod memory;
mod rps;
mod smt;
mod throttling;
mod timers;
mod vmstat;
mod watchdog;
mod workqueue;

use crate::Family;
use crate::draft::PlanDraft;

pub(crate) use affinity::changes_of as affinity_changes;
pub use cpuset::CpusetPlace;

/// Adds the changes of a family.
pub(crate) fn add(family: Family, draft: &mut PlanDraft<'_>) {
    match family {
        Family::Irq => irq::add(draft),
        Family::Workqueue => workqueue::add(draft),
        Family::Rps => rps::add(draft),
        Family::Watchdog => watchdog::add(draft),
        Family::Vmstat => vmstat::add(draft),
        Family::Timers => timers::add(draft),
        Family::Memory => memory::add(draft),
        Family::Frequency => frequency::add(draft),
        Family::Idle => idle::add(draft),
        Family::Throttling => throttling::add(draft),
        Family::Affinity => affinity::add(draft),
        Family::Smt => smt::add(draft),
        Family::Cpuset => cpuset::add(draft),
    }
}
