//! The sources that make the worst phases of a parallel job long (De et al. 2009, section 4.2): combines the phases of the job with a simultaneous
//! recording of its nodes.
//!
//! Both read the same counter, and store its value at their time 0, so no clocks are compared. In each of the phases with the longest compute times,
//! all ranks waited for the one that computed longest. Counted is what ran on that rank's CPU while it computed, and what ran on the CPUs of the
//! waiting ranks from the end of their work to that of the phase, in each case only the part within that time. The own time of an interrupted
//! activity counts as if it were contiguous from its start. The recording's own loop competes with the rank for the CPU; its time, which is no
//! detour, is reported separately. While a rank waits, the loop takes the place of the idle task: it takes what is left over.

use std::collections::{BTreeMap, BTreeSet};

use becalm_bundle::{Bundle, BundleError, PhaseRun};
use becalm_model::Kind;
use becalm_model::node::{ClockDoc, NodeDoc};
use becalm_model::phases::PhasesDoc;
use becalm_units::CpuId;
use becalm_units::fault::{Fault, Wording};

use crate::job::JobPhases;
use crate::phases::count_worst;

/// The name of a job's threads in recordings; their own work is no noise.
const JOB: &str = "becalm-mpi";

/// Tolerated difference between the wall clocks and the counters of two documents; more means another boot of the machine.
const SAME_BOOT_NS: f64 = 1e9;

/// The sources within the worst phases of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct PhaseSources {
    /// The phases of the job.
    pub phases: usize,
    /// How many of them are the worst: the 1 % with the longest compute times.
    pub worst: usize,
    /// The number of worst phases with a recording of the latest rank's CPU.
    pub seen: usize,
    /// The median of all longest compute times, in nanoseconds.
    pub median_ns: i64,
    /// The mean of the longest compute times of the recorded worst phases, in nanoseconds.
    pub mean_ns: f64,
    /// Their total time beyond the median, in nanoseconds.
    pub beyond_ns: i64,
    /// The time of the recording's own loop within them, in nanoseconds.
    pub loop_ns: i64,
    /// The sources, by time.
    pub sources: Vec<PhaseSource>,
    /// The longest of them, the longest first, with the source that took most of each.
    pub longest: Vec<LongPhase>,
    /// What ran while ranks waited in these phases; `None` if no waiting was recorded, as for a job of one rank.
    pub waiting: Option<Waiting>,
}

/// What ran on the CPUs of ranks that had done their work and waited for the latest one.
#[derive(Clone, PartialEq, Debug)]
pub struct Waiting {
    /// The number of waits in the worst phases.
    pub waits: usize,
    /// Their total time, in nanoseconds.
    pub total_ns: i64,
    /// Part of it: the job's own threads, polling for the others.
    pub job_ns: i64,
    /// Part of it: the recording's own loop, when the CPU would have been idle or shared.
    pub loop_ns: i64,
    /// The rest, by time.
    pub sources: Vec<PhaseSource>,
}

/// A source within the worst phases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhaseSource {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub source: String,
    /// The number of phases with it.
    pub phases: usize,
    /// The number of its activities.
    pub count: u64,
    /// Its own time within the phases, in nanoseconds.
    pub total_ns: i64,
    /// Its longest contiguous time within one of them, in nanoseconds.
    pub highest_ns: i64,
}

/// One of the worst phases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LongPhase {
    /// Its number, from 0.
    pub phase: usize,
    /// The rank that computed longest.
    pub rank: u32,
    /// Its compute time, in nanoseconds.
    pub compute_ns: i64,
    /// The source that took most of it; `None` if none did.
    pub most: Option<LargestSource>,
}

/// The source that took most of a phase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LargestSource {
    /// Its name.
    pub source: String,
    /// Its time, in nanoseconds.
    pub time_ns: i64,
}

/// A recording and a job that cannot be combined.
#[derive(Debug, thiserror::Error)]
pub enum PhaseSourcesError {
    /// One of them cannot be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// They do not belong together; the text says why.
    #[error("the job cannot be aligned with the recording: {0}")]
    Apart(String),
}

impl Fault for PhaseSourcesError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Apart(_))
    }

    fn hint(&self) -> Option<Wording> {
        if let Self::Bundle(error) = self { error.hint() } else { None }
    }
}

/// The number of longest phases that are listed individually.
const LONGEST: usize = 10;

/// The compute time of a phase's latest rank, on the clock of the recording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Window {
    start: i64,
    end: i64,
    phase: usize,
    rank: u32,
}

/// The sources within the worst phases of a job, from a recording of its nodes. Fails if one of them cannot be read, or they are not of the same
/// nodes at the same time.
pub fn phase_sources(job: &PhaseRun, bundle: &Bundle) -> Result<PhaseSources, PhaseSourcesError> {
    let slowest = JobPhases::from_run(job)?.slowest;
    let phases = slowest.compute.len();
    let mut order: Vec<usize> = (0..phases).collect();
    order.sort_by_key(|phase| (std::cmp::Reverse(slowest.compute[*phase]), *phase));
    let Some(median) = order.get(phases / 2) else {
        return Err(PhaseSourcesError::Apart("the job did not come to its end, so it has no phases".to_owned()));
    };
    let median_ns = slowest.compute[*median];
    let worst: BTreeSet<usize> = order[..count_worst(phases)].iter().copied().collect();
    let Windows { computing, waiting } = windows(job, bundle, &slowest.latest, &worst)?;
    let (mut computed, mut meanwhile) = (WindowSums::default(), WindowSums::default());
    let nodes: BTreeSet<&str> = computing.keys().chain(waiting.keys()).copied().collect();
    for node in nodes {
        let windows_there =
            |windows: &ByNode<'_>, cpu: &i32| windows.get(node).and_then(|by_cpu| by_cpu.get(cpu)).cloned();
        let cpus =
            |windows: &ByNode<'_>| windows.get(node).into_iter().flat_map(BTreeMap::keys).copied().collect::<Vec<_>>();
        let by_cpu: BTreeMap<i32, [Option<Vec<Window>>; 2]> = cpus(&computing)
            .into_iter()
            .chain(cpus(&waiting))
            .map(|cpu| (cpu, [windows_there(&computing, &cpu), windows_there(&waiting, &cpu)]))
            .collect();
        for batch in bundle.detours(node)? {
            let batch = batch?;
            for ((cpu, start), duration) in batch.cpus().iter().zip(batch.starts()).zip(batch.durations()) {
                let Some([computing, waiting]) = by_cpu.get(cpu) else { continue };
                computed.detour(computing.as_ref(), *start, *duration);
                meanwhile.detour(waiting.as_ref(), *start, *duration);
            }
        }
        for batch in bundle.activities(node)? {
            let batch = batch?;
            for (row, cpu) in batch.cpus().iter().enumerate() {
                let Some([computing, waiting]) = by_cpu.get(cpu) else { continue };
                let (start, time) = (batch.starts()[row], batch.self_times()[row]);
                let who = (batch.kind(row), batch.source(row));
                computed.activity(computing.as_ref(), start, time, who);
                meanwhile.activity(waiting.as_ref(), start, time, who);
            }
        }
    }
    let all = |windows: ByNode<'_>| -> Vec<Window> {
        windows.into_values().flat_map(BTreeMap::into_values).flatten().collect()
    };
    let (computing, waiting) = (all(computing), all(waiting));
    if computing.is_empty() {
        let why = "it has none of the job's worst phases; start it before the job, and end it after";
        return Err(PhaseSourcesError::Apart(why.to_owned()));
    }
    let found = computed.result(&computing, phases, worst.len(), median_ns);
    Ok(PhaseSources { waiting: meanwhile.waiting(&waiting), ..found })
}

/// Windows by node and CPU, in order of time.
type ByNode<'a> = BTreeMap<&'a str, BTreeMap<i32, Vec<Window>>>;

/// When ranks computed and waited in the worst phases; only times that were recorded completely.
#[derive(Default)]
struct Windows<'a> {
    /// Per phase, the rank that computed longest.
    computing: ByNode<'a>,
    /// Per phase, all other ranks from the end of their work on. Ranks that share a CPU wait together.
    waiting: ByNode<'a>,
}

/// Merges overlapping windows.
fn joined(windows: Vec<Window>) -> Vec<Window> {
    let mut joined: Vec<Window> = Vec::with_capacity(windows.len());
    for window in windows {
        match joined.last_mut() {
            Some(last) if window.start < last.end => last.end = last.end.max(window.end),
            _ => joined.push(window),
        }
    }
    joined
}

/// The windows of the worst phases.
fn windows<'a>(
    job: &'a PhaseRun,
    bundle: &Bundle,
    latest: &[u32],
    worst: &BTreeSet<usize>,
) -> Result<Windows<'a>, PhaseSourcesError> {
    let mut recordings = Vec::new();
    for doc in &job.nodes {
        let recorded = bundle.nodes().iter().find(|recorded| recorded.node == doc.node);
        recordings.push(recorded.map(|recorded| shift(doc, recorded).map(|shift| (recorded, shift))).transpose()?);
    }
    if recordings.iter().all(Option::is_none) {
        let name = |node: &PhasesDoc| node.node.clone();
        let names = job.nodes.iter().map(name).collect::<Vec<_>>().join(", ");
        return Err(PhaseSourcesError::Apart(format!("the recording holds no node of the job, which ran on {names}")));
    }
    let mut windows = Windows::default();
    job.for_each(|node, rank, number, phase| {
        let number = number as usize;
        let (Some((recorded, (offset, ratio))), true) = (&recordings[node], worst.contains(&number)) else { return };
        let doc = &job.nodes[node];
        let Some(cpu) = doc.ranks.iter().find(|other| other.rank == rank).map(|found| found.cpu) else { return };
        let at = |ns: i64| (offset + ns as f64 * ratio).round() as i64;
        let computed = phase.start_ns + phase.compute_ns;
        let (by_node, start, end) = if latest[number] == rank {
            (&mut windows.computing, at(phase.start_ns), at(computed))
        } else {
            (&mut windows.waiting, at(computed), at(computed + phase.collective_ns))
        };
        let is_whole = |other: &becalm_model::node::CpuDoc| {
            other.cpu == cpu && other.start_ns.get() <= start && end <= (other.start_ns + other.duration_ns).get()
        };
        if start < end && recorded.cpus.iter().any(is_whole) {
            let by_cpu = by_node.entry(doc.node.as_str()).or_default();
            by_cpu.entry(cpu_number(cpu)).or_default().push(Window { start, end, phase: number, rank });
        }
    })?;
    let all = [&mut windows.computing, &mut windows.waiting].into_iter().flat_map(BTreeMap::values_mut);
    for windows in all.flat_map(BTreeMap::values_mut) {
        windows.sort_unstable();
        *windows = joined(std::mem::take(windows));
    }
    Ok(windows)
}

fn cpu_number(cpu: CpuId) -> i32 {
    i32::try_from(cpu.get()).unwrap_or(i32::MAX)
}

/// The job's time 0 on the recording's clock, in nanoseconds, and the ratio of the clock rates, job to recording.
fn shift(doc: &PhasesDoc, recorded: &NodeDoc) -> Result<(f64, f64), PhaseSourcesError> {
    let apart = |why: String| Err(PhaseSourcesError::Apart(why));
    let (job, run): (&ClockDoc, &ClockDoc) = (&doc.clock, &recorded.clock);
    if job.origin_ticks == 0 || run.origin_ticks == 0 {
        return apart(format!("one of them does not say what the counter of {} was at its start", doc.node));
    }
    if job.counter != run.counter {
        return apart(format!(
            "on {} it read the counter {}, and the recording {}",
            doc.node, job.counter, run.counter
        ));
    }
    let ticks = job.origin_ticks as f64 - run.origin_ticks as f64;
    let offset = ticks * 1e9 / run.rate_hz;
    let by_wall = recorded.origin.map(|origin| doc.origin.duration_since(origin).as_secs_f64() * 1e9);
    if by_wall.is_none_or(|by_wall| (offset - by_wall).abs() > SAME_BOOT_NS) {
        return apart(format!(
            "they are of different boots of {}: their counters and their wall clocks disagree",
            doc.node
        ));
    }
    Ok((offset, job.rate_hz / run.rate_hz))
}

/// A source by its kind and its name.
type Who = (Kind, String);

/// The tally of a source within windows.
#[derive(Default)]
struct SourceTally {
    phases: BTreeSet<usize>,
    count: u64,
    total_ns: i64,
    highest_ns: i64,
}

/// The sums within windows.
#[derive(Default)]
struct WindowSums {
    sources: BTreeMap<Who, SourceTally>,
    /// Per phase, the time of each of its sources.
    by_phase: BTreeMap<usize, BTreeMap<Who, i64>>,
    /// The time of the windows that the CPU spent in detours.
    away_ns: i64,
    /// The time of the windows that the job's own threads took.
    job_ns: i64,
}

/// The windows that an interval overlaps, each with the length of the overlap.
fn meets(windows: Option<&Vec<Window>>, start: i64, length: i64) -> impl Iterator<Item = (usize, i64)> + '_ {
    let end = start.saturating_add(length);
    let windows = windows.map_or(&[][..], Vec::as_slice);
    // The windows of a CPU follow each other, so their ends rise too.
    let first = windows.partition_point(|window| window.end <= start);
    let reached = windows[first..].iter().take_while(move |window| window.start < end);
    reached.map(move |window| (window.phase, window.end.min(end) - window.start.max(start)))
}

impl WindowSums {
    fn detour(&mut self, windows: Option<&Vec<Window>>, start: i64, duration: i64) {
        self.away_ns += meets(windows, start, duration).map(|(_, time)| time).sum::<i64>();
    }

    fn activity(&mut self, windows: Option<&Vec<Window>>, start: i64, self_ns: i64, (kind, source): (Kind, &str)) {
        if kind == Kind::Task && source == JOB {
            self.job_ns += meets(windows, start, self_ns).map(|(_, time)| time).sum::<i64>();
            return;
        }
        for (phase, time) in meets(windows, start, self_ns) {
            let key = (kind, source.to_owned());
            *self.by_phase.entry(phase).or_default().entry(key.clone()).or_default() += time;
            let found = self.sources.entry(key).or_default();
            found.phases.insert(phase);
            found.count += 1;
            found.total_ns += time;
            found.highest_ns = found.highest_ns.max(time);
        }
    }

    /// Takes the sources out, sorted by time.
    fn sources(&mut self) -> Vec<PhaseSource> {
        let source = |((kind, source), found): (Who, SourceTally)| {
            let SourceTally { phases, count, total_ns, highest_ns } = found;
            PhaseSource { kind, source, phases: phases.len(), count, total_ns, highest_ns }
        };
        let mut sources: Vec<PhaseSource> = std::mem::take(&mut self.sources).into_iter().map(source).collect();
        sources.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.source.cmp(&b.source)));
        sources
    }

    fn waiting(mut self, windows: &[Window]) -> Option<Waiting> {
        let total_ns: i64 = windows.iter().map(|window| window.end - window.start).sum();
        (!windows.is_empty()).then(|| Waiting {
            waits: windows.len(),
            total_ns,
            job_ns: self.job_ns,
            loop_ns: total_ns - self.away_ns,
            sources: self.sources(),
        })
    }

    fn result(mut self, windows: &[Window], phases: usize, worst: usize, median_ns: i64) -> PhaseSources {
        let lengths = || windows.iter().map(|window| window.end - window.start);
        let all: i64 = lengths().sum();
        let sources = self.sources();
        let mut longest = windows.to_vec();
        longest.sort_by_key(|window| (window.start - window.end, window.phase));
        let told = |window: &Window| LongPhase {
            phase: window.phase,
            rank: window.rank,
            compute_ns: window.end - window.start,
            most: self.by_phase.get(&window.phase).and_then(|times| {
                times
                    .iter()
                    .max_by_key(|(_, time)| **time)
                    .map(|((_, source), time)| LargestSource { source: source.clone(), time_ns: *time })
            }),
        };
        PhaseSources {
            phases,
            worst,
            seen: windows.len(),
            median_ns,
            mean_ns: all as f64 / windows.len().max(1) as f64,
            beyond_ns: lengths().map(|length| length - median_ns).sum(),
            loop_ns: all - self.away_ns,
            sources,
            longest: longest.iter().take(LONGEST).map(told).collect(),
            waiting: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// In every hundredth phase of the job, a kernel thread takes 5 ms and a tick 20 us: both are found, and nothing that came while the rank waited.
    #[test]
    fn what_made_phases_long_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        becalm_fixtures::phases::write_beside(folder.path());
        let job = PhaseRun::open(&folder.path().join("observed.becalm")).unwrap();
        let bundle = Bundle::open(&folder.path().join("meanwhile.becalm")).unwrap();
        let found = phase_sources(&job, &bundle).unwrap();
        assert_eq!((found.phases, found.worst, found.seen, found.median_ns), (1_000, 10, 10, 1_000_000));
        assert_eq!((found.beyond_ns, found.loop_ns), (50_200_000, 0));
        let named: Vec<_> = found.sources.iter().map(|one| (one.source.as_str(), one.phases, one.total_ns)).collect();
        assert_eq!(named, [("pdflush", 10, 50_000_000), ("tick", 10, 200_000)]);
        let most = found.longest[0].most.clone();
        assert_eq!(
            (found.longest.len(), found.longest[0].rank, most),
            (10, 1, Some(LargestSource { source: "pdflush".to_owned(), time_ns: 5_000_000 }))
        );
        // Rank 0 waits for 5.023 ms in each: 3 ms of polling, 0.5 ms of another task, and the rest is idle.
        let waiting = found.waiting.unwrap();
        let [other] = &waiting.sources[..] else { panic!("{waiting:?}") };
        assert_eq!((other.source.as_str(), other.phases, other.total_ns), ("kcompactd0", 10, 5_000_000));
        assert_eq!((waiting.waits, waiting.total_ns, waiting.job_ns), (10, 50_230_000, 30_000_000));
        assert_eq!(waiting.loop_ns, 15_230_000);
    }

    /// Two ranks on a CPU wait in one phase: the CPU waits from the first to the last of them.
    #[test]
    fn ranks_of_a_cpu_wait_together() {
        let window = |start, end, phase| Window { start, end, phase, rank: 0 };
        let windows = joined(vec![window(0, 10, 0), window(4, 12, 0), window(5, 6, 0), window(12, 20, 1)]);
        assert_eq!(windows, [window(0, 12, 0), window(12, 20, 1)]);
    }

    proptest! {
        /// Compared with counting nanosecond by nanosecond.
        #[test]
        fn time_within_windows_is_what_counting_gives(
            windows in prop::collection::vec((0_i64..20, 1_i64..20), 1..6),
            parts in prop::collection::vec((0_i64..12, 0_i64..15, 0_usize..3), 0..12),
        ) {
            let mut at = 0;
            let windows: Vec<Window> = windows.iter().enumerate().map(|(phase, (gap, length))| {
                let start = at + gap;
                at = start + length;
                Window { start, end: at, phase, rank: 0 }
            }).collect();
            let names = ["tick", "daemon", JOB];
            let (mut computed, mut waits, mut start) = (WindowSums::default(), WindowSums::default(), 0);
            let mut counted = [0_i64; 3];
            for (gap, length, who) in parts {
                start += gap;
                for sums in [&mut computed, &mut waits] {
                    sums.detour(Some(&windows), start, length);
                    sums.activity(Some(&windows), start, length, (Kind::Task, names[who]));
                }
                let is_inside = |at: &i64| windows.iter().any(|window| (window.start..window.end).contains(at));
                let inside = (start..start + length).filter(is_inside);
                counted[who] += inside.count() as i64;
                start += length;
            }
            let found = computed.result(&windows, 100, windows.len(), 1);
            for (who, name) in names.iter().enumerate().take(2) {
                let time = found.sources.iter().find(|source| source.source == *name).map_or(0, |source| source.total_ns);
                prop_assert_eq!(time, counted[who]);
            }
            prop_assert!(found.sources.iter().all(|source| source.source != JOB));
            let all: i64 = windows.iter().map(|window| window.end - window.start).sum();
            prop_assert_eq!(found.loop_ns, all - counted.iter().sum::<i64>());
            prop_assert_eq!(found.beyond_ns, all - windows.len() as i64);
            let waited = waits.waiting(&windows).unwrap();
            prop_assert_eq!((waited.total_ns, waited.job_ns, waited.loop_ns), (all, counted[2], found.loop_ns));
            prop_assert_eq!(waited.sources, found.sources);
        }
    }
}
