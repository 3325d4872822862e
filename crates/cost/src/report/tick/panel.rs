//! The consistency panel: the indirect cost from each pair of rates, as marks along an axis (Tsafrir 2007, section 2). If the marks are
//! close together, the method measures one thing.

use becalm_report::form::value::grouped;

use crate::analysis::tick::RatePair;

/// Columns of the drawing.
const WIDTH: usize = 56;
/// The mark for several numbers of processes in one place.
const SEVERAL: char = '*';

/// The mark of a number of processes: its digit, or + from 10 on.
fn mark(processes: u32) -> char {
    char::from_digit(processes, 10).unwrap_or('+')
}

/// The values that a panel shows.
pub(super) struct Panel {
    /// The value of a pair; `None` for no mark.
    value: fn(&RatePair) -> Option<f64>,
    /// The name and value that a dot marks.
    middle: (&'static str, f64),
    /// Decimals at the ends of the axis.
    digits: usize,
}

impl Panel {
    /// The indirect costs, in percent per 1,000 interrupts per second, with their mean.
    pub(super) fn costs(mean_percent: f64) -> Self {
        Self { value: |pair| Some(pair.indirect_percent()), middle: ("mean", mean_percent), digits: 3 }
    }

    /// The indirect costs as shares of the loss, in percent, with their median: figure 4 of the paper.
    pub(super) fn shares(median_percent: f64) -> Self {
        let value = |pair: &RatePair| pair.indirect_share().map(|share| share * 100.0);
        Self { value, middle: ("median", median_percent), digits: 1 }
    }
}

/// Draws one line per pair of rates; nothing if there are no pairs or all values are equal.
pub(super) fn lines(pairs: &[RatePair], panel: &Panel) -> Vec<String> {
    let values = pairs.iter().filter_map(panel.value);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let spread = high - low;
    if spread.is_nan() || spread <= 0.0 || !spread.is_finite() {
        return Vec::new();
    }
    let column = |value: f64| ((value - low) / spread * (WIDTH - 1) as f64).round() as usize;
    let (name, middle) = panel.middle;
    let count = pairs.iter().filter(|pair| pair.processes == pairs[0].processes).count();
    // Each number of processes has the same pairs in the same order.
    let line = |at: usize| {
        let mut cells = [' '; WIDTH];
        cells[column(middle).min(WIDTH - 1)] = '\u{b7}';
        for pair in pairs.iter().skip(at).step_by(count) {
            let Some(value) = (panel.value)(pair) else { continue };
            let cell = &mut cells[column(value)];
            *cell = if *cell == ' ' || *cell == '\u{b7}' { mark(pair.processes) } else { SEVERAL };
        }
        let name = format!("{} to {}/s", rate(pairs[at].low_hz), rate(pairs[at].high_hz));
        let cells: String = cells.iter().collect();
        format!("  {name:>18} \u{2502}{}", cells.trim_end())
    };
    let digits = panel.digits;
    let (left, right) = (format!("{low:.digits$}"), format!("{high:.digits$}"));
    let middle = format!("{name} \u{b7} {middle:.digits$}");
    let room = WIDTH - left.len() - right.len();
    let axis = format!("  {:>18} \u{2514}{}", "", "\u{2500}".repeat(WIDTH));
    (0..count).map(line).chain([axis, format!("  {:>18}  {left}{middle:^room$}{right}", "")]).collect()
}

fn rate(hz: f64) -> String {
    grouped(hz.round().max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tick::{Direct, RatePoint, RateSeries};

    fn pairs(processes: u32, times: &[f64]) -> Vec<RatePair> {
        let rates = [100.0, 1_000.0, 10_000.0];
        let points = rates.iter().zip(times).map(|(rate_hz, ms)| RatePoint { rate_hz: *rate_hz, work_ns: ms * 1e6 });
        let series = RateSeries::new(processes, points.collect()).unwrap();
        RatePair::all(&series, Direct { trap_ns: 0.0, handler_ns: 0.0 }).collect()
    }

    #[test]
    fn every_pair_has_a_line_and_every_number_of_processes_a_mark() {
        let mut all = pairs(1, &[10.0, 10.1, 11.0]);
        all.extend(pairs(2, &[10.0, 10.2, 11.0]));
        all.extend(pairs(16, &[10.0, 10.1, 11.3]));
        let lines = lines(&all, &Panel::costs(1.0));
        assert_eq!(lines.len(), 5, "{lines:?}");
        for (line, name) in lines.iter().zip(["100 to 1,000/s", "100 to 10,000/s", "1,000 to 10,000/s"]) {
            assert!(line.contains(name), "{lines:?}");
            let marks = line.split('\u{2502}').nth(1).unwrap();
            assert!(marks.contains('1') || marks.contains(SEVERAL), "{lines:?}");
        }
        // The first pair is the same for 1 and 16 processes.
        assert!(lines[0].contains(SEVERAL) && lines[0].ends_with('2'), "{lines:?}");
        assert!(lines[4].contains("mean \u{b7} 1.000"), "{lines:?}");
    }

    #[test]
    fn what_has_no_spread_is_not_drawn() {
        assert!(lines(&[], &Panel::costs(0.0)).is_empty());
        let flat = pairs(1, &[10.0, 10.0, 10.0]);
        assert!(lines(&flat, &Panel::costs(0.0)).is_empty());
    }
}
