//! The CPUs made quiet around something: changed, and everything as it was when it ends, however it ends.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use becalm_command::Exit;
use becalm_command::messages::say;
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::relay::Relay;
use becalm_linux::rights::User;
use becalm_linux::sched::Policy;
use becalm_units::fault::{self, Context};

use super::patience::restore_patiently;
use super::planning::{explained, tell};
use super::watcher::Watcher;
use crate::{
    Applied, CpusetPlace, Folder, Foreign, LiveMachine, Outcome, Owner, Plan, RestoreOptions, Restored, TuneError,
    Whose, apply,
};

/// For how long restoring is tried while another process holds the lock. Then it is left to the watcher.
const PATIENCE: Duration = Duration::from_secs(3);

/// How much is said of what was changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// Every change that was refused, and what is to be known of the plan.
    All,
    /// As it was said in an earlier turn.
    Nothing,
}

/// What is changed, and for what.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// Where it is changed.
    pub machine: &'a LiveMachine,
    /// Where the journal lies.
    pub folder: &'a Folder,
    /// What is changed.
    pub plan: &'a Plan,
    /// Whether nothing is done unless every change could be made.
    pub require: bool,
    /// Where changes that were refused are named, if only their number is to be said.
    pub quiet: Option<&'static str>,
}

impl Stage<'_> {
    /// Changes the settings, does something, and restores them. Fails if the settings cannot be changed or not restored, and what was done.
    pub fn play(&self, words: Say, act: &mut dyn FnMut(&Relay) -> fault::Result<Exit>) -> fault::Result<Exit> {
        let signals = Relay::block().context("cannot block signals")?;
        let tuned = self.tune(words)?;
        let ended = act(&signals);
        let restored = tuned.restore();
        ending(ended, restored)
    }

    /// Changes the settings until what is returned is restored or goes. Signals must be blocked. Fails if they cannot be changed; what was
    /// is restored by then.
    pub fn tune(&self, words: Say) -> fault::Result<Tuned<'_>> {
        let Self { machine, folder, plan, require, .. } = *self;
        let owner = Owner::this_process(machine, true)?;
        let watcher = Some(Watcher::start(folder, &owner)?);
        // What is changed by then is restored when this goes; a journal of others is not touched.
        let tuned = Tuned { machine, folder, owner, watcher };
        let applied = apply(machine, folder, plan, &tuned.owner, &mut |_| ())
            .map_err(|error| explained(machine, folder, error, false))?;
        if words == Say::All {
            self.tell(&applied);
        }
        check_refused(&applied, require)?;
        Ok(tuned)
    }

    /// Says what could not be changed, and what is to be known of the plan.
    fn tell(&self, applied: &Applied) {
        if let Some(named) = self.quiet {
            return say_how_many_refused(applied, named);
        }
        for (change, why) in applied.refused() {
            say(format_args!("{}: {} stays as it is: {why}", change.family, change.knob));
        }
        self.plan.notes.iter().for_each(|note| say(format_args!("{}: {}", note.family, note.text)));
    }

    /// The group in which programs on the CPUs run, if there is one.
    pub fn group(&self) -> Option<PathBuf> {
        match CpusetPlace::find(self.machine) {
            CpusetPlace::Group(group) => Some(group),
            CpusetPlace::Cpus | CpusetPlace::Slice(_) => None,
        }
    }

    /// A command that begins in the place of programs on the CPUs, in this class and as this user. Fails if the path of the place holds a
    /// zero.
    pub fn prepare(
        &self,
        program: &str,
        policy: Policy,
        user: Option<&User>,
        signals: &Relay,
    ) -> fault::Result<Command> {
        let place = CpusetPlace::find(self.machine);
        let group = self.group();
        let mut command = match &place {
            CpusetPlace::Slice(slice) => {
                let mut command = Command::new("systemd-run");
                command.args(["--scope", "--quiet", "--collect", &format!("--slice={slice}")]);
                if let Some(user) = user {
                    // Only root may make a scope, so it is systemd that changes the user.
                    user.equip(&mut command);
                    command.args([format!("--uid={}", user.uid), format!("--gid={}", user.gid)]);
                }
                command.args(["--", program]);
                command
            }
            _ => Command::new(program),
        };
        // In a slice it is systemd that chooses the CPUs; before that, the process may not have them.
        let own = !matches!(place, CpusetPlace::Slice(_));
        let policy = Some(policy).filter(|policy| *policy != Policy::Other);
        let cpus = own.then_some(&self.plan.cpus);
        begin_in(
            &mut command,
            ProgramStart { group: group.as_deref(), cpus, policy, user: user.filter(|_| own) },
            Some(signals),
        )?;
        Ok(command)
    }
}

/// How it ended, and whether all was restored. Fails if either failed.
pub fn ending(ended: fault::Result<Exit>, restored: fault::Result<()>) -> fault::Result<Exit> {
    match (ended, restored) {
        // What the command ended with is said by the exit code, what was not restored by a message.
        (Ok(Exit::As(code @ 1..)), Err(error)) => {
            say(format_args!("{error}"));
            Ok(Exit::As(code))
        }
        (ended, restored) => restored.and(ended),
    }
}

/// Refuses to run a command on settings of which none, or not all that are required, could be changed.
fn check_refused(applied: &Applied, all: bool) -> fault::Result<()> {
    let Some((change, why)) = applied.refused().next() else { return Ok(()) };
    let refused = applied.count(Outcome::Refused);
    let changes = if refused == 1 { "1 change".to_owned() } else { format!("{refused} changes") };
    if all {
        fault::bail!("{changes} could not be made, and --require asks for all; {}: {why}", change.knob);
    }
    // What was so already is none of them.
    if applied.count(Outcome::Changed) == 0 {
        fault::bail!("none of the changes could be made, so the command was not run; {}: {why}", change.knob);
    }
    Ok(())
}

/// Says in one line what is said change by change where more may be said, and where that is.
fn say_how_many_refused(applied: &Applied, named: &str) {
    let refused = applied.count(Outcome::Refused) + applied.count(Outcome::LeftOut);
    if refused > 0 {
        let were = if refused == 1 { "was" } else { "were" };
        say(format_args!(
            "{refused} of {} changes {were} refused, so that the CPUs are less quiet than planned; {named}",
            applied.changes.len()
        ));
    }
}

/// Settings that this process changed, which are restored whatever happens.
pub struct Tuned<'a> {
    machine: &'a LiveMachine,
    folder: &'a Folder,
    owner: Owner,
    /// As long as nothing is restored.
    watcher: Option<Watcher>,
}

impl Tuned<'_> {
    /// Restores, and says what could not be. Fails if not all could be restored.
    pub fn restore(mut self) -> fault::Result<()> {
        let restored =
            self.put_back().context("the settings are not restored; the process that watches tries again")?;
        restored.iter().for_each(tell);
        if let Some(restored) = restored.filter(|restored| !restored.is_complete()) {
            for attempt in &restored.changes {
                let Some(why) = &attempt.why else { continue };
                let (change, before, after) = (&attempt.change, &attempt.before, &attempt.after);
                say(format_args!("{}: {} is {after}, not {before}: {why}", change.family, change.knob));
            }
            fault::bail!(
                "not all settings could be restored; becalm tune restore --force brings back also what others changed, and \
                 --keep leaves it as it is"
            );
        }
        Ok(())
    }

    /// Restores. Where that fails the watcher goes on when this process has ended.
    fn put_back(&mut self) -> Result<Option<Restored>, TuneError> {
        let watcher = self.watcher.take();
        let restoring = RestoreOptions { whose: Whose::Process(&self.owner), foreign: Foreign::Leave };
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
