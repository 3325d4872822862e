//! `becalm export`: writes recordings in the formats of other programs.

mod cpus;
mod destination;
mod histogram;
mod stacks;
mod tables;
mod timeline;

use std::io::Write;
use std::path::PathBuf;

use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
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

/// Write what was recorded as another program reads it
///
/// What each format holds, and what it cannot say, is on the page of the book.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The format to write
    #[arg(long, value_name = "FORMAT")]
    to: ExportFormat,

    /// The run to export
    #[arg(value_name = "RUN")]
    path: PathBuf,

    /// Export only these CPUs, like 0-3,8
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus)]
    cpus: Option<CpuList>,

    /// Export only this node, where the run has several
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// Table to write as CSV [default: detours, or samples of a run of work]
    #[arg(long, value_name = "TABLE")]
    table: Option<TableName>,

    /// The file to write; one that is there already is replaced. - is standard output. With a / at its end it is a folder, in which
    /// loggopsim and simgrid write a file for each CPU
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Formats that can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ExportFormat {
    /// Comma-separated values of a table
    Csv,
    /// Noise files of LogGOPSim, one a CPU
    Loggopsim,
    /// A trace for ui.perfetto.dev: detours and what was in them
    Perfetto,
    /// The same as JSON, for chrome://tracing and others
    Chrome,
    /// A log with a histogram of lengths for each CPU
    Hdrhistogram,
    /// Time by source as folded stacks, for flame graphs
    Folded,
    /// Time by source as a profile for pprof
    Pprof,
    /// Speed profiles of SimGrid, one a CPU
    Simgrid,
}

/// Tables of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum TableName {
    /// Each detour
    Detours,
    /// What each detour or sample is split over
    Activities,
    /// Each sample of a run of work
    Samples,
}

impl ExportFormat {
    /// True if a terminal can show it.
    const fn is_text(self) -> bool {
        !matches!(self, Self::Perfetto | Self::Pprof)
    }

    /// True if a file holds one CPU.
    const fn is_of_one_cpu(self) -> bool {
        matches!(self, Self::Loggopsim | Self::Simgrid)
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
    if destination.is_folder() && !args.to.is_of_one_cpu() {
        let why = format!("{} is a folder, and this format is one file: name it", args.output.display());
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
