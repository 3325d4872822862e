//! The data for a picture of a run: few enough detours for a page, without losing the extremes.
//!
//! A run contains millions of detours and a screen a few thousand points. [`picture`] reads a bundle once and keeps, in constant memory:
//!
//! - [`Reduction`]: detours to draw individually. All of them if they are few; else the longest of each cell of time and length, and always the very
//!   longest. Each is a real one, with its number.
//! - [`Lengths`]: the cumulative distribution of lengths.
//! - [`HeatMap`]: the time that each CPU lost, by stretch of time.
//! - [`Embedded`]: the contents of the longest drawn detours.
//!
//! The crate `report` handles colors, axes and pages.

mod embedded;
mod heat;
mod lengths;
mod reduction;
mod run;

pub use embedded::{ENTRIES, Embedded, PER_DETOUR};
pub use heat::{HeatMap, HeatRow, ROWS};
pub use lengths::{LengthStep, Lengths};
pub use reduction::{DETOURS, PER_OCTAVE, PlacedDetour, Reduced, Reduction, TOP};
pub use run::{Picture, picture};
