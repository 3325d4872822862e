//! A trace whose events are all in memory, such as one from text.

use becalm_measure::Names;
use becalm_model::Event;
use becalm_units::CpuId;

use super::{KernelTrace, ThreadLog, TraceError};

/// The number of events of a CPU that are passed at once.
const PORTION: usize = 1 << 12;

/// The events of each CPU.
#[derive(Clone, Debug, Default)]
pub struct HeldTrace {
    cpus: Vec<HeldCpu>,
    backwards: u64,
    log: ThreadLog,
}

#[derive(Clone, Debug)]
struct HeldCpu {
    cpu: CpuId,
    events: Vec<Event>,
    /// The place of the next event.
    next: usize,
}

impl HeldTrace {
    /// A trace of these CPUs, in rising order, each with its events in order of time.
    pub fn new(cpus: Vec<(CpuId, Vec<Event>)>, backwards: u64) -> Self {
        let cpus = cpus.into_iter().map(|(cpu, events)| HeldCpu { cpu, events, next: 0 }).collect();
        Self { cpus, backwards, log: ThreadLog::default() }
    }

    /// The same trace, with what is known of its threads.
    #[must_use]
    pub fn with_threads(mut self, mut log: ThreadLog) -> Self {
        for HeldCpu { cpu, events, .. } in &self.cpus {
            events.iter().for_each(|event| log.take(*cpu, event));
        }
        self.log = log;
        self
    }
}

impl KernelTrace for HeldTrace {
    fn cpus(&self) -> Vec<CpuId> {
        self.cpus.iter().map(|held| held.cpu).collect()
    }

    fn rewind(&mut self, index: usize) {
        self.cpus[index].next = 0;
    }

    fn more(&mut self, index: usize, _: &mut Names, pass: &mut dyn FnMut(Event)) -> Result<bool, TraceError> {
        let HeldCpu { events, next, .. } = &mut self.cpus[index];
        let portion = &events[*next..events.len().min(*next + PORTION)];
        portion.iter().copied().for_each(pass);
        *next += portion.len();
        Ok(!portion.is_empty())
    }

    fn threads(&mut self, _: &mut Names) -> Result<ThreadLog, TraceError> {
        Ok(self.log.clone())
    }

    fn backwards(&self) -> u64 {
        self.backwards
    }
}
