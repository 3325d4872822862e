//! How figures become text: what a figure is, what it is called, and how tables, paragraphs and drawings of it are laid out.
//!
//! Nothing here knows which command prints.

pub(crate) mod field;
pub(crate) mod figure;
pub mod grid;
pub(crate) mod known;
pub(crate) mod paragraph;
pub(crate) mod plot;
pub(crate) mod sheet;
pub(crate) mod table;
pub(crate) mod value;
pub(crate) mod words;
