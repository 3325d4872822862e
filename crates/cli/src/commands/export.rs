//! `becalm export`: a recorded CPU's detours as another program reads them.

use std::io::{BufWriter, IntoInnerError};
use std::path::PathBuf;

use anyhow::Context;
use becalm_analyze::summary::Selection;
use becalm_bundle::{Bundle, Draft};
use becalm_exchange::write::loggopsim;
use becalm_units::CpuList;
use clap::{Args, ValueEnum};

use crate::arguments::some_cpus;
use crate::exit::{Exit, UsageError};
use crate::noise;
use crate::progress::Steps;

/// Write the detours of one recorded CPU as another program reads them
///
/// loggopsim is the noise file of LogGOPSim: `start<TAB>duration` in nanoseconds.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The format to write
    #[arg(long, value_name = "FORMAT")]
    to: ExportFormat,

    /// The run to export
    #[arg(value_name = "RUN")]
    path: PathBuf,

    /// Which CPU of the run; may be left out if there is only one
    #[arg(long, value_name = "CPU", value_parser = some_cpus)]
    cpus: Option<CpuList>,

    /// Which node of a run of several
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// The file to write; one that is there already is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// After so many detours progress is told.
const STEP: u64 = 1 << 14;

/// Formats that can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ExportFormat {
    Loggopsim,
}

/// Reads the run and writes the file.
///
/// # Errors
/// If the run cannot be read, more than one CPU is meant, or the file cannot be written.
pub fn run(args: &ExportArgs) -> anyhow::Result<Exit> {
    let selection = Selection { node: args.node.clone(), cpus: args.cpus.clone(), with_self: false };
    let source = noise::from_run(&Bundle::open(&args.path)?, &selection, false)?;
    let mut traces = source.noise.traces();
    let (Some(trace), None) = (traces.next(), traces.next()) else {
        let why =
            "the run has several CPUs, and the file holds one; choose it with --cpus, and --node if there are several";
        return Err(UsageError(why.to_owned()).into());
    };
    let ExportFormat::Loggopsim = args.to;
    let path = args.output.display();
    let mut out = BufWriter::new(Draft::replace(&args.output)?);
    let mut progress = Steps::new("writing", trace.len() as u64);
    let detours: Vec<_> = trace.detours().collect();
    let mut written = 0_u64;
    let detours = detours.into_iter().inspect(|_| {
        written += 1;
        // Not at each, as the clock is looked at.
        if written.is_multiple_of(STEP) {
            progress.advance(STEP);
        }
    });
    let failed = || format!("cannot write {path}");
    loggopsim::write(trace.length(), detours, &mut out).with_context(failed)?;
    out.into_inner().map_err(IntoInnerError::into_error).with_context(failed)?.finish()?;
    Ok(Exit::Done)
}
