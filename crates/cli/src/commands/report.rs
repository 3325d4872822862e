//! `becalm report`: what a run recorded, on the terminal or as JSON.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use becalm_analyze::summary::{Selection, summarize};
use becalm_report::Options;
use becalm_trace::bundle::Bundle;
use becalm_units::CpuList;
use clap::Args;

use crate::exit::Exit;

/// Show what a run recorded: how much time each CPU lost, to what, and what to do about it
///
/// Needs no privileges, and runs on any machine. At the top stands what was recorded and how, with everything that was
/// lost or could not be seen; then, per CPU, how long it was observed, its detours and their lengths, and the noise
/// ratio (time lost / time observed) with its 95 % interval; then the sources, those that took most first.
#[derive(Args, Debug)]
pub struct ReportArgs {
    #[command(flatten)]
    run: RunArgs,

    /// Show all CPUs and sources, not only the noisiest 20
    #[arg(long)]
    all: bool,

    /// Print one JSON document (becalm.report/1), which always holds everything
    #[arg(long)]
    json: bool,
}

/// Which run, and which part of it.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The run: the folder that `becalm record` wrote, with or without its ending .becalm
    #[arg(value_name = "RUN")]
    path: PathBuf,

    /// Only these CPUs, like 0-3,8
    #[arg(long, value_name = "LIST", value_parser = some_cpus)]
    cpus: Option<CpuList>,

    /// Only this node of a run of several
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
}

impl RunArgs {
    /// Opens the run.
    pub fn open(&self) -> anyhow::Result<Bundle> {
        Ok(Bundle::open(&self.path)?)
    }

    /// The part that was asked for.
    pub fn selection(&self) -> Selection {
        Selection { node: self.node.clone(), cpus: self.cpus.clone() }
    }
}

fn some_cpus(text: &str) -> Result<CpuList, String> {
    match text.parse::<CpuList>() {
        Ok(cpus) if cpus.is_empty() => Err("it names no CPU".to_owned()),
        Ok(cpus) => Ok(cpus),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads the run and prints its report.
///
/// # Errors
/// If the run cannot be read, does not hold what was asked for, or `out` cannot be written.
pub fn run(args: &ReportArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    print(&args.run.open()?, &args.run.selection(), args.all, args.json, out)?;
    Ok(Exit::Done)
}

/// Prints the report of the whole run at `path`, as `becalm report` does.
///
/// # Errors
/// If the run cannot be read, or `out` cannot be written.
pub fn print_run(path: &Path, json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    print(&Bundle::open(path)?, &Selection::default(), false, json, out)
}

fn print(bundle: &Bundle, selection: &Selection, all: bool, json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let summary = summarize(bundle, selection)?;
    let mut out = BufWriter::new(out);
    if json {
        out.write_all(becalm_report::to_json(&summary).as_bytes())?;
    } else {
        becalm_report::render_text(&summary, &mut out, Options { all, per_cpu: false })?;
    }
    Ok(out.flush()?)
}
