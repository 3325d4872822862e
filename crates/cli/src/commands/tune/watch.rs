//! The watcher of `becalm tune run`: a process that restores the settings should becalm be killed.
//!
//! It reads from a pipe whose other end only becalm holds; the kernel closes that however becalm ends. A becalm that lives to
//! restore writes to it first. Without that, the watcher restores what the becalm that started it changed, and nothing else. It has a session of its own and all signals blocked, as it has to
//! outlive what its maker is sent.

use std::io::{self, Read};
use std::thread;
use std::time::Duration;

use becalm_tune::{Foreign, JournalError, LiveMachine, Owner, Restoring, TuneError, restore};
use clap::Args;

use super::planning::JournalArgs;
use crate::exit::Exit;
use crate::messages::say;

/// How often restoring is tried, 100 ms apart, while the dying process is still there or holds the lock.
const ATTEMPTS: u32 = 100;

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

/// Waits, and restores what is left to be restored.
///
/// # Errors
/// If the journal cannot be used.
pub fn run(args: &WatchArgs) -> anyhow::Result<Exit> {
    let mut word = Vec::new();
    // Whatever ends the pipe is its end.
    let _ = io::stdin().read_to_end(&mut word);
    if !word.is_empty() {
        return Ok(Exit::Done);
    }
    let (machine, folder) = (LiveMachine::new(), args.journal.folder());
    let (pid, start_ticks, boot_id) = (args.pid, args.start_ticks, args.boot_id.clone());
    let owner = Owner { pid, start_ticks, boot_id, runs_command: true };
    let restoring = Restoring { owner: Some(&owner), foreign: Foreign::Leave };
    for _ in 0..ATTEMPTS {
        match restore(&machine, &folder, restoring, &mut |_| ()) {
            Ok(None) => return Ok(Exit::Done),
            Ok(Some(restored)) if restored.is_complete() => {
                say(format_args!("becalm was killed while its command ran; the settings are as they were"));
                return Ok(Exit::Done);
            }
            Ok(Some(_)) => {
                anyhow::bail!(
                    "becalm was killed while its command ran, and not all settings could be restored: becalm tune status"
                )
            }
            Err(TuneError::InUse { .. } | TuneError::Journal(JournalError::Locked { .. })) => {
                thread::sleep(Duration::from_millis(100));
            }
            Err(error) => return Err(error.into()),
        }
    }
    anyhow::bail!("the settings are not restored: becalm tune restore does it")
}
