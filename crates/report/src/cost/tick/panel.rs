//! The consistency panel: what each pair of rates says of the indirect cost, as marks along an axis (Tsafrir 2007, section
//! 2). Marks that lie together show that the method measures one thing.

use std::io::{self, Write};

use becalm_analyze::cost::tick::RatePair;

use crate::form::sheet::Sheet;
use crate::form::value::grouped;

/// Columns of the drawing.
const WIDTH: usize = 56;
/// Where several numbers of processes fall on one place.
const SEVERAL: char = '*';

/// The mark of a number of processes: its digit, or + from 10 on.
fn mark(processes: u32) -> char {
    char::from_digit(processes, 10).unwrap_or('+')
}

/// Draws one line a pair of rates. Draws nothing if there are no pairs, or their values do not differ.
pub(super) fn draw(pairs: &[RatePair], mean_percent: f64, out: &mut Sheet<'_>) -> io::Result<()> {
    let values = pairs.iter().map(RatePair::indirect_percent);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let spread = high - low;
    if spread.is_nan() || spread <= 0.0 || !spread.is_finite() {
        return Ok(());
    }
    let column = |percent: f64| ((percent - low) / spread * (WIDTH - 1) as f64).round() as usize;
    let count = pairs.iter().filter(|pair| pair.processes == pairs[0].processes).count();
    // Each number of processes has the same pairs in the same order.
    for at in 0..count {
        let mut cells = [' '; WIDTH];
        cells[column(mean_percent).min(WIDTH - 1)] = '\u{b7}';
        for pair in pairs.iter().skip(at).step_by(count) {
            let cell = &mut cells[column(pair.indirect_percent())];
            *cell = if *cell == ' ' || *cell == '\u{b7}' { mark(pair.processes) } else { SEVERAL };
        }
        let name = format!("{} to {}/s", rate(pairs[at].low_hz), rate(pairs[at].high_hz));
        let cells: String = cells.iter().collect();
        writeln!(out, "  {name:>18} \u{2502}{}", cells.trim_end())?;
    }
    writeln!(out, "  {:>18} \u{2514}{}", "", "\u{2500}".repeat(WIDTH))?;
    let (left, right) = (format!("{low:.3}"), format!("{high:.3}"));
    let middle = format!("mean \u{b7} {mean_percent:.3}");
    let room = WIDTH - left.len() - right.len();
    writeln!(out, "  {:>18}  {left}{middle:^room$}{right}", "")
}

fn rate(hz: f64) -> String {
    grouped(hz.round().max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::sheet::Form;
    use becalm_analyze::cost::tick::{Direct, RatePoint, RateSeries};

    fn pairs(processes: u32, times: &[f64]) -> Vec<RatePair> {
        let rates = [100.0, 1_000.0, 10_000.0];
        let points = rates.iter().zip(times).map(|(rate_hz, ms)| RatePoint { rate_hz: *rate_hz, work_ns: ms * 1e6 });
        let series = RateSeries::new(processes, points.collect()).unwrap();
        RatePair::all(&series, Direct { trap_ns: 0.0, handler_ns: 0.0 }).collect()
    }

    fn drawn(pairs: &[RatePair], mean: f64) -> String {
        let mut out = Vec::new();
        draw(pairs, mean, &mut Sheet::new(&mut out, Form::default())).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_pair_has_a_line_and_every_number_of_processes_a_mark() {
        let mut all = pairs(1, &[10.0, 10.1, 11.0]);
        all.extend(pairs(2, &[10.0, 10.2, 11.0]));
        all.extend(pairs(16, &[10.0, 10.1, 11.3]));
        let text = drawn(&all, 1.0);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        for (line, name) in lines.iter().zip(["100 to 1,000/s", "100 to 10,000/s", "1,000 to 10,000/s"]) {
            assert!(line.contains(name), "{text}");
            let marks = line.split('\u{2502}').nth(1).unwrap();
            assert!(marks.contains('1') || marks.contains(SEVERAL), "{text}");
        }
        // The first pair is the same for 1 and 16 processes.
        assert!(lines[0].contains(SEVERAL) && lines[0].ends_with('2'), "{text}");
        assert!(lines[4].contains("mean \u{b7} 1.000"), "{text}");
    }

    #[test]
    fn what_has_no_spread_is_not_drawn() {
        assert_eq!(drawn(&[], 0.0), "");
        let flat = pairs(1, &[10.0, 10.0, 10.0]);
        assert_eq!(drawn(&flat, 0.0), "");
    }
}
