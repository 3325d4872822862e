//! A byte through a pipe: to oneself, and to another thread or process and back, which switches twice.

use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

use becalm_units::CpuId;

use super::ProbeError;
use super::child::{BALL, Child, END, pipe, put, take};
use crate::placed::Thread;
use crate::sched::Policy;

/// A pipe that its writer reads: the cost of the calls alone.
#[derive(Debug)]
pub struct Loopback(OwnedFd, OwnedFd);

impl Loopback {
    /// Opens the pipe.
    pub fn open() -> Result<Self, ProbeError> {
        let ends = pipe().map_err(|source| ProbeError::new("open a pipe", source))?;
        Ok(Self(ends.0, ends.1))
    }

    /// Writes a byte and reads it; returns whether both succeeded.
    #[inline(always)]
    pub fn round(&self) -> bool {
        put(&self.1, BALL) && take(&self.0)
    }
}

/// A thread or process that sends each byte back.
#[derive(Debug)]
pub struct Echo {
    there: OwnedFd,
    back: OwnedFd,
    thread: Option<JoinHandle<()>>,
    _child: Option<Child>,
}

impl Echo {
    /// In a thread pinned to a CPU. Fails if no descriptor or thread is left, or it cannot be placed there.
    pub fn thread(cpu: CpuId, policy: Policy) -> Result<Self, ProbeError> {
        const WHAT: &str = "start a second thread";
        let (hears, there) = pipe().map_err(|source| ProbeError::new("open a pipe", source))?;
        let (back, says) = pipe().map_err(|source| ProbeError::new("open a pipe", source))?;
        let thread = Thread { name: "becalm/echo".to_owned(), cpu, policy: policy.unless_other() };
        let thread = thread.spawn(move |settled| {
            // If it could not settle, both of its ends close and the first round fails.
            while settled.is_ok() && take(&hears) && put(&says, BALL) {}
        });
        let thread = thread.map_err(|error| ProbeError::new(WHAT, error))?;
        Self { there, back, thread: Some(thread), _child: None }.checked()
    }

    /// In a process, on the CPUs and in the scheduling class of the calling thread. Fails if no descriptor or process is left.
    pub fn process() -> Result<Self, ProbeError> {
        let (hears, there) = pipe().map_err(|source| ProbeError::new("open a pipe", source))?;
        let (back, says) = pipe().map_err(|source| ProbeError::new("open a pipe", source))?;
        let child = Child::fork(|| while take(&hears) && put(&says, BALL) {})
            .map_err(|source| ProbeError::new("fork a process", source))?;
        Self { there, back, thread: None, _child: Some(child) }.checked()
    }

    fn checked(self) -> Result<Self, ProbeError> {
        if self.round() { Ok(self) } else { Err(ProbeError::last("get a byte back through a pipe")) }
    }

    /// Sends a byte and waits for its return; returns whether it came.
    #[inline(always)]
    pub fn round(&self) -> bool {
        put(&self.there, BALL) && take(&self.back)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // Closing the pipe would not do: a process forked meanwhile holds it open.
        put(&self.there, END);
        if let Some(thread) = self.thread.take() {
            // It cannot panic, and nothing depends on how it ended.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::{self, ThreadUsage};

    #[test]
    fn each_round_switches() {
        assert!(Loopback::open().unwrap().round());
        std::thread::spawn(|| {
            let cpu = sched::current_cpu().unwrap();
            sched::pin_current_thread(cpu).unwrap();
            for echo in [Echo::thread(cpu, Policy::Other).unwrap(), Echo::process().unwrap()] {
                let before = ThreadUsage::for_current_thread();
                assert!((0..100).all(|_| echo.round()));
                // Away while waiting, or preempted by the thread just woken; there is no third way on one CPU.
                let used = ThreadUsage::for_current_thread().since(before);
                assert!(used.voluntary_switches + used.involuntary_switches >= 100, "{used:?}");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        assert!(Echo::thread(CpuId::new(5000), Policy::Other).is_err());
    }
}
