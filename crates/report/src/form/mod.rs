//! How figures become text: what a figure is, what it is called, and how tables, paragraphs and drawings of it are laid out.
//!
//! Nothing here knows which command prints.

pub mod field;
pub mod figure;
pub mod known;
pub mod markdown;
pub mod paragraph;
pub mod plot;
pub mod section;
pub mod sheet;
pub mod table;
pub mod terminal;
pub mod value;
pub mod words;
