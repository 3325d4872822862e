//! The kernel's information in /sys: CPUs and their caches, clock source, power management, hypervisor, lockdown, control groups.
//!
//! Readers take the root directory, `/` in production. Nothing is written here.

pub mod cache;
pub mod cgroup;
pub mod cpu;
pub mod machine;
pub mod partition;
