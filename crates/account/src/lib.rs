//! The accounting rule: the owner of each nanosecond of a detour, and the part of the detour that is noise of the machine. Every figure that
//! becalm derives from detours follows it:
//!
//! - An activity belongs to its *root*: the activity that its detail names, or itself ([`becalm_model::root`]).
//! - Activities whose root is a thread of becalm are not noise of the machine. Their time comes off the detour and is counted separately.
//! - A detour that consists of nothing else does not count, and neither does its mark that events were lost. A detour of 0 ns counts.
//! - The accounting of every detour is exact: the self times of its activities, including becalm's own, add up to its duration, to the nanosecond.

#![forbid(unsafe_code)]

mod balance;
mod cpu;
mod owner;
mod sources;

pub use balance::Balance;
pub use cpu::{CpuAccount, noise};
pub use owner::{BatchOwners, LabelOwners, Owner, is_becalms};
pub use sources::{SourceId, SourceIds};
