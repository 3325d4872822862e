//! `becalm tune apply`: makes CPUs quiet until `becalm tune restore` or a reboot.

use std::io::Write;

use becalm_command::Exit;
use becalm_command::arguments::FormArgs;
use becalm_command::messages::say;
use becalm_command::output::emit;
use becalm_units::CpuList;
use becalm_units::fault;
use clap::Args;

use super::planning::{JournalArgs, PlanningArgs, explained, need_rights};
use super::standing::RESTORE;
use crate::plan;
use crate::report::{TuneDoing, TuneDoneReport};
use crate::{Applied, Folder, Outcome, Owner, Stage, apply, extend};

/// Make CPUs quiet until becalm tune restore, or a reboot
///
/// The value of every knob is on disk before it is changed. What the kernel refuses is named and stays as it was.
#[derive(Args, Debug)]
pub struct ApplyArgs {
    #[command(flatten)]
    planning: PlanningArgs,

    #[command(flatten)]
    journal: JournalArgs,

    /// Add to what is changed already; one restore undoes all
    #[arg(long)]
    extend: bool,

    /// Show every knob, also those that are alike
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
    plan.notes.iter().for_each(|note| say(format_args!("{}: {}", note.family, note.text)));
    let report = report(&applied, &plan.cpus, &folder);
    emit(&report, output, out)?;
    // Some refused changes are usual, but if nothing at all is changed the command has failed.
    let nothing = folder.read()?.is_none_or(|state| state.is_spent());
    Ok(if nothing && applied.refused().next().is_some() { Exit::Failed } else { Exit::Done })
}

fn report(applied: &Applied, cpus: &CpuList, folder: &Folder) -> TuneDoneReport {
    let (made, refused) = (applied.count(Outcome::Changed), applied.count(Outcome::Refused));
    let changes = if made == 1 { "change" } else { "changes" };
    let mut summary = format!("{made} {changes} made, {refused} refused");
    let gone = applied.count(Outcome::Gone);
    if gone > 0 {
        summary += &format!(", {gone} not needed any more");
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
