//! A measuring thread and its steps.

use becalm_units::{CpuId, Nanos};

use crate::{Detour, Pid};

/// One step of the loop that reached the threshold, from one reading of the counter to the next, on the run's axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The counter reading before it, since the run's origin.
    pub start: Nanos,
    /// The counter reading after it, since the run's origin.
    pub end: Nanos,
}

impl Step {
    /// The sum of the detours in this many steps with this total: the time beyond as many shortest steps of `t_min`.
    pub fn sum_of_detours(steps: u64, total: Nanos, t_min: Nanos) -> Nanos {
        let shortest = t_min.get().saturating_mul(i64::try_from(steps).unwrap_or(i64::MAX));
        Nanos::new(total.get().saturating_sub(shortest).max(0))
    }
}

/// The platform below the kernel of a measured machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Platform {
    /// No known hypervisor: the processor itself.
    Metal,
    /// A hypervisor, which may take the CPU without notice.
    Guest,
}

/// The measuring thread of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopThread {
    /// The CPU to which it is pinned.
    pub cpu: CpuId,
    /// Its PID in switch events.
    pub pid: Pid,
    /// The length of its shortest step, which is subtracted from a step to get the detour's length; 0 for a loop that does work, which keeps all
    /// steps.
    pub t_min: Nanos,
    /// Whether it runs in a real-time class, and is subject to real-time throttling.
    pub realtime: bool,
}

impl LoopThread {
    /// The detour in a step if only the length is known: the time beyond the shortest step.
    pub fn detour(&self, step: Step) -> Detour {
        let duration = (step.end - step.start - self.t_min).max(Nanos::ZERO);
        Detour { cpu: self.cpu, start: step.start, duration, incomplete: false }
    }
}
