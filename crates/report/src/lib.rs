//! Numbers to people and to scripts: each command has one folder, which makes of what was measured a text for the terminal,
//! one JSON document, and for some commands a page for a browser.
//!
//! What a command has to say implements [`Report`]. What a figure is called, in which unit it is and how it is written is
//! said once, as a field, in its command's folder, and what several commands have in `catalogue`; tables and JSON both read
//! it there. `form` and `html` know nothing of the commands. Nothing here computes a figure: that is the work of the crates
//! `analyze` and `scale`.

#![forbid(unsafe_code)]

mod audit;
pub mod catalogue;
mod check;
mod compare;
mod config;
mod distribution;
mod doctor;
mod fleet;
pub mod form;
pub mod html;
mod inject;
mod law;
mod mpi;
#[cfg(feature = "paper")]
mod paper;
mod platforms;
mod predict;
mod record;
mod report;
mod run_quiet;
#[cfg(feature = "schemas")]
pub mod schemas;
mod sweep;
mod together;
pub mod top;
mod tune;
mod work;

pub use check::CheckReport;
pub use compare::{CompareReport, LimitCheck, check_text, headline};
pub use config::{ConfigFile, ConfigFileOf, ConfigFileState, ConfigReport, ConfigSetting, config_files};
pub use distribution::{BesideReport, DistributionReport};
pub use doctor::{
    DoctorCheck, DoctorCompanion, DoctorLimit, DoctorMachine, DoctorProgram, DoctorReport, DoctorRights, DoctorState,
    DoctorUser, LastError,
};
pub use fleet::FleetReport;
pub use fleet::jobs::{FleetCostReport, FleetSweepReport};
pub use form::grid;
pub use form::paragraph::wrap;
pub use form::sheet::{Form, Sheet};
pub use form::value::Value;
pub use inject::sweep::{InjectSweepReport, InjectedCell};
pub use law::{LawReport, LawRow};
pub use mpi::grains::JobGrainsReport;
pub use mpi::jobs::JobsReport;
pub use mpi::sources::PhaseSourcesReport;
pub use mpi::validate::sweep::ValidationSweepReport;
pub use mpi::validate::validate_figure;
#[cfg(feature = "paper")]
pub use paper::PaperReport;
pub use platforms::{PlatformRun, PlatformsReport};
pub use predict::PredictReport;
pub use record::html::{Drawn, Scaling};
pub use record::{DetoursReport, RunReport, SourcesReport};
pub use report::{Report, json, print, text};
pub use run_quiet::{RunQuietReport, SeenBy};
pub use sweep::law::{LawCell, LawOften, LawSweepReport};
pub use sweep::predict::{PredictSweepReport, SweptCell, SweptNoise};
pub use together::TogetherReport;
pub use tune::check::TuneCheckReport;
pub use tune::done::{TuneDoing, TuneDoneReport};
pub use tune::plan::TunePlanReport;
pub use tune::study::StudyReport;
pub use work::WorkReport;
