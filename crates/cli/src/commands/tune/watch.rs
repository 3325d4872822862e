//! The watcher of `becalm tune run`: a process that restores the settings should becalm be killed.
//!
//! It reads from a pipe whose other end only becalm holds; the kernel closes that however becalm ends.

use std::env;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use becalm_tune::{Folder, JournalError, LiveMachine, TuneError, restore};
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
}

/// Waits, and restores what is left to be restored.
///
/// # Errors
/// If the journal cannot be used.
pub fn run(args: &WatchArgs) -> anyhow::Result<Exit> {
    // Nothing is written to the pipe; whatever ends it is its end.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let (machine, folder) = (LiveMachine::new(), args.journal.folder());
    for _ in 0..ATTEMPTS {
        match restore(&machine, &folder, false, &mut |_| ()) {
            Ok(None) => return Ok(Exit::Done),
            Ok(Some(restored)) if restored.is_complete() => {
                say(format_args!("becalm was killed while its command ran; the settings are as they were"));
                return Ok(Exit::Done);
            }
            Ok(Some(_)) => {
                anyhow::bail!("becalm was killed while its command ran, and not all settings could be restored")
            }
            Err(TuneError::InUse { .. } | TuneError::Journal(JournalError::Locked { .. })) => {
                thread::sleep(Duration::from_millis(100));
            }
            Err(error) => return Err(error.into()),
        }
    }
    anyhow::bail!("the settings are not restored: becalm tune restore does it")
}

/// The watcher, as becalm sees it. On drop it is told that all is well, and waited for.
#[derive(Debug)]
pub struct Watcher {
    process: Child,
}

impl Watcher {
    /// Starts it, apart from the terminal's signals.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(folder: &Folder) -> anyhow::Result<Self> {
        let own = env::current_exe().context("cannot find becalm's own program")?;
        let mut command = Command::new(own);
        command.args(["tune", "watch", "--journal"]).arg(folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).current_dir("/");
        let process =
            command.spawn().context("cannot start the process that restores the settings if becalm is killed")?;
        Ok(Self { process })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It says itself what went wrong.
        let _ = self.process.wait();
    }
}
