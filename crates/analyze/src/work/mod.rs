//! Summarizes samples of work: their distribution, the outliers, the part that each kernel source accounts for, the frequencies, and a comparison
//! with a quieter machine (Tsafrir 2007, sections 3.3 and 4; Radojković et al. 2008; Sottile and Minnich 2004).
//!
//! A sample's *value* is its duration if the work was fixed. If the time was fixed, it is the grain plus the lost time: duration - work * c, where c,
//! the time of an iteration, is the median of duration / work. So the value of an undisturbed quantum is the grain, and both kinds of run read the
//! same.
//!
//! Nothing here measures or prints. Only one CPU's samples are in memory at a time.

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
    /// The directory of the summarized bundle.
    pub path: PathBuf,
    /// The documents of the nodes, restricted to the selected CPUs.
    pub nodes: Vec<NodeDoc>,
    /// The CPUs, node by node.
    pub cpus: Vec<CpuWork>,
}

/// The samples of one CPU, summarized. Values are in nanoseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct CpuWork {
    /// The host of the measurement.
    pub node: String,
    /// The CPU of the measurement.
    pub cpu: CpuId,
    /// The name of the loop's body.
    pub loop_body: String,
    /// Whether the work or the time stayed the same from sample to sample.
    pub fixed: Fixed,
    /// Iterations per sample (fixed work), or per step (fixed time).
    pub iterations: u64,
    /// Their time when calibrated.
    pub calibrated_ns: i64,
    /// The time of all samples.
    pub duration_ns: i64,
    /// The iterations of the measured loop and its copies together. With several copies, time per iteration gives the combined throughput.
    pub all_iterations: u64,
    /// The distribution of the values.
    pub spread: Spread,
    /// The main body, and the number of values outside.
    pub body: MainBody,
    /// Samples with dropped kernel events.
    pub incomplete: u64,
    /// The values less the time of each source, one source after another, the largest first. Empty without a kernel trace.
    pub subtraction: Vec<SubtractionStep>,
    /// The samples hit by the timer interrupt and the others; `None` if it hit all or hardly any.
    pub peaks: Option<TickPeaks>,
    /// The shapes of the distribution.
    pub curves: Curves,
    /// The frequencies in the lost time; `None` if there are too few samples.
    pub tones: Option<Tones>,
    /// Repetitions of one second; `None` if the run is too short for five.
    pub cumulative: Option<Cumulative>,
    /// The processor's counters for the loop; empty if they were not read.
    pub counts: Vec<EventTotal>,
    /// Cycles per instruction, counted or estimated; `None` without either.
    pub cpi: Option<Cpi>,
    /// The comparison with another run.
    pub baseline: Option<BaselineComparison>,
}

impl CpuWork {
    /// The time per iteration of all copies together, in nanoseconds.
    pub fn ns_per_iteration(&self) -> Option<f64> {
        (self.all_iterations > 0).then(|| self.duration_ns as f64 / self.all_iterations as f64)
    }

    /// The mean time of a sample beyond the middle of the main body, before and after subtracting every source, in nanoseconds. `None` without
    /// sources, or if they hit so many samples that they are in the main body (another copy on the same CPU): then there is no undisturbed middle to
    /// compare with.
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
    /// The bundle does not contain samples of work.
    #[error("{} holds no samples of work, but a recording of detours", path.display())]
    NotWork {
        /// The bundle that was opened.
        path: PathBuf,
    },
    /// The selection contains no sample.
    #[error("{} holds no sample of what was asked for", path.display())]
    Nothing {
        /// The bundle that was opened.
        path: PathBuf,
    },
    /// The baseline is not comparable.
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

/// Summarizes the selected part of a run of work, and compares it with the baseline's samples on the same CPU, or else on its first one. Fails if a
/// bundle cannot be read, is not of work, or the baseline is of other work.
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

/// The documents of the selected nodes. Fails if one is not of work.
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
