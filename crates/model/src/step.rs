//! What a measuring thread gives: its steps, and who it is.

use becalm_units::{CpuId, Nanos};

use crate::{Detour, Pid};

/// One step of the loop that reached the threshold, from one reading of the counter to the next, on the run's axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// When the counter was read before it, since the run's origin.
    pub start: Nanos,
    /// When the counter was read after it, since the run's origin.
    pub end: Nanos,
}

impl Step {
    /// The detours in so many steps that are together so long: what they took more than as many shortest ones, of `t_min`.
    pub fn sum_of_detours(steps: u64, total: Nanos, t_min: Nanos) -> Nanos {
        let shortest = t_min.get().saturating_mul(i64::try_from(steps).unwrap_or(i64::MAX));
        Nanos::new(total.get().saturating_sub(shortest).max(0))
    }
}

/// What lies below the kernel of a machine that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Platform {
    /// Nothing that shows: the processor itself.
    Metal,
    /// A hypervisor, which takes the CPU now and then without a word.
    Guest,
}

/// The measuring thread of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopThread {
    /// The CPU to which it is pinned.
    pub cpu: CpuId,
    /// Its number, as the switch events have it.
    pub pid: Pid,
    /// The length of its shortest step, by which each detour is shorter than its step; 0 for a loop that does work, all of
    /// whose steps are kept.
    pub t_min: Nanos,
    /// Whether it runs in a real-time class, and so under that class's throttling.
    pub realtime: bool,
}

impl LoopThread {
    /// The detour in one of its steps, of which nothing but its length is known: what the step took more than the
    /// shortest one.
    pub fn detour(&self, step: Step) -> Detour {
        let duration = (step.end - step.start - self.t_min).max(Nanos::ZERO);
        Detour { cpu: self.cpu, start: step.start, duration, incomplete: false }
    }
}
