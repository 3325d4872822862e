//! The measuring threads: each places itself, calibrates its loop, waits for the common start, measures.

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

/// How the names of measuring threads begin; the CPU's number follows.
pub const LOOP_NAME: &str = "becalm/";

/// For how long a loop that is calibrated keeps its CPU busy beside those that are not, at most.
const LONGEST_CALIBRATION: Duration = Duration::from_secs(1);

/// A CPU that is measured, with the way from its loop to the collector.
pub struct LoopLane<L: Loop> {
    /// The CPU that the loop runs on.
    pub cpu: CpuId,
    /// What the loop finds goes through it.
    pub ring: Arc<L::Ring>,
    /// The number of the measuring thread in the kernel's events; `None` until it is ready.
    pid: Option<Pid>,
    calibration: Arc<OnceLock<L::Calibration>>,
    /// `None` once it has been waited for.
    thread: Option<JoinHandle<Option<LoopResult>>>,
    /// The other copies of the work; each gives the iterations that it did.
    copies: Vec<JoinHandle<u64>>,
}

impl<L: Loop> LoopLane<L> {
    /// The number of the measuring thread in the kernel's events.
    pub fn pid(&self) -> Pid {
        self.pid.expect("every thread was ready when the lanes were")
    }

    /// What the loop found out about itself.
    pub fn calibration(&self) -> &L::Calibration {
        self.calibration.get().expect("every loop was calibrated when the lanes were ready")
    }

    /// Waits for the loop, which must have been told to end, and gives what it measured; `None` if its thread panicked.
    fn join(&mut self) -> Option<LoopResult> {
        let measured = self.thread.take().and_then(|thread| thread.join().ok()).flatten();
        let others_iterations = self.copies.drain(..).filter_map(|copy| copy.join().ok()).sum();
        measured.map(|measured| LoopResult { others_iterations, ..measured })
    }
}

/// All measured CPUs, in rising order, with their threads.
pub struct Lanes<L: Loop> {
    lanes: Vec<LoopLane<L>>,
    calibrate: Arc<StartSignal>,
    start: Arc<StartSignal>,
    /// Nobody writes here: it is readable once the last thread has ended.
    over: PipeReader,
}

/// Why the loops cannot run, or did not to their end.
#[derive(Debug)]
pub enum ThreadError {
    /// The system has no room for another thread.
    Spawn(io::Error),
    /// A loop cannot measure on its CPU.
    Loop(LoopError),
    /// The thread on this CPU panicked.
    Panicked(CpuId),
}

/// What the threads of all CPUs have in common.
struct Common<L> {
    kind: Arc<L>,
    policy: Policy,
    rate: TickRate,
    start: Arc<StartSignal>,
    marks: Option<Arc<Marks>>,
    /// Given when all threads are there: then they calibrate, together.
    calibrate: Arc<StartSignal>,
    calibrating: Busy,
    /// Closed with the last thread, of which whoever waits at the other end hears.
    _open: PipeWriter,
}

/// What a thread says when it is ready: its position, its number, and why it cannot measure if so.
type ThreadReady = (usize, Pid, Result<(), LoopError>);

impl<L: Loop> Lanes<L> {
    /// Starts one thread on each CPU, and the other copies of its work, and waits until all loops are calibrated. They
    /// sleep then until [`Self::go`]. Where there are `marks`, each measuring thread makes itself known there. Fails if
    /// the system has no room for another thread, or a loop cannot measure: the first CPU's reason.
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

    /// Lets all loops measure from this reading of the counter on, until `deadline` at the latest.
    pub fn go(&self, from: Ticks, deadline: Ticks) {
        for lane in &self.lanes {
            lane.ring.readings().set_deadline(deadline);
        }
        self.start.give(Go::At(from));
    }

    /// Moves the deadline of the loops that were not asked to end.
    pub fn renew(&self, deadline: Ticks) {
        self.lanes.iter().for_each(|lane| lane.ring.readings().renew_deadline(deadline));
    }

    /// Numbers the measuring threads as the kernel's events do, by the numbers that they have for themselves.
    pub fn renumber(&mut self, numbers: &BTreeMap<i32, i32>) {
        for pid in self.lanes.iter_mut().filter_map(|lane| lane.pid.as_mut()) {
            *pid = numbers.get(&pid.0).copied().map_or(*pid, Pid);
        }
    }

    /// The measured CPUs, in rising order.
    pub fn iter(&self) -> std::slice::Iter<'_, LoopLane<L>> {
        self.lanes.iter()
    }

    /// Whether all loops have ended, or one had to, for want of room, so that the others are to end as well.
    pub fn all_ended(&self) -> bool {
        self.iter().all(|lane| lane.thread.as_ref().is_none_or(JoinHandle::is_finished))
            || self.iter().any(|lane| lane.ring.readings().overflowed())
    }

    /// A descriptor that becomes readable when all threads have measured, for those that wait for that.
    pub fn end_fd(&self) -> BorrowedFd<'_> {
        self.over.as_fd()
    }

    /// Ends all loops, and gives what each measured, in the order of the CPUs.
    pub fn stop(&mut self) -> Result<Vec<LoopResult>, ThreadError> {
        self.lanes.iter().for_each(|lane| lane.ring.readings().stop());
        let measured: Vec<_> = self.lanes.iter_mut().map(|lane| (lane.cpu, lane.join())).collect();
        measured.into_iter().map(|(cpu, measured)| measured.ok_or(ThreadError::Panicked(cpu))).collect()
    }
}

/// A recording that fails on its way must not leave threads that wait or measure forever.
impl<L: Loop> Drop for Lanes<L> {
    fn drop(&mut self) {
        self.calibrate.give(Go::Not);
        self.start.give(Go::Not);
        // Whoever panicked, the recording has failed already or has said so.
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

/// What a measuring thread does. It gives nothing if it was not started.
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
    // One that fails is missed afterwards.
    let _ = common.marks.as_ref().map(|marks| marks.mark());
    // Nobody listens any more if another thread failed; the start then says so.
    let _ = ready.send((index, Pid(sched::current_tid()), said));
    drop(ready);
    let (Go::At(start), Some(made)) = (common.start.wait(), made) else { return None };
    // Not before: until then the process may become another user, for which every thread must have the right. The first reading lies
    // ahead still.
    rights::give_up_of_this_thread().ok()?;
    let before = ThreadUsage::for_current_thread();
    let (tally, counted) = common.kind.measure::<C>(made, cpu, ring, start);
    let usage = ThreadUsage::for_current_thread().since(before);
    Some(LoopResult { tally, usage, others_iterations: 0, counted })
}

/// What a further thread does. Where the measured one cannot be placed or get its class, the recording does not start.
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
