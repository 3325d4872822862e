//! The kernel's information in /proc: counters of interrupts, softirqs and time, tasks, symbols, mounts, limits.
//!
//! Each file has a module with a parser, which does no I/O, and a reader, which takes the root directory (`/` in production, a fake tree in tests).
//! Contains only what becalm uses.

pub(crate) mod cgroup;
pub mod cmdline;
mod columns;
pub mod config;
pub mod cpuinfo;
mod cpulist;
pub mod interrupts;
pub mod irq_affinity;
pub mod kallsyms;
pub mod kernel;
pub mod launch;
pub mod limits;
pub mod locks;
pub mod meminfo;
pub mod mountinfo;
pub mod names;
pub mod namespace;
pub mod placement;
pub mod softirqs;
pub mod stat;
pub mod status;
pub mod swaps;
pub mod task;

pub use cpulist::parse_kernel_list;
