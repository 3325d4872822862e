//! The watcher of `becalm tune run`: a process that restores the settings should becalm be killed.
//!
//! It reads from a pipe whose other end only becalm holds; the kernel closes that however becalm ends. A becalm that has
//! restored writes to it first. Without that, the watcher restores what the becalm that started it changed, and nothing else.
//! It has a session of its own and all signals blocked, as it has to outlive what its maker is sent.

use std::io::{self, Read};
use std::time::Duration;

use becalm_command::Exit;
use becalm_command::messages::say;
use becalm_units::fault::{self, Context};
use clap::Args;

use super::patience::restore_patiently;
use super::planning::JournalArgs;
use crate::{Foreign, LiveMachine, Owner, RestoreOptions, Whose};

/// For how long restoring is tried while the dying process is still there, or any process holds the lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// Restore the settings when standard input ends
#[derive(Args, Debug)]
pub struct WatchArgs {
    #[command(flatten)]
    journal: JournalArgs,

    /// The process that changes the settings
    #[arg(long, value_name = "PID")]
    pid: i32,

    /// When that was started, in clock ticks since boot
    #[arg(long, value_name = "TICKS")]
    start_ticks: u64,

    /// In which boot of the machine
    #[arg(long, value_name = "ID")]
    boot_id: String,
}

/// Waits, and restores what is left to be restored. Fails if the journal cannot be used.
pub fn run(args: &WatchArgs) -> fault::Result<Exit> {
    let mut word = Vec::new();
    // Whatever ends the pipe is its end.
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
