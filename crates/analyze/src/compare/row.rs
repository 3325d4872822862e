//! The rows of a comparison: the figures and their verdicts.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use becalm_model::Kind;

use super::alone::{self, RunScatter};
use super::contrast::{self, Contrast, RunFigure};
use super::extremes::STRETCHES_MIN;
use super::gathered::{Gathered, SourceSample};
use super::ground::{ComparedPlace, ComparedRun, Ground};
use super::holm;
use super::metric::Metric;
use super::sample::DetourSample;
use super::series::RatioOfSums;
use super::verdict::{Basis, Verdict};

/// Rows with a common error rate: in at most [`LEVEL`](super::LEVEL) of comparisons of equal runs, any row of a family shows a difference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TestFamily {
    /// The noise ratio of all CPUs together, the main question of every comparison, alone.
    Headline,
    /// The other figures of all CPUs together.
    Total,
    /// The time of each source.
    Sources,
    /// The figures of each node.
    Nodes,
    /// The figures of each CPU.
    Cpus,
}

/// Why two figures cannot be compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Doubt {
    /// Neither run has a detour here, or one has none and the figure needs detours.
    NoDetour,
    /// Nearly all of both runs' figures comes from a few stretches of time: as much information as this many equal ones.
    FewTrains {
        /// The effective number of stretches.
        trains: f64,
    },
    /// A run drifts, or its trains are so long that fewer than 20 independent stretches fit into it.
    LongTrains {
        /// The required length of a stretch, in nanoseconds.
        block_ns: i64,
    },
    /// There is one run per side, and the noise of one drifts too much for a comparison ([`LongTrains`](Self::LongTrains)), which may affect any
    /// other figure.
    Drifting,
    /// A run is so short that it has fewer than 20 cells.
    ShortRun,
    /// Too few detours are above the quantile.
    FewDetours {
        /// The number that a run would need.
        needed: u64,
    },
    /// Too few runs have the figure: at least two of one side and one of the other are needed.
    FewRuns,
    /// Too few stretches of time to compare their longest detours.
    FewStretches {
        /// The number of stretches of the shorter run.
        stretches: usize,
        /// Their required length, in nanoseconds.
        width_ns: i64,
    },
    /// The runs have different numbers of CPUs, and more CPUs have a longer longest detour.
    CpusDiffer,
    /// One detour per run says nothing about the others: see [`Metric::StretchMax`].
    OneValue,
    /// The runs are compared in summary form, without the scatter of the figure within a run.
    SummaryForm,
}

/// How large a difference is, without a unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// b / a; `None` if a is 0.
    pub ratio: Option<f64>,
    /// The lower end of its 95 % interval.
    pub ratio_low: Option<f64>,
    /// The upper end; `None` if there is none because a may be 0.
    pub ratio_high: Option<f64>,
}

/// A figure of both sides, with the verdict on its difference.
#[derive(Clone, Debug)]
pub struct ComparedFigure {
    /// The rows that its verdict is adjusted with.
    pub family: TestFamily,
    /// The node or CPU; `None` for all CPUs together.
    pub place: Option<ComparedPlace>,
    /// The source; `None` for all together.
    pub source: Option<(Kind, String)>,
    /// The compared figure.
    pub metric: Metric,
    /// Its value in the first run, in the metric's unit; `None` if it has none. For several runs their geometric mean, or the mean if it is 0 in a
    /// run of either side.
    pub a: Option<f64>,
    /// Its value in the second run, or the typical value of the second side.
    pub b: Option<f64>,
    /// b - a.
    pub difference: Option<f64>,
    /// The lower end of its 95 % interval, unadjusted.
    pub low: Option<f64>,
    /// The upper end of the difference's interval.
    pub high: Option<f64>,
    /// The size of the difference.
    pub effect: Option<Effect>,
    /// The p-value of no difference, unadjusted.
    pub p_value: Option<f64>,
    /// The p-value adjusted for all rows of the family by Holm's procedure.
    pub p_adjusted: Option<f64>,
    /// The verdict, from the adjusted p-value and the size of the difference.
    pub verdict: Verdict,
    /// Why there is not enough data.
    pub doubt: Option<Doubt>,
    /// The stretch length of [`Metric::StretchMax`], in nanoseconds.
    pub stretch_ns: Option<i64>,
}

impl ComparedFigure {
    fn new(metric: Metric, a: Option<f64>, b: Option<f64>) -> Self {
        Self {
            family: TestFamily::Total,
            place: None,
            source: None,
            metric,
            a,
            b,
            difference: a.zip(b).map(|(a, b)| b - a),
            low: None,
            high: None,
            effect: effect(a, b),
            p_value: None,
            p_adjusted: None,
            verdict: Verdict::NotEnoughData,
            doubt: None,
            stretch_ns: None,
        }
    }

    /// Fills in the result, in units of 1 / `scale`.
    fn found(mut self, result: Result<Contrast, Doubt>, scale: f64) -> Self {
        match result {
            Ok(found) => {
                (self.low, self.high) = (Some(found.low * scale), Some(found.high * scale));
                if let Some(effect) = &mut self.effect {
                    (effect.ratio_low, effect.ratio_high) = (found.ratio_low, found.ratio_high);
                }
                self.p_value = Some(found.p_value);
            }
            Err(doubt) => self.doubt = Some(doubt),
        }
        self
    }
}

impl ComparedFigure {
    /// Removes the test results of runs that drift.
    fn leave_untested(&mut self) {
        if self.p_value.take().is_some() {
            (self.low, self.high, self.doubt) = (None, None, Some(Doubt::Drifting));
            self.effect = self.effect.map(|effect| Effect { ratio_low: None, ratio_high: None, ..effect });
        }
    }
}

fn effect(a: Option<f64>, b: Option<f64>) -> Option<Effect> {
    let ratio = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a)?;
    Some(Effect { ratio: Some(ratio), ratio_low: None, ratio_high: None })
}

/// All rows of two sides.
pub(super) fn rows(ground: &Ground, samples: &[Vec<Gathered>; 2], basis: Basis) -> Vec<ComparedFigure> {
    let same_cpus = ground.sides[0].count_cpus() == ground.sides[1].count_cpus();
    let all = samples.each_ref().map(|side| side.iter().map(|run| &run.all).collect::<Vec<_>>());
    let machines = RunScatter::for_machines(&ground.sides, basis);
    let mut rows = place_rows(&all, same_cpus, machines);
    rows[0].family = TestFamily::Headline;
    rows.extend(source_rows(ground, samples, machines));
    // A single place is the same as all of them together.
    for (family, places, scatter) in
        [(TestFamily::Nodes, &ground.nodes, machines), (TestFamily::Cpus, &ground.places, RunScatter::for_cpu(basis))]
    {
        for (at, place) in places.iter().enumerate() {
            let samples_there = samples
                .each_ref()
                .map(|side| side.iter().filter_map(|run| run.places(family).get(at)).collect::<Vec<_>>());
            if samples_there.iter().any(Vec::is_empty) {
                continue;
            }
            let found = place_rows(&samples_there, true, scatter).into_iter();
            rows.extend(found.map(|row| ComparedFigure { family, place: Some(place.clone()), ..row }));
        }
    }
    refuse_drift(&mut rows, basis);
    judge(&mut rows, basis);
    rows
}

/// Removes the test results of all rows if there is one run per side and the noise (the first row) drifts.
pub(super) fn refuse_drift(rows: &mut [ComparedFigure], basis: Basis) {
    if let [ComparedFigure { doubt: Some(Doubt::LongTrains { .. }), .. }, others @ ..] = rows
        && basis == Basis::WithinRuns
    {
        others.iter_mut().for_each(ComparedFigure::leave_untested);
    }
}

/// Sets the verdicts, family by family.
pub(super) fn judge(rows: &mut [ComparedFigure], basis: Basis) {
    for family in [TestFamily::Headline, TestFamily::Total, TestFamily::Sources, TestFamily::Nodes, TestFamily::Cpus] {
        let family_rows = rows.iter_mut().filter(|row| row.family == family);
        judge_family(family_rows.map(|row| (row, basis)).collect());
    }
}

/// Sets the verdicts of one family of rows, each with the basis of its own runs.
pub(super) fn judge_family(rows: Vec<(&mut ComparedFigure, Basis)>) {
    let tested: Vec<_> =
        rows.into_iter().filter_map(|(row, basis)| row.p_value.map(|p_value| (row, basis, p_value))).collect();
    let p_values: Vec<f64> = tested.iter().map(|(_, _, p_value)| *p_value).collect();
    for ((row, basis, _), p) in tested.into_iter().zip(holm::adjusted(&p_values)) {
        row.p_adjusted = Some(p);
        row.verdict = Verdict::from_p_value(row.difference.unwrap_or(0.0), p, row.effect, basis);
    }
}

/// A figure of a run that is a ratio of sums over time.
type Series = fn(&DetourSample) -> Option<RatioOfSums>;

/// The rows of one place, from the runs' samples there.
pub(super) fn place_rows(sides: &[Vec<&DetourSample>; 2], same_cpus: bool, scatter: RunScatter) -> Vec<ComparedFigure> {
    let series: [(Metric, Series, f64); 3] = [
        (Metric::NoiseRatio, |run| run.noise_ratio(), 1.0),
        (Metric::Rate, |run| run.rate(), 1e9),
        (Metric::Mean, |run| run.mean(), 1.0),
    ];
    let row = |(metric, value, scale): (Metric, Series, f64)| {
        let series = sides.each_ref().map(|side| side.iter().map(|run| value(run)).collect());
        series_row(metric, series, scale, scatter)
    };
    let mut rows: Vec<ComparedFigure> = series.into_iter().map(row).collect();
    for (which, metric) in [Metric::P99, Metric::P999].into_iter().enumerate() {
        rows.push(match (sides[0].as_slice(), sides[1].as_slice(), scatter) {
            ([a], [b], RunScatter::Learned(deviations)) => {
                let values = [a, b].map(|run| run.quantile(which).map(|ns| ns as f64));
                let result = match (a.tail(which), b.tail(which)) {
                    (Some(a), Some(b)) => {
                        a.and_then(|mut a| Ok(alone::contrast_tails(&mut a, &mut b?, deviations.figure(metric))))
                    }
                    _ => Err(Doubt::NoDetour),
                };
                ComparedFigure::new(metric, values[0], values[1]).found(result, 1.0)
            }
            _ => {
                let tail =
                    |run: &&DetourSample| Some(RunFigure::from_quantile(run.quantile(which)? as f64, run.tail(which)));
                runs_row(metric, &sides.each_ref().map(|side| side.iter().filter_map(tail).collect()), 1.0)
            }
        });
    }
    rows.push(stretch_row(sides, same_cpus, scatter));
    let max = |side: &[&DetourSample]| side.iter().filter_map(|run| run.durations().max()).max().map(|ns| ns as f64);
    let max = ComparedFigure::new(Metric::Max, max(&sides[0]), max(&sides[1]));
    rows.push(ComparedFigure { doubt: Some(Doubt::OneValue), ..max });
    rows
}

fn stretch_row(sides: &[Vec<&DetourSample>; 2], same_cpus: bool, scatter: RunScatter) -> ComparedFigure {
    let runs = || sides.iter().flatten();
    let stretch_ns = runs().filter(|run| !run.is_condensed()).map(|run| run.stretches().width()).next();
    let none_shown =
        |doubt| ComparedFigure { doubt: Some(doubt), ..ComparedFigure::new(Metric::StretchMax, None, None) };
    if runs().any(|run| run.is_condensed()) {
        return ComparedFigure { stretch_ns, ..none_shown(Doubt::SummaryForm) };
    }
    if !same_cpus {
        return ComparedFigure { stretch_ns, ..none_shown(Doubt::CpusDiffer) };
    }
    let typical =
        sides.each_ref().map(|side| side.iter().filter_map(|run| run.stretches().typical()).collect::<Vec<_>>());
    let row = match (sides[0].as_slice(), sides[1].as_slice(), scatter) {
        ([a], [b], RunScatter::Learned(deviations)) => {
            let stretches = a.stretches().count().min(b.stretches().count());
            match (typical[0].first(), typical[1].first()) {
                (Some(a), Some(b)) if stretches >= STRETCHES_MIN => {
                    let result = alone::contrast_medians(a, b, stretches, deviations.figure(Metric::StretchMax));
                    ComparedFigure::new(Metric::StretchMax, Some(a.value), Some(b.value)).found(result, 1.0)
                }
                _ => none_shown(Doubt::FewStretches { stretches, width_ns: a.stretches().width() }),
            }
        }
        _ => runs_row(Metric::StretchMax, &typical, 1.0),
    };
    ComparedFigure { stretch_ns, ..row }
}

/// A row from the figures of each run of both sides.
fn runs_row(metric: Metric, sides: &[Vec<RunFigure>; 2], scale: f64) -> ComparedFigure {
    let [a, b] = contrast::typical(sides).map(|typical| typical.map(|typical| typical * scale));
    ComparedFigure::new(metric, a, b).found(contrast::contrast(&sides[0], &sides[1]), scale)
}

/// The rows of the sources in any run, two each: share of time and rate. The largest change of the share of time first; equal ones by name, then by
/// kind.
fn source_rows(ground: &Ground, samples: &[Vec<Gathered>; 2], scatter: RunScatter) -> Vec<ComparedFigure> {
    // A source whose activities are all charged to others, in every run, accounts for no time.
    let accounts = |sample: &SourceSample| sample.times.noise().iter().any(|ns| *ns > 0);
    let sources = samples.iter().flatten().flat_map(|run| &run.sources);
    let names: BTreeSet<&(Kind, String)> =
        sources.filter(|(_, sample)| accounts(sample)).map(|(name, _)| name).collect();
    let mut pairs: Vec<[ComparedFigure; 2]> = Vec::new();
    // All sources together, in the run with the least.
    let least = |value: Series| {
        samples.iter().flatten().filter_map(|run| value(&run.all)).map(|all| all.value).fold(f64::INFINITY, f64::min)
    };
    let (noise, detours) = (least(DetourSample::noise_ratio), least(DetourSample::rate));
    for name in names {
        let cells = |(run, sample): (&ComparedRun, &Gathered)| {
            let source = sample.sources.get(name);
            // It may be part of the sum of several.
            if source.is_none() && sample.summed.contains(&name.0) {
                return [None, None];
            }
            let source = source.cloned().unwrap_or_else(|| SourceSample::empty(run.length_ns));
            [&source.times, &source.count].map(|cells| RatioOfSums::over_time(cells, sample.all.observed()))
        };
        let side_cells =
            |side: usize| ground.sides[side].runs.iter().zip(&samples[side]).map(cells).collect::<Vec<_>>();
        let sides = [side_cells(0), side_cells(1)];
        let [time, rate] = [(0, Metric::TimeRatio, 1.0), (1, Metric::Rate, 1e9)].map(|(which, metric, scale)| {
            let figure = |side: &Vec<[Option<RatioOfSums>; 2]>| side.iter().map(|run| run[which].clone()).collect();
            let all = if metric == Metric::Rate { detours } else { noise };
            let row = source_row(metric, sides.each_ref().map(figure), scale, scatter, all);
            let row = ComparedFigure { family: TestFamily::Sources, source: Some(name.clone()), ..row };
            match row.doubt {
                Some(_) if ground.is_condensed() => ComparedFigure { doubt: Some(Doubt::SummaryForm), ..row },
                _ => row,
            }
        });
        pairs.push([time, rate]);
    }
    let change = |pair: &[ComparedFigure; 2]| pair[0].difference.unwrap_or(0.0).abs();
    let name = |pair: &[ComparedFigure; 2]| pair[0].source.clone().map(|(kind, source)| (source, kind.name()));
    pairs.sort_by(|a, b| {
        let changes = change(b).partial_cmp(&change(a)).unwrap_or(Ordering::Equal);
        changes.then_with(|| name(a).cmp(&name(b)))
    });
    pairs.into_iter().flatten().collect()
}

/// A sum over time per run, for each side.
pub(super) type SeriesOfSides = [Vec<Option<RatioOfSums>>; 2];

/// A row of a figure that is a sum over time.
pub(super) fn series_row(metric: Metric, sides: SeriesOfSides, scale: f64, scatter: RunScatter) -> ComparedFigure {
    match (sides[0].as_slice(), sides[1].as_slice(), scatter) {
        ([a], [b], RunScatter::Learned(deviations)) => {
            let contrast = |a: &RatioOfSums, b: &RatioOfSums| alone::contrast(a, b, deviations.figure(metric));
            contrast_row(metric, [a.as_ref(), b.as_ref()], scale, contrast)
        }
        _ => runs_row(metric, &figures(&sides), scale),
    }
}

/// The same for a source, with `all` as the total of all sources.
pub(super) fn source_row(
    metric: Metric,
    sides: SeriesOfSides,
    scale: f64,
    scatter: RunScatter,
    all: f64,
) -> ComparedFigure {
    match (sides[0].as_slice(), sides[1].as_slice(), scatter) {
        ([a], [b], RunScatter::Learned(deviations)) => {
            let contrast =
                |a: &RatioOfSums, b: &RatioOfSums| alone::contrast_sources(a, b, deviations.source(metric) * all);
            contrast_row(metric, [a.as_ref(), b.as_ref()], scale, contrast)
        }
        _ => runs_row(metric, &figures(&sides), scale),
    }
}

fn figures(sides: &SeriesOfSides) -> [Vec<RunFigure>; 2] {
    sides.each_ref().map(|side| side.iter().flatten().map(RunFigure::from_sums).collect())
}

fn contrast_row(
    metric: Metric,
    series: [Option<&RatioOfSums>; 2],
    scale: f64,
    contrast: impl Fn(&RatioOfSums, &RatioOfSums) -> Result<Contrast, Doubt>,
) -> ComparedFigure {
    let values = series.map(|series| series.map(|series| series.value * scale));
    let result = match series {
        [Some(a), Some(b)] if a.value != 0.0 || b.value != 0.0 => contrast(a, b),
        _ => Err(Doubt::NoDetour),
    };
    ComparedFigure::new(metric, values[0], values[1]).found(result, scale)
}
