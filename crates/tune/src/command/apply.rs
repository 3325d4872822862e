//! `becalm tune apply`: makes CPUs quiet until `becalm tune restore` or a reboot.

use std::io::Write;

use becalm_command::Exit;
use becalm_command::arguments::FormArgs;
use becalm_command::output::emit;
use becalm_units::fault;
use becalm_units::{CpuList, counted};
use clap::Args;

use super::planning::{JournalArgs, PlanningArgs, explained, need_rights, say_notes};
use super::standing::RESTORE;
use crate::plan;
use crate::report::{TuneDoing, TuneDoneReport};
use crate::{Applied, Folder, Outcome, Owner, Stage, apply, extend};

/// Make CPUs quiet until becalm tune restore or a reboot
///
/// Needs root. Saves each original value to disk before changing it. Changes that the kernel refuses are listed, and
/// those settings stay as they were. Exit code 1 if nothing could be changed.
#[derive(Args, Debug)]
pub struct ApplyArgs {
    #[command(flatten)]
    planning: PlanningArgs,

    #[command(flatten)]
    journal: JournalArgs,

    /// Add to the changes already in effect; one restore undoes all
    #[arg(long)]
    extend: bool,

    /// Show every setting, also similar ones
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    form: FormArgs,
}

/// Plans, applies and prints the outcome. Fails if rights are missing, the request is invalid, something is already changed, or no journal
/// can be written.
pub fn run(args: &ApplyArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let output = args.form.output(args.full)?;
    need_rights()?;
    let (machine, folder) = (args.planning.machine(), args.journal.folder());
    let before = folder.read()?;
    let mut request = args.planning.request();
    if let Some(state) = before.filter(|state| args.extend && !state.is_spent()) {
        // Quiet CPUs stay quiet.
        request.cpus = request.cpus.iter().chain(state.quiet().iter()).collect();
    }
    let plan = plan(&machine, &request)?;
    let owner = Owner::this_process(&machine, false)?;
    let doing = if args.extend { extend } else { apply };
    let applied = doing(&machine, &folder, &plan, &owner, &mut |_| ())
        .map_err(|error| explained(&machine, &folder, error, true))?;
    say_notes(&plan);
    let report = report(&applied, &plan.cpus, &folder);
    emit(&report, output, out)?;
    // Some refused changes are usual, but if nothing at all is changed the command has failed.
    let nothing = folder.read()?.is_none_or(|state| state.is_spent());
    Ok(if nothing && applied.refused().next().is_some() { Exit::Failed } else { Exit::Done })
}

fn report(applied: &Applied, cpus: &CpuList, folder: &Folder) -> TuneDoneReport {
    let count = |outcome| applied.count(outcome) as u64;
    let made = counted(count(Outcome::Changed), "change", "changes");
    let mut summary = format!("{made} made, {} refused", count(Outcome::Refused));
    let gone = count(Outcome::Gone);
    if gone > 0 {
        summary += &format!(", {gone} no longer needed");
    }
    TuneDoneReport {
        doing: TuneDoing::Apply,
        stage: Stage::Tuned,
        summary,
        cpus: cpus.clone(),
        attempts: applied.changes.clone(),
        journal: Some(folder.journal()),
        advice: Some(RESTORE),
    }
}
