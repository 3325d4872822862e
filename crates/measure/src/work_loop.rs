//! The measuring threads' work: prepared, measured into a ring, and done by further copies that share the CPU.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use becalm_linux::clock::Counter;
use becalm_linux::sched::{self, Policy};
use becalm_model::node::Fixed;
use becalm_units::{CpuId, Nanos, TickRate};

use crate::acquire::{End, Tally};
use crate::loop_thread::{Go, Profile, Start};
use crate::plan::WorkPlan;
use crate::ring::Ring;
use crate::work::{Calibrated, Quanta, Stop, Unsupported, Work, calibrate, calibrate_unit, fixed_time, fixed_work};

/// What a loop does.
#[derive(Clone, Debug)]
pub enum Task {
    /// Watch the counter.
    Watch,
    /// Work.
    Work(Arc<WorkTask>),
}

/// Work, with what a thread needs to know of the machine.
#[derive(Clone, Debug)]
pub struct WorkTask {
    /// What was asked for.
    pub plan: WorkPlan,
    /// The rate of the counter.
    pub rate: TickRate,
    /// The root of the file system.
    pub root: PathBuf,
}

/// Prepares the work on its CPU, and calibrates it unless its iterations are given.
pub fn prepare<C: Counter>(cpu: CpuId, task: &WorkTask) -> Result<(Work, Profile), Unsupported> {
    let WorkTask { plan, rate, root, .. } = task;
    let mut work = make(plan, root, cpu)?;
    let calibrated = match (plan.iterations.get(&cpu), plan.fixed) {
        // What it takes is measured again, for one sample's length.
        (Some(iterations), _) => {
            let before = C::read();
            work.run::<C>(*iterations);
            Calibrated { iterations: *iterations, ticks: C::read().wrapping_sub(before) as f64, trials: 1 }
        }
        (None, Fixed::Work) => calibrate::<C>(&mut work, plan.grain, *rate),
        (None, Fixed::Time) => calibrate_unit::<C>(&mut work, plan.grain, *rate),
    };
    let profile = Profile::Work(calibrated, work.memory_bytes(), work.cache_bytes());
    // The rehearsal loads the loop's code and resolves what the linker left for later.
    let stop = Stop { samples: 2, deadline: u64::MAX };
    let rehearsal = Quanta { ticks: rate.ticks_in(Nanos::from_micros(10)).get(), step: 1 };
    match plan.fixed {
        Fixed::Work => fixed_work::<C>(&mut work, 1, 0, stop, &mut |_, _, _| true),
        Fixed::Time => fixed_time::<C>(&mut work, rehearsal, 0, stop, &mut |_, _, _| true),
    };
    Ok((work, profile))
}

fn make(plan: &WorkPlan, root: &Path, cpu: CpuId) -> Result<Work, Unsupported> {
    Work::new(plan.body, root, cpu)
}

/// Measures from the reading `start` until the ring's deadline or for as many samples as asked for, `iterations` a sample
/// or, of fixed time, a step.
///
/// Nothing in here allocates, locks or calls the kernel.
pub fn measure<C: Counter>(
    work: &mut Work,
    task: &WorkTask,
    ring: &Ring,
    cpu: CpuId,
    start: u64,
    iterations: u64,
) -> Tally {
    let mut end = End::Deadline;
    let mut began = false;
    let mut shortest = u64::MAX;
    let mut keep = |before: u64, after: u64, work: u64| {
        if !began {
            began = true;
            ring.set_began(before);
        }
        if !ring.push_sample(before, after, work) {
            end = End::Full;
            return false;
        }
        ring.set_progress(after);
        shortest = shortest.min(after.wrapping_sub(before));
        if sched::current_cpu().is_some_and(|now| now != cpu) {
            end = End::Moved;
            return false;
        }
        after < ring.deadline()
    };
    let stop = Stop { samples: task.plan.samples.unwrap_or(u64::MAX), deadline: u64::MAX };
    let sampled = match task.plan.fixed {
        Fixed::Work => fixed_work::<C>(work, iterations, start, stop, &mut keep),
        Fixed::Time => {
            let quanta = Quanta { ticks: task.rate.ticks_in(task.plan.grain).get(), step: iterations };
            fixed_time::<C>(work, quanta, start, stop, &mut keep)
        }
    };
    // The other copies on this CPU end with the measured one.
    ring.stop();
    let kept = if end == End::Full { sampled.samples - 1 } else { sampled.samples };
    // A sample that found no room is not part of the tally.
    let last = if end == End::Full { ring.progress().max(sampled.first) } else { sampled.last };
    Tally {
        first: sampled.first,
        last,
        iterations: kept,
        shortest,
        below: 0,
        kept: last.wrapping_sub(sampled.first),
        kept_steps: kept,
        backwards: 0,
        end,
    }
}

/// Starts a further copy, which does the same work on the same CPU from the start until the ring's deadline, and gives
/// the iterations that it did.
///
/// # Errors
/// If the system has no room for another thread.
pub fn spawn_copy<C: Counter>(
    index: usize,
    cpu: CpuId,
    policy: Policy,
    task: Arc<WorkTask>,
    ring: Arc<Ring>,
    start: Arc<Start>,
) -> io::Result<JoinHandle<u64>> {
    Builder::new().name(format!("becalm/{cpu}")).stack_size(256 << 10).spawn(move || {
        // Where the measured one cannot be placed or get its class, the recording does not start.
        let placed =
            sched::pin_current_thread(cpu).is_ok() && (policy == Policy::Other || sched::set_policy(policy).is_ok());
        let work = make(&task.plan, &task.root, cpu);
        let (Go::At(_, iterations), true, Ok(mut work)) = (start.wait(), placed, work) else { return 0 };
        let iterations = iterations[index];
        let mut done = 0;
        while C::read() < ring.deadline() {
            std::hint::black_box(work.run::<C>(iterations));
            done += iterations;
        }
        done
    })
}
