//! The command that runs during a recording.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::sched::{self, Policy};
use becalm_linux::signals::{self, StopSignals};
use becalm_units::CpuList;

use crate::plan::PlannedCommand;

/// How long a command gets to exit after it was asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// An optional command that runs during a recording. Dropping it ends the command.
#[derive(Debug)]
pub struct Companion {
    child: Option<Child>,
    /// Becomes readable when it exits.
    ended: Option<OwnedFd>,
    status: Option<ExitStatus>,
}

impl Companion {
    /// Starts the command, if any, on the process's original CPUs, in the default scheduling class and with the signals unblocked that becalm
    /// handles. A separate thread starts it, because a new process inherits all of this from its parent thread. The error contains its name and the
    /// reason.
    pub fn start(
        command: Option<PlannedCommand>,
        allowed: &CpuList,
        stop: &StopSignals,
    ) -> Result<Self, (String, io::Error)> {
        let Some(PlannedCommand { mut command, written }) = command else {
            return Ok(Self { child: None, ended: None, status: None });
        };
        let name = written.first().cloned().unwrap_or_default();
        let started = thread::scope(|scope| {
            let starter = thread::Builder::new().spawn_scoped(scope, || {
                let _ = sched::set_policy(Policy::Other);
                let _ = sched::set_affinity(allowed);
                stop.let_through(|| command.spawn())
            })?;
            starter.join().unwrap_or_else(|_| Err(io::Error::other("its starter failed")))
        });
        let child = started.map_err(|error| (name, error))?;
        // Without a descriptor (kernels before 5.3), polling finds its end.
        let ended = signals::process_end(child.id()).ok();
        Ok(Self { child: Some(child), ended, status: None })
    }

    /// A descriptor that becomes readable when it exits, if the kernel supports that.
    pub fn end_fd(&self) -> Option<BorrowedFd<'_>> {
        self.ended.as_ref().map(AsFd::as_fd)
    }

    /// Whether a command was started and has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.is_some() && !self.has_ended()
    }

    /// Waits for its end and returns its exit status; `None` without a command.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        if let Some(child) = &mut self.child
            && self.status.is_none()
        {
            self.status = child.wait().ok();
        }
        self.status
    }

    /// The number of its process, if it was started.
    pub fn number(&self) -> Option<i32> {
        self.child.as_ref().and_then(|child| i32::try_from(child.id()).ok())
    }

    /// Whether a command was started and has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none()
            && let Some(child) = &mut self.child
        {
            self.status = child.try_wait().ok().flatten();
        }
        self.child.is_some() && self.status.is_some()
    }

    /// Ends it if it still runs, first with a polite signal, and returns its exit status; `None` without a command.
    pub fn end(&mut self) -> Option<ExitStatus> {
        if self.child.is_some() && !self.has_ended() {
            let give_up = Instant::now() + PATIENCE;
            if let Some(child) = &self.child {
                let _ = signals::terminate(child.id());
            }
            while !self.has_ended() && Instant::now() < give_up {
                std::thread::sleep(Duration::from_millis(10));
            }
            if let Some(child) = &mut self.child
                && self.status.is_none()
            {
                // A process that changed its user cannot be killed, so this does not wait for it.
                if child.kill().is_ok() {
                    self.status = child.wait().ok();
                }
            }
        }
        self.child = None;
        self.status
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.end();
    }
}
