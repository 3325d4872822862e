//! Tuning: the purpose of isolated CPUs, which studies also use.

mod profile;

pub use crate::family::Family;
pub use profile::Profile;
