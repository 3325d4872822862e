//! Slurm's core specialization: CPUs of a node for slurmd and the system, which no job gets.
//!
//! Slurm numbers CPUs in its own "abstract" order: core by core, with the hardware threads of a core next to each other, like hwloc. Linux often
//! numbers the first threads of all cores first.

use std::path::Path;

use becalm_linux::file;
use becalm_linux::file::FileError;
use becalm_linux::sysfs::cpu::{CpuSets, siblings};
use becalm_units::{CpuId, CpuList};

use super::file::{ConfigFile, head};
use crate::Plan;

/// The CPUs of a machine in Slurm's order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Topology {
    /// Slurm's name of the node: the host name without its domain; empty if it has other characters than letters, digits, `-` and `_`.
    pub node: String,
    /// The cores, each with its hardware threads.
    cores: Vec<CpuList>,
}

/// The machine does not report which CPUs share cores.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NoTopology(#[from] FileError);

becalm_units::fault::faultless!(NoTopology);

impl Topology {
    /// Reads the topology of the online CPUs. Fails if the files exist and are invalid. A CPU without topology counts as a core.
    pub fn read(root: &Path) -> Result<Self, NoTopology> {
        let online = CpuSets::read(root)?.online;
        let mut cores: Vec<(u64, CpuList)> = Vec::new();
        for cpu in online.iter() {
            let alone = || [cpu].into_iter().collect::<CpuList>();
            let threads = siblings(root, cpu)?.map_or_else(alone, |threads| threads.intersection(&online));
            if threads.iter().next() != Some(cpu) {
                continue;
            }
            let package = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
            let package = file::text(root, &package)?.and_then(|text| text.parse().ok()).unwrap_or(0);
            cores.push((package, threads));
        }
        // hwloc orders packages, and cores within them, by their lowest CPU; the cores are in that order already.
        let mut order: Vec<u64> = Vec::new();
        for (package, _) in &cores {
            if !order.contains(package) {
                order.push(*package);
            }
        }
        cores.sort_by_key(|(package, _)| order.iter().position(|it| it == package));
        let node = becalm_linux::procfs::kernel::hostname(root).unwrap_or_default();
        // The kernel accepts any bytes in a host name, even line feeds. Such a name must not get into a file.
        let is_plain = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let node = node.split('.').next().filter(is_plain).unwrap_or_default().to_owned();
        Ok(Self { node, cores: cores.into_iter().map(|(_, threads)| threads).collect() })
    }

    /// Slurm's numbers for some CPUs.
    pub(super) fn abstract_ids(&self, cpus: &CpuList) -> CpuList {
        let order = self.cores.iter().flat_map(CpuList::iter).zip(0..);
        order.filter(|(cpu, _)| cpus.contains(*cpu)).map(|(_, number)| CpuId::new(number)).collect()
    }

    /// The number of cores with all threads among some CPUs, and the cores with only some.
    pub(super) fn split(&self, cpus: &CpuList) -> (usize, Vec<&CpuList>) {
        let touched = self.cores.iter().filter(|core| !core.intersection(cpus).is_empty());
        let (whole, part): (Vec<_>, Vec<_>) = touched.partition(|core| core.without(cpus).is_empty());
        (whole.len(), part)
    }
}

pub(super) fn files(plan: &Plan, topology: &Topology) -> Vec<ConfigFile> {
    let rest = &plan.housekeeping;
    let ids = topology.abstract_ids(rest);
    let (whole, part) = topology.split(rest);
    let mut lines =
        head(plan, &["To be merged into slurm.conf; then: scontrol reconfigure, and restart slurmd on the node."]);
    if !plan.boot.is_empty() {
        lines.push("# Boot the node with:".to_owned());
        lines.push(format!("# {}", plan.command_line()));
    }
    lines.push("# Jobs are bound to their cores, and get none of those below.".to_owned());
    lines.push("TaskPlugin=task/cgroup,task/affinity".to_owned());
    lines.push("ProctrackType=proctrack/cgroup".to_owned());
    lines.push(
        "# slurmd stays on the cores that no job gets: that is the default, unless this has SlurmdOffSpec.".to_owned(),
    );
    lines.push("TaskPluginParam=None".to_owned());
    lines.push(format!("# CPU {rest} of Linux, in Slurm's own order of CPUs (compare with: slurmd -C; lstopo)."));
    for core in part {
        let both = core.intersection(&plan.cpus);
        if !both.is_empty() {
            lines.push(format!("# Slurm reserves whole cores: CPU {both} shares one of them, and is reserved, too."));
        }
    }
    lines.push(format!(
        "# Add to the line of the node (whole cores: {whole}; CoreSpecCount={whole} takes as many, of its own choice):"
    ));
    let node = if topology.node.is_empty() { "NODE" } else { &topology.node };
    let list: Vec<String> = ids.iter().map(|id| id.to_string()).collect();
    lines.push(format!("NodeName={node} CpuSpecList={}", list.join(",")));
    let mut group = head(plan, &["To be merged into cgroup.conf on the node."]);
    group.extend(["CgroupPlugin=autodetect", "ConstrainCores=yes"].map(str::to_owned));
    vec![
        ConfigFile::new("etc/slurm/slurm.conf.becalm", &lines),
        ConfigFile::new("etc/slurm/cgroup.conf.becalm", &group),
    ]
}
