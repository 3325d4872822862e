//! Samples of work, summarized: how they are distributed, which of them are off, what of that each source of the kernel's
//! own accounts for, which frequencies are in it, and how they compare with those of a quieter machine (Tsafrir 2007,
//! sections 3.3 and 4; Radojković et al. 2008; Sottile and Minnich 2004).
//!
//! A sample's *value* is its duration if the work was fixed. If the time was fixed it is the grain plus the time that was
//! lost: duration - work * c, where c, the time of an iteration, is the median of duration / work. So a quantum in which
//! nothing interfered has the grain as its value, and both kinds of run read the same.
//!
//! Nothing here measures or prints. One CPU's samples are in memory at a time.

mod baseline;
mod beats;
mod body;
mod counts;
mod cpi;
mod cumulative;
mod curves;
mod lines;
mod peaks;
mod read;
mod subtraction;
mod tones;

use std::path::PathBuf;

use becalm_bundle::{Bundle, BundleError};
use becalm_model::NodeDoc;
use becalm_model::node::Fixed;
use becalm_units::CpuId;
use becalm_units::fault::{Fault, Wording};

pub use self::baseline::{BaselineComparison, Incomparable, RepetitionRatios, comparable, compare_with_baseline};
pub use self::body::{MainBody, RULE};
pub use self::counts::EventTotal;
pub use self::cpi::{Cpi, CpiFrom};
pub use self::cumulative::Cumulative;
pub use self::curves::{Bin, Curves, SamplePoint};
pub use self::peaks::{PeakBin, TickPeaks};
pub use self::read::{SourceTimes, WorkSamples, read};
pub use self::subtraction::{Spread, SubtractionStep, subtract};
pub use self::tones::{FALSE_ALARM, Tone, Tones, tones};
use crate::summary::Selection;

/// A run of work, summarized.
#[derive(Clone, Debug)]
pub struct WorkSummary {
    /// The folder of the bundle that was summarized.
    pub path: PathBuf,
    /// The documents of the nodes, with the CPUs that were selected.
    pub nodes: Vec<NodeDoc>,
    /// The CPUs, node by node.
    pub cpus: Vec<CpuWork>,
}

/// The samples of one CPU, summarized. Values are in nanoseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct CpuWork {
    /// The host on which the work was done.
    pub node: String,
    /// The CPU on which the work was done.
    pub cpu: CpuId,
    /// The name of the loop's body.
    pub loop_body: String,
    /// Whether the work or the time stayed the same from sample to sample.
    pub fixed: Fixed,
    /// Iterations a sample (fixed work), or a step (fixed time).
    pub iterations: u64,
    /// What they took when they were calibrated.
    pub calibrated_ns: i64,
    /// The time of all samples.
    pub duration_ns: i64,
    /// The iterations done, by the measured loop and by its copies together, and in how much time one was done: with
    /// several copies that is the combined throughput.
    pub all_iterations: u64,
    /// How the values are spread.
    pub spread: Spread,
    /// Where the main body lies, and what is outside.
    pub body: MainBody,
    /// Samples in which kernel events were lost.
    pub incomplete: u64,
    /// The values less what each source took, one source after another, the one that took most first. Empty where the
    /// kernel's trace could not be had.
    pub subtraction: Vec<SubtractionStep>,
    /// The samples that the timer's interrupt hit beside the others; `None` where it hit all or hardly any.
    pub peaks: Option<TickPeaks>,
    /// The shapes of the distribution.
    pub curves: Curves,
    /// The frequencies in the time that was lost; `None` where there are too few samples to tell.
    pub tones: Option<Tones>,
    /// Repetitions of a second; `None` of a run that is too short for five.
    pub cumulative: Option<Cumulative>,
    /// What the processor's counters say of the loop; empty where they were not read.
    pub counts: Vec<EventTotal>,
    /// Cycles an instruction, counted or estimated; `None` where neither can be.
    pub cpi: Option<Cpi>,
    /// Against the samples of another run.
    pub baseline: Option<BaselineComparison>,
}

impl CpuWork {
    /// The time in which one iteration was done, by any of the copies, in nanoseconds.
    pub fn ns_per_iteration(&self) -> Option<f64> {
        (self.all_iterations > 0).then(|| self.duration_ns as f64 / self.all_iterations as f64)
    }

    /// What a sample takes on the average beyond the main body's middle, as it was and with every source taken out, in
    /// nanoseconds. Nothing without sources, and where these are in so many samples, as another copy on the same CPU is,
    /// that the main body holds them as well: then there is no undisturbed middle to hold the rest against.
    pub fn beyond_middle_ns(&self) -> Option<(f64, f64)> {
        subtraction::beyond_middle(&self.spread, &self.body, &self.subtraction)
    }
}

/// Why a run of work cannot be summarized.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The bundle cannot be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The bundle holds something else than samples of work.
    #[error("{} holds no samples of work, but a recording of detours", path.display())]
    NotWork {
        /// The bundle that was opened.
        path: PathBuf,
    },
    /// What was selected of it holds no sample.
    #[error("{} holds no sample of what was asked for", path.display())]
    Nothing {
        /// The bundle that was opened.
        path: PathBuf,
    },
    /// The baseline is one of something else.
    #[error(transparent)]
    Baseline(#[from] Incomparable),
}

impl Fault for WorkError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Baseline(_))
    }

    fn hint(&self) -> Option<Wording> {
        match self {
            Self::Bundle(error) => error.hint(),
            Self::NotWork { .. } => Some(Wording::new("; see it with becalm report")),
            Self::Nothing { .. } => None,
            Self::Baseline(error) => error.hint(),
        }
    }
}

/// Summarizes the selected part of a run of work, held against a baseline if there is one: against its samples on the
/// same CPU, or else on its first one. Fails if a bundle cannot be read, is not of work, or the baseline is of other work.
pub fn summarize_work(
    bundle: &Bundle,
    selection: &Selection,
    baseline: Option<&Bundle>,
) -> Result<WorkSummary, WorkError> {
    let baseline = baseline.map(|bundle| read_all(bundle, &Selection::default())).transpose()?;
    let mut cpus = Vec::new();
    let nodes = selected(bundle, selection)?;
    for doc in &nodes {
        for cpu in loops(doc, selection) {
            let Some(samples) = read(bundle, doc, cpu)? else { continue };
            let mut summary = summary(doc, &samples);
            if let Some(baseline) = &baseline {
                let same = baseline.iter().find(|other| other.cpu == cpu).or(baseline.first());
                summary.baseline = same.map(|other| compare_with_baseline(&samples, other)).transpose()?;
            }
            cpus.push(summary);
        }
    }
    if cpus.is_empty() {
        return Err(WorkError::Nothing { path: bundle.path().to_owned() });
    }
    Ok(WorkSummary { path: bundle.path().to_owned(), nodes, cpus })
}

/// The documents of the selected nodes, all of which must be of work.
fn selected(bundle: &Bundle, selection: &Selection) -> Result<Vec<NodeDoc>, WorkError> {
    let chosen = |doc: &&NodeDoc| selection.node.as_ref().is_none_or(|node| *node == doc.node);
    let nodes: Vec<NodeDoc> = bundle.nodes().iter().filter(chosen).cloned().collect();
    match nodes.iter().all(|doc| doc.settings.work.is_some()) {
        true => Ok(nodes),
        false => Err(WorkError::NotWork { path: bundle.path().to_owned() }),
    }
}

fn loops(doc: &NodeDoc, selection: &Selection) -> Vec<CpuId> {
    let chosen = |cpu: &CpuId| selection.cpus.as_ref().is_none_or(|cpus| cpus.contains(*cpu));
    let loops = doc.settings.work.iter().flat_map(|work| &work.loops);
    loops.map(|work| work.cpu).filter(chosen).collect()
}

fn read_all(bundle: &Bundle, selection: &Selection) -> Result<Vec<WorkSamples>, WorkError> {
    let mut all = Vec::new();
    for doc in selected(bundle, selection)? {
        for cpu in loops(&doc, selection) {
            all.extend(read(bundle, &doc, cpu)?);
        }
    }
    match all.is_empty() {
        false => Ok(all),
        true => Err(WorkError::Nothing { path: bundle.path().to_owned() }),
    }
}

fn summary(doc: &NodeDoc, samples: &WorkSamples) -> CpuWork {
    let body = MainBody::from_values(&samples.values);
    let own = samples.work.iter().copied().fold(0, u64::saturating_add);
    let work = doc.settings.work.as_ref();
    let count = samples.values.len() as u64;
    let counts = work.map_or_else(Vec::new, |work| counts::counts(work, samples.cpu, count));
    let work_loop = work.and_then(|work| work.loops.iter().find(|one| one.cpu == samples.cpu));
    CpuWork {
        node: doc.node.clone(),
        cpu: samples.cpu,
        loop_body: samples.body.clone(),
        fixed: samples.fixed,
        iterations: samples.iterations,
        calibrated_ns: samples.calibrated_ns,
        duration_ns: samples.durations.iter().sum(),
        all_iterations: own.saturating_add(samples.others_iterations),
        spread: Spread::from_values(&samples.values, &body),
        incomplete: samples.incomplete,
        subtraction: if doc.tracing.is_some() { subtract(samples, &body) } else { Vec::new() },
        peaks: TickPeaks::from_samples(samples),
        curves: Curves::from_samples(samples),
        tones: tones(samples, &body),
        cumulative: Cumulative::from_samples(samples, &body),
        cpi: cpi::cpi(&counts, work_loop),
        counts,
        baseline: None,
        body,
    }
}
