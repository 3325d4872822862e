//! How to measure CPUs: common arguments of `record` and `top`, and names of recordings.

use std::path::Path;

use becalm_linux::sched::Policy;
use becalm_measure::{LoopTask, RecordPlan, Threshold};
use becalm_units::CpuList;
use clap::Args;

/// The CPUs to measure, and how to measure them.
#[derive(Args, Debug)]
pub struct MeasuringArgs {
    /// CPUs to measure, such as 0-3,8 [default: all online CPUs, including isolated ones]
    #[arg(short, long, value_name = "LIST", allow_hyphen_values = true)]
    cpus: Option<CpuList>,

    /// Shortest detour: a time, or auto: 3 times the 99th percentile of the loop's steps
    #[arg(long, value_name = "auto|TIME", default_value = "auto", allow_hyphen_values = true)]
    threshold: Threshold,

    /// Scheduling class of the measuring threads: other, batch, fifo:PRIORITY, rr:PRIORITY
    #[arg(long, value_name = "CLASS", default_value = "other")]
    pub sched: Policy,

    /// Measure without tracing the kernel: detours without sources
    #[arg(long)]
    pub no_sources: bool,

    /// Memory between each measuring thread and the collector, in KiB; 16 bytes per detour
    #[arg(long, value_name = "KIB", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(4..=4_194_304))]
    pub buffer: u32,

    /// Kernel trace buffer per CPU, in KiB [default: 16384, at most 1/16 of the memory]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    trace_buffer: Option<u32>,
}

impl MeasuringArgs {
    /// The plan of such a recording, below a root.
    pub fn plan(&self, root: &Path) -> RecordPlan {
        let mut plan = RecordPlan::new();
        plan.cpus = self.cpus.clone();
        plan.task = LoopTask::Watch(self.threshold);
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
