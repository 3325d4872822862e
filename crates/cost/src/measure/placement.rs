//! The cost of an interrupt for work on the interrupted hardware thread, on its sibling of the same core, and on another core
//! (P. Radojković et al., *Measuring operating system overhead on CMT processors*, 2008).

use std::path::Path;

use becalm_linux::clock::{Counter, MonotonicRaw};
use becalm_linux::file::FileError;
use becalm_linux::perf::CpuClock;
use becalm_linux::sched::{self, AffinityGuard, Policy};
use becalm_linux::sysfs::cpu::siblings;
use becalm_measure::work::{Body, Work};
use becalm_units::{CpuId, CpuList, Nanos, fault};

use super::tick::{SortJob, TickError, events, no_thread, shuffled, time_work, timer_interrupts};
use crate::documents::{CountedDoc, CountedPairDoc, PlaceDoc, PlacementDoc, RoamedDoc, TimedDoc, WorkPlace};

/// A CPU for each place that exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkPlaces {
    /// The interrupted CPU.
    pub same: CpuId,
    /// Another hardware thread of its core.
    pub sibling: Option<CpuId>,
    /// A CPU of another core. If the kernel does not show which CPUs share a core, every other CPU counts as another core.
    pub other: Option<CpuId>,
    /// Whether the kernel shows which CPUs share a core.
    pub topology_known: bool,
}

impl WorkPlaces {
    /// Finds the places around an interrupted CPU, among the usable CPUs. Fails if sysfs does not contain a list of CPUs.
    pub fn find(root: &Path, interrupted: CpuId, usable: &CpuList) -> Result<Self, FileError> {
        let core = siblings(root, interrupted)?;
        let topology_known = core.is_some();
        let own: CpuList = [interrupted].into_iter().collect();
        let core = core.unwrap_or_else(|| own.clone());
        Ok(Self {
            same: interrupted,
            sibling: core.without(&own).intersection(usable).iter().next(),
            other: usable.without(&core).without(&own).iter().next(),
            topology_known,
        })
    }

    /// The places that exist.
    pub fn iter(self) -> impl Iterator<Item = PlaceDoc> {
        let places =
            [(WorkPlace::Same, Some(self.same)), (WorkPlace::Sibling, self.sibling), (WorkPlace::Other, self.other)];
        places.into_iter().filter_map(|(place, cpu)| Some(PlaceDoc { place, cpu: cpu? }))
    }
}

/// The plan of a measurement of placements.
#[derive(Clone, Debug)]
pub struct PlacementPlan {
    /// The places where the work runs.
    pub places: WorkPlaces,
    /// The CPUs for unbound work; `None` without such work.
    pub unbound: Option<CpuList>,
    /// The kinds of work at each place.
    pub bodies: Vec<Body>,
    /// The scheduling class of the work.
    pub policy: Policy,
    /// Interrupts per second to add on the interrupted CPU.
    pub added_hz: u32,
    /// Duration of each measurement without them.
    pub cell: Nanos,
    /// Number of repetitions.
    pub rounds: u32,
    /// The seed of the random order.
    pub seed: u64,
    /// Names of events to count with a tenth of the work of each measurement; see [`events::counted`].
    pub events: Vec<String>,
}

impl PlacementPlan {
    /// The places that exist, and that of unbound work.
    pub fn all_places(&self) -> impl Iterator<Item = PlaceDoc> {
        let unbound = self.unbound.is_some().then_some(PlaceDoc { place: WorkPlace::Unbound, cpu: self.places.same });
        self.places.iter().chain(unbound)
    }
}

/// The approximate length of a piece of work; short compared with the cell.
const PIECE: Nanos = Nanos::from_millis(1);

/// Measures every place and body in each round, in random order; the quiet and the raised measurement are adjacent, in either order.
/// `progress` gets the share done and returns whether to continue; `store` gets every complete pair. Fails if the interrupts cannot be
/// caused or counted, a body does not run here, or `store` fails.
pub fn measure(
    root: &Path,
    plan: &PlacementPlan,
    progress: &mut dyn FnMut(f64) -> bool,
    store: &mut dyn FnMut(PlacementDoc) -> fault::Result<()>,
) -> Result<(), TickError> {
    let interrupted = plan.places.same;
    let cells: Vec<(PlaceDoc, Body)> =
        plan.all_places().flat_map(|place| plan.bodies.iter().map(move |body| (place, *body))).collect();
    CpuClock::start(interrupted, plan.added_hz)?.stop()?;
    let job = |cpu: CpuId, body, iterations, pieces| {
        let (policy, copies, processes) = (plan.policy, 1, false);
        SortJob { root, cpu, interrupted, policy, copies, processes, body, iterations, pieces }
    };
    let time = |cpu: CpuId, body, iterations, pieces| {
        let _away = AffinityGuard::keep_off(&cpu.into())?;
        time_work(job(cpu, body, iterations, pieces))
    };
    // The amount of work in a piece, determined once per body.
    let mut sizes: Vec<(Body, u64)> = Vec::new();
    for body in &plan.bodies {
        let mut iterations = 1;
        while time(interrupted, *body, iterations, 4)?.elapsed_ns < 2 * PIECE.get() {
            iterations *= 2;
        }
        sizes.push((*body, iterations));
    }
    let mut done = 0_usize;
    let total = (cells.len() * plan.rounds as usize).max(1);
    for round in 0..plan.rounds {
        for (at, (PlaceDoc { place, cpu }, body)) in shuffled(cells.clone(), plan.seed, round).into_iter().enumerate() {
            if !progress(done as f64 / total as f64) {
                return Ok(());
            }
            let iterations = sizes.iter().find(|(known, _)| *known == body).map_or(1, |(_, iterations)| *iterations);
            let piece = time(cpu, body, iterations, 20)?.elapsed_ns as f64 / 20.0;
            let pieces = (plan.cell.get() as f64 / piece).ceil().max(1.0) as u64;
            let everywhere = plan.unbound.as_ref().filter(|_| place == WorkPlace::Unbound);
            let timed = || -> Result<(TimedDoc, Option<RoamedDoc>), TickError> {
                match everywhere {
                    Some(cpus) => roaming(job(cpu, body, iterations, pieces), cpus).map(|(time, at)| (time, Some(at))),
                    None => Ok((time(cpu, body, iterations, pieces)?, None)),
                }
            };
            let raised = || {
                let _clock = CpuClock::start(interrupted, plan.added_hz)?;
                timed()
            };
            let count = || -> Result<CountedDoc, TickError> {
                let _away = AffinityGuard::keep_off(&cpu.into())?;
                Ok(events::count(job(cpu, body, iterations, pieces.div_ceil(10)), &plan.events)?.0)
            };
            let quiet = || timed().map(|(time, _)| time);
            let (quiet, (raised, roamed)) = if (at + round as usize).is_multiple_of(2) {
                let quiet = quiet()?;
                (quiet, raised()?)
            } else {
                let raised = raised()?;
                (quiet()?, raised)
            };
            let counted = if plan.events.is_empty() || everywhere.is_some() {
                None
            } else {
                let quiet = count()?;
                let _clock = CpuClock::start(interrupted, plan.added_hz)?;
                Some(CountedPairDoc { quiet, raised: count()? })
            };
            let pair = PlacementDoc { place, body: body.to_string(), quiet, raised, counted, roamed };
            store(pair).map_err(TickError::Store)?;
            done += 1;
        }
    }
    Ok(())
}

/// Times work that starts on the job's CPU in one thread and may then run on any of these: the scheduler decides.
fn roaming(job: SortJob<'_>, cpus: &CpuList) -> Result<(TimedDoc, RoamedDoc), TickError> {
    std::thread::scope(|scope| {
        let prepare = || {
            let work = job.warm_up()?;
            sched::set_affinity(cpus)?;
            Ok::<_, TickError>((work, ()))
        };
        let run = |mut work: Work, ()| {
            let (mut there, mut moves, mut last) = (0, 0, Some(job.cpu));
            let first = MonotonicRaw::read();
            for _ in 0..job.pieces {
                // The C library answers this without a system call if the kernel allows it.
                let here = sched::current_cpu();
                moves += u64::from(here != last);
                there += u64::from(here == Some(job.interrupted));
                last = here;
                std::hint::black_box(work.run::<MonotonicRaw>(job.iterations));
            }
            (MonotonicRaw::read() - first, RoamedDoc { pieces: job.pieces, there, moves })
        };
        let thread = job.thread().prepare_scoped(scope, prepare, run).map_err(no_thread)?;
        thread.ready()?;
        let interrupts = || timer_interrupts(job.root, job.interrupted);
        let before = (interrupts()?, MonotonicRaw::read());
        let ended = thread.start(()).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let after = (interrupts()?, MonotonicRaw::read());
        // The thread was ready, so it has run.
        let (took, roamed) = ended.unwrap_or((0, RoamedDoc { pieces: job.pieces, there: 0, moves: 0 }));
        let time = TimedDoc {
            elapsed_ns: (took as i64).max(1),
            interrupts: after.0.saturating_sub(before.0),
            window_ns: ((after.1 - before.1) as i64).max(1),
        };
        Ok((time, roamed))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's affinity decides here, and so what is seen: work that may run on one CPU only is there in all of its pieces, and leaves the
    /// CPU where it begins once if that is another one.
    #[test]
    fn where_unbound_work_ran_is_where_the_kernel_let_it() {
        let allowed = sched::allowed_cpus().unwrap();
        let mut cpus = allowed.iter();
        let (Some(cpu), Some(other)) = (cpus.next(), cpus.next()) else { return };
        let job = SortJob {
            root: Path::new("/"),
            cpu,
            interrupted: cpu,
            policy: Policy::Other,
            copies: 1,
            processes: false,
            body: Body::Sum,
            iterations: 20_000,
            pieces: 50,
        };
        let roamed = |cpus: &CpuList| roaming(job, cpus).unwrap().1;
        assert_eq!(roamed(&CpuList::from(cpu)), RoamedDoc { pieces: 50, there: 50, moves: 0 });
        assert_eq!(roamed(&CpuList::from(other)), RoamedDoc { pieces: 50, there: 0, moves: 1 });
        let free = roamed(&allowed);
        assert!(free.there <= 50 && free.moves <= 50, "{free:?}");
    }

    fn places(siblings: Option<&str>, interrupted: u32, usable: &str) -> Vec<(WorkPlace, u32)> {
        let root = tempfile::tempdir().unwrap();
        if let Some(list) = siblings {
            let folder = root.path().join(format!("sys/devices/system/cpu/cpu{interrupted}/topology"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("thread_siblings_list"), format!("{list}\n")).unwrap();
        }
        let found = WorkPlaces::find(root.path(), CpuId::new(interrupted), &usable.parse().unwrap()).unwrap();
        assert_eq!(found.topology_known, siblings.is_some());
        found.iter().map(|place| (place.place, place.cpu.get())).collect()
    }

    #[test]
    fn siblings_share_the_core_and_others_do_not() {
        use WorkPlace::{Other, Same, Sibling};
        assert_eq!(places(Some("1,5"), 1, "0-7"), [(Same, 1), (Sibling, 5), (Other, 0)]);
        assert_eq!(places(Some("0-7"), 0, "0-15"), [(Same, 0), (Sibling, 1), (Other, 8)]);
        // Without hyper-threading, or with siblings that may not be used.
        assert_eq!(places(Some("1"), 1, "0-1"), [(Same, 1), (Other, 0)]);
        assert_eq!(places(Some("1,5"), 1, "0-4"), [(Same, 1), (Other, 0)]);
        // A single core.
        assert_eq!(places(Some("0-1"), 0, "0-1"), [(Same, 0), (Sibling, 1)]);
        assert_eq!(places(Some("0"), 0, "0"), [(Same, 0)]);
        // A container without sysfs.
        assert_eq!(places(None, 1, "0-1"), [(Same, 1), (Other, 0)]);
    }
}
