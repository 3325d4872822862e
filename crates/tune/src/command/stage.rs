//! Makes the CPUs quiet around an action, and restores everything when it ends, however it ends.

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
use becalm_units::{counted, plural};

use super::patience::restore_patiently;
use super::planning::{explained, say_notes, tell};
use super::watcher::Watcher;
use crate::report::refusal;
use crate::{
    Applied, CpusetPlace, Folder, Foreign, LiveMachine, Outcome, Owner, Plan, RestoreOptions, Restored, TuneError,
    Whose, apply,
};

/// How long to try restoring while another process holds the lock. Then it is left to the watcher.
const PATIENCE: Duration = Duration::from_secs(3);

/// How much to report about the changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// Every refused change, and the notes of the plan.
    All,
    /// Nothing, because an earlier turn reported it.
    Nothing,
}

/// A plan with the circumstances of its application.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    /// The machine to change.
    pub machine: &'a LiveMachine,
    /// The directory of the journal.
    pub folder: &'a Folder,
    /// The changes.
    pub plan: &'a Plan,
    /// Whether to do nothing unless every change could be made.
    pub require: bool,
    /// Where refused changes are listed, if only their number is to be reported.
    pub quiet: Option<&'static str>,
}

impl Stage<'_> {
    /// Changes the settings, runs `act`, and restores them. Fails if the settings cannot be changed or restored, or `act` fails.
    pub fn play(&self, words: Say, act: &mut dyn FnMut(&Relay) -> fault::Result<Exit>) -> fault::Result<Exit> {
        let signals = Relay::block().context("cannot block signals")?;
        let tuned = self.tune(words)?;
        let ended = act(&signals);
        let restored = tuned.restore();
        ending(ended, restored)
    }

    /// Changes the settings until the result is restored or dropped. Signals must be blocked. Fails if they cannot be changed; changes made until
    /// then are restored.
    pub fn tune(&self, words: Say) -> fault::Result<Tuned<'_>> {
        let Self { machine, folder, plan, require, .. } = *self;
        let owner = Owner::this_process(machine, true)?;
        let watcher = Some(Watcher::start(folder, &owner)?);
        // Dropping it restores the changes made until then; it does not touch foreign journals.
        let tuned = Tuned { machine, folder, owner, watcher };
        let applied = apply(machine, folder, plan, &tuned.owner, &mut |_| ())
            .map_err(|error| explained(machine, folder, error, false))?;
        if words == Say::All {
            self.tell(&applied);
        }
        check_refused(&applied, require)?;
        Ok(tuned)
    }

    /// Reports refused changes and the notes of the plan.
    fn tell(&self, applied: &Applied) {
        if let Some(named) = self.quiet {
            return say_how_many_refused(applied, named);
        }
        for (change, why) in applied.refused() {
            say(format_args!("{}", refusal(change, why)));
        }
        say_notes(self.plan);
    }

    /// The group for programs on the CPUs, if there is one.
    pub fn group(&self) -> Option<PathBuf> {
        match CpusetPlace::find(self.machine) {
            CpusetPlace::Group(group) => Some(group),
            CpusetPlace::Cpus | CpusetPlace::Slice(_) => None,
        }
    }

    /// A command that starts in the place for programs on the CPUs, in this scheduling class and as this user. Fails if its path contains a zero
    /// byte.
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
                    // Only root may create a scope, so systemd changes the user.
                    user.equip(&mut command);
                    command.args([format!("--uid={}", user.uid), format!("--gid={}", user.gid)]);
                }
                command.args(["--", program]);
                command
            }
            _ => Command::new(program),
        };
        // In a slice systemd sets the CPUs; the process may not have them before.
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

/// The outcome of the action and of restoring. Fails if either failed.
pub fn ending(ended: fault::Result<Exit>, restored: fault::Result<()>) -> fault::Result<Exit> {
    match (ended, restored) {
        // The exit code reports the command's result, a message what was not restored.
        (Ok(Exit::As(code @ 1..)), Err(error)) => {
            say(format_args!("{error}"));
            Ok(Exit::As(code))
        }
        (ended, restored) => restored.and(ended),
    }
}

/// Refuses to run a command if no change, or not every required one, could be made.
fn check_refused(applied: &Applied, all: bool) -> fault::Result<()> {
    let Some((change, why)) = applied.refused().next() else { return Ok(()) };
    let why = refusal(change, why);
    if all {
        let changes = counted(applied.count(Outcome::Refused) as u64, "change was", "changes were");
        fault::bail!("{changes} refused, and --require needs all of them; {why}");
    }
    // Settings that already had their value do not count.
    if applied.count(Outcome::Changed) == 0 {
        fault::bail!("all changes were refused, so the command was not run; {why}");
    }
    Ok(())
}

/// Reports in one line how many changes were refused, and where they are listed.
fn say_how_many_refused(applied: &Applied, named: &str) {
    let refused = applied.count(Outcome::Refused) + applied.count(Outcome::LeftOut);
    // If all were refused, that is an error.
    if refused > 0 && applied.count(Outcome::Changed) > 0 {
        let (all, were) = (applied.changes.len(), plural(refused as u64, "was", "were"));
        say(format_args!(
            "{refused} of {all} changes {were} refused, so the CPUs may be noisier than planned. {named}"
        ));
    }
}

/// Settings changed by this process, restored whatever happens.
pub struct Tuned<'a> {
    machine: &'a LiveMachine,
    folder: &'a Folder,
    owner: Owner,
    /// `None` once restoring has started.
    watcher: Option<Watcher>,
}

impl Tuned<'_> {
    /// Restores, and reports failures. Fails if not all could be restored.
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
                "not all settings could be restored. To overwrite what other programs changed: becalm tune restore --force; to keep \
                 it: becalm tune restore --keep"
            );
        }
        Ok(())
    }

    /// Restores. If that fails, the watcher continues after the end of this process.
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
