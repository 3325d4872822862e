//! A recording in this process, kept in memory: what the root tests hold against the logs of their noise makers.

use std::convert::Infallible;

use becalm_attribute::{Attributor, Tally};
use becalm_linux::janitor::Janitor;
use becalm_linux::signals::StopSignals;
use becalm_measure::{Batch, Loop, Names, Plan, Recording, Sink, record};
use becalm_model::node::{CpuDoc, NodeDoc, Rung};
use becalm_model::{Activity, Detour, Kind, Labels};
use becalm_model::{LoopThread, Step};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

/// Attributes and keeps everything.
#[derive(Default)]
pub struct Memory {
    attributors: Vec<Attributor>,
    pub detours: Vec<Vec<Detour>>,
    pub activities: Vec<Vec<Activity>>,
    pub tallies: Vec<Tally>,
    pub labels: Labels,
    steps: u64,
}

impl Sink for Memory {
    type Error = Infallible;

    fn begin(&mut self, _: &NodeDoc, loops: &[Loop], names: &mut Names) -> Result<(), Infallible> {
        for of in loops {
            let thread = LoopThread { cpu: of.cpu, pid: of.pid, t_min: of.t_min, realtime: of.realtime };
            self.attributors.push(Attributor::new(thread, &mut names.labels));
            self.detours.push(Vec::new());
            self.activities.push(Vec::new());
        }
        Ok(())
    }

    fn batch(&mut self, batch: Batch<'_>, names: &Names) -> Result<(), Infallible> {
        let steps: Vec<Step> = batch.steps.iter().map(|(start, end)| Step { start: *start, end: *end }).collect();
        self.steps += steps.len() as u64;
        let index = batch.index;
        let (detours, activities) = (&mut self.detours[index], &mut self.activities[index]);
        self.attributors[index].attribute(&steps, batch.events, &names.tasks, detours, activities);
        self.attributors[index].advance(batch.complete_until);
        Ok(())
    }

    fn end_segment(&mut self, names: &Names) -> Result<(), Infallible> {
        self.labels = names.labels.clone();
        self.tallies = self.attributors.iter_mut().map(Attributor::finish).collect();
        Ok(())
    }
}

/// A finished recording.
pub struct Recorded {
    pub node: NodeDoc,
    pub memory: Memory,
}

/// Records, and checks what must hold of every recording.
pub fn recorded(plan: Plan) -> Recorded {
    let signals = StopSignals::block().expect("signals can be blocked");
    let mut memory = Memory::default();
    let Recording { node, .. } = record(plan, None::<std::sync::Arc<Janitor>>, &signals, &mut memory, &mut |_| {})
        .unwrap_or_else(|error| panic!("the recording failed: {error}"));
    let recorded = Recorded { node, memory };
    recorded.check();
    recorded
}

impl Recorded {
    /// From ticks to the run's axis.
    pub fn axis(&self) -> TicksToNanos {
        let clock = &self.node.clock;
        TicksToNanos::new(Ticks::new(clock.origin_ticks), TickRate::from_hz(clock.rate_hz))
    }

    pub fn cpu(&self, cpu: CpuId) -> (usize, &CpuDoc) {
        let found = self.node.cpus.iter().enumerate().find(|(_, doc)| doc.cpu == cpu);
        found.expect("the CPU was measured")
    }

    /// The activities of a source on a CPU.
    pub fn of(&self, cpu: CpuId, kind: Kind, source: &str) -> Vec<Activity> {
        let (index, _) = self.cpu(cpu);
        let all = self.memory.activities[index].iter();
        all.filter(|row| row.kind == kind && self.memory.labels.text(row.source) == source).copied().collect()
    }

    /// By how much one of the kernel's counters grew.
    pub fn growth(&self, cpu: CpuId, name: &str) -> u64 {
        let found = self.node.counters.iter().find(|counter| counter.cpu == cpu && counter.name == name);
        found.map_or(0, |counter| counter.growth)
    }

    fn check(&self) {
        assert_eq!(self.node.rung, Rung::Tracepoints, "{:?}", self.node.warnings);
        for (index, doc) in self.node.cpus.iter().enumerate() {
            let (detours, activities) = (&self.memory.detours[index], &self.memory.activities[index]);
            let tally = &self.memory.tallies[index];
            assert_eq!(doc.lost_events, 0, "CPU {}: events were lost", doc.cpu);
            assert_eq!(doc.detours, detours.len() as u64, "CPU {}: detours were lost", doc.cpu);

            // No time vanishes: the steps above and below the threshold are the whole duration. Each conversion
            // from ticks rounds down, so each kept step may be a nanosecond off.
            let kept: Nanos = detours.iter().map(|detour| detour.duration + doc.t_min_ns).sum();
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
