//! Figures as text: definitions and names of figures, and the layout of tables, paragraphs and drawings.
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
