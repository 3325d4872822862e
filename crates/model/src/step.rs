//! What a measuring thread gives: its steps, and who it is.

use becalm_units::{CpuId, Nanos};

use crate::Pid;

/// One step of the loop that reached the threshold, from one reading of the counter to the next, on the run's axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The reading before.
    pub start: Nanos,
    /// The reading after.
    pub end: Nanos,
}

/// The measuring thread of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopThread {
    /// The CPU to which it is pinned.
    pub cpu: CpuId,
    /// Its number, as the switch events have it.
    pub pid: Pid,
    /// The shortest step, which each step's detour is shorter by.
    pub t_min: Nanos,
    /// Whether it runs in a real-time class, and so under that class's throttling.
    pub realtime: bool,
}
