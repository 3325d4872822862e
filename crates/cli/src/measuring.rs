//! How CPUs are measured: the arguments that `record` and `top` have in common, and names of recordings.

use std::path::{Path, PathBuf};

use becalm_linux::procfs::kernel;
use becalm_linux::sched::Policy;
use becalm_measure::{Plan, Threshold};
use becalm_units::CpuList;
use clap::Args;

/// What is measured, and how.
#[derive(Args, Debug)]
pub struct MeasuringArgs {
    /// The CPUs to measure, like 0-3,8, isolated ones included [default: all that are online]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    cpus: Option<CpuList>,

    /// Keep steps from this length on: a time, or auto, which is three times the 99th percentile of the loop's own steps
    #[arg(long, value_name = "auto|TIME", default_value = "auto", allow_hyphen_values = true)]
    threshold: Threshold,

    /// The scheduling class of the measuring threads: other, batch, fifo:PRIORITY, rr:PRIORITY
    #[arg(long, value_name = "CLASS", default_value = "other")]
    pub sched: Policy,

    /// Only catch detours; do not trace the kernel for their sources
    #[arg(long)]
    pub no_sources: bool,

    /// Memory between each measuring thread and the collector, in KiB; 16 bytes a detour
    #[arg(long, value_name = "KIB", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(4..=4_194_304))]
    pub buffer: u32,

    /// The kernel's trace buffer of each measured CPU, in KiB [default: 16384, less where that were more than a sixteenth
    /// of the memory in total]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    trace_buffer: Option<u32>,
}

impl MeasuringArgs {
    /// The plan of a recording like this, below a root.
    pub fn plan(&self, root: &Path) -> Plan {
        let mut plan = Plan::new();
        plan.cpus = self.cpus.clone();
        plan.threshold = self.threshold;
        plan.policy = self.sched;
        plan.sources = !self.no_sources;
        plan.ring_bytes = self.buffer as usize * 1024;
        if let Some(kib) = self.trace_buffer {
            plan.trace_bytes = kib as usize * 1024;
        } else {
            plan.limit_trace_buffers();
        }
        plan.root = root.to_owned();
        plan
    }
}

/// The name of a recording that was given none: `HOST-TIME.becalm`, or `HOST-TIME-2.becalm` and so on for others of the same
/// second.
pub fn default_path(root: &Path) -> PathBuf {
    let host = kernel::hostname(root).unwrap_or_else(|_| "localhost".to_owned());
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    free_name(Path::new(""), &format!("{host}-{now}"))
}

/// The first of these names in a folder that nothing bears.
fn free_name(folder: &Path, stem: &str) -> PathBuf {
    let mut path = folder.join(format!("{stem}.becalm"));
    let mut number = 2_u64;
    while path.symlink_metadata().is_ok() {
        path = folder.join(format!("{stem}-{number}.becalm"));
        number += 1;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_of_the_same_second_have_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["vm-T.becalm", "vm-T-2.becalm", "vm-T-3.becalm"] {
            let path = free_name(folder.path(), "vm-T");
            assert_eq!(path, folder.path().join(name));
            std::fs::create_dir(path).unwrap();
        }
    }
}
