//! The site of the probes: one CPU, a second one for probes that need two, and the scheduling class.

use std::path::{Path, PathBuf};

use becalm_linux::placed::Thread;
use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::sched::{Policy, SchedError};
use becalm_linux::sysfs::cpu::{self, CpuSets};
use becalm_measure::machine;
use becalm_units::{CpuId, CpuList};

use super::CostError;
use crate::documents::{CostDoc, Costs, SCHEMA};

/// The reason for the choice of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The user asked for it.
    Asked,
    /// It is isolated from the scheduler.
    Isolated,
    /// It has taken the fewest interrupts since boot.
    FewestInterrupts,
    /// It is the last one; interrupt counts are unknown.
    Last,
}

impl Reason {
    /// The text after the CPU's number.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Asked => "requested",
            Self::Isolated => "isolated from the scheduler",
            Self::FewestInterrupts => "the one with the fewest interrupts since boot",
            Self::Last => "the last one",
        }
    }
}

/// The CPU to measure on, and the reason for its choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The CPU to measure on.
    pub cpu: CpuId,
    /// The reason for the choice of this CPU.
    pub reason: Reason,
    /// All other usable CPUs, those on other cores first: the first of them takes part in probes that need two.
    pub others: Vec<CpuId>,
    /// The scheduling class of the measuring thread.
    pub policy: Policy,
    root: PathBuf,
}

impl Site {
    /// Chooses a CPU, by default an isolated one, else the one with the fewest interrupts since boot. Fails if the requested CPU cannot be
    /// used, or there is none.
    pub fn choose(root: &Path, cpu: Option<CpuId>, policy: Policy) -> Result<Self, CostError> {
        let all = machine::select_cpus(root, None)?.cpus;
        let (cpu, reason) = match cpu {
            Some(cpu) => {
                machine::select_cpus(root, Some(&[cpu].into_iter().collect()))?;
                (cpu, Reason::Asked)
            }
            None => {
                let isolated = CpuSets::read(root).map(|sets| sets.isolated).unwrap_or_default();
                quietest(&all, &isolated, Interrupts::read(root).ok().as_ref())
            }
        };
        let siblings = cpu::siblings(root, cpu).ok().flatten().unwrap_or_default();
        let mut others: Vec<CpuId> = all.iter().filter(|other| *other != cpu).collect();
        others.sort_by_key(|other| siblings.contains(*other));
        Ok(Self { cpu, reason, others, policy, root: root.to_owned() })
    }

    /// The second CPU for probes that need two.
    pub fn other(&self) -> Option<CpuId> {
        self.others.first().copied()
    }

    /// The root of the file system.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The document of a measurement here, before it starts. `policy` is the class of the measured threads.
    pub fn document(&self, policy: Policy, measured: Costs) -> CostDoc {
        CostDoc {
            schema: SCHEMA.to_owned(),
            node: machine::Host::read(&self.root).node,
            program: concat!("becalm ", env!("CARGO_PKG_VERSION")).to_owned(),
            begun: jiff::Timestamp::now(),
            ended: None,
            machine: machine::describe(&self.root),
            cpu: self.cpu,
            cpu_reason: self.reason.text().to_owned(),
            other_cpu: self.other(),
            sched: policy.to_string(),
            spread: None,
            measured,
        }
    }

    /// Runs `body` in its own thread on the measured CPU, in the scheduling class. Fails if the thread cannot be placed or get its
    /// scheduling class.
    pub fn run<T: Send>(&self, body: impl FnOnce() -> T + Send) -> Result<T, SchedError> {
        Thread { name: "becalm/cost".to_owned(), cpu: self.cpu, policy: self.policy.unless_other() }.run(body)
    }
}

/// The CPU with the least activity. Among equals the last one, because the kernel gives its own work to the first.
fn quietest(all: &CpuList, isolated: &CpuList, interrupts: Option<&Interrupts>) -> (CpuId, Reason) {
    let last = || all.iter().last().unwrap_or(CpuId::new(0));
    if let Some(cpu) = all.intersection(isolated).iter().last() {
        return (cpu, Reason::Isolated);
    }
    let Some(interrupts) = interrupts else { return (last(), Reason::Last) };
    let taken = |column: usize| interrupts.lines.iter().filter_map(|line| line.counts.get(column)).sum::<u64>();
    let columns = interrupts.cpus.iter().enumerate().filter(|(_, cpu)| all.contains(**cpu));
    let quietest = columns.min_by_key(|(column, _)| (taken(*column), std::cmp::Reverse(*column)));
    quietest.map_or((last(), Reason::Last), |(_, cpu)| (*cpu, Reason::FewestInterrupts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::sched;
    use becalm_units::fault::Fault;
    use proptest::prelude::*;

    fn counts(cpus: &[u32], count: impl Fn(u32) -> u64) -> Interrupts {
        let header: String = cpus.iter().map(|cpu| format!(" CPU{cpu}")).collect();
        let line: String = cpus.iter().map(|cpu| format!(" {}", count(*cpu))).collect();
        Interrupts::parse(&format!("{header}\n LOC:{line} Local timer interrupts\nERR: 7\n")).unwrap()
    }

    #[test]
    fn isolated_cpus_come_first_then_quiet_ones_then_the_last() {
        let all: CpuList = "0-4095".parse().unwrap();
        let cpus_4096: Vec<u32> = (0..4096).collect();
        let taken = counts(&cpus_4096, |cpu| if cpu == 2_000 || cpu == 3_000 { 5 } else { 9 });
        assert_eq!(quietest(&all, &CpuList::default(), Some(&taken)), (CpuId::new(3_000), Reason::FewestInterrupts));
        let isolated = "7-8".parse().unwrap();
        assert_eq!(quietest(&all, &isolated, Some(&taken)), (CpuId::new(8), Reason::Isolated));
        assert_eq!(quietest(&all, &CpuList::default(), None), (CpuId::new(4095), Reason::Last));
        // An isolated CPU outside of the cpuset, and counts of other CPUs only.
        let some = "0-1".parse().unwrap();
        assert_eq!(quietest(&some, &isolated, Some(&counts(&[5], |_| 0))), (CpuId::new(1), Reason::Last));
    }

    proptest! {
        #[test]
        fn the_choice_is_one_of_those_allowed(
            allowed in proptest::collection::btree_set(0_u32..64, 1..9),
            counted in proptest::collection::btree_map(0_u32..64, 0_u64..9, 0..9),
        ) {
            let all: CpuList = allowed.iter().copied().map(CpuId::new).collect();
            let cpus: Vec<u32> = counted.keys().copied().collect();
            let taken = (!cpus.is_empty()).then(|| counts(&cpus, |cpu| counted[&cpu]));
            let (cpu, _) = quietest(&all, &CpuList::default(), taken.as_ref());
            prop_assert!(all.contains(cpu));
        }
    }

    #[test]
    fn a_site_is_found_on_this_machine() {
        let site = Site::choose(Path::new("/"), None, Policy::Other).unwrap();
        assert_eq!(site.run(sched::current_cpu).unwrap(), Some(site.cpu));
        assert!(!site.others.contains(&site.cpu));
        let error = Site::choose(Path::new("/"), Some(CpuId::new(500_000)), Policy::Other).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("500000"), "{error}");
    }
}
