//! `becalm tune status`: what is changed now, and by whom.

use std::io::Write;
use std::path::PathBuf;

use becalm_report::{TuneDoing, TuneDoneReport};
use becalm_tune::Live;
use becalm_units::CpuList;
use clap::Args;

use super::planning::{JournalArgs, words};
use super::rows;
use crate::exit::Exit;
use crate::output::{Output, emit};

/// Say what is changed at this moment, and by whom
#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    journal: JournalArgs,

    /// Show every knob, also those that are alike
    #[arg(long)]
    all: bool,

    /// Print one JSON document (becalm.tune-status/1), which always holds everything
    #[arg(long)]
    json: bool,

    /// The folder below which the machine's files lie
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Reads the journal and prints it.
///
/// # Errors
/// If the journal cannot be read, or `out` cannot be written.
pub fn run(args: &StatusArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let folder = args.journal.folder();
    let mut report = TuneDoneReport {
        doing: TuneDoing::Status,
        state: "untuned",
        summary: "nothing is changed".to_owned(),
        cpus: String::new(),
        rows: Vec::new(),
        journal: String::new(),
        advice: String::new(),
    };
    if let Some(state) = folder.read()?.filter(|state| !state.is_spent()) {
        let (word, sentence, advice) = words(&Live::below(&args.root), &state.owner, &state);
        let cpus: CpuList = state.plans.iter().flat_map(|plan| plan.cpus.iter().collect::<Vec<_>>()).collect();
        report.state = word;
        report.summary = sentence;
        report.advice = advice.to_owned();
        report.cpus = cpus.to_string();
        report.rows = state.steps.iter().filter_map(rows::open).collect();
        report.journal = folder.journal().display().to_string();
    }
    emit(&report, Output::new(args.json, args.all), out)?;
    Ok(Exit::Done)
}
