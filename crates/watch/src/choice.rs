//! The choice of the next CPU to measure: idle CPUs in turn.

use becalm_linux::procfs::stat::{CpuTimes, Stat};
use becalm_units::{CpuId, CpuList, Nanos, Share};

/// Cycles through the CPUs.
#[derive(Clone, Debug, Default)]
pub struct Round {
    last: Option<CpuId>,
    before: Vec<(CpuId, CpuTimes)>,
    busy: Vec<(CpuId, f64)>,
}

impl Round {
    /// Takes a reading of `/proc/stat`: the load of each CPU since the previous reading.
    pub fn look(&mut self, stat: &Stat) {
        let before = std::mem::replace(&mut self.before, stat.cpus.clone());
        let then = |cpu| before.iter().find(|(candidate, _)| *candidate == cpu).map(|(_, times)| times);
        let share = |(cpu, now): &(CpuId, CpuTimes)| Some((*cpu, busy_share(&now.since(then(*cpu)?))?));
        self.busy = stat.cpus.iter().filter_map(share).collect();
    }

    /// Whether two readings were taken, so idle CPUs are known.
    pub const fn knows(&self) -> bool {
        !self.busy.is_empty()
    }

    /// The next of these CPUs (`None` means all) with at most this busy share; `None` if there is none. Excludes CPUs that are offline or just came
    /// online.
    /// offline, or came a moment ago, are not among them.
    pub fn next(&mut self, wanted: Option<&CpuList>, most: Share) -> Option<CpuId> {
        let fits = |(cpu, busy): &&(CpuId, f64)| *busy <= most.ratio() && wanted.is_none_or(|list| list.contains(*cpu));
        let quiet: Vec<CpuId> = self.busy.iter().filter(fits).map(|(cpu, _)| *cpu).collect();
        let next = quiet.iter().find(|cpu| self.last.is_none_or(|last| **cpu > last)).or(quiet.first()).copied();
        self.last = next.or(self.last);
        next
    }
}

/// The share of time that a CPU was not idle; `None` if no time has passed. Steal time counts as busy.
fn busy_share(grown: &CpuTimes) -> Option<f64> {
    // The time of guests is already in `user` and `nice`.
    let busy = [grown.user, grown.nice, grown.system, grown.irq, grown.softirq, grown.steal];
    let sum = |times: &[Nanos]| times.iter().map(|time| time.get() as f64).sum::<f64>();
    let (busy, idle) = (sum(&busy), sum(&[grown.idle, grown.iowait]));
    (busy + idle > 0.0).then(|| busy / (busy + idle))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(lines: [&str; 2]) -> Round {
        let mut round = Round::default();
        for text in lines {
            round.look(&Stat::parse(text, 100).unwrap());
        }
        round
    }

    #[test]
    fn idle_cpus_come_one_after_the_other() {
        let mut round = round([
            "cpu0 0 0 0 0\ncpu1 0 0 0 0\ncpu2 0 0 0 0\ncpu3 0 0 0 0",
            "cpu0 1 0 0 99\ncpu1 50 0 0 50\ncpu2 0 0 0 100\ncpu4 0 0 0 9",
        ]);
        let most: Share = "10%".parse().unwrap();
        let next: Vec<_> = (0..3).map(|_| round.next(None, most).unwrap().get()).collect();
        assert_eq!(next, [0, 2, 0]);
        let one: CpuList = "1".parse().unwrap();
        assert_eq!(round.next(Some(&one), most), None);
        assert_eq!(round.next(Some(&one), "50%".parse().unwrap()), Some(CpuId::new(1)));
    }

    #[test]
    fn before_two_readings_nothing_is_known() {
        let mut round = Round::default();
        round.look(&Stat::parse("cpu0 0 0 0 5", 100).unwrap());
        assert_eq!(round.next(None, "100%".parse().unwrap()), None);
        // Nor if no time has passed between them.
        round.look(&Stat::parse("cpu0 0 0 0 5", 100).unwrap());
        assert_eq!(round.next(None, "100%".parse().unwrap()), None);
    }
}
