//! `becalm tune run`: a command on quiet CPUs, and everything as it was when it ends, however it ends.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::Context;
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::relay::{self, Relay};
use becalm_linux::sched::Policy;
use becalm_linux::signals::{process_end, wait_readable};
use becalm_tune::{
    Applied, CpusetPlace, Folder, Foreign, LiveMachine, Outcome, Owner, Restored, Restoring, apply, restore,
};
use becalm_units::Nanos;
use clap::Args;

use super::planning::{JournalArgs, PlanningArgs, explained, need_rights, plan, tell};
use super::verify::Proof;
use super::watcher::Watcher;
use crate::arguments::refuse_missing;
use crate::exit::{Exit, UsageError};
use crate::messages::say;

/// Run a command on quiet CPUs, and have everything as it was when it ends
///
/// Applies the plan, runs the command on the CPUs, and restores: also if the command cannot be started, is killed, or becalm
/// itself is. Signals are passed on.
///
/// Exit code: that of the command, or 128 and the number of the signal that ended it; 1 if the command did well and not all could
/// be restored. If no change could be made, the command is not run.
#[derive(Args, Debug)]
pub struct TuneRunArgs {
    #[command(flatten)]
    planning: PlanningArgs,

    #[command(flatten)]
    journal: JournalArgs,

    /// The scheduling class of the command: other, batch, fifo:PRIORITY, rr:PRIORITY. A real-time one has the throttling of
    /// real-time threads turned off as well
    #[arg(long, value_name = "CLASS", default_value = "other")]
    priority: Policy,

    /// Do not run the command unless every change could be made
    #[arg(long)]
    require: bool,

    /// Record the CPUs before and inside, and say what changed
    #[arg(long)]
    verify: bool,

    /// How long each of these recordings is
    #[arg(long, value_name = "TIME", default_value = "5s", requires = "verify")]
    verify_duration: Nanos,

    /// Keep both recordings in this folder, as before.becalm and inside.becalm
    #[arg(long, value_name = "DIR", requires = "verify")]
    verify_output: Option<PathBuf>,

    /// Say nothing but what went wrong
    #[arg(short, long)]
    quiet: bool,

    /// The command; with --verify it may be left out
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Applies, runs, restores.
///
/// # Errors
/// If rights are missing, the request cannot be meant, something is changed already, or the command cannot be started. By then
/// everything is restored.
pub fn run(args: &TuneRunArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match args.command.first() {
        Some(program) => refuse_missing(program)?,
        None if args.verify => {}
        None => {
            return Err(UsageError("a command is missing: becalm tune run --cpus LIST -- COMMAND".to_owned()).into());
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
    if let Some(proof) = &proof {
        proof.before()?;
    }
    let owner = Owner::this_process(&machine, true)?;
    let watcher = Watcher::start(&folder, &owner)?;
    let signals = Relay::block().context("cannot block signals")?;
    // What is changed by then is restored when this goes; a journal of others is not touched.
    let tuned = Tuned { machine: &machine, folder: &folder, owner: &owner, restored: false };
    let applied = apply(&machine, &folder, &plan, &owner, &mut |_| ())
        .map_err(|error| explained(&machine, &folder, error, false))?;
    for (change, why) in applied.refused().filter(|_| !args.quiet) {
        say(format_args!("{}: {} stays as it is: {why}", change.family, change.knob));
    }
    check_refused(&applied, args.require)?;
    if !args.quiet {
        plan.notes.iter().for_each(|note| say(format_args!("{}: {}", note.family, note.text)));
    }
    let ended = inside(args, &plan.cpus, &machine, proof.as_ref(), &signals, out);
    let restored = tuned.restore();
    drop(watcher);
    match (ended, restored) {
        // What the command ended with is said by the exit code, what was not restored by a message.
        (Ok(Exit::As(code @ 1..)), Err(error)) => {
            say(format_args!("{error:#}"));
            Ok(Exit::As(code))
        }
        (ended, restored) => restored.and(ended),
    }
}

/// Refuses to run a command on settings of which none, or not all that are required, could be changed.
fn check_refused(applied: &Applied, all: bool) -> anyhow::Result<()> {
    let Some((change, why)) = applied.refused().next() else { return Ok(()) };
    let refused = applied.count(Outcome::Refused);
    let changes = if refused == 1 { "1 change".to_owned() } else { format!("{refused} changes") };
    if all {
        anyhow::bail!("{changes} could not be made, and --require asks for all; {}: {why}", change.knob);
    }
    if applied.count(Outcome::Changed) + applied.count(Outcome::Already) == 0 {
        anyhow::bail!("none of the changes could be made, so the command was not run; {}: {why}", change.knob);
    }
    Ok(())
}

/// What happens while the settings are changed.
fn inside(
    args: &TuneRunArgs,
    cpus: &becalm_units::CpuList,
    machine: &LiveMachine,
    proof: Option<&Proof>,
    signals: &Relay,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let place = CpusetPlace::find(machine);
    let group = match &place {
        CpusetPlace::Group(group) => Some(group.as_path()),
        CpusetPlace::Cpus | CpusetPlace::Slice(_) => None,
    };
    if let Some(proof) = proof {
        proof.inside(group, args.priority, signals)?;
        // Standard output is the command's.
        if args.command.is_empty() { proof.print(out)? } else { proof.print(&mut io::stderr())? }
    }
    let Some((program, arguments)) = args.command.split_first() else { return Ok(Exit::Done) };
    let mut command = match place {
        CpusetPlace::Slice(slice) => {
            let mut command = Command::new("systemd-run");
            command.args(["--scope", "--quiet", "--collect", &format!("--slice={slice}"), "--", program]);
            command
        }
        _ => Command::new(program),
    };
    command.args(arguments);
    // In a slice it is systemd that chooses the CPUs; before that, the process may not have them.
    let own = !matches!(place, CpusetPlace::Slice(_));
    let policy = Some(args.priority).filter(|priority| *priority != Policy::Other);
    begin_in(&mut command, ProgramStart { group, cpus: own.then_some(cpus), policy }, Some(signals))?;
    let child = command
        .spawn()
        .with_context(|| format!("cannot start '{program}' on CPU {cpus} in the class {}", args.priority))?;
    let status = attend(child, signals)?;
    Ok(Exit::As(match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        (None, signal) => 128 + u8::try_from(signal.unwrap_or(0)).unwrap_or(0),
    }))
}

/// Waits for the command, and passes signals on.
fn attend(mut child: Child, signals: &Relay) -> anyhow::Result<ExitStatus> {
    let end = process_end(child.id()).ok();
    loop {
        while let Some(incoming) = signals.take() {
            // What a key at the terminal sends, it sends to the command as well.
            if !incoming.by_kernel {
                // One that has just ended needs no signal.
                let _ = relay::send(child.id(), incoming.signal);
            }
        }
        if let Some(status) = child.try_wait().context("cannot wait for the command")? {
            return Ok(status);
        }
        // Without a descriptor for its end, as on kernels before 5.3, it is looked at now and then.
        let patience = Duration::from_millis(if end.is_some() { 60_000 } else { 50 });
        wait_readable([Some(signals.as_fd()), end.as_ref().map(AsFd::as_fd)], patience)?;
    }
}

/// Settings that this process changed, which are restored whatever happens.
struct Tuned<'a> {
    machine: &'a LiveMachine,
    folder: &'a Folder,
    owner: &'a Owner,
    restored: bool,
}

impl Tuned<'_> {
    /// Restores, and says what could not be.
    fn restore(mut self) -> anyhow::Result<()> {
        self.restored = true;
        let restored = self.put_back()?;
        restored.iter().for_each(tell);
        if let Some(restored) = restored.filter(|restored| !restored.is_complete()) {
            for attempt in &restored.changes {
                let Some(why) = &attempt.why else { continue };
                let (change, before, after) = (&attempt.change, &attempt.before, &attempt.after);
                say(format_args!("{}: {} is {after}, not {before}: {why}", change.family, change.knob));
            }
            anyhow::bail!(
                "not all settings could be restored; becalm tune restore --force brings back also what others changed, and \
                 --keep leaves it as it is"
            );
        }
        Ok(())
    }

    fn put_back(&self) -> anyhow::Result<Option<Restored>> {
        let restoring = Restoring { owner: Some(self.owner), foreign: Foreign::Leave };
        Ok(restore(self.machine, self.folder, restoring, &mut |_| ())?)
    }
}

impl Drop for Tuned<'_> {
    fn drop(&mut self) {
        if !self.restored
            && let Err(error) = self.put_back()
        {
            say(format_args!("the settings are not restored: {error}; becalm tune restore does it"));
        }
    }
}
