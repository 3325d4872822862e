//! What comes at once on several CPUs of a node: the CPUs share one clock, so that their recordings can be laid beside each other.
//!
//! A job waits for its latest rank. What all CPUs lose at the same instant it loses once; what they lose in turns it loses as
//! often as there are CPUs. Radojković et al. 2008 (section 3.2) found similar peaks on all strands of a processor, and their common cause by
//! removing it: they disappeared without logical domains.

mod count;

use becalm_bundle::Bundle;
use becalm_units::fault::{Fault, Wording};
use becalm_units::{CpuId, Nanos};

pub use self::count::{BusyTime, Meeting, Stretch};
use self::count::{Placed, busy_times, meetings};
use crate::noise::{NoiseError, NoiseInput};
use crate::summary::Selection;

/// So many stretches are kept, the longest.
const STRETCHES: usize = 10;

/// What comes at once on the CPUs of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Together {
    /// The node.
    pub node: String,
    /// Its CPUs, of which there are at least two.
    pub cpus: Vec<CpuId>,
    /// For how long all of them were watched.
    pub length: Nanos,
    /// How near in time detours that meet are.
    pub within: Nanos,
    /// For how long 0, 1, ... CPUs were within a detour at once.
    pub at_once: Vec<BusyTime>,
    /// How many stretches there are in which as many CPUs as ever were within a detour, of two at least.
    pub stretches: usize,
    /// The ten longest of them, the longest first.
    pub longest: Vec<SharedStretch>,
    /// All detours.
    pub all: Meeting,
    /// Those of which each source is the cause of the most time, by the number of detours; none of a recording without sources.
    pub sources: Vec<SourceMeeting>,
    /// What limits this.
    pub warnings: Vec<becalm_model::node::Warning>,
}

/// A stretch in which many CPUs were within a detour.
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

/// Nothing can come at once.
#[derive(Debug, thiserror::Error)]
pub enum TogetherError {
    /// The recording cannot be read.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// It has several nodes, whose clocks differ.
    #[error("the run has several nodes, which have no clock in common")]
    SeveralNodes,
    /// One CPU alone has nothing beside it.
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
    /// The same with times that count from so much earlier on.
    fn since(mut self, begin: Nanos) -> Self {
        self.stretch.start += begin.get();
        self.stretch.end += begin.get();
        self
    }
}

/// What comes at once on the selected CPUs of a run; detours that are so near in time count as meeting. Fails if the run cannot be read, or
/// its selected CPUs are not several of one node.
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
                // Who took nothing has no name; such a detour is in the last group.
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

/// A detour within the time that all CPUs were watched; `None` of one that is not.
fn placed(cpu: usize, start: Nanos, duration: Nanos, length: Nanos, group: u32) -> Option<Placed> {
    let (start, end) = (start.get().max(0), (start + duration).get().min(length.get()));
    (start < end).then_some(Placed { start, end, cpu: cpu as u32, group })
}

/// How many detours of each source meet others.
fn sources(detours: &[Placed], names: &[String], cpus: usize, length: Nanos, within: Nanos) -> Vec<SourceMeeting> {
    let found = meetings(detours, cpus, length.get(), within.get()).into_iter();
    let named = |meeting: Meeting| Some(SourceMeeting { source: names.get(meeting.group as usize)?.clone(), meeting });
    let mut found: Vec<SourceMeeting> = found.filter_map(named).collect();
    found.sort_by(|one, other| (other.meeting.count, &one.source).cmp(&(one.meeting.count, &other.source)));
    found
}

/// A stretch with the names of those that took its detours.
fn shared(stretch: Stretch, detours: &[Placed], names: &[String]) -> SharedStretch {
    // Detours rise by their starts, and those that last into the stretch may have begun long before it.
    let before = detours.partition_point(|detour| detour.start < stretch.end);
    let within = detours[..before].iter().filter(|detour| detour.end > stretch.start);
    let mut sources: Vec<String> = within.filter_map(|detour| names.get(detour.group as usize).cloned()).collect();
    sources.sort_unstable();
    sources.dedup();
    SharedStretch { stretch, sources }
}
