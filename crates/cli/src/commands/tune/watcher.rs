//! How `becalm tune run` starts its watcher, `becalm tune watch`, and dismisses it.

use std::env;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use becalm_linux::placed::apart_from_signals;
use becalm_tune::{Folder, Owner};

/// What the watcher reads before the pipe ends if becalm was not killed.
const DISMISSED: &[u8] = b"done";

/// The watcher, as becalm sees it. On drop it is told that becalm lived to restore what it could, and waited for: it would
/// only try in vain, for as long as becalm is there, what becalm has left as others changed it.
#[derive(Debug)]
pub struct Watcher {
    process: Child,
}

impl Watcher {
    /// Starts it for what this owner will change.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(folder: &Folder, owner: &Owner) -> anyhow::Result<Self> {
        let own = env::current_exe().context("cannot find becalm's own program")?;
        let mut command = Command::new(own);
        command.args(["tune", "watch", "--journal"]).arg(folder.path());
        command.args(["--pid", &owner.pid.to_string(), "--start-ticks", &owner.start_ticks.to_string()]);
        command.args(["--boot-id", &owner.boot_id]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).current_dir("/");
        apart_from_signals(&mut command);
        let process =
            command.spawn().context("cannot start the process that restores the settings if becalm is killed")?;
        Ok(Self { process })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // One that is gone already needs no word.
        let _ = self.process.stdin.take().map(|mut pipe| pipe.write_all(DISMISSED));
        let _ = self.process.wait();
    }
}
