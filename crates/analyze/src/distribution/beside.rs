//! Distributions beside each other, or beside recordings of becalm's own: the same figures of both, with the same threshold applied.
//!
//! There is no verdict. Detours come in bursts, so that how much of a difference is chance can only be told from when they came, which
//! distributions do not know. Lengths of different quantities are not put beside each other at all.

use becalm_model::digest::{CpuDigest, DigestDoc, LENGTH_BITS};
use becalm_model::distribution::{Bucket, DistributionDoc, Quantity, Series};
use becalm_model::node::CpuDoc;

use super::SeriesFigures;

/// One of the two sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Side {
    /// What stands for it in messages.
    pub name: String,
    /// What its lengths are of.
    pub quantity: Quantity,
    /// Whether the shortest step of the loop was subtracted from each.
    pub loop_subtracted: Option<bool>,
    /// Its series.
    pub series: Vec<Series>,
}

/// Two series that stand beside each other.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// What they are called.
    pub name: String,
    /// Lengths below this were left out of both, in nanoseconds.
    pub cut_ns: i64,
    /// That of the first side.
    pub a: SeriesFigures,
    /// That of the second.
    pub b: SeriesFigures,
}

/// Two sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Beside {
    /// The names of the two.
    pub names: [String; 2],
    /// What the lengths of both are of.
    pub quantity: Quantity,
    /// Whether the loop's own time was subtracted on either side.
    pub loop_subtracted: [Option<bool>; 2],
    /// The series of both.
    pub pairs: Vec<Pair>,
    /// Series that only one side has.
    pub single: Vec<String>,
}

/// Why two sides cannot stand beside each other.
#[derive(Debug, thiserror::Error)]
pub enum BesideError {
    /// They are of different things.
    #[error("{a} holds {}, and {b} holds {}; they are not the same, and are not compared", qa.words(), qb.words())]
    Quantities {
        /// The first side.
        a: String,
        /// What its lengths are of.
        qa: Quantity,
        /// The second side.
        b: String,
        /// What its lengths are of.
        qb: Quantity,
    },
    /// No series of the one belongs to one of the other.
    #[error("{a} and {b} have no CPU and no series in common")]
    Nothing {
        /// The first side.
        a: String,
        /// The second side.
        b: String,
    },
}

impl Side {
    /// Of an imported distribution.
    #[must_use]
    pub fn of_distribution(name: &str, doc: DistributionDoc) -> Self {
        let DistributionDoc { quantity, loop_subtracted, series, .. } = doc;
        Self { name: name.to_owned(), quantity, loop_subtracted, series }
    }

    /// Of a recording of becalm's own, in summary form.
    #[must_use]
    pub fn of_digest(name: &str, digest: &DigestDoc) -> Self {
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

/// Puts two sides beside each other.
///
/// # Errors
/// If they are of different quantities, or have nothing in common.
pub fn beside(a: Side, b: Side) -> Result<Beside, BesideError> {
    if a.quantity != b.quantity {
        return Err(BesideError::Quantities { a: a.name, qa: a.quantity, b: b.name, qb: b.quantity });
    }
    let (mut pairs, mut single) = (Vec::new(), Vec::new());
    let mut rest: Vec<&Series> = b.series.iter().collect();
    let alone = a.series.len() == 1 && b.series.len() == 1;
    for one in &a.series {
        match rest.iter().position(|other| alone || belongs(one, other)) {
            Some(at) => pairs.push(pair(one, rest.remove(at), a.quantity)),
            None => single.push(format!("{} of {}", one.name, a.name)),
        }
    }
    single.extend(rest.iter().map(|other| format!("{} of {}", other.name, b.name)));
    if pairs.is_empty() {
        return Err(BesideError::Nothing { a: a.name, b: b.name });
    }
    Ok(Beside {
        quantity: a.quantity,
        loop_subtracted: [a.loop_subtracted, b.loop_subtracted],
        names: [a.name, b.name],
        pairs,
        single,
    })
}

/// Whether two series are of the same CPU and the same thing of it.
fn belongs(one: &Series, other: &Series) -> bool {
    one.name == other.name || one.cpu.is_some() && one.cpu == other.cpu && [one, other].iter().all(|of| is_of_cpu(of))
}

/// Whether a series is all there is of a CPU, and not one of several.
fn is_of_cpu(series: &Series) -> bool {
    series.name.starts_with("thread ") || !series.name.trim_start_matches("CPU ").contains(' ')
}

fn pair(one: &Series, other: &Series, quantity: Quantity) -> Pair {
    let cut_ns = [one, other].iter().filter_map(|series| series.threshold_ns).max().unwrap_or(0);
    let name = if one.name == other.name { one.name.clone() } else { format!("{}, {}", one.name, other.name) };
    let [a, b] = [one, other].map(|series| SeriesFigures::of(&cut(series, cut_ns), quantity));
    Pair { name, cut_ns, a, b }
}

/// What is left of a series where lengths below this are left out: of one with a histogram what its buckets hold, of one without hardly
/// anything.
fn cut(series: &Series, cut_ns: i64) -> Series {
    let below = |ns: i64| ns < cut_ns;
    // Where nothing is known to be below, nothing is taken away.
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
    use becalm_units::CpuId;

    use super::*;

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
        let of = || vec![series("CPU 0", Some(0), None, &[(0, 10, 1)])];
        let error =
            beside(side("a", Quantity::Stolen, of()), side("b", Quantity::Wakeup, of())).unwrap_err().to_string();
        assert!(error.contains("b holds wake-up latencies") && error.contains("not compared"), "{error}");
        assert!(beside(side("a", Quantity::Wakeup, of()), side("b", Quantity::Wakeup, of())).is_ok());
    }

    #[test]
    fn the_higher_threshold_holds_for_both() {
        let fine = series("CPU 1", Some(1), Some(100), &[(100, 101, 50), (5_000, 5_010, 7), (9_000, 9_020, 1)]);
        let coarse = series("CPU 1", Some(1), Some(5_000), &[(5_000, 6_000, 6)]);
        let both = beside(side("a", Quantity::Stolen, vec![fine.clone()]), side("b", Quantity::Stolen, vec![coarse]));
        let pair = both.unwrap().pairs.remove(0);
        assert_eq!((pair.cut_ns, pair.a.series.count, pair.b.series.count), (5_000, Some(8), Some(6)));
        assert_eq!(pair.a.series.total_ns, Some(7 * 5_005 + 9_010));
        // Of statistics alone nothing but the longest is left.
        let table = Series { count: Some(70), max_ns: Some(9_000), ..series("CPU 1", Some(1), Some(160), &[]) };
        let high = Series { threshold_ns: Some(5_000), ..fine };
        let pair = beside(side("a", Quantity::Stolen, vec![table]), side("b", Quantity::Stolen, vec![high]));
        let pair = pair.unwrap().pairs.remove(0);
        assert_eq!((pair.a.series.count, pair.a.series.max_ns), (None, Some(9_000)));
    }

    #[test]
    fn series_meet_by_name_or_by_cpu() {
        let of = |names: &[(&str, Option<u32>)]| {
            let series = names.iter().map(|(name, cpu)| series(name, *cpu, None, &[(0, 10, 1)])).collect();
            side("side", Quantity::Wakeup, series)
        };
        let met = |a: &[(&str, Option<u32>)], b: &[(&str, Option<u32>)]| {
            beside(of(a), of(b)).map(|both| (both.pairs.len(), both.single.len())).ok()
        };
        assert_eq!(met(&[("thread 0", Some(3))], &[("thread 0", Some(4)), ("x", None)]), Some((1, 1)));
        assert_eq!(
            met(&[("CPU 3 irq", Some(3)), ("CPU 3 thread", Some(3))], &[("CPU 3 thread", Some(3)), ("y", None)]),
            Some((1, 2))
        );
        assert_eq!(met(&[("thread 0", Some(3)), ("z", None)], &[("CPU 3", Some(3)), ("y", None)]), Some((1, 2)));
        assert_eq!(met(&[("p", None)], &[("q", None)]), Some((1, 0)), "each has one");
        assert_eq!(met(&[("p", None), ("r", None)], &[("q", None)]), None);
    }
}
