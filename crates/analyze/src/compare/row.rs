//! The rows of a comparison: which figures there are, and what is said of each.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use becalm_model::Kind;

use super::between::{self, RunFigure};
use super::contrast::{Contrast, contrast};
use super::gathered::{Gathered, SourceSample};
use super::ground::{ComparedPlace, ComparedRun, Ground};
use super::metric::Metric;
use super::sample::DetourSample;
use super::series::{RatioOfSums, Scatter};
use super::verdict::{Basis, Verdict};
use super::{extremes, holm, tails};

/// Rows whose verdicts are right together: in at most [`LEVEL`](super::LEVEL) of comparisons of equal runs any of a family
/// finds a difference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TestFamily {
    /// The noise ratio of all CPUs together, the question of every comparison, alone.
    Headline,
    /// The other figures of all CPUs together.
    Total,
    /// The time that each source took.
    Sources,
    /// The figures of each node.
    Nodes,
    /// The figures of each CPU.
    Cpus,
}

/// Why two figures cannot be held against each other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Doubt {
    /// Neither run has a detour here, or one has none and the figure is one of detours.
    NoDetour,
    /// Nearly all of both runs' figures comes from a few stretches of time: so many equal ones would weigh the same.
    FewTrains {
        /// How many equal stretches theirs are worth.
        trains: f64,
    },
    /// A run drifts, or its trains are so long that fewer than 20 independent stretches fit into it.
    LongTrains {
        /// The stretch that would be needed, in nanoseconds.
        block_ns: i64,
    },
    /// A run is so short that it has fewer than 20 cells.
    ShortRun,
    /// Too few detours lie above the quantile.
    FewDetours {
        /// How many a run would need.
        needed: u64,
    },
    /// Of the runs of a side too few have the figure: it takes two of one side and one of the other.
    FewRuns,
    /// The books of one of the runs are older, and book time on other sources.
    OtherBooks,
    /// Too few stretches of time, of which the longest detours are compared.
    FewStretches {
        /// How many the shorter run has.
        stretches: usize,
        /// How long they must be, in nanoseconds.
        width_ns: i64,
    },
    /// The runs have different numbers of CPUs, of which more have a longer longest detour.
    CpusDiffer,
    /// One detour of each run shows nothing of the others: see [`Metric::StretchMax`].
    OneValue,
    /// The runs are compared in summary form, which does not say how the figure scatters within a run.
    SummaryForm,
}

/// How large a difference is, without a unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effect {
    /// b / a. None if a is 0.
    pub ratio: Option<f64>,
    /// The lower end of its 95 % interval.
    pub ratio_low: Option<f64>,
    /// The upper end; `None` if there is none, as a may be 0.
    pub ratio_high: Option<f64>,
    /// Cliff's delta: the share of pairs of stretches in which b is longer less that in which a is. Of
    /// [`Metric::StretchMax`] alone.
    pub cliffs_delta: Option<f64>,
}

/// A figure of both runs, with what its difference shows.
#[derive(Clone, Debug)]
pub struct ComparedFigure {
    /// With which other rows its verdict is adjusted.
    pub family: TestFamily,
    /// Where; `None` over all CPUs together.
    pub place: Option<ComparedPlace>,
    /// Of which source; `None` over all of them.
    pub source: Option<(Kind, String)>,
    /// The figure that is compared.
    pub metric: Metric,
    /// Its value in the first run, in the metric's unit; `None` where it has none. Of several runs what is typical of them: their geometric
    /// mean, or the mean where a run of either side has none of it.
    pub a: Option<f64>,
    /// Its value in the second run, or what is typical of the runs of the second side.
    pub b: Option<f64>,
    /// The figure of b less that of a.
    pub difference: Option<f64>,
    /// The lower end of its 95 % interval, which is that of this row by itself.
    pub low: Option<f64>,
    /// The upper end of the difference's interval.
    pub high: Option<f64>,
    /// The size of the difference.
    pub effect: Option<Effect>,
    /// The p-value of no difference, of this row by itself.
    pub p_value: Option<f64>,
    /// The same, adjusted for all rows of the family by Holm's procedure.
    pub p_adjusted: Option<f64>,
    /// What is said in the end, by the adjusted p-value and the size of the difference.
    pub verdict: Verdict,
    /// Why there is not enough data.
    pub doubt: Option<Doubt>,
    /// Of [`Metric::StretchMax`], how long a stretch is, in nanoseconds.
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
            effect: ratio_of(a, b),
            p_value: None,
            p_adjusted: None,
            verdict: Verdict::NotEnoughData,
            doubt: None,
            stretch_ns: None,
        }
    }

    /// Fills in what was found, which is in units of 1 / `scale`.
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
    /// With both values, and nothing said of their difference.
    fn without_test(self, doubt: Doubt) -> Self {
        Self { low: None, high: None, effect: None, p_value: None, doubt: Some(doubt), ..self }
    }
}

fn ratio_of(a: Option<f64>, b: Option<f64>) -> Option<Effect> {
    let ratio = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a)?;
    Some(Effect { ratio: Some(ratio), ratio_low: None, ratio_high: None, cliffs_delta: None })
}

/// All rows of two sides.
pub(super) fn rows(ground: &Ground, samples: &[Vec<Gathered>; 2], basis: Basis) -> Vec<ComparedFigure> {
    let same_cpus = ground.sides[0].count_cpus() == ground.sides[1].count_cpus();
    let all = samples.each_ref().map(|side| side.iter().map(|run| &run.all).collect::<Vec<_>>());
    let mut rows = of_places(&all, same_cpus);
    rows[0].family = TestFamily::Headline;
    rows.extend(of_sources(ground, samples));
    // A single place is all of them together.
    for (family, places) in [(TestFamily::Nodes, &ground.nodes), (TestFamily::Cpus, &ground.places)] {
        for (at, place) in places.iter().enumerate() {
            let of_place = samples
                .each_ref()
                .map(|side| side.iter().filter_map(|run| run.of_family(family).get(at)).collect::<Vec<_>>());
            if of_place.iter().any(Vec::is_empty) {
                continue;
            }
            let of_rows = of_places(&of_place, true).into_iter();
            rows.extend(of_rows.map(|row| ComparedFigure { family, place: Some(place.clone()), ..row }));
        }
    }
    judge(&mut rows, basis);
    rows
}

/// Gives the verdicts, family by family.
pub(super) fn judge(rows: &mut [ComparedFigure], basis: Basis) {
    for family in [TestFamily::Headline, TestFamily::Total, TestFamily::Sources, TestFamily::Nodes, TestFamily::Cpus] {
        let of_family = rows.iter_mut().filter(|row| row.family == family);
        judge_family(of_family.map(|row| (row, basis)).collect());
    }
}

/// Gives the verdicts of one family of rows, each of which rests on its own runs.
pub(super) fn judge_family(rows: Vec<(&mut ComparedFigure, Basis)>) {
    let tested: Vec<_> =
        rows.into_iter().filter_map(|(row, basis)| row.p_value.map(|p_value| (row, basis, p_value))).collect();
    let p_values: Vec<f64> = tested.iter().map(|(_, _, p_value)| *p_value).collect();
    for ((row, basis, _), p) in tested.into_iter().zip(holm::adjusted(&p_values)) {
        row.p_adjusted = Some(p);
        // Of stretches of few different lengths both may typically be as long where one of the runs is longer all the
        // same.
        let direction = match row.difference {
            Some(difference) if difference != 0.0 => difference,
            _ => row.effect.and_then(|effect| effect.cliffs_delta).unwrap_or(0.0),
        };
        row.verdict = Verdict::from_p_value(direction, p, row.effect, basis);
    }
}

/// The rows of one place, from what the runs of each side have there.
pub(super) fn of_places(sides: &[Vec<&DetourSample>; 2], same_cpus: bool) -> Vec<ComparedFigure> {
    match (sides[0].as_slice(), sides[1].as_slice()) {
        ([a], [b]) => of_samples(a, b, same_cpus),
        _ => of_several(sides, same_cpus),
    }
}

/// The rows of one place of sides with several runs.
fn of_several(sides: &[Vec<&DetourSample>; 2], same_cpus: bool) -> Vec<ComparedFigure> {
    let of = |figure: &dyn Fn(&DetourSample) -> Option<RunFigure>| {
        sides.each_ref().map(|side| side.iter().filter_map(|run| figure(run)).collect::<Vec<_>>())
    };
    let sums = |series: &Option<RatioOfSums>| series.as_ref().map(RunFigure::of_sums);
    let mut rows = vec![
        of_figures(Metric::NoiseRatio, &of(&|run| sums(&run.noise_ratio())), 1.0),
        of_figures(Metric::Rate, &of(&|run| sums(&run.rate())), 1e9),
        of_figures(Metric::Mean, &of(&|run| sums(&run.mean())), 1.0),
    ];
    for (which, metric) in [Metric::P99, Metric::P999].into_iter().enumerate() {
        let tail = |run: &DetourSample| Some(RunFigure::of_quantile(run.quantile(which)? as f64, run.tail(which, 0)));
        rows.push(of_figures(metric, &of(&tail), 1.0));
    }
    let stretch_ns = sides.iter().flatten().filter(|run| !run.is_condensed()).map(|run| run.stretches().width()).next();
    let none_shown =
        |doubt| ComparedFigure { doubt: Some(doubt), ..ComparedFigure::new(Metric::StretchMax, None, None) };
    let longest = match same_cpus {
        _ if sides.iter().flatten().any(|run| run.is_condensed()) => none_shown(Doubt::SummaryForm),
        true => of_figures(Metric::StretchMax, &of(&|run| run.stretches().typical()), 1.0),
        false => none_shown(Doubt::CpusDiffer),
    };
    rows.push(ComparedFigure { stretch_ns, ..longest });
    let max = |side: &[&DetourSample]| side.iter().filter_map(|run| run.durations().max()).max().map(|ns| ns as f64);
    let max = ComparedFigure::new(Metric::Max, max(&sides[0]), max(&sides[1]));
    rows.push(ComparedFigure { doubt: Some(Doubt::OneValue), ..max });
    rows
}

/// A row of what each run of both sides has of a figure.
fn of_figures(metric: Metric, sides: &[Vec<RunFigure>; 2], scale: f64) -> ComparedFigure {
    let [a, b] = between::typical(sides).map(|typical| typical.map(|typical| typical * scale));
    ComparedFigure::new(metric, a, b).found(between::contrast(&sides[0], &sides[1]), scale)
}

/// The rows of one place of two runs.
pub(super) fn of_samples(a: &DetourSample, b: &DetourSample, same_cpus: bool) -> Vec<ComparedFigure> {
    let mut rows = of_sums(a, b);
    for (which, metric) in [Metric::P99, Metric::P999].into_iter().enumerate() {
        let values = [a.quantile(which), b.quantile(which)].map(|ns| ns.map(|ns| ns as f64));
        let result = match (a.tail(which, 0), b.tail(which, 1)) {
            (Some(a), Some(b)) => a.and_then(|mut a| Ok(tails::contrast_tails(&mut a, &mut b?))),
            _ => Err(Doubt::NoDetour),
        };
        rows.push(ComparedFigure::new(metric, values[0], values[1]).found(result, 1.0));
    }
    rows.push(of_stretches(a, b, same_cpus));
    let max = |sample: &DetourSample| sample.durations().max().map(|ns| ns as f64);
    rows.push(ComparedFigure { doubt: Some(Doubt::OneValue), ..ComparedFigure::new(Metric::Max, max(a), max(b)) });
    rows
}

/// The rows of the figures that are sums over time.
pub(super) fn of_sums(a: &DetourSample, b: &DetourSample) -> Vec<ComparedFigure> {
    vec![
        of_series(Metric::NoiseRatio, &[a.noise_ratio(), b.noise_ratio()], 1.0),
        of_series(Metric::Rate, &[a.rate(), b.rate()], 1e9),
        of_series(Metric::Mean, &[a.mean(), b.mean()], 1.0),
    ]
}

fn of_series(metric: Metric, series: &[Option<RatioOfSums>; 2], scale: f64) -> ComparedFigure {
    let values = series.each_ref().map(|series| series.as_ref().map(|series| series.value * scale));
    ComparedFigure::new(metric, values[0], values[1]).found(contrast_series(series), scale)
}

fn contrast_series(series: &[Option<RatioOfSums>; 2]) -> Result<Contrast, Doubt> {
    let (a, b) = both(series)?;
    contrast(&a, &b)
}

fn both(series: &[Option<RatioOfSums>; 2]) -> Result<(Scatter, Scatter), Doubt> {
    let [Some(a), Some(b)] = series else { return Err(Doubt::NoDetour) };
    if a.value == 0.0 && b.value == 0.0 {
        return Err(Doubt::NoDetour);
    }
    Ok((a.scatter(0)?, b.scatter(1)?))
}

fn of_stretches(a: &DetourSample, b: &DetourSample, same_cpus: bool) -> ComparedFigure {
    let condensed = a.is_condensed() || b.is_condensed();
    let result = match same_cpus {
        _ if condensed => Err(Doubt::SummaryForm),
        true => both(&[a.noise_ratio(), b.noise_ratio()]).and_then(|(noise_a, noise_b)| {
            // The cells may be wider than the stretches; a train of one cell says that these do not depend on each other.
            let train = |scatter: &Scatter, sample: &DetourSample| match scatter.train_ns {
                train if train <= sample.cell_ns() => 1,
                train => train,
            };
            extremes::rank(a.stretches(), b.stretches(), train(&noise_a, a).max(train(&noise_b, b)))
        }),
        false => Err(Doubt::CpusDiffer),
    };
    match result {
        Ok(found) => ComparedFigure {
            low: Some(found.low),
            high: Some(found.high),
            effect: Some(Effect {
                ratio: found.ratio,
                ratio_low: found.ratio_low,
                ratio_high: found.ratio_high,
                cliffs_delta: Some(found.delta),
            }),
            p_value: Some(found.p_value),
            stretch_ns: Some(found.width_ns),
            ..ComparedFigure::new(Metric::StretchMax, Some(found.a), Some(found.b))
        },
        Err(doubt) => ComparedFigure {
            doubt: Some(doubt),
            stretch_ns: (!condensed).then(|| a.stretches().width()),
            ..ComparedFigure::new(Metric::StretchMax, None, None)
        },
    }
}

/// Whether some of the runs, but not all, have books in which the rests of detours belong to no activity.
pub(super) fn books_differ(samples: &[Vec<Gathered>; 2]) -> bool {
    let old = samples.iter().flatten().filter(|run| run.has_old_books()).count();
    old > 0 && old < samples.iter().flatten().count()
}

/// The rows of the sources that any run has, two for each: its share of time and its rate. The largest change of the
/// share of time first; equal ones by name, then by kind.
fn of_sources(ground: &Ground, samples: &[Vec<Gathered>; 2]) -> Vec<ComparedFigure> {
    let names: BTreeSet<&(Kind, String)> = samples.iter().flatten().flat_map(|run| run.sources.keys()).collect();
    let mut pairs: Vec<[ComparedFigure; 2]> = Vec::new();
    let apart = books_differ(samples);
    for name in names {
        let of_run = |(run, sample): (&ComparedRun, &Gathered)| {
            let source = sample.sources.get(name);
            // It may be among those that are summed up.
            if source.is_none() && sample.summed.contains(&name.0) {
                return [None, None];
            }
            let source = source.cloned().unwrap_or_else(|| SourceSample::empty(run.length_ns));
            [&source.times, &source.count].map(|cells| RatioOfSums::over_time(cells, sample.all.observed()))
        };
        let of_side = |side: usize| ground.sides[side].runs.iter().zip(&samples[side]).map(of_run).collect::<Vec<_>>();
        let sides = [of_side(0), of_side(1)];
        let [time, rate] = [(0, Metric::TimeRatio, 1.0), (1, Metric::Rate, 1e9)].map(|(which, metric, scale)| {
            let of_which = |side: &Vec<[Option<RatioOfSums>; 2]>| side.iter().map(|run| run[which].clone()).collect();
            let row = of_several_series(metric, sides.each_ref().map(of_which), scale);
            let row = ComparedFigure { family: TestFamily::Sources, source: Some(name.clone()), ..row };
            let row = match row.doubt {
                Some(_) if ground.is_condensed() => ComparedFigure { doubt: Some(Doubt::SummaryForm), ..row },
                _ => row,
            };
            // How often an activity came is the same in all books; what is no activity has got other names.
            match apart && (metric == Metric::TimeRatio || name.0.is_rest()) {
                true => row.without_test(Doubt::OtherBooks),
                false => row,
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

/// A row of a figure that is a sum over time, from the runs of each side.
fn of_several_series(metric: Metric, sides: [Vec<Option<RatioOfSums>>; 2], scale: f64) -> ComparedFigure {
    match (sides[0].as_slice(), sides[1].as_slice()) {
        ([a], [b]) => of_series(metric, &[a.clone(), b.clone()], scale),
        _ => {
            let figures = |side: &Vec<Option<RatioOfSums>>| side.iter().flatten().map(RunFigure::of_sums).collect();
            of_figures(metric, &sides.each_ref().map(figures), scale)
        }
    }
}
