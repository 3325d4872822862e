//! Child processes of becalm that run becalm like a user: steps of a campaign, cells of a sweep.

use std::env;
use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use becalm_linux::relay::{self, Relay};
use becalm_linux::signals::{process_end, wait_readable};
use becalm_units::fault::{self, Context};

/// The variable that names a single file of defaults to read instead of the usual ones; if empty, no default is read, neither from files
/// nor from the environment. becalm sets it for child processes of its own, and so do its scripts.
pub const SWITCH: &str = "BECALM_CONFIG";

/// A becalm process like this one, not started yet: the same program, without defaults because its caller passes all options. Its caller
/// reports its errors, too. Fails if the program's own file is not found.
pub fn becalm() -> fault::Result<Command> {
    let mut command = Command::new(env::current_exe().context("cannot find becalm's own program")?);
    without_defaults(&mut command);
    Ok(command)
}

/// Makes a becalm, and its children, ignore defaults.
pub fn without_defaults(command: &mut Command) {
    command.env(SWITCH, "");
}

/// Waits for a becalm and passes terminating signals on; returns its status, and the number of the signal, if any.
pub fn attend(mut child: Child, signals: &Relay) -> io::Result<(ExitStatus, Option<i32>)> {
    let end = process_end(child.id()).ok();
    let mut stopped = None;
    loop {
        while let Some(incoming) = signals.take() {
            if !relay::ends(incoming.signal) {
                continue;
            }
            stopped = Some(incoming.signal);
            // Keys at the terminal signal the child as well. A child that has just ended needs no signal.
            if !incoming.by_kernel {
                let _ = relay::send(child.id(), incoming.signal);
            }
        }
        if let Some(status) = child.try_wait()? {
            return Ok((status, stopped));
        }
        // Without a descriptor for its end, as on kernels before 5.3, poll.
        let patience = Duration::from_millis(if end.is_some() { 60_000 } else { 50 });
        wait_readable([Some(signals.as_fd()), end.as_ref().map(AsFd::as_fd)], patience)?;
    }
}
