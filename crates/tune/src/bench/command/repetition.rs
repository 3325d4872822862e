//! One repetition of the command.

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use becalm_linux::relay::{self, Relay};
use becalm_linux::signals::{process_end, wait_readable};
use becalm_linux::usage::cpu_time_of_children;
use becalm_units::Nanos;
use becalm_units::fault::{Context, Result};

use super::observer::{Lost, Observer};
use crate::bench::repetitions::Repetition;

/// The number of buffers that wake the loop when they fill up.
const FILLING: usize = 6;

/// How often to empty the buffers, while the processes in them still exist.
const LOOK: Duration = Duration::from_millis(20);

/// How often to look for the end of the process without a pidfd, as on kernels before 5.3.
const OFTEN: Duration = Duration::from_millis(1);

/// Runs the command once. Also returns the number of a signal that ended it from outside, which means that no further run is wanted. Fails if the
/// command cannot be started or waited for, or the trace cannot be read.
pub fn run(
    mut command: Command,
    program: &str,
    observer: &mut Observer,
    signals: &Relay,
) -> Result<(Repetition, Option<i32>)> {
    let before = cpu_time_of_children();
    observer.begin()?;
    let begun = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start '{program}'"))?;
    let (stopped, time) = attend(&mut child, begun, observer, signals)?;
    // A process keeps its data in /proc until it is waited for.
    let lost = observer.end(child.id())?;
    let status = child.wait().context("cannot wait for the command")?;
    let after = cpu_time_of_children();
    let Lost { lost, interruptions, lost_events, sources } = lost;
    let exit_code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    let run = Repetition {
        time_ns: i64::try_from(time.as_nanos()).unwrap_or(i64::MAX),
        user_ns: (after.0 - before.0).get(),
        system_ns: (after.1 - before.1).get(),
        lost_ns: lost.map(Nanos::get),
        interruptions,
        lost_events,
        sources,
        exit_code: u8::try_from(exit_code).unwrap_or(1),
    };
    Ok((run, stopped))
}

/// Waits for the end of the command, passes signals on, and empties buffers that fill up. Does not reap the command if the kernel has pidfds.
fn attend(
    child: &mut Child,
    begun: Instant,
    observer: &mut Observer,
    signals: &Relay,
) -> Result<(Option<i32>, Duration)> {
    let end = process_end(child.id()).ok();
    let mut stopped = None;
    loop {
        while let Some(incoming) = signals.take() {
            if relay::ends(incoming.signal) {
                stopped = Some(incoming.signal);
            }
            // The terminal sends a key's signal to the command as well.
            if !incoming.by_kernel {
                // A command that has just ended needs no signal.
                let _ = relay::send(child.id(), incoming.signal);
            }
        }
        let filling = observer.filling();
        let mut watched = [None; FILLING + 2];
        watched[0] = end.as_ref().map(AsFd::as_fd);
        watched[1] = Some(signals.as_fd());
        watched[2..].iter_mut().zip(&filling).for_each(|(place, fd)| *place = Some(*fd));
        let patience = if end.is_some() { LOOK } else { OFTEN };
        let ready = wait_readable(watched, patience)?;
        drop(filling);
        if ready[0] {
            return Ok((stopped, begun.elapsed()));
        }
        if end.is_none() && child.try_wait().context("cannot wait for the command")?.is_some() {
            return Ok((stopped, begun.elapsed()));
        }
        if ready[2..].contains(&true) || !ready.contains(&true) {
            observer.read()?;
        }
    }
}
