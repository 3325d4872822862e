//! A child process that shares this one's pages until they are written to.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::ProbeError;

/// A forked child. It ends when this is dropped, or this process ends.
#[derive(Debug)]
pub struct Child {
    pid: libc::pid_t,
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
                pid => Ok(Self { pid, is_over: false }),
            }
        }
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        let mut status = 0;
        // SAFETY: the child is ours and not waited for yet; the kernel writes one number.
        while !self.is_over && unsafe { libc::waitpid(self.pid, &raw mut status, 0) } != self.pid {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINTR) {
                return Err(error);
            }
        }
        self.is_over = true;
        if libc::WIFEXITED(status) { Ok(()) } else { Err(io::Error::other("a process was killed")) }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // SAFETY: the child is ours and not waited for yet, so its number is no other process's.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            while libc::waitpid(self.pid, std::ptr::null_mut(), 0) == -1
                && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
            {}
        }
    }
}

/// Both ends of a new pipe: for reading, for writing.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned these descriptors, and nothing else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
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
