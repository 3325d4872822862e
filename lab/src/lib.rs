//! Boots real Linux kernels in an emulator, runs a script in each, and returns the script's files.
//!
//! becalm's users have kernels with other parameters, configurations and restrictions than the developers' machines. Here they are Debian's
//! own kernels under QEMU's software emulation, which needs neither KVM nor root. The emulator causes noise and is slow, so the lab tests
//! becalm's findings and messages, and whether its counts agree with the kernel's; it cannot measure durations.
//!
//! [`Scenario`] defines what to boot, [`Kernel`] downloads, [`Initramfs`] packs, [`Guest`] boots. `tests/lab.rs` checks the outcomes;
//! `scenarios/` has the guests' scripts. The program boots one of them with a visible console.

#![forbid(unsafe_code)]

mod error;
mod guest;
mod initramfs;
mod kernel;
mod matrix;
mod program;
mod scenario;

pub use error::LabError;
pub use guest::{Console, Guest, Outcome};
pub use initramfs::Initramfs;
pub use kernel::{Flavor, Kernel};
pub use matrix::{LIMITS, Matrix, Row, SCENARIO as MATRIX, SETTINGS, Setting, is_timer};
pub use scenario::{CPUS, Scenario, parse_cpus};
