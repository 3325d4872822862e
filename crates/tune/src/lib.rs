//! Makes CPUs quiet as a transaction: plan every change, apply with the original on disk first, restore always.
//!
//! A [`Plan`] is made for some CPUs by looking at the machine. It names every [`Change`] with its reason, its risk
//! and the noise that it removes, and the [`BootParameter`]s that only a reboot can give. Everything is read and written
//! below a root folder, so that fake trees test all of it.
//!
//! What a change gains on a large job is not computed here: that takes a recording, and the crate `scale`.

#![forbid(unsafe_code)]

mod boot;
mod change;
pub mod check;
mod family;
mod knob;
mod plan;
mod profile;

pub use boot::BootParameter;
pub use change::{Change, Noise};
pub use family::{Family, UnknownFamily};
pub use knob::{Knob, Meaning};
pub use plan::{Note, Plan};
pub use profile::{Profile, UnknownProfile};
