//! The commands, one file each, and the table of all.

mod check;
mod compare;
#[cfg(feature = "manual")]
mod completions;
mod condense;
mod config;
mod detours;
mod doctor;
#[cfg(feature = "manual")]
mod man;
mod predict;
mod record;
mod report;
mod topics;
pub mod welcome;
mod work;

use becalm_command::{Task, built_without};
use becalm_units::fault::UsageError;
use clap::Subcommand;

/// The table of commands: name, arguments, and the feature that builds it, if any.
macro_rules! commands {
    ($($(#[cfg($built:meta)])? $(#[command($look:meta)])? $name:ident($args:path),)*) => {
        /// A command that was asked for.
        #[derive(Subcommand, Debug)]
        pub enum Command {
            $($(#[cfg($built)])? $(#[command($look)])? $name(Box<$args>),)*
        }

        impl Command {
            /// The command as a task.
            pub fn task(self) -> Box<dyn Task> {
                match self {
                    $($(#[cfg($built)])? Self::$name(args) => args,)*
                }
            }
        }
    };
}

commands! {
    Record(record::RecordArgs),
    #[cfg(feature = "observe")]
    Observe(becalm_observe::ObserveArgs),
    #[cfg(feature = "top")]
    Top(becalm_live::TopArgs),
    #[cfg(feature = "watch")]
    Watch(becalm_watch::WatchArgs),
    Check(check::CheckArgs),
    Report(report::ReportArgs),
    #[cfg(feature = "observe")]
    Explain(becalm_explain::ExplainArgs),
    #[cfg(feature = "why")]
    Why(becalm_why::WhyArgs),
    Detours(detours::DetoursArgs),
    Compare(compare::CompareArgs),
    #[cfg(feature = "fleet")]
    Fleet(becalm_fleet::FleetArgs),
    Predict(predict::PredictArgs),
    Tune(becalm_tune::TuneArgs),
    Bench(becalm_tune::BenchArgs),
    #[cfg(feature = "foreign")]
    Import(becalm_foreign::command::ImportArgs),
    #[cfg(feature = "foreign")]
    Export(becalm_foreign::command::ExportArgs),
    Condense(condense::CondenseArgs),
    Inject(becalm_inject::InjectArgs),
    Work(work::WorkArgs),
    #[cfg(feature = "cost")]
    Cost(becalm_cost::CostArgs),
    #[cfg(feature = "research")]
    Study(becalm_research::study::StudyArgs),
    #[cfg(feature = "research")]
    Paper(becalm_research::paper::PaperArgs),
    Doctor(doctor::DoctorArgs),
    Config(config::ConfigArgs),
    #[cfg(feature = "manual")]
    Completions(completions::CompletionsArgs),
    #[cfg(feature = "manual")]
    Man(man::ManArgs),
    #[command(hide = true)]
    Options(topics::OptionsArgs),
    #[command(hide = true)]
    Collectives(topics::CollectivesArgs),
    #[command(hide = true)]
    Noise(topics::NoiseArgs),
}

/// The groups of commands in the list of `becalm help`.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Measure", &["record", "observe", "top", "watch", "check"]),
    ("Understand", &["report", "why", "explain", "detours", "compare", "fleet", "predict"]),
    ("Fix", &["tune", "bench"]),
    ("Files", &["import", "export", "condense"]),
    ("Research", &["inject", "work", "cost", "study", "paper"]),
    ("Installation", &["doctor", "config", "completions", "man"]),
];

/// The list of commands by purpose; titles in the style of the parser's.
pub fn list(root: &clap::Command) -> String {
    let title = clap::builder::Styles::default();
    let title = title.get_header();
    let mut list = String::new();
    for (group, names) in GROUPS {
        let commands = names.iter().filter_map(|name| root.find_subcommand(name));
        list += &format!("{title}{group}{title:#}\n");
        for command in commands {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            list += &format!("  {:<13}{about}\n", command.get_name());
        }
    }
    list
}

/// The commands that need a feature: the feature, whether it is built in, and their names.
const OPTIONAL: [(&str, bool, &[&str]); 9] = [
    ("cost", cfg!(feature = "cost"), &["cost"]),
    ("fleet", cfg!(feature = "fleet"), &["fleet"]),
    ("foreign", cfg!(feature = "foreign"), &["import", "export"]),
    ("manual", cfg!(feature = "manual"), &["completions", "man"]),
    ("observe", cfg!(feature = "observe"), &["observe", "explain"]),
    ("research", cfg!(feature = "research"), &["paper", "study"]),
    ("top", cfg!(feature = "top"), &["top"]),
    ("watch", cfg!(feature = "watch"), &["watch"]),
    ("why", cfg!(feature = "why"), &["why"]),
];

/// The error for a command that this becalm was built without; `None` for any other name.
pub fn not_built_in(name: &str) -> Option<UsageError> {
    let lacks = |(_, is_built, names): &&(&str, bool, &[&str])| !is_built && names.contains(&name);
    OPTIONAL.iter().find(lacks).map(|(feature, ..)| built_without(feature))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line;

    /// The length of a summary that fits a line of 80 characters behind the name.
    const SHORT: usize = 60;

    /// The number of lines of the longest help.
    const LINES: usize = 98;

    /// Calls a function for a command and for all below it.
    fn each(command: &mut clap::Command, check: &mut dyn FnMut(&mut clap::Command)) {
        check(command);
        command.get_subcommands_mut().for_each(|below| each(below, check));
    }

    #[test]
    fn no_help_is_longer_than_98_lines() {
        let mut root = command_line().term_width(100);
        root.build();
        each(&mut root, &mut |command| {
            let lines = command.render_long_help().to_string().lines().count();
            assert!(lines <= LINES, "{} has {lines} lines", command.get_name());
        });
    }

    #[test]
    fn a_default_that_the_help_spells_out_is_the_default() {
        let mut root = command_line();
        root.build();
        let mut count = 0;
        each(&mut root, &mut |command| {
            for argument in command.get_arguments().filter(|argument| argument.is_hide_default_value_set()) {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let Some((_, spelled)) = help.split_once("[default: ") else { continue };
                let defaults: Vec<_> =
                    argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
                assert_eq!(
                    spelled,
                    format!("{}]", defaults.join(",")),
                    "{} --{}",
                    command.get_name(),
                    argument.get_id()
                );
                count += 1;
            }
        });
        assert!(count > 10, "only {count} were found");
    }

    #[test]
    fn every_command_has_a_group_and_a_short_summary() {
        fn check(command: &clap::Command) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && about.len() <= SHORT, "{}: {about}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        let root = command_line();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(grouped.contains(&command.get_name()), "{} has no group", command.get_name());
            check(command);
        }
        assert!(grouped.iter().all(|name| root.find_subcommand(name).is_some() || not_built_in(name).is_some()));
    }
}
