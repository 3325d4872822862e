//! The measured machine: its description, its measurable CPUs and the kernel's own counters.

mod description;
mod kernel_counters;
mod lookout;
mod selection;

pub use description::{Host, cpu_list, describe};
pub use kernel_counters::{CounterKind, KernelCounters};
pub use lookout::Lookout;
pub use selection::{CpuError, CpuSelection, select as select_cpus};
