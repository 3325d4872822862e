//! Distributions next to each other, or next to recordings of becalm: the same figures of both, with the same threshold applied.
//!
//! If both measured time taken from a loop, `verdict` tests whether they differ: with one run per side if one of them is a recording, whose
//! times show how detours scatter, else with several per side. A histogram of all steps of a loop shows stolen time above its commonest
//! step, and so is compared with stolen time from there on. Lengths of different quantities are never put next to each other.

use becalm_model::digest::{CpuDigest, DigestDoc, LENGTH_BITS};
use becalm_model::node::CpuDoc;
use becalm_stats::TimeCells;
use becalm_units::CpuId;
use becalm_units::fault::Fault;

use super::run::{RunLengths, commonest, slack_ns};
use super::verdict::{self, Clustering, Tested, Untested};
use super::{Bucket, DistributionDoc, Quantity, Series, SeriesFigures};

/// A run of one of the two sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Side {
    /// Its name in messages.
    pub name: String,
    pub quantity: Quantity,
    /// Whether the shortest step of the loop was subtracted from each.
    pub loop_subtracted: Option<bool>,
    pub series: Vec<Series>,
}

/// Two series next to each other.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    pub name: String,
    /// The shortest length that both include, in nanoseconds.
    pub cut_ns: i64,
    /// Those of the first side, one per run.
    pub a: Vec<SeriesFigures>,
    /// Those of the second.
    pub b: Vec<SeriesFigures>,
    /// The tests, or why there are none.
    pub tested: Result<Vec<Tested>, Untested>,
    /// The shortest length that is tested, in nanoseconds: from an edge of the coarser buckets on.
    pub tested_from_ns: i64,
    /// The slack of each side: the largest excess of a length over the time that was taken, in nanoseconds.
    pub slack_ns: [i64; 2],
}

#[derive(Clone, PartialEq, Debug)]
pub struct SideBySide {
    /// The names of the runs of both.
    pub names: [Vec<String>; 2],
    /// The quantity of the lengths of both.
    pub quantity: Quantity,
    /// True if a side counted all steps of its loop; only its interrupted steps are compared.
    pub steps: [bool; 2],
    /// Whether the loop's own time was subtracted on either side.
    pub loop_subtracted: [Option<bool>; 2],
    /// The series of both.
    pub pairs: Vec<Pair>,
    /// Series that only one side has.
    pub single: Vec<String>,
}

/// Why two sides cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum SidesError {
    #[error("{a} holds {}, and {b} holds {}; they are not the same, and are not compared", qa.words(), qb.words())]
    Quantities { a: String, qa: Quantity, b: String, qb: Quantity },
    /// No series of one belongs to a series of the other.
    #[error("{a} and {b} have no CPU and no series in common")]
    Nothing { a: String, b: String },
}

impl Fault for SidesError {
    fn is_usage(&self) -> bool {
        true
    }
}

impl Side {
    pub fn from_distribution(name: &str, doc: DistributionDoc) -> Self {
        let DistributionDoc { quantity, loop_subtracted, series, .. } = doc;
        Self { name: name.to_owned(), quantity, loop_subtracted, series }
    }

    /// A side from a recording of becalm in summary form.
    pub fn from_digest(name: &str, digest: &DigestDoc) -> Self {
        let series = digest.run.cpus.iter().zip(&digest.cpus).map(|(cpu, counts)| recorded(cpu, counts)).collect();
        Self { name: name.to_owned(), quantity: Quantity::Stolen, loop_subtracted: Some(true), series }
    }
}

/// The lengths of the detours of a CPU.
fn recorded(cpu: &CpuDoc, counts: &CpuDigest) -> Series {
    let bucket = |(from, width, count): (u64, u64, u64)| {
        let from = i64::try_from(from).unwrap_or(i64::MAX - 1);
        let below_ns = from.saturating_add(i64::try_from(width).unwrap_or(i64::MAX));
        Bucket { from_ns: from, below_ns, count }
    };
    let sums = counts.durations;
    let some = sums.count > 0;
    Series {
        name: format!("CPU {}", cpu.cpu),
        cpu: Some(cpu.cpu),
        observed_ns: Some(cpu.duration_ns.get()).filter(|ns| *ns > 0),
        threshold_ns: Some(cpu.threshold_ns.get()),
        loop_ns: Some(cpu.t_min_ns.get()),
        count: Some(sums.count),
        total_ns: Some(sums.total_ns),
        min_ns: some.then_some(sums.min_ns),
        mean_ns: some.then(|| sums.total_ns as f64 / sums.count as f64),
        max_ns: some.then_some(sums.max_ns),
        buckets: counts.lengths.spans(LENGTH_BITS).map(bucket).collect(),
        ..Series::default()
    }
}

/// The times of a recording's detours, requested by side, index of the run, CPU and shortest length in nanoseconds. `None` unless it is a
/// full recording.
pub type AskTimes<'a, E> = &'a mut dyn FnMut(usize, usize, CpuId, i64) -> Result<Option<TimeCells>, E>;

/// Puts the runs of two sides next to each other, at least one each, in lengths from `least_ns` on. Fails if their quantities differ, or
/// they have nothing in common; and with the errors of `times`.
pub fn side_by_side<E: From<SidesError>>(
    a: &[Side],
    b: &[Side],
    least_ns: i64,
    times: AskTimes<'_, E>,
) -> Result<SideBySide, E> {
    let sides = [a, b];
    let ([first_a, ..], [first_b, ..]) = (a, b) else {
        return Err(SidesError::Nothing { a: String::new(), b: String::new() }.into());
    };
    let quantity = common_quantity(first_a, first_b)?;
    for (side, first) in [(a, first_a), (b, first_b)] {
        if let Some(other) = side.iter().find(|run| run.quantity != first.quantity) {
            return Err(different(first, other).into());
        }
    }
    let (mut pairs, mut single) = (Vec::new(), Vec::new());
    let mut rest: Vec<&Series> = first_b.series.iter().collect();
    let alone = sides.iter().all(|side| side.iter().all(|run| run.series.len() == 1));
    for one in &first_a.series {
        match rest.iter().position(|other| alone || belongs(one, other)) {
            Some(at) => {
                let other = rest.remove(at);
                let of_side = |side: &'_ [Side], first: &Series| -> Option<Vec<Series>> {
                    let of_run = |run: &Side| run.series.iter().find(|series| alone || belongs(series, first)).cloned();
                    side.iter().map(of_run).collect()
                };
                match (of_side(a, one), of_side(b, other)) {
                    (Some(runs_a), Some(runs_b)) => {
                        pairs.push(pair(sides, [runs_a, runs_b], quantity, least_ns, &mut *times)?);
                    }
                    _ => single.push(format!("{}, which not all runs have", one.name)),
                }
            }
            None => single.push(format!("{} of {}", one.name, first_a.name)),
        }
    }
    single.extend(rest.iter().map(|other| format!("{} of {}", other.name, first_b.name)));
    if pairs.is_empty() {
        return Err(SidesError::Nothing { a: first_a.name.clone(), b: first_b.name.clone() }.into());
    }
    Ok(SideBySide {
        quantity,
        steps: [first_a, first_b].map(|first| first.quantity == Quantity::Steps && quantity == Quantity::Stolen),
        loop_subtracted: [first_a.loop_subtracted, first_b.loop_subtracted],
        names: sides.map(|side| side.iter().map(|run| run.name.clone()).collect()),
        pairs,
        single,
    })
}

fn different(a: &Side, b: &Side) -> SidesError {
    SidesError::Quantities { a: a.name.clone(), qa: a.quantity, b: b.name.clone(), qb: b.quantity }
}

/// The quantity of both: all steps of a loop include those that lost time.
fn common_quantity(a: &Side, b: &Side) -> Result<Quantity, SidesError> {
    match (a.quantity, b.quantity) {
        (one, other) if one == other => Ok(one),
        (Quantity::Steps, Quantity::Stolen) | (Quantity::Stolen, Quantity::Steps) => Ok(Quantity::Stolen),
        _ => Err(different(a, b)),
    }
}

/// True if two series are of the same CPU and the same thing.
fn belongs(one: &Series, other: &Series) -> bool {
    one.name == other.name || one.cpu.is_some() && one.cpu == other.cpu && [one, other].into_iter().all(is_of_cpu)
}

/// True if a series is the only one of its CPU. The wake-up latency of a thread is one thing, whether it is named by its number as by
/// cyclictest, or by its CPU as by timerlat, which also has the timer's handler on that CPU.
fn is_of_cpu(series: &Series) -> bool {
    let name = &series.name;
    name.starts_with("thread ") || !name.trim_start_matches("CPU ").trim_end_matches(" thread").contains(' ')
}

fn pair<E>(
    sides: [&[Side]; 2],
    runs: [Vec<Series>; 2],
    quantity: Quantity,
    least_ns: i64,
    times: AskTimes<'_, E>,
) -> Result<Pair, E> {
    let is_stolen = |side: usize| quantity == Quantity::Stolen && sides[side][0].quantity == Quantity::Steps;
    let longest = |length: &dyn Fn(usize, &Series) -> i64| {
        [0, 1].map(|side| runs[side].iter().map(|series| length(side, series)).max().unwrap_or(0))
    };
    let slack = longest(&|side, series| slack_ns(series, sides[side][0].quantity, sides[side][0].loop_subtracted));
    let floor = longest(&|side, series| {
        // Above the commonest step and its slack, every step was interrupted.
        let steps = commonest(series).filter(|_| is_stolen(side)).map_or(0, |most| most.below_ns + slack[side]);
        // An unknown threshold is at most the end of the first bucket: shorter lengths were perhaps not counted.
        let unsaid = series.buckets.first().filter(|_| sides[side][0].quantity == Quantity::Stolen);
        let threshold = series.threshold_ns.or(unsaid.map(|first| first.below_ns));
        steps.max(threshold.unwrap_or(0))
    });
    let cut_ns = floor[0].max(floor[1]).max(least_ns);
    let (one, other) = (&runs[0][0], &runs[1][0]);
    let name = if one.name == other.name { one.name.clone() } else { format!("{}, {}", one.name, other.name) };
    let tested_from_ns = runs.iter().flatten().fold(cut_ns, |from, series| whole_bucket(series, from));
    let mut clustering: Option<Clustering> = None;
    let mut too_short = false;
    for (side, run, series) in
        [0, 1].into_iter().flat_map(|side| runs[side].iter().enumerate().map(move |(run, series)| (side, run, series)))
    {
        let Some((cpu, observed)) = series.cpu.zip(series.observed_ns) else { continue };
        let Some(cells) = times(side, run, cpu, tested_from_ns)? else { continue };
        match Clustering::from_cells(&cells, observed) {
            Some(found) => clustering = Some(clustering.map_or(found, |worst| worst.worse(found))),
            None => too_short = true,
        }
    }
    // The side with the finer buckets accounts for the slack of both loops.
    let width = |series: &[Series]| {
        let at_cut = series.iter().flat_map(|series| &series.buckets).find(|bucket| bucket.below_ns > tested_from_ns);
        at_cut.map_or(i64::MAX, |bucket| bucket.below_ns - bucket.from_ns)
    };
    let finer = usize::from(width(&runs[1]) < width(&runs[0]));
    let lengths = [0, 1].map(|side| {
        let other_slack_ns = (side == finer).then_some(slack[1 - side]);
        let run = |series| RunLengths {
            series,
            cut_ns: tested_from_ns,
            own_slack_ns: slack[side],
            other_slack_ns,
            effect: 1.0,
        };
        runs[side].iter().map(run).collect::<Vec<_>>()
    });
    let tested = match verdict::test(&lengths, clustering) {
        Err(Untested::NoTimes) if too_short => Err(Untested::ShortRecording),
        tested => tested,
    };
    let figures =
        |series: &[Series]| series.iter().map(|one| SeriesFigures::new(&cut(one, cut_ns), quantity)).collect();
    Ok(Pair { name, cut_ns, a: figures(&runs[0]), b: figures(&runs[1]), tested, tested_from_ns, slack_ns: slack })
}

/// The shortest length, from `from_ns` on, that is not inside a bucket wider than a hundredth of its start.
fn whole_bucket(series: &Series, from_ns: i64) -> i64 {
    let holds = |bucket: &&Bucket| bucket.from_ns < from_ns && bucket.below_ns > from_ns;
    let wide = |bucket: &&Bucket| (bucket.below_ns - bucket.from_ns).saturating_mul(100) > bucket.from_ns;
    series.buckets.iter().filter(holds).find(wide).map_or(from_ns, |bucket| bucket.below_ns)
}

/// A series without lengths below this: with a histogram, what its buckets still show; without one, almost nothing.
fn cut(series: &Series, cut_ns: i64) -> Series {
    let below = |ns: i64| ns < cut_ns;
    // Nothing is known to be below, so nothing is left out.
    if series.threshold_ns.is_some_and(|ns| !below(ns)) || series.min_ns.is_some_and(|ns| !below(ns)) || cut_ns == 0 {
        return series.clone();
    }
    let max_ns = series.max_ns.filter(|ns| !below(*ns));
    let mut left = Series {
        count: None,
        total_ns: None,
        min_ns: None,
        mean_ns: None,
        quantiles: Vec::new(),
        max_ns,
        threshold_ns: Some(cut_ns),
        ..series.clone()
    };
    if series.buckets.is_empty() {
        return left;
    }
    left.buckets.retain(|bucket| !below(bucket.from_ns));
    left.count = Some(left.in_histogram());
    let fine = |bucket: &Bucket| (bucket.below_ns - bucket.from_ns).saturating_mul(100) <= bucket.from_ns;
    if left.above.is_none() && left.buckets.iter().all(fine) {
        let middle = |bucket: &Bucket| bucket.from_ns as f64 / 2.0 + bucket.below_ns as f64 / 2.0;
        let total: f64 = left.buckets.iter().map(|bucket| middle(bucket) * bucket.count as f64).sum();
        left.total_ns = Some(total as i64);
        left.mean_ns = left.count.filter(|count| *count > 0).map(|count| total / count as f64);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One run per side, without times.
    fn two(a: Side, b: Side) -> Result<SideBySide, SidesError> {
        side_by_side(&[a], &[b], 0, &mut |_, _, _, _| Ok(None))
    }

    fn series(name: &str, cpu: Option<u32>, threshold_ns: Option<i64>, buckets: &[(i64, i64, u64)]) -> Series {
        let buckets: Vec<Bucket> = buckets.iter().copied().map(Bucket::from).collect();
        let mut series =
            Series { name: name.to_owned(), cpu: cpu.map(CpuId::new), threshold_ns, buckets, ..Series::default() };
        series.count = (!series.buckets.is_empty()).then(|| series.in_histogram());
        series
    }

    fn side(name: &str, quantity: Quantity, series: Vec<Series>) -> Side {
        Side { name: name.to_owned(), quantity, loop_subtracted: None, series }
    }

    #[test]
    fn wake_ups_never_stand_beside_noise() {
        let one = || vec![series("CPU 0", Some(0), None, &[(0, 10, 1)])];
        let error =
            two(side("a", Quantity::Stolen, one()), side("b", Quantity::Wakeup, one())).unwrap_err().to_string();
        assert!(error.contains("b holds wake-up latencies") && error.contains("not compared"), "{error}");
        assert!(two(side("a", Quantity::Wakeup, one()), side("b", Quantity::Wakeup, one())).is_ok());
    }

    #[test]
    fn the_higher_threshold_holds_for_both() {
        let fine = series("CPU 1", Some(1), Some(100), &[(100, 101, 50), (5_000, 5_010, 7), (9_000, 9_020, 1)]);
        let coarse = series("CPU 1", Some(1), Some(5_000), &[(5_000, 6_000, 6)]);
        let both = two(side("a", Quantity::Stolen, vec![fine.clone()]), side("b", Quantity::Stolen, vec![coarse]));
        let pair = both.unwrap().pairs.remove(0);
        assert_eq!((pair.cut_ns, pair.a[0].series.count, pair.b[0].series.count), (5_000, Some(8), Some(6)));
        assert_eq!(pair.a[0].series.total_ns, Some(7 * 5_005 + 9_010));
        // Of statistics alone, only the longest is left.
        let table = Series { count: Some(70), max_ns: Some(9_000), ..series("CPU 1", Some(1), Some(160), &[]) };
        let high = Series { threshold_ns: Some(5_000), ..fine };
        let pair = two(side("a", Quantity::Stolen, vec![table]), side("b", Quantity::Stolen, vec![high]));
        let pair = pair.unwrap().pairs.remove(0);
        assert_eq!((pair.a[0].series.count, pair.a[0].series.max_ns), (None, Some(9_000)));
    }

    #[test]
    fn series_meet_by_name_or_by_cpu() {
        let named = |names: &[(&str, Option<u32>)]| {
            let series = names.iter().map(|(name, cpu)| series(name, *cpu, None, &[(0, 10, 1)])).collect();
            side("side", Quantity::Wakeup, series)
        };
        let met = |a: &[(&str, Option<u32>)], b: &[(&str, Option<u32>)]| {
            two(named(a), named(b)).map(|both| (both.pairs.len(), both.single.len())).ok()
        };
        assert_eq!(met(&[("thread 0", Some(3))], &[("thread 0", Some(4)), ("x", None)]), Some((1, 1)));
        assert_eq!(
            met(&[("CPU 3 irq", Some(3)), ("CPU 3 thread", Some(3))], &[("CPU 3 thread", Some(3)), ("y", None)]),
            Some((1, 2))
        );
        assert_eq!(met(&[("thread 0", Some(3)), ("z", None)], &[("CPU 3", Some(3)), ("y", None)]), Some((1, 2)));
        // timerlat next to cyclictest: its thread, and not its handler.
        let timerlat = [("CPU 3 irq", Some(3)), ("CPU 3 thread", Some(3))];
        assert_eq!(met(&timerlat, &[("thread 0", Some(3)), ("thread 1", Some(4))]), Some((1, 2)));
        assert_eq!(met(&[("thread 0", Some(3)), ("z", None)], &timerlat), Some((1, 2)));
        assert_eq!(met(&timerlat, &[("thread 0", Some(4)), ("thread 1", Some(5))]), None);
        assert_eq!(met(&[("p", None)], &[("q", None)]), Some((1, 0)), "each has one");
        assert_eq!(met(&[("p", None), ("r", None)], &[("q", None)]), None);
    }
}
