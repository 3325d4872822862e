//! A run of work for people and for scripts: becalm.work/1.

mod charts;
mod drawing;
mod fields;
mod json;
mod page;
mod text;

pub use json::work_json;
pub use page::work_page;
pub use text::render_work;
