//! Speed profiles of SimGrid: lines of `date value`, in seconds and as a ratio of the host's speed, which holds until the next line's date.
//!
//! Grammar: `ProfileBuilder.cpp` of SimGrid 4.1. `PERIODICITY x` repeats the profile every x seconds, so a simulation may last longer than
//! the recording.
//!
//! Within a detour the speed is a billionth and not 0: if the speed becomes 0, SimGrid 3.32 lets an action that is under way go on as
//! before, so the detour would cost no time at all. The work done in a detour is a billionth instead.

use std::io::{self, Write};

use becalm_units::Nanos;

use super::decimal::Decimal;

/// The share of the speed that is left within a detour.
const NEARLY_NONE: &str = "0.000000001";

/// A profile being written: full speed, and almost none during detours.
#[derive(Debug)]
pub struct SpeedProfile<W> {
    out: W,
    is_begun: bool,
}

impl<W: Write> SpeedProfile<W> {
    /// Starts the profile of a recording of this length, with `about` as a comment.
    pub fn begin(mut out: W, length: Nanos, about: &str) -> io::Result<Self> {
        writeln!(out, "# {}", becalm_units::printable(about))?;
        writeln!(out, "PERIODICITY {}", seconds(length))?;
        Ok(Self { out, is_begun: false })
    }

    /// Adds a detour, which must start after the end of the one before.
    pub fn detour(&mut self, start: Nanos, duration: Nanos) -> io::Result<()> {
        if start > Nanos::ZERO {
            self.full_speed_at_first()?;
        }
        self.is_begun = true;
        writeln!(self.out, "{} {NEARLY_NONE}", seconds(start))?;
        writeln!(self.out, "{} 1", seconds(start + duration))
    }

    /// Ends it, and returns the writer.
    pub fn end(mut self) -> io::Result<W> {
        self.full_speed_at_first()?;
        Ok(self.out)
    }

    fn full_speed_at_first(&mut self) -> io::Result<()> {
        if self.is_begun {
            return Ok(());
        }
        self.is_begun = true;
        writeln!(self.out, "{} 1", seconds(Nanos::ZERO))
    }
}

/// In seconds with all digits.
fn seconds(time: Nanos) -> Decimal<9> {
    Decimal(time.get().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(length: i64, detours: &[(i64, i64)]) -> String {
        let mut profile = SpeedProfile::begin(Vec::new(), Nanos::new(length), "CPU 0\nof a node").unwrap();
        for (start, duration) in detours {
            profile.detour(Nanos::new(*start), Nanos::new(*duration)).unwrap();
        }
        String::from_utf8(profile.end().unwrap()).unwrap()
    }

    #[test]
    fn speed_is_nearly_none_within_a_detour_and_full_outside() {
        let begin = "# CPU 0\u{fffd}of a node\nPERIODICITY 10.000000000\n";
        let full = "0.000000000 1\n";
        assert_eq!(written(10_000_000_000, &[]), format!("{begin}{full}"));
        let one = "4.020000001 0.000000001\n4.020000006 1\n";
        assert_eq!(written(10_000_000_000, &[(4_020_000_001, 5)]), format!("{begin}{full}{one}"));
        let first = "0.000000000 0.000000001\n0.000000005 1\n";
        assert_eq!(written(10_000_000_000, &[(0, 5)]), format!("{begin}{first}"));
    }

    /// Reads a profile by its grammar: the period, and each share of the speed with its start.
    fn read(text: &str) -> (f64, Vec<(f64, f64)>) {
        let (mut period, mut steps) = (-1.0, Vec::<(f64, f64)>::new());
        for line in text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()) {
            if line.starts_with(['#', '%']) {
                continue;
            }
            if let Some(value) = line.strip_prefix("PERIODICITY ") {
                period = value.parse().unwrap();
                continue;
            }
            let (date, value) = line.split_once(' ').unwrap();
            let (date, value) = (date.parse().unwrap(), value.parse().unwrap());
            assert!(date >= 0.0 && value >= 0.0 && steps.last().is_none_or(|(before, _)| *before <= date));
            steps.push((date, value));
        }
        assert!(period >= steps.last().unwrap().0, "'Profile loop conditions are not realizable!'");
        (period, steps)
    }

    proptest! {
        #[test]
        fn what_is_lost_is_the_noise(gaps in prop::collection::vec((0_i64..1 << 34, 1_i64..1 << 34), 0..30), rest in 0_i64..9) {
            let (mut time, mut detours) = (0, Vec::new());
            for (gap, duration) in gaps {
                // Touching detours are one.
                let gap = if time > 0 { gap + 1 } else { gap };
                detours.push((time + gap, duration));
                time += gap + duration;
            }
            let length = (time + rest).max(1);
            let (period, steps) = read(&written(length, &detours));
            prop_assert!((period * 1e9 - length as f64).abs() < 0.5);
            prop_assert_eq!(steps[0].0, 0.0);
            let until = steps.iter().skip(1).map(|step| step.0).chain([period]);
            let lost: f64 = steps.iter().zip(until).map(|((from, value), until)| (until - from) * (1.0 - value)).sum();
            let noise: i64 = detours.iter().map(|(_, duration)| duration).sum();
            prop_assert!((lost * 1e9 - noise as f64).abs() < 1.0 + noise as f64 * 2e-9, "{} {}", lost, noise);
        }
    }
}
