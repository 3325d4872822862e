//! A recording in this process, kept in memory: what the root tests hold against the logs of their noise makers.

use std::collections::BTreeSet;
use std::path::Path;

use becalm_measure::RecordPlan;
use becalm_model::node::{CpuDoc, NodeDoc, Rung};
use becalm_model::{Activity, Kind, root};
use becalm_record::{MemoryLane, MemoryStore, Session};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

/// A recording that has ended, with all that it found.
pub struct Recorded {
    pub node: NodeDoc,
    pub memory: MemoryStore,
}

/// Records, and checks what must hold of every recording.
pub fn recorded(plan: RecordPlan) -> Recorded {
    // The tests have several threads, so that no guard process can be started.
    let session = Session::begin(Path::new("/"), false).expect("signals can be blocked");
    let mut recorded = session
        .record(plan, MemoryStore::default(), &mut |_| {})
        .unwrap_or_else(|failure| panic!("the recording failed: {}", failure.error));
    let Ok(()) = recorded.complete();
    let recorded = Recorded { node: recorded.node, memory: recorded.store };
    recorded.check();
    recorded
}

impl Recorded {
    /// Turns ticks into times on the run's axis.
    pub fn axis(&self) -> TicksToNanos {
        let clock = &self.node.clock;
        TicksToNanos::new(Ticks::new(clock.origin_ticks), TickRate::from_hz(clock.rate_hz))
    }

    pub fn cpu(&self, cpu: CpuId) -> (usize, &CpuDoc) {
        let found = self.node.cpus.iter().enumerate().find(|(_, doc)| doc.cpu == cpu);
        found.expect("the CPU was measured")
    }

    /// The activities of a source on a CPU.
    pub fn activities(&self, cpu: CpuId, kind: Kind, source: &str) -> Vec<Activity> {
        let (index, _) = self.cpu(cpu);
        let all = self.memory.lanes[index].activities.iter();
        all.filter(|row| row.kind == kind && self.memory.labels.text(row.source) == source).copied().collect()
    }

    /// The names of the sources of a kind on a CPU.
    pub fn sources(&self, cpu: CpuId, kind: Kind) -> BTreeSet<String> {
        let (index, _) = self.cpu(cpu);
        let rows = self.memory.lanes[index].activities.iter().filter(|row| row.kind == kind);
        rows.map(|row| self.memory.labels.text(row.source).to_owned()).collect()
    }

    /// By how much one of the kernel's counters grew.
    pub fn growth(&self, cpu: CpuId, name: &str) -> u64 {
        let found = self.node.counters.iter().find(|counter| counter.cpu == cpu && counter.name == name);
        found.map_or(0, |counter| counter.growth)
    }

    /// The time between detours' ends and the kernel's events that no activity is the root of.
    fn rests_without_a_cause(&self, lane: &MemoryLane) -> Nanos {
        let text = |label| self.memory.labels.text(label);
        let alone = |row: &&Activity| root::row_root(row.kind, text(row.source), text(row.detail)).0 == Kind::Edge;
        lane.activities.iter().filter(alone).map(|row| row.self_time).sum()
    }

    fn check(&self) {
        assert_eq!(self.node.rung, Rung::Tracepoints, "{:?}", self.node.warnings);
        for (index, doc) in self.node.cpus.iter().enumerate() {
            let lane = &self.memory.lanes[index];
            let (detours, activities, tally) = (&lane.detours, &lane.activities, &lane.tally);
            assert_eq!(doc.lost_events, 0, "CPU {}: events were lost", doc.cpu);
            assert_eq!(doc.detours, detours.len() as u64, "CPU {}: detours were lost", doc.cpu);

            // No time vanishes: the steps above and below the threshold are the whole duration. Each conversion
            // from ticks rounds down, so each kept step may be a nanosecond off.
            let kept: Nanos = detours.iter().map(|detour| detour.duration + doc.t_min_ns).sum();
            assert_eq!(doc.unstored, 0, "CPU {}: detours were only counted", doc.cpu);
            let off = doc.duration_ns - doc.below_threshold_ns - kept;
            let rounding = detours.len() as i64 + 2;
            assert!(off.get().abs() <= rounding, "CPU {}: {off} of {} vanished", doc.cpu, doc.duration_ns);

            // The books close on every detour.
            let mut rows = activities.iter().peekable();
            for (number, detour) in detours.iter().enumerate() {
                let mut sum = Nanos::ZERO;
                while let Some(row) = rows.next_if(|row| row.detour == number as u64) {
                    sum += row.self_time;
                }
                assert_eq!(sum, detour.duration, "CPU {}, detour {number}", doc.cpu);
            }
            assert!(rows.next().is_none(), "CPU {}: an activity belongs to no detour", doc.cpu);

            // Rests without a cause are a curiosity.
            let (alone, noise) =
                (self.rests_without_a_cause(lane), detours.iter().map(|detour| detour.duration).sum::<Nanos>());
            assert!(
                alone.get() * 100 <= noise.get(),
                "CPU {}: {alone} of {noise} are ways in and out of nothing",
                doc.cpu
            );

            // Nothing is missed: every interrupt lies in a detour or below the threshold.
            assert!(
                tally.below_threshold_max <= doc.threshold_ns,
                "CPU {}: an interrupt of {} lies outside of every detour",
                doc.cpu,
                tally.below_threshold_max
            );
            assert_eq!((tally.late_events, tally.refused_steps), (0, 0), "CPU {}: {tally:?}", doc.cpu);
            // Some kernels leave a switch out of their trace now and then, which their own text of it shows, too. One
            // was seen to record no switch out of the idle task of a CPU that had been offline, so where the loop is
            // throttled and its CPU idles, more may lack.
            let unmatched = tally.unmatched_switches + tally.unmatched_exits + tally.unmatched_entries;
            let idled = activities.iter().any(|row| row.kind == Kind::Throttling);
            let allowed = tally.events / if idled { 20 } else { 200 } + 2;
            assert!(unmatched <= allowed, "CPU {}: {tally:?}", doc.cpu);
            // The loop itself slept and faulted never.
            assert_eq!((doc.faults, doc.voluntary_switches), (0, 0), "CPU {}", doc.cpu);
        }
    }
}

/// Holds a count against the kernel's, to one in a hundred; a handful may fall between the kernel's two readings of its
/// counters and the loop's first and last step.
pub fn assert_within_a_hundredth(what: &str, found: u64, kernel: u64) {
    let slack = kernel / 100 + 12;
    assert!(kernel > 0, "{what}: the kernel counted none");
    assert!(found.abs_diff(kernel) <= slack, "{what}: {found} found, {kernel} by the kernel's own counter");
    eprintln!("{what}: {found} found, {kernel} by the kernel's own counter");
}
