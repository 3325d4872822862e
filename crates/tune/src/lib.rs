//! Makes CPUs quiet as a transaction: plan every change, apply with the original on disk first, restore always.
//!
//! A [`Plan`] is made for some CPUs by looking at the machine. It names every [`Change`] with its reason, its risk
//! and the noise that it removes, and the [`BootParameter`]s that only a reboot can give. Everything is read and written
//! below a root folder, so that fake trees test all of it.
//!
//! What a change gains on a large job is not computed here: that takes a recording, and the crate `scale`.

#![forbid(unsafe_code)]

mod apply;
mod boot;
mod bystanders;
mod change;
pub mod check;
mod draft;
mod error;
mod families;
mod family;
pub mod format;
mod journal;
mod knob;
mod machine;
mod plan;
mod profile;
mod request;
mod restore;
pub mod see;
mod value;

pub use apply::{Applied, Made, Moment, Observer, Outcome, apply, extend};
pub use boot::BootParameter;
pub use change::{Change, Noise};
pub use draft::plan;
pub use error::TuneError;
pub use families::Place;
pub use family::{Family, UnknownFamily};
pub use journal::{Folder, Journal, JournalError, Noted, Owner, State, Step};
pub use knob::{Knob, Meaning};
pub use machine::{Live, Machine};
pub use plan::{Note, Plan};
pub use profile::{Profile, UnknownProfile};
pub use request::{PlanError, Request};
pub use restore::{PutBack, Restored, Undone, restore};
