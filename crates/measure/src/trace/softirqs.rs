//! Checks that a standing trace contains the softirqs that the kernel counts: the kernel writes one event for each.
//!
//! The counts are read before the buffers, so each counted softirq already has its event there, however late the buffers are read.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use becalm_linux::procfs::softirqs::Softirqs;
use becalm_units::CpuId;

use super::{Disturbance, is_much};

/// becalm reads the counts at most this often, except when it switches the trace off, ...
const PERIOD: Duration = Duration::from_secs(1);
/// ... and spends at most this fraction of the time on it: a machine with 1,000 CPUs has 10,000 counts.
const ONE_IN: u32 = 10_000;

/// The kernel's counts of softirqs at an instant.
pub struct SoftirqSnapshot {
    softirqs: Softirqs,
    at: Instant,
    took: Duration,
}

/// The traced softirqs, and the kernel's counts.
pub struct TracedSoftirqs {
    root: PathBuf,
    /// Whether their events are traced.
    has_events: bool,
    is_on: bool,
    /// The counts when the trace was last compared or switched on; `None` if unknown.
    before: Option<SoftirqSnapshot>,
    /// Softirq events read since then, per CPU.
    found: Vec<(CpuId, u64)>,
    /// Whether events were lost since then.
    lost_any: bool,
    /// The counts when the trace was switched off.
    last: Option<SoftirqSnapshot>,
}

impl TracedSoftirqs {
    /// For a trace of these CPUs that is off.
    pub fn new(root: &Path, has_events: bool, cpus: impl Iterator<Item = CpuId>) -> Self {
        let found = cpus.map(|cpu| (cpu, 0)).collect();
        Self { root: root.to_owned(), has_events, is_on: false, before: None, found, lost_any: false, last: None }
    }

    /// The trace was just switched on.
    pub fn begin(&mut self) {
        (self.is_on, self.before, self.lost_any) = (true, self.read(), false);
        self.found.iter_mut().for_each(|(_, found)| *found = 0);
    }

    /// The trace is about to be switched off.
    pub fn end(&mut self) {
        self.last = self.before.as_ref().and_then(|_| self.read());
        self.is_on = false;
    }

    /// A softirq event was read from the buffer of the CPU at this index.
    pub fn add(&mut self, index: usize) {
        self.found[index].1 += 1;
    }

    /// The buffer lost events, which may include softirqs.
    pub const fn lose(&mut self) {
        self.lost_any = true;
    }

    /// The current counts, if it is time to compare them with the events in the buffers.
    pub fn counted(&mut self) -> Option<SoftirqSnapshot> {
        if !self.is_on {
            return self.last.take();
        }
        let before = self.before.as_ref()?;
        if before.at.elapsed() >= PERIOD.max(before.took * ONE_IN) { self.read() } else { None }
    }

    /// Compares the events in the buffers with the counts that were read before. The error lists the missing softirqs. `Ok(false)` means that no
    /// comparison was possible.
    pub fn compare(&mut self, counted: Option<SoftirqSnapshot>) -> Result<bool, Disturbance> {
        if self.lost_any && self.is_on {
            self.begin();
            return Ok(false);
        }
        if self.is_on && counted.is_none() {
            return Ok(false);
        }
        let (Some(before), Some(counted), false) = (self.before.take(), counted, self.lost_any) else {
            return Ok(false);
        };
        let grown = counted.softirqs.since(&before.softirqs);
        for (cpu, found) in &mut self.found {
            let counted = grown.cpu_count(*cpu);
            if is_much(counted.saturating_sub(*found), counted) {
                return Err(Disturbance::Softirqs { cpu: *cpu, counted, found: *found });
            }
            // The rest came after the counts were read, and is counted next time.
            *found = found.saturating_sub(counted);
        }
        if self.is_on {
            self.before = Some(counted);
        }
        Ok(true)
    }

    fn read(&self) -> Option<SoftirqSnapshot> {
        let at = Instant::now();
        let softirqs = if self.has_events { Softirqs::read(&self.root).ok() } else { None };
        softirqs.map(|softirqs| SoftirqSnapshot { softirqs, at, took: at.elapsed() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_the_kernel_counts_has_to_be_there() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        let count = |first: u64, second: u64| {
            let text = format!("CPU0 CPU1\nTIMER: {first} {second}\nNET_RX: 7 {second}\n");
            fs::write(root.path().join("proc/softirqs"), text).unwrap();
        };
        let cpus = [0, 1].map(CpuId::new);
        let mut softirqs = TracedSoftirqs::new(root.path(), true, cpus.into_iter());
        let compare = |softirqs: &mut TracedSoftirqs, events: [u64; 2]| {
            // A second later.
            softirqs
                .before
                .iter_mut()
                .for_each(|before| (before.at, before.took) = (before.at - PERIOD, Duration::ZERO));
            let counted = softirqs.counted();
            for (index, events) in events.into_iter().enumerate() {
                (0..events).for_each(|_| softirqs.add(index));
            }
            softirqs.compare(counted)
        };
        let lack = |cpu: usize, counted, found| Err(Disturbance::Softirqs { cpu: cpus[cpu], counted, found });
        count(100, 200);
        assert_eq!(compare(&mut softirqs, [0, 0]), Ok(false), "it is off");
        softirqs.begin();
        assert!(softirqs.counted().is_none(), "it has only begun");
        softirqs.before.as_mut().unwrap().at -= PERIOD;
        softirqs.before.as_mut().unwrap().took = PERIOD;
        assert!(softirqs.counted().is_none(), "reading takes long");
        // The next counts include softirqs of the first CPU that came between reading the counts and the buffers.
        count(1_100, 300);
        assert_eq!(compare(&mut softirqs, [1_500, 200]), Ok(true));
        count(1_600, 305);
        assert_eq!(compare(&mut softirqs, [0, 0]), Ok(true), "ten may lack");
        count(3_600, 305);
        assert_eq!(compare(&mut softirqs, [1_980, 0]), Ok(true), "one in a hundred may lack");
        // It was off for a while.
        count(5_600, 305);
        assert_eq!(compare(&mut softirqs, [1_970, 0]), lack(0, 2_000, 1_970));
        // A buffer overflowed.
        softirqs.begin();
        count(9_600, 405);
        softirqs.lose();
        assert_eq!(compare(&mut softirqs, [1, 1]), Ok(false));
        count(9_600, 411);
        assert_eq!(compare(&mut softirqs, [0, 1]), lack(1, 12, 1));
        // Events while it is off are not expected.
        softirqs.begin();
        count(9_700, 411);
        softirqs.end();
        count(9_999, 9_999);
        assert_eq!(compare(&mut softirqs, [100, 0]), Ok(true));
        assert_eq!(compare(&mut softirqs, [0, 0]), Ok(false));
        softirqs.begin();
        count(10_099, 9_999);
        softirqs.end();
        assert_eq!(compare(&mut softirqs, [80, 0]), lack(0, 100, 80));
        fs::remove_file(root.path().join("proc/softirqs")).unwrap();
        softirqs.begin();
        assert_eq!(compare(&mut softirqs, [0, 0]), Ok(false), "nothing is counted");
    }
}
