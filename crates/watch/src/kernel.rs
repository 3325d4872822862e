//! The kernel's own counters, read continuously: activity on all CPUs, including between the windows.

use std::path::Path;

use becalm_linux::procfs::softirqs::Softirqs;
use becalm_linux::procfs::stat::{Stat, StatFile};
use becalm_units::Nanos;

/// The kernel's counts since boot, for all CPUs together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelCounts {
    pub switches: u64,
    /// Steal time.
    pub steal: Nanos,
    /// The number of runs of each softirq, by its name.
    pub softirqs: Vec<(String, u64)>,
}

/// Reads the counters repeatedly. A file that cannot be read is tried again the next time.
#[derive(Debug)]
pub struct KernelReader<'a> {
    root: &'a Path,
    stat: Option<StatFile>,
}

impl<'a> KernelReader<'a> {
    /// Reads below this root.
    pub const fn new(root: &'a Path) -> Self {
        Self { root, stat: None }
    }

    /// The current CPU times and counts; `None` if they cannot be read.
    pub fn read(&mut self) -> Option<(Stat, KernelCounts)> {
        if self.stat.is_none() {
            self.stat = StatFile::open(self.root).ok();
        }
        let Ok(stat) = self.stat.as_mut()?.read() else {
            self.stat = None;
            return None;
        };
        let lines = Softirqs::read(self.root).map(|read| read.lines).unwrap_or_default();
        let counts = KernelCounts {
            switches: stat.context_switches,
            steal: stat.cpus.iter().map(|(_, times)| times.steal).sum(),
            softirqs: lines.into_iter().map(|(name, counts)| (name, counts.iter().sum())).collect(),
        };
        Some((stat, counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn counts_are_summed_over_the_cpus() {
        let root = tempfile::tempdir().unwrap();
        let mut reader = KernelReader::new(root.path());
        assert!(reader.read().is_none());
        fs::create_dir(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/stat"), "cpu0 1 0 0 9 0 0 0 5\ncpu1 1 0 0 9 0 0 0 7\nctxt 42\n").unwrap();
        fs::write(root.path().join("proc/softirqs"), "CPU0 CPU1\nTIMER: 3 4\n").unwrap();
        let (stat, counts) = reader.read().unwrap();
        assert_eq!((stat.cpus.len(), counts.switches), (2, 42));
        assert_eq!(counts.softirqs, [("TIMER".to_owned(), 7)]);
        assert!(counts.steal > Nanos::ZERO);
        fs::write(root.path().join("proc/stat"), "ctxt x\n").unwrap();
        assert!(reader.read().is_none());
    }
}
