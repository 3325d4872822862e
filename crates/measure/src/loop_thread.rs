//! The measuring threads: each places itself, calibrates its loop, waits for the common start, measures.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use becalm_linux::clock::Counter;
use becalm_linux::perf::{Counters, Space};
use becalm_linux::sched::{self, Policy, SchedError, Usage};
use becalm_units::{CpuId, CpuList, Nanos};

use crate::acquire::{Tally, acquire};
use crate::counted::{Counted, beside};
use crate::ring::Ring;
use crate::steps::StepProfile;
use crate::work::Calibrated;
use crate::work_loop::{self, Task};

/// How long before the loop its counters start: a few system calls.
const COUNTERS_LEAD: Nanos = Nanos::from_micros(100);

/// What a thread says when it is ready.
#[derive(Debug)]
struct Ready {
    /// Its position among the loops.
    index: usize,
    /// Its number in the kernel's events.
    tid: i32,
    /// Its loop's own steps, or why it cannot run there.
    profile: Result<Profile, SchedError>,
}

/// What a loop found out about itself before the start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Profile {
    /// The steps of a loop that watches the counter.
    Steps(StepProfile),
    /// The calibration of a loop that does work, and the bytes of memory that it works on, with the cache's size by
    /// which these were chosen and whether that is known.
    Work(Calibrated, u64, Option<(u64, bool)>),
}

/// What a thread gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured {
    /// The loop's own account.
    pub tally: Tally,
    /// The kernel's account of the thread while it measured.
    pub usage: Usage,
    /// Iterations that the other copies of its work did meanwhile.
    pub others_iterations: u64,
    /// What the processor's counters say of the loop.
    pub counted: Counted,
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
    /// Measure from this reading of the counter on, each loop with its threshold in ticks, or with its iterations if it
    /// does work.
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

    pub(crate) fn wait(&self) -> Go {
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
    (policy, task): (Policy, Task),
    ring: Arc<Ring>,
    ready: Sender<Ready>,
    start: Arc<Start>,
) -> io::Result<JoinHandle<Option<Measured>>> {
    // 15 characters are what the kernel keeps.
    Builder::new().name(format!("becalm/{cpu}")).stack_size(256 << 10).spawn(move || {
        let mut prepared = sched::pin_current_thread(cpu).and_then(|()| match policy {
            Policy::Other => Ok(()),
            policy => sched::set_policy(policy),
        });
        let mut work = None;
        let counters = match &task {
            Task::Work(task) if !task.plan.counters.is_empty() => {
                Some(Counters::of_current_thread(&task.plan.counters, &Space::APART))
            }
            _ => None,
        };
        let profile = match (&mut prepared, &task) {
            (Err(_), _) => None,
            (Ok(()), Task::Watch) => Some(Profile::Steps(prepare::<C>(cpu, &ring))),
            (Ok(()), Task::Work(plan)) => match work_loop::prepare::<C>(cpu, plan) {
                Ok((made, profile)) => {
                    work = Some(made);
                    Some(profile)
                }
                Err(_) => None,
            },
        };
        let profile = match (prepared, profile) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(profile)) => Ok(profile),
            // The recorder has made sure that the body is one of this architecture.
            (Ok(()), None) => unreachable!("the work was prepared"),
        };
        let failed = profile.is_err();
        // Nobody listens any more if another thread failed; the start then says so.
        let _ = ready.send(Ready { index, tid: sched::current_tid(), profile });
        drop(ready);
        let go = start.wait();
        let (Go::At(start, parameters), false) = (go, failed) else { return None };
        let parameter = parameters[index];
        let before = Usage::of_current_thread();
        let (tally, counted) = match (&task, &mut work) {
            (Task::Work(plan), Some(work)) => {
                let measure = || work_loop::measure::<C>(work, plan, &ring, cpu, start, parameter);
                beside::<C, _>(counters, start.saturating_sub(plan.rate.ticks_in(COUNTERS_LEAD).get()), measure)
            }
            _ => (acquire::<C>(&ring, cpu, start, parameter), Counted::default()),
        };
        let usage = Usage::of_current_thread().since(before);
        Some(Measured { tally, usage, others_iterations: 0, counted })
    })
}

fn prepare<C: Counter>(cpu: CpuId, ring: &Ring) -> StepProfile {
    let profile = StepProfile::measure::<C>();
    // The rehearsal loads the loop's code and resolves what the linker left for later. With a threshold of zero every
    // step is stored, so that the ring fills and ends it.
    acquire::<C>(ring, cpu, C::read(), 0);
    ring.clear();
    profile
}

/// Waits until every thread has reported, and gives their profiles in the order of the loops.
///
/// # Errors
/// The first thread's reason why it cannot measure.
fn gather(ready: &Receiver<Ready>, count: usize) -> Result<Vec<(i32, Profile)>, SchedError> {
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
    /// The other copies of the work, for each CPU; each gives the iterations that it did.
    copies: Vec<Vec<JoinHandle<u64>>>,
    ready: Receiver<Ready>,
    /// The common start.
    pub start: Arc<Start>,
    rings: Vec<Arc<Ring>>,
}

impl Loops {
    /// Starts one thread a CPU, and the other copies of their work; they calibrate and then sleep until the start.
    ///
    /// # Errors
    /// If the system has no room for another thread.
    pub fn start<C: Counter>(cpus: &CpuList, policy: Policy, task: &Task, rings: &[Arc<Ring>]) -> io::Result<Self> {
        let (sender, ready) = channel();
        let mut loops = Self {
            threads: Vec::new(),
            copies: Vec::new(),
            ready,
            start: Arc::new(Start::default()),
            rings: rings.to_vec(),
        };
        for (index, (cpu, ring)) in cpus.iter().zip(rings).enumerate() {
            let (own, sender, start) = (Arc::clone(ring), sender.clone(), Arc::clone(&loops.start));
            loops.threads.push(spawn::<C>(index, cpu, (policy, task.clone()), own, sender, start)?);
            loops.copies.push(Vec::new());
            if let Task::Work(plan) = task {
                for _ in 1..plan.plan.copies {
                    let (ring, start) = (Arc::clone(ring), Arc::clone(&loops.start));
                    let copy = work_loop::spawn_copy::<C>(index, cpu, policy, plan.clone(), ring, start)?;
                    loops.copies[index].push(copy);
                }
            }
        }
        Ok(loops)
    }

    /// Waits until every thread has reported; their numbers and profiles in the order of the CPUs.
    ///
    /// # Errors
    /// The first thread's reason why it cannot measure.
    pub fn gather(&self) -> Result<Vec<(i32, Profile)>, SchedError> {
        gather(&self.ready, self.threads.len())
    }

    /// Whether all loops have ended, or one had to, for want of room, so that the others shall.
    pub fn all_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished) || self.rings.iter().any(|ring| ring.overflowed())
    }

    /// Waits for all loops, which must have been told to end, and gives what each measured.
    pub fn join(&mut self) -> Vec<Option<Measured>> {
        let measured = self.threads.drain(..).map(|thread| thread.join().ok().flatten()).collect::<Vec<_>>();
        let others = self.copies.drain(..).map(|copies| copies.into_iter().filter_map(|copy| copy.join().ok()).sum());
        let others: Vec<u64> = others.collect();
        measured
            .into_iter()
            .zip(others)
            .map(|(measured, others_iterations)| measured.map(|measured| Measured { others_iterations, ..measured }))
            .collect()
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
