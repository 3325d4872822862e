//! `becalm export`: writes recordings in the formats of other programs.

mod cpus;
mod destination;
mod histogram;
mod stacks;
mod tables;
mod threads;
mod timeline;

use std::io::Write;
use std::path::PathBuf;

use becalm_analyze::summary::Selection;
use becalm_bundle::{Bundle, Contents};
use becalm_command::Exit;
use becalm_command::Task;
use becalm_command::arguments::run::open;
use becalm_command::arguments::some_cpus;
use becalm_command::messages::say;
use becalm_command::rights::RightsKept;
use becalm_model::NodeDoc;
use becalm_units::fault::{self, UsageError};
use becalm_units::{CpuList, counted};
use clap::{Args, ValueEnum};

use destination::Destination;

/// Write CSV, Perfetto, flame graphs, pprof, HdrHistogram, ...
///
/// The book describes what each format contains and leaves out.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Format to write
    #[arg(long, value_name = "FORMAT")]
    to: ExportFormat,

    /// Recording to export
    #[arg(value_name = "RUN")]
    path: PathBuf,

    /// Export only these CPUs, such as 0-3,8
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus)]
    cpus: Option<CpuList>,

    /// Export only this node of a recording of several nodes
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// Table to write as CSV [default: detours, or samples for a recording of work]
    #[arg(long, value_name = "TABLE")]
    table: Option<TableName>,

    /// Spans of the program to show with its threads, as for `becalm explain`; for perfetto
    #[arg(long, value_name = "FILE")]
    spans: Option<PathBuf>,

    /// File to write or replace; - is standard output. If it ends in /, loggopsim and simgrid write a file per CPU to
    /// this directory
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Formats that can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ExportFormat {
    /// Table as comma-separated values
    Csv,
    /// Noise files of LogGOPSim, one per CPU
    Loggopsim,
    /// Trace of interruptions (detours) and their parts, for ui.perfetto.dev
    Perfetto,
    /// The same trace as JSON, for chrome://tracing and others
    Chrome,
    /// Log with a histogram of lengths per CPU
    Hdrhistogram,
    /// Time by source as folded stacks, for flame graphs
    Folded,
    /// Time by source as a pprof profile
    Pprof,
    /// Speed profiles of SimGrid, one per CPU
    Simgrid,
}

/// Tables of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TableName {
    /// Interruptions (detours)
    Detours,
    /// Parts of each detour or sample
    Activities,
    /// Samples of a recording of work
    Samples,
}

impl ExportFormat {
    /// True if a terminal can show it.
    const fn is_text(self) -> bool {
        !matches!(self, Self::Perfetto | Self::Pprof)
    }
}

impl ExportArgs {
    /// The requested part of the run.
    fn selection(&self) -> Selection {
        Selection { node: self.node.clone(), cpus: self.cpus.clone(), ..Selection::default() }
    }

    fn open(&self) -> fault::Result<Bundle> {
        Ok(open(&self.path)?)
    }
}

impl Task for ExportArgs {
    fn rights(&self) -> RightsKept {
        RightsKept::Files
    }

    fn run(self: Box<Self>, out: &mut dyn Write) -> fault::Result<Exit> {
        run(&self, out)
    }
}

/// Reads the run and writes the file. Fails if the run cannot be read, the format cannot hold the selection, or the file cannot be written.
fn run(args: &ExportArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    if args.table.is_some() && args.to != ExportFormat::Csv {
        return Err(UsageError::new("--table requires --to csv").into());
    }
    let destination = Destination::new(&args.output, args.to.is_text(), out)?;
    let is_of_one_cpu = matches!(args.to, ExportFormat::Loggopsim | ExportFormat::Simgrid);
    if matches!(destination, Destination::Folder(_)) && !is_of_one_cpu {
        let why = format!("{} is a directory, and this format is one file: name it", args.output.display());
        return Err(UsageError::new(why).into());
    }
    if Contents::read(&args.path)? == Contents::Observed {
        threads::export(args, destination)?;
        return Ok(Exit::Done);
    }
    if args.spans.is_some() {
        let why = format!("--spans is for recordings of becalm observe, and {} is none", args.path.display());
        return Err(UsageError::new(why).into());
    }
    match args.to {
        ExportFormat::Csv => tables::export(args, destination)?,
        ExportFormat::Perfetto | ExportFormat::Chrome => timeline::export(args, destination)?,
        ExportFormat::Hdrhistogram => histogram::export(args, destination)?,
        ExportFormat::Folded | ExportFormat::Pprof => stacks::export(args, destination)?,
        ExportFormat::Loggopsim | ExportFormat::Simgrid => cpus::export(args, destination)?,
    }
    Ok(Exit::Done)
}

/// Reports detours that no format can hold, because they were counted and not stored.
fn tell_unstored<'a>(docs: impl IntoIterator<Item = &'a NodeDoc>) {
    let unstored = docs.into_iter().flat_map(|doc| &doc.cpus).fold(0_u64, |sum, cpu| sum.saturating_add(cpu.unstored));
    if unstored > 0 {
        let detours = counted(unstored, "detour", "detours");
        say(format_args!(
            "{detours} below 1us were counted and not stored when this was recorded: the export lacks them"
        ));
    }
}

/// Reports how many activities could not be placed.
fn tell_strays(strays: u64) {
    if strays > 0 {
        let activities = counted(strays, "activity belongs", "activities belong");
        say(format_args!("{activities} to no detour of the recording: the export lacks them"));
    }
}
