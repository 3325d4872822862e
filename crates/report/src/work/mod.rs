//! A run of work for people and for scripts: becalm.work/1.

mod drawing;
mod fields;
mod json;
mod text;

pub use json::work_json;
pub use text::render_work;
