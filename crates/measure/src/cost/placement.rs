//! What an interrupt costs the work on the interrupted hardware thread, on its sibling of the same core, and on another core
//! (P. Radojković et al., *Measuring operating system overhead on CMT processors*, 2008).

use std::path::Path;

use becalm_linux::file::FileError;
use becalm_linux::perf::CpuClock;
use becalm_linux::sched::{AffinityGuard, Policy};
use becalm_linux::sysfs::cpu::siblings;
use becalm_model::cost::{CountedDoc, CountedPairDoc, PlaceDoc, PlacementDoc, WorkPlace};
use becalm_units::{CpuId, CpuList, Nanos};

use super::tick::{SortJob, StoreError, TickError, events, shuffled, time_work};
use crate::work::Body;

/// A CPU for each place, as far as there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkPlaces {
    /// The CPU that is interrupted.
    pub same: CpuId,
    /// Another hardware thread of its core.
    pub sibling: Option<CpuId>,
    /// A CPU of another core. Where the kernel does not tell which CPUs share a core, none but the interrupted one is
    /// known to be on it, and every other CPU counts as another core.
    pub other: Option<CpuId>,
    /// Whether the kernel tells which CPUs share a core.
    pub topology_known: bool,
}

impl WorkPlaces {
    /// Around an interrupted CPU, among the CPUs that can be used.
    ///
    /// # Errors
    /// If sysfs says something else than a list of CPUs.
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

    /// The places that there are.
    pub fn iter(self) -> impl Iterator<Item = PlaceDoc> {
        let places =
            [(WorkPlace::Same, Some(self.same)), (WorkPlace::Sibling, self.sibling), (WorkPlace::Other, self.other)];
        places.into_iter().filter_map(|(place, cpu)| Some(PlaceDoc { place, cpu: cpu? }))
    }
}

/// What the measurement of placements does: where, which work, how long.
#[derive(Clone, Debug)]
pub struct PlacementPlan {
    /// The places where the work runs.
    pub places: WorkPlaces,
    /// The kinds of work that are done at each place.
    pub bodies: Vec<Body>,
    /// The scheduling class of the work.
    pub policy: Policy,
    /// Interrupts a second that are added to those of the interrupted CPU.
    pub added_hz: u32,
    /// How long each measurement takes without them.
    pub cell: Nanos,
    /// How often each is repeated.
    pub rounds: u32,
    /// The seed of the random order.
    pub seed: u64,
    /// Names of events to count beside a tenth of the work of each measurement; see [`events::counted`].
    pub events: Vec<String>,
}

/// About this much work is taken at a time; short against the cell.
const PIECE: Nanos = Nanos::from_millis(1);

/// Measures every place and body in each round, in random order; the quiet and the raised measurement follow each other,
/// either of them first. `progress` learns the share that is done, and says whether to go on; `store` gets every pair as soon as
/// it is complete.
///
/// # Errors
/// If the interrupts cannot be caused or counted, a body does not run here, or `store` fails.
pub fn measure(
    root: &Path,
    plan: &PlacementPlan,
    progress: &mut dyn FnMut(f64) -> bool,
    store: &mut dyn FnMut(PlacementDoc) -> Result<(), StoreError>,
) -> Result<(), TickError> {
    let interrupted = plan.places.same;
    let cells: Vec<(PlaceDoc, Body)> =
        plan.places.iter().flat_map(|place| plan.bodies.iter().map(move |body| (place, *body))).collect();
    CpuClock::start(interrupted, plan.added_hz)?.stop()?;
    let job = |cpu: CpuId, body, iterations, pieces| {
        let (policy, copies, processes) = (plan.policy, 1, false);
        SortJob { root, cpu, interrupted, policy, copies, processes, body, iterations, pieces }
    };
    let time = |cpu: CpuId, body, iterations, pieces| {
        let _away = AffinityGuard::keep_off(&cpu.into())?;
        time_work(job(cpu, body, iterations, pieces))
    };
    // How much work fills a piece, found once a body.
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
            let raised = || {
                let _clock = CpuClock::start(interrupted, plan.added_hz)?;
                time(cpu, body, iterations, pieces)
            };
            let count = || -> Result<CountedDoc, TickError> {
                let _away = AffinityGuard::keep_off(&cpu.into())?;
                Ok(events::count(job(cpu, body, iterations, pieces.div_ceil(10)), &plan.events)?.0)
            };
            let quiet = || time(cpu, body, iterations, pieces);
            let (quiet, raised) = if (at + round as usize).is_multiple_of(2) {
                let quiet = quiet()?;
                (quiet, raised()?)
            } else {
                let raised = raised()?;
                (quiet()?, raised)
            };
            let counted = if plan.events.is_empty() {
                None
            } else {
                let quiet = count()?;
                let _clock = CpuClock::start(interrupted, plan.added_hz)?;
                Some(CountedPairDoc { quiet, raised: count()? })
            };
            let pair = PlacementDoc { place, body: body.to_string(), quiet, raised, counted };
            store(pair).map_err(TickError::Store)?;
            done += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
