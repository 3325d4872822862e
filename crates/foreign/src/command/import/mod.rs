//! `becalm import`: stores the measurements of another program as a run.
//!
//! The format determines the form, each with a file here: [`detours`], [`samples`], [`distribution`], [`traces`].

mod cpus;
mod detours;
mod distribution;
mod files;
mod rate;
mod samples;
mod traces;

use std::io::Write;
use std::path::PathBuf;

use crate::document::UNNAMED;
use crate::read::{FileFacts, Form, Format, ReadError, TimeUnit};
use becalm_command::Exit;
use becalm_command::Task;
use becalm_command::arguments::some_cpus;
use becalm_command::messages::error_line;
use becalm_command::rights::RightsKept;
use becalm_model::check_node_name;
use becalm_observe::ThreadArgs;
use becalm_units::fault::{self, UsageError};
use becalm_units::{CpuList, Named, Nanos};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Read data of rtla, cyclictest, oslat, perf, trace-cmd, ...
///
/// Stores the data as a recording. Several files are several CPUs of one node. To add another node to the recording,
/// repeat the command with another --node. `becalm man --page import` and the book describe how each format is
/// converted.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Format of the files [default: auto, detected from their contents]
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    from: Option<ChosenFormat>,

    /// Files to read
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Recording to write
    #[arg(short, long, value_name = "RUN")]
    output: PathBuf,

    /// Measured CPUs, one per file, in ascending order [default: from the files or their names, else 0 and up]
    #[arg(long, visible_alias = "cpus", value_name = "LIST", value_parser = some_cpus)]
    cpu: Option<CpuList>,

    /// Name of the measured node [default: the host named in the file, else imported]
    #[arg(long, value_name = "NAME", value_parser = name_of_node)]
    node: Option<String>,

    /// Unit of the numbers if the format has none [default: us for cyclictest, else ns]
    #[arg(long, value_name = "UNIT", value_parser = units())]
    unit: Option<TimeUnit>,

    /// Counter frequency, such as 2.5GHz, if samples are in ticks and the file does not contain it
    #[arg(long, value_name = "RATE", value_parser = rate::parse)]
    rate: Option<f64>,

    /// Measured time [default: from the file, else until the end of the last detour (interruption)]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    length: Option<Nanos>,

    #[command(flatten, next_help_heading = "Traces of the kernel")]
    threads: ThreadArgs,
}

/// What `--from` says: `None` is to be found out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ChosenFormat(Option<Format>);

/// The name that lets becalm find the format.
const AUTO: &str = "auto";

fn formats() -> impl TypedValueParser<Value = ChosenFormat> {
    let names = std::iter::once(AUTO).chain(Format::ALL.iter().map(|format| format.name()));
    PossibleValuesParser::new(names).map(|name| ChosenFormat(name.parse().ok()))
}

fn units() -> impl TypedValueParser<Value = TimeUnit> {
    PossibleValuesParser::new(TimeUnit::ALL.iter().map(|unit| unit.name())).try_map(|name| name.parse())
}

fn name_of_node(text: &str) -> Result<String, String> {
    check_node_name(text).map(|()| text.to_owned()).map_err(|why| format!("'{text}' is no name of a node: {why}"))
}

impl Task for ImportArgs {
    fn rights(&self) -> RightsKept {
        RightsKept::Files
    }

    fn run(self: Box<Self>, _out: &mut dyn Write) -> fault::Result<Exit> {
        run(&self)
    }
}

/// Reads the files and writes the run. Fails if a file cannot be read or is not in the format, contradicts the options, or the run cannot
/// be written.
fn run(args: &ImportArgs) -> fault::Result<Exit> {
    let files = files::read(&args.files)?;
    let chosen = args.from.and_then(|chosen| chosen.0);
    let format = files::format(&files, chosen)?;
    if !args.threads.choice().is_empty() && format.form() != Form::Trace {
        return Err(
            UsageError::new(format!("--pid and --comm are for traces of the kernel, and {format} is none")).into()
        );
    }
    let done = match format.form() {
        Form::Detours => detours::run(args, format, &files),
        Form::Samples => samples::run(args, format, &files),
        Form::Distribution => distribution::run(args, format, &files),
        Form::Trace => traces::run(args, format, &files),
    };
    done.map_err(|error| {
        let advice = files::advice(&files, format, chosen.is_some())
            .filter(|_| error.causes().any(|cause| cause.is::<ReadError>()));
        match advice {
            Some(advice) => fault::Error::new(format!("{}; {advice}", error_line(&error))),
            None => error,
        }
    })
}

impl ImportArgs {
    /// The node's name: the user's, else that of the file, else [`UNNAMED`].
    fn node(&self, host: Option<&str>) -> String {
        let host = host.filter(|host| check_node_name(host).is_ok());
        self.node.as_deref().or(host).unwrap_or(UNNAMED).to_owned()
    }

    /// Refuses `--length` for files that become this.
    fn refuse_length(&self, format: Format, becomes: &str) -> Result<(), UsageError> {
        if self.length.is_none() {
            return Ok(());
        }
        Err(UsageError::new(format!("--length is for detours, and {format} holds {becomes}; leave it out")))
    }

    /// The user's facts about the files.
    fn known(&self) -> FileFacts {
        FileFacts { unit: self.unit, rate_hz: self.rate }
    }
}
