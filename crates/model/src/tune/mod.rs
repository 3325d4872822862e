//! Tuning: the purpose of quiet CPUs, which studies ask about as well.

mod profile;

pub use crate::family::Family;
pub use profile::Profile;
