//! `becalm tune run`: a command on quiet CPUs, and everything as it was when it ends, however it ends.

use std::io::Write;
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
    Applied, CpusetPlace, Folder, Foreign, LiveMachine, Outcome, Owner, Plan, Restored, Restoring, TuneError, Whose,
    apply,
};
use becalm_units::Nanos;
use clap::Args;

use super::patience::restore_patiently;
use super::planning::{JournalArgs, PlanningArgs, explained, need_rights, plan, tell};
use super::verify::{Proof, TURNS};
use super::watcher::Watcher;
use crate::arguments::refuse_missing;
use crate::exit::{Exit, UsageError};
use crate::messages::say;
use crate::rights::CommandUserArgs;

/// For how long restoring is tried while another process holds the lock. Then it is left to the watcher.
const PATIENCE: Duration = Duration::from_secs(3);

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

    /// Record the CPUs before and inside, three times by turns, and say what changed; the settings are changed and restored each time
    #[arg(long)]
    verify: bool,

    /// How long each side is recorded, all three recordings together
    #[arg(long, value_name = "TIME", default_value = "5s", requires = "verify")]
    verify_duration: Nanos,

    /// Keep the recordings in this folder, as before-1.becalm to inside-3.becalm
    #[arg(long, value_name = "DIR", requires = "verify")]
    verify_output: Option<PathBuf>,

    /// Say nothing but what went wrong, and of changes that were refused only how many
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    command_user: CommandUserArgs,

    /// The command, which runs as the user who called sudo where it was called; with --verify it may be left out
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
    let stage = Stage { args, machine: &machine, folder: &folder, plan: &plan };
    let Some(proof) = &proof else { return stage.play(Say::All, &mut |signals| stage.command(signals)) };
    for turn in 0..TURNS {
        proof.before(turn)?;
        let words = if turn == 0 { Say::All } else { Say::Nothing };
        let is_last = turn + 1 == TURNS;
        let exit = stage.play(words, &mut |signals| {
            proof.inside(turn, stage.group().as_deref(), args.priority, signals)?;
            if !is_last {
                // Whoever asks for the end does not want another turn.
                return Ok(signals.take().map_or(Exit::Done, |incoming| of_signal(incoming.signal)));
            }
            // Standard output is the command's.
            proof.print(args.command.is_empty(), out)?;
            stage.command(signals)
        })?;
        if is_last || exit != Exit::Done {
            return Ok(exit);
        }
    }
    Ok(Exit::Done)
}

/// How much is said of what was changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Say {
    All,
    /// As it was said in an earlier turn.
    Nothing,
}

/// What is changed, and for what.
struct Stage<'a> {
    args: &'a TuneRunArgs,
    machine: &'a LiveMachine,
    folder: &'a Folder,
    plan: &'a Plan,
}

impl Stage<'_> {
    /// Changes the settings, does something, and restores them.
    fn play(&self, words: Say, act: &mut dyn FnMut(&Relay) -> anyhow::Result<Exit>) -> anyhow::Result<Exit> {
        let Self { args, machine, folder, plan } = *self;
        let owner = Owner::this_process(machine, true)?;
        let watcher = Some(Watcher::start(folder, &owner)?);
        // What is changed by then is restored when this goes; a journal of others is not touched.
        let tuned = Tuned { machine, folder, owner: &owner, watcher };
        let signals = Relay::block().context("cannot block signals")?;
        let applied = apply(machine, folder, plan, &owner, &mut |_| ())
            .map_err(|error| explained(machine, folder, error, false))?;
        if words == Say::All {
            self.tell(&applied);
        }
        check_refused(&applied, args.require)?;
        let ended = act(&signals);
        let restored = tuned.restore();
        ending(ended, restored)
    }

    /// Says what could not be changed, and what is to be known of the plan.
    fn tell(&self, applied: &Applied) {
        if self.args.quiet {
            return say_how_many_refused(applied);
        }
        for (change, why) in applied.refused() {
            say(format_args!("{}: {} stays as it is: {why}", change.family, change.knob));
        }
        self.plan.notes.iter().for_each(|note| say(format_args!("{}: {}", note.family, note.text)));
    }

    /// The group in which programs on the CPUs run, if there is one.
    fn group(&self) -> Option<PathBuf> {
        match CpusetPlace::find(self.machine) {
            CpusetPlace::Group(group) => Some(group),
            CpusetPlace::Cpus | CpusetPlace::Slice(_) => None,
        }
    }

    /// Runs the command in its place, if there is one.
    fn command(&self, signals: &Relay) -> anyhow::Result<Exit> {
        let Self { args, machine, plan, .. } = *self;
        let Some((program, arguments)) = args.command.split_first() else { return Ok(Exit::Done) };
        let user = args.command_user.user();
        let place = CpusetPlace::find(machine);
        let group = self.group();
        let mut command = match &place {
            CpusetPlace::Slice(slice) => {
                let mut command = Command::new("systemd-run");
                command.args(["--scope", "--quiet", "--collect", &format!("--slice={slice}")]);
                if let Some(user) = &user {
                    // Only root may make a scope, so it is systemd that changes the user.
                    user.equip(&mut command);
                    command.args([format!("--uid={}", user.uid), format!("--gid={}", user.gid)]);
                }
                command.args(["--", program]);
                command
            }
            _ => Command::new(program),
        };
        command.args(arguments);
        // In a slice it is systemd that chooses the CPUs; before that, the process may not have them.
        let own = !matches!(place, CpusetPlace::Slice(_));
        let policy = Some(args.priority).filter(|priority| *priority != Policy::Other);
        let start = ProgramStart {
            group: group.as_deref(),
            cpus: own.then_some(&plan.cpus),
            policy,
            user: user.as_ref().filter(|_| own),
        };
        begin_in(&mut command, start, Some(signals))?;
        let child = command
            .spawn()
            .with_context(|| format!("cannot start '{program}' on CPU {} in the class {}", plan.cpus, args.priority))?;
        let status = attend(child, signals)?;
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => Exit::As(u8::try_from(code).unwrap_or(1)),
            (None, signal) => of_signal(signal.unwrap_or(0)),
        })
    }
}

/// How it ended, and whether all was restored.
fn ending(ended: anyhow::Result<Exit>, restored: anyhow::Result<()>) -> anyhow::Result<Exit> {
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
    // What was so already is none of them.
    if applied.count(Outcome::Changed) == 0 {
        anyhow::bail!("none of the changes could be made, so the command was not run; {}: {why}", change.knob);
    }
    Ok(())
}

/// Says in one line what is said change by change where more may be said.
fn say_how_many_refused(applied: &Applied) {
    let refused = applied.count(Outcome::Refused) + applied.count(Outcome::LeftOut);
    if refused > 0 {
        let were = if refused == 1 { "was" } else { "were" };
        say(format_args!(
            "{refused} of {} changes {were} refused, so that the CPUs are less quiet than planned; without --quiet they are named",
            applied.changes.len()
        ));
    }
}

/// The exit code of what a signal ended.
fn of_signal(signal: i32) -> Exit {
    Exit::As(128 + u8::try_from(signal).unwrap_or(0))
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
    /// As long as nothing is restored.
    watcher: Option<Watcher>,
}

impl Tuned<'_> {
    /// Restores, and says what could not be.
    fn restore(mut self) -> anyhow::Result<()> {
        let restored =
            self.put_back().context("the settings are not restored; the process that watches tries again")?;
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

    /// Restores. Where that fails the watcher goes on when this process has ended.
    fn put_back(&mut self) -> Result<Option<Restored>, TuneError> {
        let watcher = self.watcher.take();
        let restoring = Restoring { whose: Whose::Process(self.owner), foreign: Foreign::Leave };
        let restored = restore_patiently(self.machine, self.folder, restoring, PATIENCE)?;
        if let Some(watcher) = watcher {
            watcher.dismiss();
        }
        Ok(restored)
    }
}

impl Drop for Tuned<'_> {
    fn drop(&mut self) {
        if self.watcher.is_some()
            && let Err(error) = self.put_back()
        {
            say(format_args!("the settings are not restored; the process that watches tries again: {error}"));
        }
    }
}
