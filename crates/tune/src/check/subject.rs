//! The common subject of checks: the CPUs in question, the command line, the kernel's configuration, and the isolated CPUs.

use std::path::Path;

use becalm_linux::procfs::cmdline::CommandLine;
use becalm_linux::procfs::config::KernelConfig;
use becalm_linux::sysfs::cpu::CpuSets;
use becalm_linux::sysfs::partition::{Partition, partitions};
use becalm_units::{CpuId, CpuList};

use super::finding::Findings;
use super::words::cpus;
use crate::boot;
use crate::document::{Area, CpuChoice, Severity};

pub(super) const COMMAND_LINE: &str = "/proc/cmdline";

/// The machine and the CPUs in question.
pub(super) struct Subject<'a> {
    pub root: &'a Path,
    /// The CPUs that should be quiet.
    pub cpus: &'a CpuList,
    /// The housekeeping CPUs.
    pub others: &'a CpuList,
    pub line: CommandLine,
    pub config: Option<KernelConfig>,
    pub sets: CpuSets,
    /// Whether the kernel has a list of tickless CPUs, even an empty one.
    pub knows_nohz_full: bool,
    pub partitions: Vec<Partition>,
}

impl<'a> Subject<'a> {
    pub fn read(root: &'a Path, choice: &'a CpuChoice, findings: &mut Findings<'_>) -> Self {
        let line = findings.read(Area::Boot, CommandLine::read(root)).unwrap_or_default();
        let config = findings.read(Area::Build, KernelConfig::read(root));
        if config == Some(None) {
            let title = "the kernel does not tell how it was built, so parameters that it cannot obey may go unseen";
            findings.add(Area::Build, Severity::Note, title).seen("/proc/config.gz", "no such file");
        }
        let config = config.flatten();
        let mut sets = findings.read(Area::Isolation, CpuSets::read(root)).unwrap_or_default();
        for error in sets.unread.drain(..) {
            findings.read::<()>(Area::Isolation, Err(error));
        }
        let knows_nohz_full = root.join(NOHZ_FULL.trim_start_matches('/')).exists();
        let partitions = findings.read(Area::Isolation, partitions(root)).unwrap_or_default();
        Self { root, cpus: &choice.cpus, others: &choice.others, line, config, sets, knows_nohz_full, partitions }
    }

    /// The number of CPUs that the kernel accepts in lists: those that the machine may ever have.
    pub fn count(&self) -> u32 {
        self.sets.possible.iter().last().map_or(0, |last| last.get() + 1)
    }

    /// The CPUs out of load balancing, by any means.
    pub fn apart(&self) -> CpuList {
        let grouped = self.partitions.iter().filter(|group| group.is_isolated()).flat_map(|group| group.cpus.iter());
        self.sets.isolated.iter().chain(grouped).collect()
    }

    /// Whether the kernel was built with an option; `None` if unknown.
    pub fn built_with(&self, option: &str) -> Option<bool> {
        boot::is_built_with(self.root, self.config.as_ref(), option)
    }

    /// An option in the kernel's configuration, as evidence.
    pub fn option(&self, option: &str) -> (String, String) {
        let Some(config) = &self.config else { return ("/proc/config.gz".into(), "not known".into()) };
        let value = match config.value(option) {
            Some(value) => format!("CONFIG_{option}={value}"),
            None => format!("CONFIG_{option} is not set"),
        };
        (config.path.clone(), value)
    }

    /// The checked CPUs that are in a list, for a sentence; `None` if none is.
    pub fn hit(&self, list: &CpuList) -> Option<CpuList> {
        Some(self.cpus.intersection(list)).filter(|hit| !hit.is_empty())
    }

    /// `CPU 1` or `CPUs 1-3`: those that should be quiet.
    pub fn named(&self) -> String {
        cpus(self.cpus)
    }

    /// The first of the checked CPUs, as an example for settings common to them.
    pub fn first(&self) -> CpuId {
        self.cpus.iter().next().unwrap_or(CpuId::new(0))
    }
}

pub(super) const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
pub(super) use crate::boot::TICKLESS as NOHZ_FULL;
