//! Periods in the times of the slowest samples: events that are so rare or irregular that they have little power at any one frequency, such as a
//! daemon ten times per second.
//!
//! Which samples are slowed by a source is not known beforehand. So the slowest half of a run's samples are searched for a period, the slowest
//! quarter, and so on down to the slowest thousandth, each time from the start of the run, up to 1,024 samples. A source that hits a share of the
//! samples dominates one of these sets, however long the others' detours are, because a sample counts once.
//!
//! The start of a detour within its sample is unknown, so each counts at a random time within its sample; otherwise the samples' own rate would be a
//! period.

use super::body::MainBody;
use super::read::WorkSamples;
use becalm_stats::Period;
use becalm_stats::periods::{EVENTS, Times};
use becalm_stats::splitmix::{nth, unit};

/// The share of slow samples is halved this many times.
const LEVELS: u32 = 10;
/// Fewer slow samples than this have no period.
const SLOW_LEAST: usize = 16;
/// Two frequencies closer than this share are one.
const SAME: f64 = 0.01;

/// The periods of at least two cells in the slowest samples, the most certain first, with this false alarm probability for all together.
pub(super) fn beats(samples: &WorkSamples, body: &MainBody, cell: i64, false_alarm: f64) -> Vec<Period> {
    let mut found: Vec<Period> = Vec::new();
    for level in 1..=LEVELS {
        let reach = samples.values.len().min(EVENTS << level);
        let slow = slowest(&samples.values[..reach], reach >> level, body.middle_ns);
        if slow.len() < SLOW_LEAST {
            continue;
        }
        let periods = times(samples, slow, cell).periods(false_alarm / f64::from(LEVELS));
        for (at, period) in periods.iter().enumerate() {
            // Removing the events on a beat leaves gaps in the rest that have the same period, and so have its fractions.
            let gaps = periods[..at].iter().any(|before| is_part(period, before));
            if gaps || period.interval_ns < 2.0 * cell as f64 {
                continue;
            }
            let period = *period;
            match found.iter_mut().find(|known| same(known, &period)) {
                Some(known) if known.false_alarm <= period.false_alarm => {}
                Some(known) => *known = period,
                None => found.push(period),
            }
        }
    }
    found.sort_by(|a, b| a.false_alarm.total_cmp(&b.false_alarm).then(b.events.cmp(&a.events)));
    found
}

/// Whether a source's samples have a period of their own that matches how often it occurs.
pub(super) fn has_period(samples: &WorkSamples, numbers: &[usize], interval_ns: f64, cell: i64) -> bool {
    let (Some(first), Some(last)) = (samples.starts.first(), samples.starts.last()) else { return false };
    let expected = (last - first) as f64 / interval_ns;
    // Consecutive samples are one event.
    let begins = numbers.iter().enumerate().filter(|(at, number)| *at == 0 || numbers[at - 1] + 1 != **number);
    let begins: Vec<usize> = begins.map(|(_, number)| *number).collect();
    if !(0.7..1.4).contains(&(begins.len() as f64 / expected)) {
        return false;
    }
    let periods = times(samples, begins, cell).periods(0.001);
    periods.iter().any(|period| (period.interval_ns / interval_ns - 1.0).abs() < SAME)
}

/// Whether a period is half of another, a third, and so on.
fn is_part(period: &Period, whole: &Period) -> bool {
    let times = (whole.interval_ns / period.interval_ns).round();
    times >= 2.0 && (period.interval_ns * times / whole.interval_ns - 1.0).abs() < SAME
}

fn same(a: &Period, b: &Period) -> bool {
    (a.interval_ns / b.interval_ns - 1.0).abs() < SAME
}

/// The indices of about the `count` longest values, in order of time: above the middle, and above every value that is left out.
fn slowest(values: &[i64], count: usize, middle: i64) -> Vec<usize> {
    let Some(rank) = values.len().checked_sub(count + 1) else { return Vec::new() };
    let mut sorted = values.to_vec();
    let limit = (*sorted.select_nth_unstable(rank).1).max(middle);
    values.iter().enumerate().filter(|(_, value)| **value > limit).map(|(number, _)| number).collect()
}

/// The times of samples, each at a random time within its first cell.
fn times(samples: &WorkSamples, numbers: impl IntoIterator<Item = usize>, cell: i64) -> Times {
    let mut times = Times::default();
    for number in numbers {
        let (Some(start), Some(duration)) = (samples.starts.get(number), samples.durations.get(number)) else {
            continue;
        };
        let within = (*duration).min(cell).max(0) as f64 * scattered(number as u64);
        times.add(start.saturating_add(within as i64));
    }
    times
}

/// A number from 0 to 1, unrelated to its neighbors'.
fn scattered(number: u64) -> f64 {
    unit(nth(number))
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::fixed_work;
    use super::*;
    use becalm_testing::noise::Source;

    #[test]
    fn the_slowest_are_above_all_others() {
        let values = [5, 9, 1, 7, 7, 3, 8];
        assert_eq!(slowest(&values, 2, 0), [1, 6]);
        // Choosing one of two equal ones would be random.
        assert_eq!(slowest(&values, 3, 0), [1, 6]);
        assert_eq!(slowest(&values, 4, 0), [1, 3, 4, 6]);
        assert_eq!(slowest(&values, 4, 7), [1, 6]);
        assert_eq!(slowest(&values, 7, 0), [0_usize; 0]);
        assert_eq!(slowest(&[4; 9], 3, 0), [0_usize; 0]);
    }

    /// Detours at random times and of very different lengths have no period; neither has the samples' own rate.
    #[test]
    fn false_alarms_are_as_rare_as_stated() {
        let mut source = Source::seeded(21);
        let stated = 0.05;
        let mut alarms = 0;
        for _ in 0..100 {
            let mut durations: Vec<i64> = (0..8_000).map(|_| 1_000_000 + source.exponential(2e3) as i64).collect();
            for time in source.poisson(40.0, 8e9) {
                durations[(time / 1e6) as usize] += source.pareto(2e4, 0.9) as i64;
            }
            for time in source.trains(3.0, 8.0, 2e6, 8e9) {
                durations[((time / 1e6) as usize).min(7_999)] += source.exponential(5e4) as i64;
            }
            let samples = fixed_work(&durations);
            let found = beats(&samples, &MainBody::from_values(&samples.values), 1_000_000, stated);
            alarms += i32::from(!found.is_empty());
        }
        // At most 5 of 100 are expected; more than 12 have a probability of 0.2 %.
        assert!(alarms <= 12, "{alarms} of 100");
    }

    #[test]
    fn a_source_that_reaches_into_the_next_sample_comes_once() {
        let samples = fixed_work(&[1_000_000; 4_000]);
        let numbers: Vec<usize> = (0..400).flat_map(|beat| [beat * 10 + 3, beat * 10 + 4]).collect();
        assert!(has_period(&samples, &numbers, 1e7, 1_000_000));
        assert!(!has_period(&samples, &numbers, 5e6, 1_000_000));
        assert!(!has_period(&samples, &[], 1e7, 1_000_000));
    }

    #[test]
    fn what_comes_ten_times_a_second_is_found_among_longer_detours() {
        let mut source = Source::seeded(22);
        let mut durations: Vec<i64> = (0..15_000).map(|_| 1_000_000 + source.exponential(2e3) as i64).collect();
        for time in source.poisson(5.0, 15e9) {
            durations[(time / 1e6) as usize] += source.exponential(2e6) as i64;
        }
        for beat in 0..150 {
            durations[30 + beat * 100] += 150_000;
        }
        let samples = fixed_work(&durations);
        let mean = durations.iter().sum::<i64>() as f64 / 15_000.0;
        let found = beats(&samples, &MainBody::from_values(&samples.values), 1_000_000, 1e-3);
        // Long detours delay all beats after them: the time between two beats is shorter than the mean.
        assert!(found.iter().any(|period| (period.interval_ns / (100.0 * mean) - 1.0).abs() < SAME), "{found:?}");
    }
}
