//! What is drawn of a run: detours few enough for a page, without the extremes being lost.
//!
//! A run holds millions of detours and a screen a few thousand points. [`picture`] reads a bundle once and keeps, in
//! memory that does not grow with it:
//!
//! - [`Reduction`]: detours to be drawn one by one. All of them where they are few; else the longest of each cell of time
//!   and length, and the very longest in any case. Each is a real one, with its number.
//! - [`Lengths`]: how many detours are at most how long.
//! - [`HeatMap`]: how much each CPU lost in each stretch of time.
//! - [`Embedded`]: what happened in the longest of the detours that are drawn.
//!
//! Colors, axes and pages are the business of the crate `report`.

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
