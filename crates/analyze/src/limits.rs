//! Checks a recording against limits: the share of time that each CPU may lose, and the length of a detour.
//!
//! A limit is *exceeded* if the figure of this recording is above it, which is a fact. It *holds* if the figure and the upper end of its 95 %
//! interval are within it. In between there is *not enough data*: the recording shows neither that the limit is exceeded nor that the CPU keeps it. A
//! CPU without any detour keeps every limit for the time that it was watched. If a warning says that the figures carry no verdict
//! ([`Bearing::NotEnough`]), a limit is not shown to hold.

use becalm_model::Kind;
use becalm_model::node::Warning;
use becalm_model::warning::{Bearing, Code};
use becalm_stats::{Interval, TooLittle};
use becalm_units::{CpuId, Nanos, Share};

use crate::summary::{CpuSummary, SourceSummary, Summary};

/// The limits for each CPU.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Limits {
    /// The maximum share of time lost.
    pub max_noise: Option<Share>,
    /// The maximum length of a detour.
    pub max_detour: Option<Nanos>,
}

/// One limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Limit {
    /// On the share of time lost.
    Noise(Share),
    /// On the length of a detour.
    Detour(Nanos),
}

/// Whether a CPU keeps a limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Answer {
    /// It does.
    Holds,
    /// It does not.
    Exceeded,
    /// The recording does not say.
    NotEnoughData(Shortage),
}

/// Why there is not enough data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shortage {
    /// The observation time of the CPU is unknown or 0.
    Unobserved,
    /// The interval of the noise ratio extends above the limit.
    Wide,
    /// The noise ratio has no interval.
    NoInterval(TooLittle),
    /// A warning with this code says that the figures carry no verdict.
    Doubtful(Code),
    /// This many detours were only counted, for lack of space, and the longest may be one of them.
    Unstored(u64),
}

/// The source that costs a CPU most.
#[derive(Clone, PartialEq, Debug)]
pub struct Cause {
    /// Its kind.
    pub kind: Kind,
    /// The stable name of the source.
    pub source: String,
    /// For a noise limit: the share of the noise charged to it.
    pub share: Option<f64>,
    /// For a detour limit: its longest activity, in nanoseconds.
    pub longest_ns: Option<i64>,
}

/// One limit on one CPU.
#[derive(Clone, PartialEq, Debug)]
pub struct LimitCheck {
    /// The node that the CPU belongs to.
    pub node: String,
    /// The kernel's number of the CPU.
    pub cpu: CpuId,
    /// The observation time, in nanoseconds; `None` if unknown.
    pub duration_ns: Option<i64>,
    /// The share of time lost; `None` if unknown.
    pub noise_ratio: Option<f64>,
    /// The 95 % interval of the noise ratio; `None` if some detours were only counted.
    pub interval: Option<Interval>,
    /// Its longest detour; 0 without detours.
    pub longest: Nanos,
    /// Events rarer than one per this time, in nanoseconds, may have been missed.
    pub rarest_seen_ns: Option<i64>,
    /// The checked limit.
    pub limit: Limit,
    /// The result.
    pub answer: Answer,
    /// The most expensive source; `None` if no source is known.
    pub cause: Option<Cause>,
}

/// Checks each CPU of a recording against each limit, CPU by CPU, the noise first.
pub fn check(summary: &Summary, limits: &Limits) -> Vec<LimitCheck> {
    let asked: Vec<Limit> =
        limits.max_noise.map(Limit::Noise).into_iter().chain(limits.max_detour.map(Limit::Detour)).collect();
    let checks = |cpu: &CpuSummary| {
        let figures = &cpu.figures;
        let check = |limit: &Limit| LimitCheck {
            node: cpu.node.clone(),
            cpu: cpu.cpu,
            duration_ns: figures.duration_ns,
            noise_ratio: figures.noise_ratio(),
            interval: figures.interval,
            longest: Nanos::new(figures.durations.max().unwrap_or(0)),
            rarest_seen_ns: figures.rarest_seen_ns,
            limit: *limit,
            answer: believed(answer(cpu, *limit), doubt(summary, cpu)),
            cause: match limit {
                Limit::Noise(_) => most_of_the_noise(summary, cpu),
                Limit::Detour(_) => longest_activity(summary, cpu),
            },
        };
        asked.iter().map(check).collect::<Vec<_>>()
    };
    summary.cpus.iter().flat_map(checks).collect()
}

/// The warnings that bear on the verdict, each with its node.
pub fn bearing_warnings(summary: &Summary) -> impl Iterator<Item = &(String, Warning)> {
    summary.warnings.iter().filter(|(_, warning)| warning.bearing() != Bearing::None)
}

/// The warning that rules out a verdict on the figures of a CPU.
fn doubt(summary: &Summary, cpu: &CpuSummary) -> Option<Code> {
    let warnings = bearing_warnings(summary).filter(|(node, _)| *node == cpu.node);
    let grave = warnings.filter(|(_, warning)| warning.bearing() == Bearing::NotEnough);
    // A loop that ended before the others does not affect these.
    let common = grave.filter_map(|(_, warning)| warning.known()).find(|code| *code != Code::CutShort);
    common.or(cpu.figures.cut_short.then_some(Code::CutShort))
}

/// An exceeded limit stays a fact of the recording.
fn believed(answer: Answer, doubt: Option<Code>) -> Answer {
    match (answer, doubt) {
        (Answer::Holds, Some(code)) => Answer::NotEnoughData(Shortage::Doubtful(code)),
        (answer, _) => answer,
    }
}

fn answer(cpu: &CpuSummary, limit: Limit) -> Answer {
    let figures = &cpu.figures;
    match (limit, figures.noise_ratio()) {
        (Limit::Detour(most), _) if figures.durations.max().is_some_and(|longest| longest > most.get()) => {
            Answer::Exceeded
        }
        (_, None) => Answer::NotEnoughData(Shortage::Unobserved),
        (Limit::Detour(_), _) if figures.unstored > 0 => Answer::NotEnoughData(Shortage::Unstored(figures.unstored)),
        (Limit::Detour(_), _) => Answer::Holds,
        (Limit::Noise(most), Some(lost)) if lost > most.ratio() => Answer::Exceeded,
        (Limit::Noise(most), Some(_)) => match figures.interval {
            Some(Interval::Unknown(TooLittle::NoDetour)) => Answer::Holds,
            Some(Interval::Between { high, .. } | Interval::Rough { high, .. }) if high <= most.ratio() => {
                Answer::Holds
            }
            Some(Interval::Between { .. } | Interval::Rough { .. }) => Answer::NotEnoughData(Shortage::Wide),
            Some(Interval::Unknown(why)) => Answer::NotEnoughData(Shortage::NoInterval(why)),
            // Some detours were only counted, so their times are unknown.
            None => Answer::NotEnoughData(Shortage::Unstored(figures.unstored)),
        },
    }
}

fn cpu_sources<'a>(summary: &'a Summary, cpu: &'a CpuSummary) -> impl Iterator<Item = &'a SourceSummary> {
    let is_here = |place: &(String, CpuId)| place.0 == cpu.node && place.1 == cpu.cpu;
    summary.cpu_sources.iter().filter(move |source| source.place.as_ref().is_some_and(is_here))
}

/// The source that most of the CPU's noise is charged to.
fn most_of_the_noise(summary: &Summary, cpu: &CpuSummary) -> Option<Cause> {
    let largest = cpu_sources(summary, cpu).max_by_key(|source| source.whole_ns)?;
    largest.share?;
    Some(Cause { kind: largest.kind, source: largest.source.clone(), share: largest.share, longest_ns: None })
}

/// The source of the longest single activity on the CPU.
fn longest_activity(summary: &Summary, cpu: &CpuSummary) -> Option<Cause> {
    let longest = cpu_sources(summary, cpu).max_by_key(|source| source.times.max())?;
    let longest_ns = longest.times.max();
    longest_ns?;
    Some(Cause { kind: longest.kind, source: longest.source.clone(), share: None, longest_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Figures;

    fn cpu(duration_ns: Option<i64>, detours: &[i64], interval: Interval) -> CpuSummary {
        let mut figures = Figures { duration_ns, interval: Some(interval), ..Figures::default() };
        detours.iter().for_each(|detour| figures.durations.add(*detour));
        CpuSummary { node: "n".to_owned(), cpu: CpuId::new(1), figures }
    }

    fn noise(limit: &str) -> Limit {
        Limit::Noise(limit.parse().unwrap())
    }

    #[test]
    fn a_limit_holds_only_if_the_interval_is_within_it() {
        let second = Some(1_000_000_000);
        let between = Interval::Between { low: 0.000_5, high: 0.002 };
        let busy = cpu(second, &[1_000_000], between);
        assert_eq!(answer(&busy, noise("0.05%")), Answer::Exceeded);
        assert_eq!(answer(&busy, noise("0.1%")), Answer::NotEnoughData(Shortage::Wide));
        assert_eq!(answer(&busy, noise("0.2%")), Answer::Holds);
        let few = TooLittle::FewTrains { trains: 1.0, needed_ns: 5 };
        let rare = cpu(second, &[1_000_000], Interval::Unknown(few));
        assert_eq!(answer(&rare, noise("1%")), Answer::NotEnoughData(Shortage::NoInterval(few)));
        let silent = cpu(second, &[], Interval::Unknown(TooLittle::NoDetour));
        assert_eq!(answer(&silent, noise("0%")), Answer::Holds);
    }

    #[test]
    fn figures_that_a_warning_voids_do_not_show_that_a_limit_holds() {
        let doubtful = Answer::NotEnoughData(Shortage::Doubtful(Code::NotEnded));
        assert_eq!(believed(Answer::Holds, Some(Code::NotEnded)), doubtful);
        assert_eq!(believed(Answer::Exceeded, Some(Code::NotEnded)), Answer::Exceeded);
        assert_eq!(believed(Answer::Holds, None), Answer::Holds);
    }

    #[test]
    fn the_longest_detour_is_a_fact_unless_some_were_not_kept() {
        let mut busy = cpu(Some(1_000_000_000), &[5_000, 7_000], Interval::Unknown(TooLittle::ShortRun));
        let most = |ns| Limit::Detour(Nanos::new(ns));
        assert_eq!(answer(&busy, most(6_999)), Answer::Exceeded);
        assert_eq!(answer(&busy, most(7_000)), Answer::Holds);
        busy.figures.unstored = 3;
        assert_eq!(answer(&busy, most(7_000)), Answer::NotEnoughData(Shortage::Unstored(3)));
        assert_eq!(answer(&busy, most(6_000)), Answer::Exceeded);
        // A recording that was killed still shows long detours.
        busy.figures.duration_ns = None;
        assert_eq!(answer(&busy, most(7_000)), Answer::NotEnoughData(Shortage::Unobserved));
        assert_eq!(answer(&busy, most(6_000)), Answer::Exceeded);
        assert_eq!(answer(&busy, noise("100%")), Answer::NotEnoughData(Shortage::Unobserved));
    }
}
