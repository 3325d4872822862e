//! Reports for people and scripts: each command has a directory that turns its results into text for the terminal, one JSON document, and for some
//! commands an HTML page.
//!
//! The output of a command implements [`Report`]. A field defines the name, unit and format of a figure once, in the command's directory, or
//! in `catalogue` if several commands share it; tables and JSON both use that definition. `form` and `html` know nothing about the commands. Figures
//! are computed elsewhere, in `analyze` and `scale`.

#![forbid(unsafe_code)]

mod audit;
pub mod catalogue;
mod check;
pub mod compare;
mod config;
mod doctor;
pub mod form;
pub mod html;
mod law;
mod mpi;
pub mod predict;
pub mod record;
mod report;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod sweep;
mod together;
mod work;

pub use check::CheckReport;
pub use compare::{CompareReport, LimitCheck, check_text, headline};
pub use config::{ConfigFile, ConfigFileOf, ConfigFileState, ConfigReport, ConfigSetting, config_files};
pub use doctor::{
    DoctorCheck, DoctorCompanion, DoctorLimit, DoctorMachine, DoctorProgram, DoctorReport, DoctorRights, DoctorState,
    DoctorUser, LastError,
};
pub use form::paragraph::wrap;
pub use form::sheet::{Form, Sheet};
pub use form::value::Value;
pub use law::{LawReport, LawRow};
pub use mpi::grains::JobGrainsReport;
pub use mpi::jobs::JobsReport;
pub use mpi::validate::sweep::ValidationSweepReport;
pub use mpi::validate::validate_figure;
pub use predict::PredictReport;
pub use record::html::{Drawn, Scaling};
pub use record::{DetoursReport, RunReport, SourcesReport, missed};
pub use report::{Report, json, markdown, print, text};
pub use sweep::law::{LawCell, LawOften, LawSweepReport};
pub use sweep::predict::{PredictSweepReport, SweptCell, SweptNoise};
pub use together::TogetherReport;
pub use work::WorkReport;
