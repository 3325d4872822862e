//! `becalm tune run`: runs a command on quiet CPUs, and restores everything when it ends, however it ends.

use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use becalm_command::Exit;
use becalm_command::arguments::refuse_missing;
use becalm_command::rights::CommandUserArgs;
use becalm_linux::relay::{self, Relay};
use becalm_linux::sched::Policy;
use becalm_linux::signals::{process_end, wait_readable};
use becalm_units::Nanos;
use becalm_units::fault::{self, Context, UsageError};
use clap::Args;

use super::planning::{JournalArgs, PlanningArgs, need_rights};
use super::stage::{Say, Stage};
use super::verify::{Proof, TURNS};
use crate::plan;

/// Run a command on quiet CPUs, then restore everything
///
/// Needs root. Restores the settings when the command ends, even if it cannot start or becalm is killed. Signals are
/// passed on to the command. If no change can be made, the command does not run.
///
/// Exit code: that of the command, or 128 plus the number of the signal that ended it; 1 if the command succeeded but
/// not everything could be restored.
#[derive(Args, Debug)]
pub struct TuneRunArgs {
    #[command(flatten)]
    planning: PlanningArgs,

    #[command(flatten)]
    journal: JournalArgs,

    /// Scheduling class of the command: other, batch, fifo:PRIORITY, rr:PRIORITY. A real-time class also turns off the
    /// throttling of real-time threads
    #[arg(long, value_name = "CLASS", default_value = "other")]
    priority: Policy,

    /// Run the command only if every change could be made
    #[arg(long)]
    require: bool,

    /// Record the CPUs three times without and with the changes, in turn, and report the difference
    #[arg(long)]
    verify: bool,

    /// Total time of the three recordings of each side
    #[arg(long, value_name = "TIME", default_value = "5s", requires = "verify")]
    verify_duration: Nanos,

    /// Keep the recordings in this directory, as before-1.becalm to inside-3.becalm
    #[arg(long, value_name = "DIR", requires = "verify")]
    verify_output: Option<PathBuf>,

    /// Print only errors, and the number of refused changes
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    command_user: CommandUserArgs,

    /// Command to run, with the rights of the user who called sudo, if any; optional with --verify
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Applies, runs, restores. Fails if rights are missing, the request is invalid, something is already changed, or the command cannot be started.
/// Everything is restored by then.
pub fn run(args: &TuneRunArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    match args.command.first() {
        Some(program) => refuse_missing(program)?,
        None if args.verify => {}
        None => {
            return Err(UsageError::new("a command is missing: becalm tune run --cpus LIST -- COMMAND").into());
        }
    }
    need_rights()?;
    let (machine, folder) = (args.planning.machine(), args.journal.folder());
    let mut request = args.planning.request();
    request.realtime = args.priority.is_realtime();
    let plan = plan(&machine, &request)?;
    let proof = match args.verify {
        true => Some(Proof::new(&plan.cpus, args.verify_duration, args.verify_output.as_deref())?),
        false => None,
    };
    let quiet = args.quiet.then_some("For the list, run without --quiet");
    let stage = Stage { machine: &machine, folder: &folder, plan: &plan, require: args.require, quiet };
    let Some(proof) = &proof else { return stage.play(Say::All, &mut |signals| command(args, &stage, signals)) };
    for turn in 0..TURNS {
        proof.before(turn)?;
        let words = if turn == 0 { Say::All } else { Say::Nothing };
        let is_last = turn + 1 == TURNS;
        let exit = stage.play(words, &mut |signals| {
            proof.inside(turn, stage.group().as_deref(), args.priority, signals)?;
            if !is_last {
                // A request to end means no further turn.
                return Ok(signals.take().map_or(Exit::Done, |incoming| Exit::from_signal(incoming.signal)));
            }
            // Standard output belongs to the command.
            proof.print(args.command.is_empty(), out)?;
            command(args, &stage, signals)
        })?;
        if is_last || exit != Exit::Done {
            return Ok(exit);
        }
    }
    Ok(Exit::Done)
}

/// Runs the command in its place, if there is one.
fn command(args: &TuneRunArgs, stage: &Stage<'_>, signals: &Relay) -> fault::Result<Exit> {
    let Some((program, arguments)) = args.command.split_first() else { return Ok(Exit::Done) };
    let user = args.command_user.user();
    let mut command = stage.prepare(program, args.priority, user.as_ref(), signals)?;
    command.args(arguments);
    let child = command.spawn().with_context(|| {
        format!("cannot start '{program}' on CPU {} in the class {}", stage.plan.cpus, args.priority)
    })?;
    Ok(Exit::from_status(attend(child, signals)?))
}

/// Waits for the command, and passes signals on.
fn attend(mut child: Child, signals: &Relay) -> fault::Result<ExitStatus> {
    let end = process_end(child.id()).ok();
    loop {
        while let Some(incoming) = signals.take() {
            // The terminal sends a key's signal to the command as well.
            if !incoming.by_kernel {
                // A command that has just ended needs no signal.
                let _ = relay::send(child.id(), incoming.signal);
            }
        }
        if let Some(status) = child.try_wait().context("cannot wait for the command")? {
            return Ok(status);
        }
        // Without a pidfd, as on kernels before 5.3, it looks for the end now and then.
        let patience = Duration::from_millis(if end.is_some() { 60_000 } else { 50 });
        wait_readable([Some(signals.as_fd()), end.as_ref().map(AsFd::as_fd)], patience)?;
    }
}
