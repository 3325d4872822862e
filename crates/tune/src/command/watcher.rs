//! Starts and dismisses `becalm tune watch`, the watcher of `becalm tune run`.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use becalm_command::child;
use becalm_command::messages::say;
use becalm_linux::placed::apart_from_signals;
use becalm_linux::stuck::wait_for_child;
use becalm_units::fault::{self, Context};

use crate::{Folder, Owner};

/// Sent through the pipe if the watcher has nothing left to do.
const DISMISSED: &[u8] = b"done";

/// How long to wait for its end. It has nothing left to do.
const PATIENCE: Duration = Duration::from_secs(3);

/// The watcher process. Unless dismissed, it restores becalm's changes as soon as becalm has ended.
#[derive(Debug)]
pub struct Watcher {
    process: Child,
}

impl Watcher {
    /// Starts it for the future changes of this owner. Fails if it cannot be started.
    pub fn start(folder: &Folder, owner: &Owner) -> fault::Result<Self> {
        let mut command = child::becalm()?;
        command.args(["tune", "watch", "--journal"]).arg(folder.path());
        command.args(["--pid", &owner.pid.to_string(), "--start-ticks", &owner.start_ticks.to_string()]);
        command.args(["--boot-id", &owner.boot_id]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).current_dir("/");
        apart_from_signals(&mut command);
        let process =
            command.spawn().context("cannot start the process that restores the settings if becalm is killed")?;
        Ok(Self { process })
    }

    /// Reports that becalm has restored what it could, and waits for the watcher's end: foreign changes, it would leave as well.
    pub fn dismiss(mut self) {
        // A watcher that has ended needs no message.
        let _ = self.process.stdin.take().map(|mut pipe| pipe.write_all(DISMISSED));
        if let Err(stuck) = wait_for_child(self.process.id().cast_signed(), PATIENCE) {
            say(format_args!("the settings are restored, but their watcher has not ended: {stuck}"));
        }
    }
}
