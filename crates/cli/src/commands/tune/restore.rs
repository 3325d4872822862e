//! `becalm tune restore`: brings back what was, from the journal.

use std::io::Write;
use std::path::PathBuf;

use becalm_report::{TuneDoing, TuneDoneReport};
use becalm_tune::{Folder, Live, PutBack, Restored, restore};
use clap::Args;

use super::planning::{JournalArgs, need_rights};
use super::rows;
use crate::exit::Exit;
use crate::output::{Output, emit};

/// Bring back what was before becalm tune apply, also after a becalm that died
///
/// Knobs that others changed meanwhile are said and left alone. It can be repeated as often as needed.
///
/// Exit codes: 0 all is as it was, 1 it is not, 2 wrong usage.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    #[command(flatten)]
    journal: JournalArgs,

    /// Also what others changed meanwhile, and what a command runs on at this moment
    #[arg(long)]
    force: bool,

    /// Show every knob, also those that are alike
    #[arg(long)]
    all: bool,

    /// Print one JSON document (becalm.tune-restore/1), which always holds everything
    #[arg(long)]
    json: bool,

    /// The folder below which the machine's files lie
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Restores and prints what came of it.
///
/// # Errors
/// If rights are missing, or the journal cannot be used.
pub fn run(args: &RestoreArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let folder = args.journal.folder();
    if folder.read()?.is_some() {
        need_rights()?;
    }
    let restored = restore(&Live::below(&args.root), &folder, args.force, &mut |_| ())?;
    let report = report(restored.as_ref(), &folder);
    emit(&report, Output::new(args.json, args.all), out)?;
    Ok(if restored.is_none_or(|restored| restored.is_complete()) { Exit::Done } else { Exit::Failed })
}

fn report(restored: Option<&Restored>, folder: &Folder) -> TuneDoneReport {
    let mut report = TuneDoneReport {
        doing: TuneDoing::Restore,
        state: "untuned",
        summary: "nothing is changed, so that there is nothing to restore".to_owned(),
        cpus: String::new(),
        rows: Vec::new(),
        journal: String::new(),
        advice: String::new(),
    };
    let Some(restored) = restored else { return report };
    report.rows = restored.changes.iter().map(rows::undone).collect();
    report.journal = folder.last().display().to_string();
    if restored.earlier_boot {
        report.state = "earlier_boot";
        report.summary = "the journal was of an earlier boot, and its settings are gone; it was put away".to_owned();
        return report;
    }
    let back = restored.changes.iter().filter(|undone| undone.outcome == PutBack::Restored).count();
    let heirs = match restored.heirs {
        0 => String::new(),
        heirs => format!(", and {heirs} threads that were started meanwhile may run where the others do"),
    };
    if restored.is_complete() {
        report.state = "restored";
        report.summary = format!("all is as it was: {back} knobs were restored{heirs}");
    } else {
        let open = restored.changes.iter();
        let open = open.filter(|undone| matches!(undone.outcome, PutBack::Foreign(_) | PutBack::Failed(_))).count();
        report.state = "partly_restored";
        report.summary = format!("{back} knobs were restored, {open} were not{heirs}");
        report.journal = folder.journal().display().to_string();
        report.advice = "becalm tune restore --force brings back also what others changed".to_owned();
    }
    report
}
