//! Makes CPUs quiet as a transaction: plan every change, apply with the original on disk first, restore always.
//!
//! A [`Plan`] for some CPUs is made by examining the machine. It has every [`Change`] with its reason, its risk and the noise that it removes, and
//! the boot parameters for settings that need a reboot. Everything is read and written below a root directory, so fake trees can test all of it.
//!
//! `document` has plans and the outcome of each change, `report` prints them, and `command` and `bench` are the commands.

#![forbid(unsafe_code)]

mod apply;
mod bench;
mod boot;
mod bystanders;
pub mod check;
mod command;
mod document;
mod draft;
mod error;
mod families;
pub mod format;
mod heirs;
mod journal;
mod knob;
mod machine;
mod moment;
mod planner;
mod report;
mod request;
mod restore;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod see;
mod value;
mod words;

pub use apply::{Applied, apply, extend};
pub use becalm_model::tune::{Family, Profile};
pub use bench::{BenchArgs, BenchReport, Judged, LostTo, Repetition, SeenBy, judge};
pub use command::{Standing, TuneArgs};
pub use document::{
    Area, Attempt, BootParameter, Change, Check, Chosen, CpuChoice, Finding, Gain, GainJob, Gains, Knob, Meaning, Note,
    Outcome, Plan, PredictedSlowdown, Severity, Stage, StepGain,
};
pub use error::TuneError;
pub use families::CpusetPlace;
pub use heirs::{Heir, Heirs};
pub use journal::{Damage, Folder, Journal, JournalError, JournalStep, NotedThread, Owner, State, sealed};
pub use machine::{LiveMachine, Machine};
pub use moment::{Moment, Observer};
pub use planner::plan;
pub use report::{TuneAuditReport, TuneDoing, TuneDoneReport, TunePlanReport};
pub use request::{PlanError, Request};
pub use restore::{Foreign, RestoreOptions, Restored, Whose, restore};

use becalm_model::Kind;
use becalm_model::remedy::{Known, NoiseSource};
