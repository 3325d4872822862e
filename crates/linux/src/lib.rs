//! The only crate that accesses the machine: clocks, pinning, scheduling classes, memory, signals, tracefs, procfs, sysfs. Every reader and writer of
//! files takes the root directory, so tests can use a fake tree.
//!
//! Nothing here interprets what it reads.

pub mod access;
pub mod alarm;
mod blocked_signals;
pub mod clock;
pub mod destination;
pub mod file;
pub mod folder;
pub mod ftrace;
pub mod identity;
pub mod instructions;
pub mod janitor;
pub mod limits;
mod mapping;
pub mod memory;
pub mod perf;
pub mod placed;
pub mod private;
pub mod probe;
pub mod procfs;
pub mod realtime;
pub mod relay;
pub mod rights;
pub mod sched;
pub mod shared;
mod signal_sets;
pub mod signals;
pub mod smi;
pub mod sockets;
pub mod stuck;
pub mod syscalls;
pub mod sysfs;
pub mod terminal;
pub mod trusted;
pub mod usage;
