//! What the kernel tells in /sys: CPUs and their caches, clock source, power management, hypervisor, lockdown, control groups.
//!
//! Readers take the root folder, `/` in production. Nothing is written here.

pub mod cache;
pub mod cgroup;
pub mod cpu;
pub mod machine;
pub mod partition;
