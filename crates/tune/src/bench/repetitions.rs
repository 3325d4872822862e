//! Repetitions of a program, with the time that each lost to noise: which of them were disturbed, and whether their spread comes from the machine or
//! the program.
//!
//! Every repetition loses a little, to ticks for example. One is *touched* if it lost more than usual: by more than three standard deviations (1.4826
//! times the median absolute deviation), and by more than [`LEAST_RATIO`] of the usual time.
//!
//! The times without the losses tell the cause of the spread. If they spread much less than the measured times, the machine made the difference; the
//! share of the variance explained by the losses is 1 - var(time - lost) / var(time).

use becalm_model::Kind;
use becalm_stats::{Moments, median_mid};

use super::slow::{SlowRuns, slow_runs};

/// A repetition is not touched if its additional loss is below this fraction of the usual time.
pub const LEAST_RATIO: f64 = 0.005;

/// Repetitions with a standard deviation below this fraction of their mean differ too little to need a reason.
pub const STEADY_RATIO: f64 = 0.005;

/// Fewer repetitions do not show a spread.
pub const LEAST_RUNS: usize = 5;

/// Noise made the difference if it explains at least this share of the variance.
pub const EXPLAINED: f64 = 0.5;

/// A source that took time from a repetition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostTo {
    /// Its kind; `None` if the kernel only counts it.
    pub kind: Option<Kind>,
    /// Its stable name.
    pub source: String,
    /// The time that it took, in nanoseconds.
    pub ns: i64,
}

/// One repetition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repetition {
    /// Its duration, in nanoseconds.
    pub time_ns: i64,
    /// The user CPU time of the program and its children, in nanoseconds.
    pub user_ns: i64,
    /// Their system CPU time, in nanoseconds.
    pub system_ns: i64,
    /// The time lost to noise, in nanoseconds; `None` if it was not observable.
    pub lost_ns: Option<i64>,
    /// The number of interruptions; `None` if it was not observable.
    pub interruptions: Option<u64>,
    /// Kernel events dropped meanwhile: more time may have been lost to noise.
    pub lost_events: u64,
    /// The sources of the lost time, the largest first.
    pub sources: Vec<LostTo>,
    /// The exit code of the program, or 128 plus the number of the signal that ended it.
    pub exit_code: u8,
}

/// The source of time that the hypervisor took, by the kernel's count.
pub const STEAL: &str = "steal";

/// Statistics of repetition times, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The number of repetitions.
    pub runs: usize,
    /// Their mean.
    pub mean_ns: f64,
    /// Their standard deviation; `None` for fewer than two.
    pub stddev_ns: Option<f64>,
    /// Their median.
    pub median_ns: i64,
    /// The shortest.
    pub min_ns: i64,
    /// The longest.
    pub max_ns: i64,
}

/// The cause of the spread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum SpreadVerdict {
    /// There are too few repetitions.
    TooFew,
    /// They hardly differ; the standard deviation over the mean.
    Steady(f64),
    /// The losses were not observable.
    Unknown,
    /// The machine: this share of the variance is explained by the losses.
    Machines(f64),
    /// The program, or something unseen: this share of the variance, possibly negative, is explained by the losses.
    Programs(f64),
}

/// The evaluation of repetitions.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// Which ones noise touched, in order.
    pub touched: Vec<bool>,
    /// The usual loss of a repetition, in nanoseconds: the median.
    pub usual_lost_ns: Option<i64>,
    /// All of them.
    pub all: Spread,
    /// Those that were not touched; `None` if all were.
    pub untouched: Option<Spread>,
    /// All, each without its losses; `None` if these were not observable.
    pub without_lost: Option<Spread>,
    /// The cause of the spread.
    pub verdict: SpreadVerdict,
    /// Why the slow ones were slow; `None` for too few of them, losses that were not observable, or several CPUs, which lose time at once.
    pub explained: Option<SlowRuns>,
}

/// Evaluates repetitions, at least one, on this number of CPUs.
pub fn judge(runs: &[Repetition], cpus: usize) -> Judged {
    let explained = if cpus == 1 { slow_runs(runs) } else { None };
    let times: Vec<i64> = runs.iter().map(|run| run.time_ns).collect();
    let all =
        spread(&times).unwrap_or(Spread { runs: 0, mean_ns: 0.0, stddev_ns: None, median_ns: 0, min_ns: 0, max_ns: 0 });
    let lost: Option<Vec<i64>> = runs.iter().map(|run| run.lost_ns).collect();
    let Some(lost) = lost else {
        let touched = vec![false; runs.len()];
        let verdict = verdict(&all, None);
        return Judged {
            touched,
            usual_lost_ns: None,
            all,
            untouched: Some(all),
            without_lost: None,
            verdict,
            explained,
        };
    };
    let usual = middle(&lost).unwrap_or(0);
    let deviations: Vec<i64> = lost.iter().map(|lost| (lost - usual).abs()).collect();
    let scatter = 1.4826 * middle(&deviations).unwrap_or(0) as f64;
    let most = (3.0 * scatter).max(LEAST_RATIO * all.median_ns as f64);
    let touched: Vec<bool> = lost.iter().map(|lost| (lost - usual) as f64 > most).collect();
    let kept: Vec<i64> = times.iter().zip(&touched).filter(|(_, touched)| !**touched).map(|(time, _)| *time).collect();
    let without: Vec<i64> = times.iter().zip(&lost).map(|(time, lost)| time - lost).collect();
    let without_lost = spread(&without);
    let verdict = verdict(&all, without_lost.as_ref());
    Judged { touched, usual_lost_ns: Some(usual), all, untouched: spread(&kept), without_lost, verdict, explained }
}

fn verdict(all: &Spread, without: Option<&Spread>) -> SpreadVerdict {
    let Some(stddev) = all.stddev_ns.filter(|_| all.runs >= LEAST_RUNS) else { return SpreadVerdict::TooFew };
    if stddev <= STEADY_RATIO * all.mean_ns {
        return SpreadVerdict::Steady(if all.mean_ns > 0.0 { stddev / all.mean_ns } else { 0.0 });
    }
    let Some(left) = without.and_then(|without| without.stddev_ns) else { return SpreadVerdict::Unknown };
    let explained = 1.0 - (left / stddev).powi(2);
    if explained >= EXPLAINED { SpreadVerdict::Machines(explained) } else { SpreadVerdict::Programs(explained) }
}

/// The median, in whole nanoseconds.
fn middle(times: &[i64]) -> Option<i64> {
    let mut times: Vec<f64> = times.iter().map(|time| *time as f64).collect();
    median_mid(&mut times).map(|median| median.round() as i64)
}

fn spread(times: &[i64]) -> Option<Spread> {
    let mut moments = Moments::default();
    times.iter().for_each(|time| moments.add(*time));
    Some(Spread {
        runs: times.len(),
        mean_ns: moments.mean()?,
        stddev_ns: moments.stddev().filter(|_| times.len() > 1),
        median_ns: middle(times)?,
        min_ns: moments.min()?,
        max_ns: moments.max()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(time_ns: i64, lost_ns: Option<i64>) -> Repetition {
        Repetition {
            time_ns,
            user_ns: 0,
            system_ns: 0,
            lost_ns,
            interruptions: None,
            lost_events: 0,
            sources: Vec::new(),
            exit_code: 0,
        }
    }

    const MS: i64 = 1_000_000;

    #[test]
    fn what_lost_more_than_is_usual_is_touched() {
        let times = [100, 101, 150, 100, 99, 131, 100];
        let lost = [1, 1, 51, 1, 1, 30, 1];
        let runs: Vec<_> = times.iter().zip(lost).map(|(time, lost)| run(time * MS, Some(lost * MS))).collect();
        let judged = judge(&runs, 1);
        assert_eq!(judged.touched, [false, false, true, false, false, true, false]);
        let untouched = judged.untouched.unwrap();
        assert_eq!((untouched.runs, untouched.median_ns, untouched.mean_ns), (5, 100 * MS, 100.0 * MS as f64));
        assert_eq!((judged.all.max_ns, judged.usual_lost_ns), (150 * MS, Some(MS)));
        assert!(matches!(judged.verdict, SpreadVerdict::Machines(share) if share > 0.99), "{:?}", judged.verdict);
    }

    #[test]
    fn a_program_that_differs_by_itself_is_no_fault_of_the_machine() {
        let runs: Vec<_> = [100, 140, 90, 160, 120].map(|time| run(time * MS, Some(MS))).into();
        let judged = judge(&runs, 1);
        assert_eq!(judged.touched, [false; 5]);
        assert!(matches!(judged.verdict, SpreadVerdict::Programs(share) if share.abs() < 1e-9), "{:?}", judged.verdict);
    }

    #[test]
    fn little_is_said_of_what_was_not_seen() {
        let unseen: Vec<_> = [100, 140, 90, 160, 120].map(|time| run(time * MS, None)).into();
        let judged = judge(&unseen, 1);
        assert_eq!((judged.verdict, judged.without_lost), (SpreadVerdict::Unknown, None));
        assert_eq!(judge(&unseen[..4], 1).verdict, SpreadVerdict::TooFew);
        let alike: Vec<_> = (0..6).map(|number| run(100 * MS + number, None)).collect();
        assert!(matches!(judge(&alike, 1).verdict, SpreadVerdict::Steady(_)));
        assert_eq!(judge(&unseen[..1], 1).all.stddev_ns, None);
    }
}
