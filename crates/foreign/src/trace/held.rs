//! A trace held in memory: one that was text, or whose events were not in order.

use becalm_measure::Names;
use becalm_model::Event;
use becalm_units::CpuId;

use super::{KernelTrace, Take, TraceError};

/// The events of each CPU.
#[derive(Clone, Debug, Default)]
pub struct HeldTrace {
    cpus: Vec<(CpuId, Vec<Event>)>,
    backwards: u64,
}

impl HeldTrace {
    /// A trace of these CPUs, in rising order, each with its events in order of time.
    pub const fn new(cpus: Vec<(CpuId, Vec<Event>)>, backwards: u64) -> Self {
        Self { cpus, backwards }
    }
}

impl KernelTrace for HeldTrace {
    fn cpus(&self) -> Vec<CpuId> {
        self.cpus.iter().map(|(cpu, _)| *cpu).collect()
    }

    fn each(&mut self, index: usize, names: &mut Names, take: &mut Take<'_>) -> Result<(), TraceError> {
        self.cpus[index].1.iter().try_for_each(|event| take(event, names))
    }

    fn backwards(&self) -> u64 {
        self.backwards
    }
}
