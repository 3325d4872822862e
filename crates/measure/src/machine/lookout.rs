//! Watches the measured CPUs from outside of their loops: a guest's steal time and, on a host, the processor's count of system management interrupts.
//! This gives a name to time without trace events.

use std::path::Path;

use becalm_linux::procfs::stat::StatFile;
use becalm_linux::smi::SmiCounter;
use becalm_model::Platform;
use becalm_model::unseen::Watch;
use becalm_units::{CpuId, CpuList, Nanos};

/// The least time between two reads.
const INTERVAL: Nanos = Nanos::from_millis(50);
/// Reads are at least this multiple of their duration apart, because reading takes long on a machine with many CPUs. If it takes time from a measured
/// CPU, it must be a small part of becalm's share there, which is a thousandth in total.
const SELDOM: i64 = 100;
const SELDOM_WHERE_SHARED: i64 = 10_000;

/// The watched counters and their last values.
#[derive(Debug)]
pub struct Lookout {
    cpus: CpuList,
    /// The SMI counters of the measured CPUs, and their values at the start; empty if they cannot be read.
    counters: Vec<(SmiCounter, u32)>,
    /// The counter that each read uses. Firmware interrupts all CPUs at once, so one is enough, preferably that of a CPU that is not measured,
    /// because reading another CPU's counter interrupts it.
    watched: Option<SmiCounter>,
    /// The source of steal time; `None` without a hypervisor.
    stat: Option<StatFile>,
    last: Look,
    /// When the next read is due, and the minimum pause as a multiple of a read's duration.
    due: Nanos,
    seldom: i64,
}

#[derive(Clone, Debug, Default)]
struct Look {
    began: Nanos,
    /// Per measured CPU; `None` if it could not be read.
    steal: Vec<Option<Nanos>>,
    smis: Option<u32>,
}

impl Lookout {
    /// Opens the counters available on this platform. Also returns why system management interrupts, if they can occur, cannot be counted.
    pub fn open(root: &Path, cpus: &CpuList, free: &CpuList, platform: Platform) -> (Self, Option<String>) {
        let open = |cpu| SmiCounter::open(root, cpu);
        // A guest cannot see the host's SMIs.
        let opened = match platform {
            Platform::Guest => Ok((Vec::new(), None)),
            Platform::Metal => cpus.iter().map(open).collect::<Result<Vec<_>, _>>().and_then(|counters| {
                let watched = free.iter().chain(cpus.iter()).next().map(open).transpose()?;
                Ok((counters, watched))
            }),
        };
        let (opened, why) = match opened {
            Ok(opened) => (opened, None),
            Err(error) => ((Vec::new(), None), Some(error.to_string())),
        };
        let (counters, watched) = opened;
        let lookout = Self {
            cpus: cpus.clone(),
            counters: counters.into_iter().map(|counter| (counter, 0)).collect(),
            watched,
            stat: if platform == Platform::Guest { StatFile::open(root).ok() } else { None },
            last: Look::default(),
            due: Nanos::MAX,
            seldom: if free.is_empty() { SELDOM_WHERE_SHARED } else { SELDOM },
        };
        (lookout, why)
    }

    /// Reads all counters for the first time, with times from the caller's clock.
    pub fn begin(&mut self, now: impl Fn() -> Nanos) {
        for (counter, at_begin) in &mut self.counters {
            *at_begin = counter.read().unwrap_or_default();
        }
        if self.stat.is_some() || self.watched.is_some() {
            self.last = self.see(now());
            self.due = now() + INTERVAL;
        }
    }

    /// Reads again if due or if `must` is set, and returns what happened on each measured CPU since the last read; `None` without a read.
    pub fn look(&mut self, must: bool, now: impl Fn() -> Nanos) -> Option<Vec<Watch>> {
        let began = now();
        if self.due == Nanos::MAX || (began < self.due && !must) {
            return None;
        }
        let look = self.see(began);
        let until = now();
        self.due = until + INTERVAL.max(Nanos::new((until - began).get().saturating_mul(self.seldom)));
        let last = std::mem::replace(&mut self.last, look);
        let smis = self.last.smis.zip(last.smis).map_or(0, |(now, then)| u64::from(now.wrapping_sub(then)));
        let steal = |place: usize| {
            let at = |look: &Look| look.steal.get(place).copied().flatten();
            at(&self.last).zip(at(&last)).map_or(Nanos::ZERO, |(now, then)| (now - then).max(Nanos::ZERO))
        };
        let watch = |place| Watch { from: last.began, until, steal: steal(place), smis };
        Some((0..self.cpus.len()).map(watch).collect())
    }

    fn see(&mut self, began: Nanos) -> Look {
        let stat = self.stat.as_mut().and_then(|file| file.read().ok());
        let steal = |cpu| stat.as_ref().and_then(|stat| stat.cpu(cpu)).map(|times| times.steal);
        Look {
            began,
            steal: self.cpus.iter().map(steal).collect(),
            smis: self.watched.as_ref().and_then(|counter| counter.read().ok()),
        }
    }

    /// System management interrupts counted on each measured CPU since the start; empty if they cannot be read.
    pub fn smis(&self) -> impl Iterator<Item = (CpuId, u64)> {
        self.counters.iter().filter_map(|(counter, at_begin)| {
            Some((counter.cpu(), u64::from(counter.read().ok()?.wrapping_sub(*at_begin))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    use becalm_linux::procfs::stat::Stat;

    fn write_msr(root: &Path, cpu: u32, smis: u32) {
        let folder = root.join(format!("dev/cpu/{cpu}"));
        std::fs::create_dir_all(&folder).unwrap();
        let mut registers = vec![0; 0x34];
        registers.extend(u64::from(smis).to_ne_bytes());
        std::fs::write(folder.join("msr"), registers).unwrap();
    }

    fn write_steal(root: &Path, ticks: [u64; 2]) {
        std::fs::create_dir_all(root.join("proc")).unwrap();
        let line = |cpu: usize| format!("cpu{cpu} 1 1 1 1 1 1 1 {} 1 1\n", ticks[cpu]);
        std::fs::write(root.join("proc/stat"), line(0) + &line(1)).unwrap();
    }

    /// A clock that advances by 60 ms with each reading.
    fn clock(at: &Cell<i64>) -> Nanos {
        at.set(at.get() + 60);
        Nanos::from_millis(at.get())
    }

    fn list(text: &str) -> CpuList {
        text.parse().unwrap()
    }

    #[test]
    fn steal_is_seen_on_guests() {
        let (root, at) = (tempfile::tempdir().unwrap(), Cell::new(0));
        write_steal(root.path(), [5, 5]);
        write_msr(root.path(), 0, 1);
        let (mut lookout, why) = Lookout::open(root.path(), &list("0-1"), &list("2"), Platform::Guest);
        assert_eq!(why, None);
        assert_eq!(lookout.look(true, || clock(&at)), None);
        lookout.begin(|| clock(&at));
        write_steal(root.path(), [5, 7]);
        // Not due yet; then due, and after a read that took 60 ms the next one is delayed.
        assert_eq!(lookout.look(false, || Nanos::from_millis(125)), None);
        let watches = lookout.look(false, || clock(&at)).unwrap();
        let tick = 1_000 / rustix_ticks();
        let steal: Vec<i64> = watches.iter().map(|watch| watch.steal.get()).collect();
        assert_eq!(steal, [0, 2 * tick * 1_000_000]);
        assert_eq!((watches[0].from, watches[0].until), (Nanos::from_millis(120), Nanos::from_millis(300)));
        assert_eq!(lookout.look(false, || clock(&at)), None);
        assert_eq!(lookout.look(true, || clock(&at)).unwrap()[1].steal, Nanos::ZERO);
        assert_eq!(lookout.smis().count(), 0);
    }

    /// How many of the ticks in which the kernel shows times are in a second.
    fn rustix_ticks() -> i64 {
        let one = Stat::parse("cpu0 1\n", 1).unwrap().cpu(CpuId::new(0)).unwrap().user;
        let text = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(text.path().join("proc")).unwrap();
        std::fs::write(text.path().join("proc/stat"), "cpu0 1\n").unwrap();
        let tick = Stat::read(text.path()).unwrap().cpu(CpuId::new(0)).unwrap().user;
        one.get() / tick.get()
    }

    #[test]
    fn management_interrupts_are_counted_elsewhere() {
        let (root, at) = (tempfile::tempdir().unwrap(), Cell::new(0));
        let (_, why) = Lookout::open(root.path(), &list("0-1"), &list("2"), Platform::Metal);
        assert!(why.unwrap().contains("dev/cpu/0/msr"));
        (0..3).for_each(|cpu| write_msr(root.path(), cpu, u32::MAX));
        let (mut lookout, why) = Lookout::open(root.path(), &list("0-1"), &list("2"), Platform::Metal);
        assert_eq!(why, None);
        lookout.begin(|| clock(&at));
        // The counter wraps around. During the recording, only that of the unmeasured CPU is read.
        write_msr(root.path(), 2, 2);
        let watches = lookout.look(true, || clock(&at)).unwrap();
        assert_eq!(watches.iter().map(|watch| watch.smis).collect::<Vec<_>>(), [3, 3]);
        write_msr(root.path(), 0, 1);
        write_msr(root.path(), 1, 2);
        assert_eq!(lookout.smis().collect::<Vec<_>>(), [(CpuId::new(0), 2), (CpuId::new(1), 3)]);
    }
}
