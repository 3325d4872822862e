//! The commands, one file each, and the table of all.

pub mod audit;
mod check;
mod compare;
#[cfg(feature = "manual")]
mod completions;
mod config;
mod doctor;
mod law;
#[cfg(feature = "manual")]
mod man;
mod predict;
mod record;
mod report;
mod sources;
mod summary;
mod work;

use becalm_command::{Task, built_without};
use becalm_units::fault::UsageError;
use clap::Subcommand;

/// The table of commands: name, arguments, and the feature that builds it, if any.
macro_rules! commands {
    ($($(#[$built:meta])? $name:ident($args:path),)*) => {
        /// A command that was asked for.
        #[derive(Subcommand, Debug)]
        pub enum Command {
            $($(#[$built])? $name(Box<$args>),)*
        }

        impl Command {
            /// The command as a task.
            pub fn task(self) -> Box<dyn Task> {
                match self {
                    $($(#[$built])? Self::$name(args) => args,)*
                }
            }
        }
    };
}

commands! {
    Record(record::RecordArgs),
    Report(report::ReportArgs),
    Sources(sources::SourcesArgs),
    Summary(summary::SummaryArgs),
    #[cfg(feature = "top")]
    Top(becalm_live::TopArgs),
    #[cfg(feature = "watch")]
    Watch(becalm_watch::WatchArgs),
    Check(check::CheckArgs),
    Compare(compare::CompareArgs),
    #[cfg(feature = "fleet")]
    Fleet(becalm_fleet::FleetArgs),
    Work(work::WorkArgs),
    Predict(predict::PredictArgs),
    Law(law::LawArgs),
    #[cfg(feature = "research")]
    Paper(becalm_research::paper::PaperArgs),
    #[cfg(feature = "cost")]
    Cost(becalm_cost::CostArgs),
    Inject(becalm_inject::InjectArgs),
    Tune(becalm_tune::TuneArgs),
    RunQuiet(becalm_tune::RunQuietArgs),
    #[cfg(feature = "foreign")]
    Import(becalm_foreign::command::ImportArgs),
    #[cfg(feature = "foreign")]
    Export(becalm_foreign::command::ExportArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    #[cfg(feature = "manual")]
    Completions(completions::CompletionsArgs),
    #[cfg(feature = "manual")]
    Man(man::ManArgs),
}

/// The commands that need a feature: the feature, whether it is built in, and their names.
const OPTIONAL: [(&str, bool, &[&str]); 7] = [
    ("cost", cfg!(feature = "cost"), &["cost"]),
    ("fleet", cfg!(feature = "fleet"), &["fleet"]),
    ("foreign", cfg!(feature = "foreign"), &["import", "export"]),
    ("manual", cfg!(feature = "manual"), &["completions", "man"]),
    ("research", cfg!(feature = "research"), &["paper", "study"]),
    ("top", cfg!(feature = "top"), &["top"]),
    ("watch", cfg!(feature = "watch"), &["watch"]),
];

/// The error for a command that this becalm was built without; `None` for any other name.
pub fn not_built_in(name: &str) -> Option<UsageError> {
    let lacks = |(_, is_built, names): &&(&str, bool, &[&str])| !is_built && names.contains(&name);
    OPTIONAL.iter().find(lacks).map(|(feature, ..)| built_without(feature))
}
