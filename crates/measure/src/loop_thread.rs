//! The measuring threads: each places itself, calibrates its loop, waits for the common start, measures.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use becalm_linux::clock::Counter;
use becalm_linux::sched::{self, Policy, SchedError, Usage};
use becalm_units::{CpuId, CpuList};

use crate::acquire::{Tally, acquire};
use crate::ring::Ring;
use crate::steps::StepProfile;

/// What a thread says when it is ready.
#[derive(Debug)]
struct Ready {
    /// Its position among the loops.
    index: usize,
    /// Its number in the kernel's events.
    tid: i32,
    /// Its loop's own steps, or why it cannot run there.
    profile: Result<StepProfile, SchedError>,
}

/// What a thread gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// The loop's own account.
    pub tally: Tally,
    /// The kernel's account of the thread while it measured.
    pub usage: Usage,
}

/// The common start. Until it is given all threads sleep.
#[derive(Debug, Default)]
pub struct Start {
    given: Mutex<Option<Go>>,
    changed: Condvar,
}

/// How to start.
#[derive(Clone, Debug)]
pub enum Go {
    /// Measure from this reading of the counter on, each loop with its threshold in ticks.
    At(u64, Arc<[u64]>),
    /// Another thread could not be set up: end at once.
    Not,
}

impl Start {
    /// Wakes all threads.
    pub fn give(&self, go: Go) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(go);
        self.changed.notify_all();
    }

    fn wait(&self) -> Go {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*given {
                Some(go) => return go.clone(),
                None => given = self.changed.wait(given).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Starts a measuring thread. It reports on `ready`, sleeps until the start, and ends with its ring's deadline.
///
/// # Errors
/// If the system has no room for another thread.
fn spawn<C: Counter>(
    index: usize,
    cpu: CpuId,
    policy: Policy,
    ring: Arc<Ring>,
    ready: Sender<Ready>,
    start: Arc<Start>,
) -> io::Result<JoinHandle<Option<Measured>>> {
    // 15 characters are what the kernel keeps.
    Builder::new().name(format!("becalm/{cpu}")).stack_size(256 << 10).spawn(move || {
        let profile = prepare::<C>(cpu, policy, &ring);
        let failed = profile.is_err();
        // Nobody listens any more if another thread failed; the start then says so.
        let _ = ready.send(Ready { index, tid: sched::current_tid(), profile });
        drop(ready);
        let go = start.wait();
        let (Go::At(start, thresholds), false) = (go, failed) else { return None };
        let threshold = thresholds[index];
        let before = Usage::of_current_thread();
        let tally = acquire::<C>(&ring, cpu, start, threshold);
        let usage = Usage::of_current_thread().since(before);
        Some(Measured { tally, usage })
    })
}

fn prepare<C: Counter>(cpu: CpuId, policy: Policy, ring: &Ring) -> Result<StepProfile, SchedError> {
    sched::pin_current_thread(cpu)?;
    if policy != Policy::Other {
        sched::set_policy(policy)?;
    }
    let profile = StepProfile::measure::<C>();
    // The rehearsal loads the loop's code and resolves what the linker left for later. With a threshold of zero every
    // step is stored, so that the ring fills and ends it.
    acquire::<C>(ring, cpu, C::read(), 0);
    ring.clear();
    Ok(profile)
}

/// Waits until every thread has reported, and gives their profiles in the order of the loops.
///
/// # Errors
/// The first thread's reason why it cannot measure.
fn gather(ready: &Receiver<Ready>, count: usize) -> Result<Vec<(i32, StepProfile)>, SchedError> {
    let mut profiles = vec![None; count];
    let mut failed = None;
    for Ready { index, tid, profile } in ready.iter().take(count) {
        match profile {
            Ok(profile) => profiles[index] = Some((tid, profile)),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(profiles.into_iter().flatten().collect()),
    }
}

/// All measuring threads.
#[derive(Debug)]
pub struct Loops {
    threads: Vec<JoinHandle<Option<Measured>>>,
    ready: Receiver<Ready>,
    /// The common start.
    pub start: Arc<Start>,
    rings: Vec<Arc<Ring>>,
}

impl Loops {
    /// Starts one thread a CPU; they calibrate and then sleep until the start.
    ///
    /// # Errors
    /// If the system has no room for another thread.
    pub fn start<C: Counter>(cpus: &CpuList, policy: Policy, rings: &[Arc<Ring>]) -> io::Result<Self> {
        let (sender, ready) = channel();
        let mut loops = Self { threads: Vec::new(), ready, start: Arc::new(Start::default()), rings: rings.to_vec() };
        for (index, (cpu, ring)) in cpus.iter().zip(rings).enumerate() {
            let (ring, sender, start) = (Arc::clone(ring), sender.clone(), Arc::clone(&loops.start));
            loops.threads.push(spawn::<C>(index, cpu, policy, ring, sender, start)?);
        }
        Ok(loops)
    }

    /// Waits until every thread has reported; their numbers and profiles in the order of the CPUs.
    ///
    /// # Errors
    /// The first thread's reason why it cannot measure.
    pub fn gather(&self) -> Result<Vec<(i32, StepProfile)>, SchedError> {
        gather(&self.ready, self.threads.len())
    }

    /// Whether all loops have ended, or one had to, for want of room, so that the others shall.
    pub fn all_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished) || self.rings.iter().any(|ring| ring.overflowed())
    }

    /// Waits for all loops, which must have been told to end, and gives what each measured.
    pub fn join(&mut self) -> Vec<Option<Measured>> {
        self.threads.drain(..).map(|thread| thread.join().ok().flatten()).collect()
    }
}

/// A recording that fails on its way must not leave threads that wait or measure for ever.
impl Drop for Loops {
    fn drop(&mut self) {
        for ring in &self.rings {
            ring.stop();
        }
        self.start.give(Go::Not);
        self.join();
    }
}
