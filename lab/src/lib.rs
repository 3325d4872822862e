//! Boots real Linux kernels in an emulator, runs a script in each, and brings back the files that it left.
//!
//! Kernels with other parameters, other configurations and other locks than the one at hand are what becalm meets
//! at its users. Here they are Debian's own kernels under QEMU's software emulation, which needs neither KVM nor
//! root. The emulator makes noise of its own and runs slowly, so the lab shows what becalm sees and says, and
//! whether its counts agree with the kernel's; it is no place to measure durations.
//!
//! [`Scenario`] says what is to be booted, [`Kernel`] fetches, [`Initramfs`] packs, [`Guest`] boots. What is asserted of
//! the outcomes stands in `tests/lab.rs`, what the guests do in `scenarios/`. The program boots one of them before
//! someone's eyes.

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
