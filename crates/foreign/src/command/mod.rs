//! The commands `becalm import` and `becalm export`.

mod export;
mod import;

pub use export::ExportArgs;
pub use import::ImportArgs;
