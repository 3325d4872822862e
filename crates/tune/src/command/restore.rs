//! `becalm tune restore`: restores the originals from the journal.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use becalm_command::Exit;
use becalm_command::arguments::FormArgs;
use becalm_command::output::emit;
use becalm_units::CpuList;
use becalm_units::fault;
use clap::Args;

use super::patience::restore_patiently;
use super::planning::{JournalArgs, need_rights, tell};
use super::standing::{FORGET, Standing, damaged_lines};
use crate::report::{TuneDoing, TuneDoneReport};
use crate::{Folder, Foreign, LiveMachine, Outcome, RestoreOptions, Restored, Stage, Whose};

/// How long to try restoring after a dead run while its watcher may still be restoring.
const PATIENCE: Duration = Duration::from_secs(10);

/// Undo becalm tune apply, even after a kill
///
/// Needs root. Settings that other programs changed in the meantime are listed and left alone: --force restores them,
/// --keep leaves them for good. The command can be repeated.
///
/// Exit codes: 0 everything is restored, 1 something is not, 2 wrong usage.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    #[command(flatten)]
    journal: JournalArgs,

    /// Also restore settings that others changed in the meantime, and those of a command that is still running
    #[arg(long)]
    force: bool,

    /// Keep what others changed and where new threads run, and forget the originals; set aside a damaged journal
    #[arg(long, conflicts_with = "force")]
    keep: bool,

    /// Restore only what a killed becalm tune run left; keep changes of becalm tune apply and of running commands
    #[arg(long)]
    left_by_run: bool,

    /// Show every setting, also similar ones
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    form: FormArgs,

    /// Directory with the machine's files
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Restores and prints the outcome. Fails if rights are missing, or the journal cannot be used.
pub fn run(args: &RestoreArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let output = args.form.output(args.full)?;
    let folder = args.journal.folder();
    if !matches!(folder.read(), Ok(None)) {
        need_rights()?;
    }
    let foreign = match (args.force, args.keep) {
        (true, _) => Foreign::Force,
        (_, true) => Foreign::Keep,
        _ => Foreign::Leave,
    };
    let (whose, patience) =
        if args.left_by_run { (Whose::DeadRuns, PATIENCE) } else { (Whose::Anybodys, Duration::ZERO) };
    let machine = LiveMachine::for_root(&args.root);
    let restored = restore_patiently(&machine, &folder, RestoreOptions { whose, foreign }, patience)?;
    let report = match &restored {
        Some(restored) => report(restored, &folder),
        None => nothing(&machine, &folder)?,
    };
    emit(&report, output, out)?;
    if let Some(restored) = &restored {
        tell(restored);
    }
    Ok(if restored.is_none_or(|restored| restored.is_complete()) { Exit::Done } else { Exit::Failed })
}

/// The report if there was nothing to restore: nothing is changed, or some changes stay.
fn nothing(machine: &LiveMachine, folder: &Folder) -> fault::Result<TuneDoneReport> {
    let mut report = empty(Stage::Untuned, "nothing is changed, so there is nothing to restore");
    if let Some(state) = folder.read()?.filter(|state| !state.is_spent()) {
        let Standing { stage, sentence, .. } = Standing::new(machine, &state.owner, &state);
        report = empty(stage, &format!("no becalm tune run has left anything changed; {sentence}"));
        report.cpus = state.quiet();
        report.journal = Some(folder.journal());
    }
    Ok(report)
}

fn empty(stage: Stage, summary: &str) -> TuneDoneReport {
    TuneDoneReport {
        doing: TuneDoing::Restore,
        stage,
        summary: summary.to_owned(),
        cpus: CpuList::default(),
        attempts: Vec::new(),
        journal: None,
        advice: None,
    }
}

fn report(restored: &Restored, folder: &Folder) -> TuneDoneReport {
    let mut report = empty(Stage::Untuned, "");
    report.attempts.clone_from(&restored.changes);
    report.journal = Some(folder.last());
    if restored.earlier_boot {
        report.stage = Stage::EarlierBoot;
        report.summary = "the journal is from an earlier boot, and its settings are gone; it was put away".to_owned();
        return report;
    }
    let count = |wanted: fn(Outcome) -> bool| restored.changes.iter().filter(|attempt| wanted(attempt.outcome)).count();
    let back = count(|outcome| outcome == Outcome::Restored);
    let restored_knobs =
        if back == 1 { "1 knob was restored".to_owned() } else { format!("{back} knobs were restored") };
    let heirs = match restored.heirs.widened.len() {
        0 => String::new(),
        1 => ", and the CPUs of 1 new thread that had inherited changed ones".to_owned(),
        heirs => format!(", and the CPUs of {heirs} new threads that had inherited changed ones"),
    };
    if restored.is_complete() {
        report.stage = Stage::Restored;
        report.summary = format!("all is as it was: {restored_knobs}{heirs}");
    } else {
        let open = count(Outcome::is_open);
        report.stage = Stage::PartlyRestored;
        report.summary = format!("{restored_knobs}, {open} {} not{heirs}", if open == 1 { "was" } else { "were" });
        report.journal = Some(folder.journal());
        report.advice =
            Some("becalm tune restore --force also restores what others changed, and --keep leaves it as it is");
        if !restored.damage.is_empty() {
            report.summary += &format!("; {}", damaged_lines(&restored.damage));
        }
        if open == 0 {
            report.advice = Some(FORGET);
        }
    }
    report
}
