//! The measuring threads: each pins itself, calibrates its loop, waits for the common start and measures.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use becalm_linux::clock::Counter;
use becalm_linux::ftrace::Marks;
use becalm_linux::placed::Thread;
use becalm_linux::rights;
use becalm_linux::sched::{self, Policy, SchedError, ThreadUsage};
use becalm_model::Pid;
use becalm_units::{CpuId, TickRate, Ticks};

use super::kind::{Loop, LoopError, LoopResult, StepRing};
use super::start::{Busy, Go, StartSignal};

/// Prefix of the names of measuring threads; the CPU's number follows.
pub const LOOP_NAME: &str = "becalm/";

/// The longest time that a calibrated loop keeps its CPU busy while others still calibrate.
const LONGEST_CALIBRATION: Duration = Duration::from_secs(1);

/// A measured CPU and the channel from its loop to the collector.
pub struct LoopLane<L: Loop> {
    /// The CPU that the loop runs on.
    pub cpu: CpuId,
    /// Carries the loop's steps to the collector.
    pub ring: Arc<L::Ring>,
    /// The measuring thread's PID in kernel events; `None` until it is ready.
    pid: Option<Pid>,
    calibration: Arc<OnceLock<L::Calibration>>,
    /// `None` once joined.
    thread: Option<JoinHandle<Option<LoopResult>>>,
    /// The other copies of the work; each returns its iterations.
    copies: Vec<JoinHandle<u64>>,
}

impl<L: Loop> LoopLane<L> {
    /// The measuring thread's PID in kernel events.
    pub fn pid(&self) -> Pid {
        self.pid.expect("every thread was ready when the lanes were")
    }

    /// The loop's calibration.
    pub fn calibration(&self) -> &L::Calibration {
        self.calibration.get().expect("every loop was calibrated when the lanes were ready")
    }

    /// Joins the loop's thread, which must have been asked to end, and returns its result; `None` if the thread panicked.
    fn join(&mut self) -> Option<LoopResult> {
        let measured = self.thread.take().and_then(|thread| thread.join().ok()).flatten();
        let others_iterations = self.copies.drain(..).filter_map(|copy| copy.join().ok()).sum();
        measured.map(|measured| LoopResult { others_iterations, ..measured })
    }
}

/// All measured CPUs in ascending order, with their threads.
pub struct Lanes<L: Loop> {
    lanes: Vec<LoopLane<L>>,
    calibrate: Arc<StartSignal>,
    start: Arc<StartSignal>,
    /// Nothing is ever written to the other end: it becomes readable when the last thread ends.
    over: PipeReader,
}

/// Why the loops could not run, or did not run to their end.
#[derive(Debug)]
pub enum ThreadError {
    /// The system cannot create another thread.
    Spawn(io::Error),
    /// A loop cannot measure on its CPU.
    Loop(LoopError),
    /// The thread on this CPU panicked.
    Panicked(CpuId),
}

/// State that the threads of all CPUs share.
struct Common<L> {
    kind: Arc<L>,
    policy: Policy,
    rate: TickRate,
    start: Arc<StartSignal>,
    marks: Option<Arc<Marks>>,
    /// Given when all threads exist: they calibrate at the same time.
    calibrate: Arc<StartSignal>,
    calibrating: Busy,
    /// Closed by the last thread, which wakes the reader at the other end.
    _open: PipeWriter,
}

/// Message of a thread that is ready: its position, its PID, and the error if it cannot measure.
type ThreadReady = (usize, Pid, Result<(), LoopError>);

impl<L: Loop> Lanes<L> {
    /// Starts one thread per CPU and the other copies of its work, waits until all loops are calibrated, and leaves them asleep until [`Self::go`].
    /// If there are `marks`, each measuring thread leaves one. Fails if the system cannot create another thread, or a loop cannot measure: the first
    /// CPU's reason.
    pub fn start<C: Counter>(
        kind: &Arc<L>,
        policy: Policy,
        rate: TickRate,
        marks: Option<&Arc<Marks>>,
        places: impl ExactSizeIterator<Item = (CpuId, Arc<L::Ring>)>,
    ) -> Result<Self, ThreadError> {
        let (over, open) = io::pipe().map_err(ThreadError::Spawn)?;
        let (calibrate, start) = (Arc::new(StartSignal::default()), Arc::new(StartSignal::default()));
        let common = Arc::new(Common {
            kind: Arc::clone(kind),
            policy,
            rate,
            start: Arc::clone(&start),
            marks: marks.cloned(),
            calibrate: Arc::clone(&calibrate),
            calibrating: Busy::new(places.len()),
            _open: open,
        });
        let (sender, ready) = channel();
        let mut lanes = Self { lanes: Vec::new(), calibrate, start, over };
        for (index, (cpu, ring)) in places.enumerate() {
            let calibration = Arc::default();
            lanes.lanes.push(LoopLane { cpu, ring, pid: None, calibration, thread: None, copies: Vec::new() });
            lanes.lanes[index].spawn::<C>(index, &common, sender.clone()).map_err(ThreadError::Spawn)?;
        }
        drop(sender);
        lanes.calibrate.give(Go::At(Ticks::new(0)));
        let mut failed: Option<(usize, LoopError)> = None;
        for (index, pid, prepared) in ready {
            lanes.lanes[index].pid = Some(pid);
            if let Err(error) = prepared
                && failed.as_ref().is_none_or(|(first, _)| index < *first)
            {
                failed = Some((index, error));
            }
        }
        match (failed, lanes.lanes.iter().find(|lane| lane.pid.is_none())) {
            (Some((_, error)), _) => Err(ThreadError::Loop(error)),
            (None, Some(lane)) => Err(ThreadError::Panicked(lane.cpu)),
            (None, None) => Ok(lanes),
        }
    }

    /// Lets all loops measure from this counter reading on, until `deadline` at the latest.
    pub fn go(&self, from: Ticks, deadline: Ticks) {
        for lane in &self.lanes {
            lane.ring.readings().set_deadline(deadline);
        }
        self.start.give(Go::At(from));
    }

    /// Moves the deadline of loops that were not asked to end.
    pub fn renew(&self, deadline: Ticks) {
        self.lanes.iter().for_each(|lane| lane.ring.readings().renew_deadline(deadline));
    }

    /// Translates the measuring threads' own TIDs to those in the kernel's events.
    pub fn renumber(&mut self, numbers: &BTreeMap<i32, i32>) {
        for pid in self.lanes.iter_mut().filter_map(|lane| lane.pid.as_mut()) {
            *pid = numbers.get(&pid.0).copied().map_or(*pid, Pid);
        }
    }

    /// The measured CPUs in ascending order.
    pub fn iter(&self) -> std::slice::Iter<'_, LoopLane<L>> {
        self.lanes.iter()
    }

    /// Whether all loops have ended, or one ran out of room, so the others are to end as well.
    pub fn all_ended(&self) -> bool {
        self.iter().all(|lane| lane.thread.as_ref().is_none_or(JoinHandle::is_finished))
            || self.iter().any(|lane| lane.ring.readings().overflowed())
    }

    /// A descriptor that becomes readable when all threads have finished measuring.
    pub fn end_fd(&self) -> BorrowedFd<'_> {
        self.over.as_fd()
    }

    /// Ends all loops and returns their results in the order of the CPUs.
    pub fn stop(&mut self) -> Result<Vec<LoopResult>, ThreadError> {
        self.lanes.iter().for_each(|lane| lane.ring.readings().stop());
        let measured: Vec<_> = self.lanes.iter_mut().map(|lane| (lane.cpu, lane.join())).collect();
        measured.into_iter().map(|(cpu, measured)| measured.ok_or(ThreadError::Panicked(cpu))).collect()
    }
}

/// A recording that fails must not leave threads that wait or measure forever.
impl<L: Loop> Drop for Lanes<L> {
    fn drop(&mut self) {
        self.calibrate.give(Go::Not);
        self.start.give(Go::Not);
        // If a thread panicked, the recording has already failed or reported it.
        let _ = self.stop();
    }
}

impl<L: Loop> LoopLane<L> {
    /// Starts the measuring thread and the other copies of its work.
    fn spawn<C: Counter>(
        &mut self,
        index: usize,
        common: &Arc<Common<L>>,
        ready: Sender<ThreadReady>,
    ) -> io::Result<()> {
        let (cpu, ring, calibration) = (self.cpu, Arc::clone(&self.ring), Arc::clone(&self.calibration));
        let thread = || Thread { name: format!("{LOOP_NAME}{cpu}"), cpu, policy: common.policy.unless_other() };
        let own = Arc::clone(common);
        let measured =
            thread().spawn(move |placed| measure::<C, L>(&own, (index, cpu), placed, &ring, &calibration, ready))?;
        self.thread = Some(measured);
        for _ in 0..common.kind.further_threads() {
            let (own, ring, calibration) = (Arc::clone(common), Arc::clone(&self.ring), Arc::clone(&self.calibration));
            let copy = thread().spawn(move |placed| accompany::<C, L>(&own, cpu, placed, &ring, &calibration))?;
            self.copies.push(copy);
        }
        Ok(())
    }
}

/// Body of a measuring thread. Returns `None` if it was not started.
fn measure<C: Counter, L: Loop>(
    common: &Common<L>,
    (index, cpu): (usize, CpuId),
    placed: Result<(), SchedError>,
    ring: &L::Ring,
    calibration: &OnceLock<L::Calibration>,
    ready: Sender<ThreadReady>,
) -> Option<LoopResult> {
    let Go::At(_) = common.calibrate.wait() else { return None };
    let prepared = placed.map_err(LoopError::from).and_then(|()| common.kind.prepare::<C>(cpu, common.rate, ring)).map(
        |(made, found)| {
            let _ = calibration.set(found);
            made
        },
    );
    common.calibrating.until_all_are_done(LONGEST_CALIBRATION);
    let (made, said) = match prepared {
        Ok(made) => (Some(made), Ok(())),
        Err(error) => (None, Err(error)),
    };
    // A thread that cannot leave its mark is noticed later.
    let _ = common.marks.as_ref().map(|marks| marks.mark());
    // If another thread failed, the receiver is gone, and `start` returns the error.
    let _ = ready.send((index, Pid(sched::current_tid()), said));
    drop(ready);
    let (Go::At(start), Some(made)) = (common.start.wait(), made) else { return None };
    // Not earlier: until then the process may change its user, which every thread must be allowed to do. The first reading is still ahead.
    rights::give_up_of_this_thread().ok()?;
    let before = ThreadUsage::for_current_thread();
    let (tally, counted) = common.kind.measure::<C>(made, cpu, ring, start);
    let usage = ThreadUsage::for_current_thread().since(before);
    Some(LoopResult { tally, usage, others_iterations: 0, counted })
}

/// Body of an additional thread. If the measured one cannot be placed or get its class, the recording does not start.
fn accompany<C: Counter, L: Loop>(
    common: &Common<L>,
    cpu: CpuId,
    placed: Result<(), SchedError>,
    ring: &L::Ring,
    calibration: &OnceLock<L::Calibration>,
) -> u64 {
    common.kind.accompany::<C>(cpu, ring, || match common.start.wait() {
        Go::At(_) if placed.is_ok() && rights::give_up_of_this_thread().is_ok() => calibration.get(),
        _ => None,
    })
}
