//! A child process that shares this one's pages until they are written to.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::ProbeError;

/// A forked child. It ends when this is dropped, or this process ends.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    /// Whether it has ended and was reaped, so its number may belong to another process.
    is_over: bool,
}

impl Child {
    /// Forks a child that sleeps: while it lives, it shares this process's pages, and each first write to one copies it.
    pub fn asleep() -> Result<Self, ProbeError> {
        let asleep = Self::fork(|| {
            loop {
                // SAFETY: takes nothing, and returns only after a signal.
                unsafe { libc::pause() };
            }
        });
        asleep.map_err(|source| ProbeError::new("fork a process", source))
    }

    /// Forks a child that runs `body` and exits. The child has one thread, and whatever another thread of this process held at the fork remains held
    /// there: so `body` may only make system calls.
    pub(crate) fn fork(body: impl FnOnce()) -> io::Result<Self> {
        // SAFETY: the child calls nothing but what is safe between fork and exec in a process of several threads
        // (signal-safety(7)): prctl, getppid, the body's system calls, and _exit, which runs no destructors.
        unsafe {
            let parent = libc::getpid();
            match libc::fork() {
                -1 => Err(io::Error::last_os_error()),
                0 => {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    // If the parent died before that call, nothing would end the child.
                    if libc::getppid() == parent {
                        body();
                    }
                    libc::_exit(0)
                }
                pid => Ok(Self { pid: Pid::from_raw_unchecked(pid), is_over: false }),
            }
        }
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        if self.is_over {
            return Ok(());
        }
        let ended = retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::empty()))?;
        self.is_over = true;
        let exited = ended.is_some_and(|(_, status)| status.exited());
        if exited { Ok(()) } else { Err(io::Error::other("a process was killed")) }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // While the child is not waited for, its number is no other process's.
        if !self.is_over {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = self.wait();
        }
    }
}

/// Both ends of a new pipe: for reading, for writing.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// The byte that goes through the pipes, back and forth; any other means the end.
pub(crate) const BALL: u8 = 1;
pub(crate) const END: u8 = 0;

/// Writes one byte to a pipe; returns whether it succeeded.
#[inline(always)]
pub(crate) fn put(pipe: &OwnedFd, byte: u8) -> bool {
    // SAFETY: one byte is written from a variable.
    unsafe { libc::write(pipe.as_raw_fd(), (&raw const byte).cast(), 1) == 1 }
}

/// Reads one byte from a pipe, waiting for it; returns whether it is the ball.
#[inline(always)]
pub(crate) fn take(pipe: &OwnedFd) -> bool {
    let mut byte = END;
    // SAFETY: one byte is read into a variable that has room for it.
    unsafe { libc::read(pipe.as_raw_fd(), (&raw mut byte).cast(), 1) == 1 && byte == BALL }
}
