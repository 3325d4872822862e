//! CPU time of the threads that were taken for programs.

use std::collections::{BTreeMap, HashMap};

use becalm_measure::Names;
use becalm_model::{Event, Happening, Kind, Pid};
use becalm_units::{CpuId, Nanos};

/// Adds up the time of each thread on a CPU, from switch to switch.
#[derive(Clone, Debug, Default)]
pub struct ThreadTimes {
    /// The thread on each CPU, and since when.
    current: BTreeMap<CpuId, (Pid, Nanos)>,
    times: HashMap<Pid, Nanos>,
}

impl ThreadTimes {
    pub fn take(&mut self, cpu: CpuId, event: &Event) {
        match event.what {
            Happening::Switch { prev, next, .. } => {
                let before = self.current.insert(cpu, (next, event.time));
                if let Some((_, since)) = before.filter(|(pid, _)| *pid == prev) {
                    // A damaged file may have one thread on many CPUs at once.
                    let sum = self.times.entry(prev).or_default();
                    *sum = sum.saturating_add(event.time - since);
                }
            }
            // The thread is unknown until the next switch.
            Happening::Lost { .. } => {
                self.current.remove(&cpu);
            }
            _ => {}
        }
    }

    /// Names of the threads that were taken for programs by their names alone, with their times, the longest first.
    pub fn programs(&self, names: &Names) -> Vec<(String, Nanos)> {
        let mut sums: BTreeMap<String, Nanos> = BTreeMap::new();
        for (pid, time) in &self.times {
            let is_program = names.tasks.get(*pid).is_some_and(|task| task.kind == Kind::Task);
            if *pid != Pid::IDLE && is_program && !names.is_told(*pid) {
                let sum = sums.entry(names.name_of(*pid).unwrap_or_default()).or_default();
                *sum = sum.saturating_add(*time);
            }
        }
        let mut sums: Vec<(String, Nanos)> = sums.into_iter().collect();
        sums.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        sums
    }
}
