//! Looks at the measured CPUs from outside of their loops while these run: how much steal the kernel accounts on a guest, and how many system
//! management interrupts the processor counts elsewhere. By that, time in which the trace shows nothing has a name.

use std::path::Path;

use becalm_linux::procfs::stat::StatFile;
use becalm_linux::smi::SmiCounter;
use becalm_model::Platform;
use becalm_model::unseen::Watch;
use becalm_units::{CpuId, CpuList, Nanos};

/// The least time between two looks.
const INTERVAL: Nanos = Nanos::from_millis(50);
/// One look in so many times what it takes: on a machine of many CPUs a reading is long. Where it takes the time from a measured CPU, it is
/// to be a small part of what becalm takes there, a thousandth in all.
const SELDOM: i64 = 100;
const SELDOM_WHERE_SHARED: i64 = 10_000;

/// What is looked at, and what it was the last time.
#[derive(Debug)]
pub struct Lookout {
    cpus: CpuList,
    /// The counters of the measured CPUs, and what they were at the begin. None where they cannot be seen.
    counters: Vec<(SmiCounter, u32)>,
    /// The counter that each look reads. Firmware takes all CPUs at once, so that one is enough, and best that of a CPU that is not
    /// measured, since reading another CPU's interrupts it.
    watched: Option<SmiCounter>,
    /// Where steal is accounted; none where there is no hypervisor to take any.
    stat: Option<StatFile>,
    last: Look,
    /// When the next look is due, and how many times a look that is at least.
    due: Nanos,
    seldom: i64,
}

#[derive(Clone, Debug, Default)]
struct Look {
    began: Nanos,
    /// Of each measured CPU; none where it could not be read.
    steal: Vec<Option<Nanos>>,
    smis: Option<u32>,
}

impl Lookout {
    /// Opens what there is to look at on such a machine. Also says why system management interrupts cannot be seen, where they come.
    pub fn open(root: &Path, cpus: &CpuList, free: &CpuList, platform: Platform) -> (Self, Option<String>) {
        let open = |cpu| SmiCounter::open(root, cpu);
        // Those of a host are none of a guest's.
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

    /// Looks for the first time, by the clock of who asks.
    pub fn begin(&mut self, now: impl Fn() -> Nanos) {
        for (counter, at_begin) in &mut self.counters {
            *at_begin = counter.read().unwrap_or_default();
        }
        if self.stat.is_some() || self.watched.is_some() {
            self.last = self.see(now());
            self.due = now() + INTERVAL;
        }
    }

    /// Looks again, if that is due or `must` be, and says of each measured CPU what has happened since the last look; `None` if it did not
    /// look.
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

    /// How many system management interrupts each measured CPU has counted since the begin; nothing where they cannot be seen.
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

    /// A clock that goes on by 60 ms with each reading.
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
        // Not due yet; then it is, and a look that took 60 ms makes the next one wait.
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
        // The counter runs over. Only that of the CPU that is not measured is read on the way.
        write_msr(root.path(), 2, 2);
        let watches = lookout.look(true, || clock(&at)).unwrap();
        assert_eq!(watches.iter().map(|watch| watch.smis).collect::<Vec<_>>(), [3, 3]);
        write_msr(root.path(), 0, 1);
        write_msr(root.path(), 1, 2);
        assert_eq!(lookout.smis().collect::<Vec<_>>(), [(CpuId::new(0), 2), (CpuId::new(1), 3)]);
    }
}
