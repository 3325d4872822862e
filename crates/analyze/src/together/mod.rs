//! Detours that coincide on several CPUs of a node: the CPUs share one clock, so their recordings can be compared in time.
//!
//! A job waits for its latest rank. Time that all CPUs lose at the same instant is lost once; time that they lose in turn is lost once per CPU.
//! Radojković et al. 2008 (section 3.2) found similar peaks on all strands of a processor, and their common cause by removing it: they disappeared
//! without logical domains.

mod count;

use becalm_bundle::Bundle;
use becalm_units::fault::{Fault, Wording};
use becalm_units::{CpuId, Nanos};

pub use self::count::{BusyTime, Meeting, Stretch};
use self::count::{Placed, busy_times, meetings};
use crate::noise::{NoiseError, NoiseInput};
use crate::summary::Selection;

/// The number of longest stretches that are kept.
const STRETCHES: usize = 10;

/// Coincident detours on the CPUs of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Together {
    /// The node.
    pub node: String,
    /// Its CPUs, at least two.
    pub cpus: Vec<CpuId>,
    /// The time when all of them were watched.
    pub length: Nanos,
    /// The maximum distance in time of detours that meet.
    pub within: Nanos,
    /// The time during which 0, 1, ... CPUs were in a detour at once.
    pub at_once: Vec<BusyTime>,
    /// The number of stretches with the maximum number of CPUs in a detour (at least two).
    pub stretches: usize,
    /// The ten longest of them, the longest first.
    pub longest: Vec<SharedStretch>,
    /// All detours.
    pub all: Meeting,
    /// By source, the detours that it took most of, sorted by number; empty for a recording without sources.
    pub sources: Vec<SourceMeeting>,
    /// The limits of the result.
    pub warnings: Vec<becalm_model::node::Warning>,
}

/// A stretch with many CPUs in a detour.
#[derive(Clone, PartialEq, Debug)]
pub struct SharedStretch {
    /// The stretch; its times are since the run's origin.
    pub stretch: Stretch,
    /// The sources that took most of these detours, each once.
    pub sources: Vec<String>,
}

/// The detours of a source.
#[derive(Clone, PartialEq, Debug)]
pub struct SourceMeeting {
    /// Its name.
    pub source: String,
    /// Its detours.
    pub meeting: Meeting,
}

/// Coincident detours cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum TogetherError {
    /// The recording cannot be read.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// It has several nodes, with different clocks.
    #[error("the run has several nodes, which have no clock in common")]
    SeveralNodes,
    /// A single CPU has nothing to coincide with.
    #[error("only CPU {0} was measured, and nothing can come at once on several CPUs")]
    OneCpu(i32),
}

impl Fault for TogetherError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::SeveralNodes | Self::OneCpu(_))
    }

    fn hint(&self) -> Option<Wording> {
        match self {
            Self::Noise(error) => error.hint(),
            Self::SeveralNodes => Some(Wording::new(" (name one by {node})")),
            Self::OneCpu(_) => None,
        }
    }
}

impl SharedStretch {
    /// Shifts the times to a clock that started `begin` earlier.
    fn since(mut self, begin: Nanos) -> Self {
        self.stretch.start += begin.get();
        self.stretch.end += begin.get();
        self
    }
}

/// Coincident detours on the selected CPUs of a run, with `within` as the maximum distance. Fails if the run cannot be read, or its selected CPUs are
/// not several of one node.
pub fn together(bundle: &Bundle, selection: &Selection, within: Nanos) -> Result<Together, TogetherError> {
    let input = match NoiseInput::from_run(bundle, selection, true) {
        Err(NoiseError::NoBooks { .. }) => NoiseInput::from_run(bundle, selection, false)?,
        read => read?,
    };
    let [node] = input.noise.nodes() else { return Err(TogetherError::SeveralNodes) };
    if let [(_, cpu)] = input.places.as_slice() {
        return Err(TogetherError::OneCpu(*cpu));
    }
    let length = node.cpus().first().map_or(Nanos::ZERO, becalm_scale::NoiseTrace::length);
    let names = input.booked.as_ref().map_or(&[][..], |booked| booked.sources());
    let mut detours = match &input.booked {
        Some(booked) => booked
            .owned()
            .enumerate()
            .flat_map(|(cpu, owned)| owned.map(move |owned| (cpu, owned.start, owned.length, owned.owner)))
            .filter_map(|(cpu, start, duration, owner)| {
                // A detour without an owner is in the last group, which has no name.
                placed(cpu, start, duration, length, owner.unwrap_or(names.len() as u32))
            })
            .collect::<Vec<_>>(),
        None => {
            let traces = input.noise.traces().enumerate();
            let placed_detours = |(cpu, trace): (usize, &becalm_scale::NoiseTrace)| {
                trace
                    .detours()
                    .filter_map(|(start, duration)| placed(cpu, start, duration, length, 0))
                    .collect::<Vec<_>>()
            };
            traces.flat_map(placed_detours).collect()
        }
    };
    detours.sort_unstable();
    let cpus = input.places.len();
    let (at_once, mut stretches) = busy_times(&detours, cpus, length.get());
    let sources = sources(&detours, names, cpus, length, within);
    let docs = selection.documents(bundle).map_err(NoiseError::from)?;
    let begin = docs.iter().flat_map(|doc| &doc.cpus).map(|cpu| cpu.start_ns).max().unwrap_or(Nanos::ZERO);
    let found = stretches.len();
    stretches.sort_by_key(|stretch| (std::cmp::Reverse(stretch.end - stretch.start), stretch.start));
    stretches.truncate(STRETCHES);
    let longest = stretches.into_iter().map(|stretch| shared(stretch, &detours, names).since(begin)).collect();
    detours.iter_mut().for_each(|detour| detour.group = 0);
    let all = meetings(&detours, cpus, length.get(), within.get()).pop();
    Ok(Together {
        node: node.name().to_owned(),
        cpus: input.places.iter().map(|(_, cpu)| CpuId::new(*cpu as u32)).collect(),
        length,
        within,
        at_once,
        stretches: found,
        longest,
        all: all.unwrap_or(Meeting { group: 0, count: 0, met: 0, by_chance: 0.0 }),
        sources,
        warnings: input.warnings,
    })
}

/// A detour within the time when all CPUs were watched; `None` if it is outside.
fn placed(cpu: usize, start: Nanos, duration: Nanos, length: Nanos, group: u32) -> Option<Placed> {
    let (start, end) = (start.get().max(0), (start + duration).get().min(length.get()));
    (start < end).then_some(Placed { start, end, cpu: cpu as u32, group })
}

/// The number of each source's detours that meet others.
fn sources(detours: &[Placed], names: &[String], cpus: usize, length: Nanos, within: Nanos) -> Vec<SourceMeeting> {
    let found = meetings(detours, cpus, length.get(), within.get()).into_iter();
    let named = |meeting: Meeting| Some(SourceMeeting { source: names.get(meeting.group as usize)?.clone(), meeting });
    let mut found: Vec<SourceMeeting> = found.filter_map(named).collect();
    found.sort_by(|one, other| (other.meeting.count, &one.source).cmp(&(one.meeting.count, &other.source)));
    found
}

/// A stretch with the names of the sources of its detours.
fn shared(stretch: Stretch, detours: &[Placed], names: &[String]) -> SharedStretch {
    // Detours are sorted by their starts; those that reach into the stretch may have started long before it.
    let before = detours.partition_point(|detour| detour.start < stretch.end);
    let within = detours[..before].iter().filter(|detour| detour.end > stretch.start);
    let mut sources: Vec<String> = within.filter_map(|detour| names.get(detour.group as usize).cloned()).collect();
    sources.sort_unstable();
    sources.dedup();
    SharedStretch { stretch, sources }
}
