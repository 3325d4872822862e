//! Numbers to people and to scripts: a summary or a prediction as a text for the terminal, as one JSON document, and as a
//! page for a browser.
//!
//! What a figure is called, in which unit it is and how it is written is said once, in `figures`; tables and JSON both
//! read it there. Nothing here computes a figure: that is the work of the crates `analyze` and `scale`.

#![forbid(unsafe_code)]

mod compare;
mod cost;
mod cost_clock;
mod cost_run;
mod events;
mod field;
mod figures;
pub mod grid;
mod header;
pub mod html;
mod inject;
mod json;
mod law;
mod mpi;
mod page;
mod plot;
mod predict;
mod study;
mod sure;
mod table;
mod tails;
mod text;
mod tick;
mod timeline;
mod tune_check;
mod tune_done;
mod tune_knob;
mod tune_plan;
mod validate;
mod value;
mod work;

pub use compare::{Check, CompareReport, check_text, compare_json, headline, render_compare};
pub use cost_run::{cost_run_json, render_cost_run};
pub use inject::{InjectReport, Injected, InjectedPlace, Place, Way, inject_json, render_inject};
pub use json::{report_json, sources_json, timelines_json, to_json};
pub use law::{LawReport, law_json, render_law};
pub use mpi::{MpiRank, MpiReport, mpi_json, render_mpi};
pub use page::set_width;
pub use predict::{PredictReport, predict_json, render_predict};
pub use study::{Studied, StudyReport, render_study, study_json, study_page};
pub use text::{Options, render_sources, render_text};
pub use tick::{TickReport, TickRow, render_tick, tick_json};
pub use timeline::render_timelines;
pub use tune_check::{TuneCheckReport, render_tune_check, tune_check_json};
pub use tune_done::{TuneDoing, TuneDoneReport, render_tune_done, tune_done_json};
pub use tune_plan::{render_tune_plan, tune_plan_json};
pub use validate::{ValidateCell, ValidateErrors, ValidateReport, render_validate, validate_figure, validate_json};
pub use value::Value;
pub use work::{render_work, work_json, work_page};
