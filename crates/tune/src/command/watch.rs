//! The watcher of `becalm tune run`: a process that restores the settings if becalm is killed.
//!
//! It reads from a pipe whose other end only becalm has; the kernel closes that end however becalm ends. becalm writes to it first after restoring.
//! Otherwise, the watcher restores the changes of the becalm process that started it, and nothing else. It has its own session and blocks all
//! signals, because it must survive the signals sent to its parent.

use std::io::{self, Read};
use std::time::Duration;

use becalm_command::Exit;
use becalm_command::messages::say;
use becalm_units::fault::{self, Context};
use clap::Args;

use super::patience::restore_patiently;
use super::planning::JournalArgs;
use crate::{Foreign, LiveMachine, Owner, RestoreOptions, Whose};

/// How long to try restoring while the dying process still exists, or any process holds the lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// Restore the settings when standard input ends
#[derive(Args, Debug)]
pub struct WatchArgs {
    #[command(flatten)]
    journal: JournalArgs,

    /// Process that changes the settings
    #[arg(long, value_name = "PID")]
    pid: i32,

    /// Start of that process, in clock ticks since boot
    #[arg(long, value_name = "TICKS")]
    start_ticks: u64,

    /// Boot ID of the machine
    #[arg(long, value_name = "ID")]
    boot_id: String,
}

/// Waits, and restores what is left. Fails if the journal cannot be used.
pub fn run(args: &WatchArgs) -> fault::Result<Exit> {
    let mut word = Vec::new();
    // An error of the pipe means its end as well.
    let _ = io::stdin().read_to_end(&mut word);
    if !word.is_empty() {
        return Ok(Exit::Done);
    }
    let (machine, folder) = (LiveMachine::new(), args.journal.folder());
    let (pid, start_ticks, boot_id) = (args.pid, args.start_ticks, args.boot_id.clone());
    let owner = Owner { pid, start_ticks, boot_id, runs_command: true };
    let restoring = RestoreOptions { whose: Whose::Process(&owner), foreign: Foreign::Leave };
    let restored = restore_patiently(&machine, &folder, restoring, PATIENCE).context(
        "becalm ended before it had restored the settings, and they are not restored; becalm tune restore does it",
    )?;
    let Some(restored) = restored else { return Ok(Exit::Done) };
    fault::ensure!(
        restored.is_complete(),
        "becalm ended before it had restored the settings, and not all could be restored: becalm tune status"
    );
    say(format_args!("becalm ended before it had restored what it changed; the settings are as they were"));
    Ok(Exit::Done)
}
