//! Detours as selfish benchmarks print them: a line for each with its offset and its duration, two numbers between blanks.
//! Lines that begin with `#` are remarks; further columns are left alone.
//!
//! netgauge's noise pattern (`-x noise`, method selfish) writes such files: remarks, then `time<TAB>duration` in nanoseconds with
//! two decimals, the duration being the step minus the shortest one, as everywhere here; and remarks again, one of which says how long was measured. Its times count
//! from the first detour. Times are rounded to nanoseconds by their begin and their end, so that what does not overlap in
//! the file does not after rounding.

use becalm_units::Nanos;

/// What is wrong with a line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct SelfishError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// The detours `(start, duration)` of a text, whose numbers are in the given unit: `ns`, `us`, `ms` or `s`.
///
/// # Errors
/// That of the first line that [`SelfishDetours`] cannot read.
pub fn parse(text: &str, unit: &str) -> Result<Vec<(Nanos, Nanos)>, SelfishError> {
    SelfishDetours::new(text, unit).collect()
}

/// The detours of a text, line by line. After an error it ends.
///
/// An item is a [`SelfishError`] for a line without two numbers, times that are negative or do not fit, a detour that
/// begins before the end of the one in front of it, and an unknown unit.
#[derive(Clone, Debug)]
pub struct SelfishDetours<'a> {
    rest: &'a str,
    unit: &'a str,
    /// How many lines were read.
    line: usize,
    /// When the last detour ended, in picoseconds.
    last_end: i128,
}

impl<'a> SelfishDetours<'a> {
    /// Of a text whose numbers are in the given unit: `ns`, `us`, `ms` or `s`.
    #[must_use]
    pub const fn new(text: &'a str, unit: &'a str) -> Self {
        Self { rest: text, unit, line: 0, last_end: 0 }
    }

    /// How many bytes are still to be read.
    #[must_use]
    pub const fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    /// The detour of a line that is no remark.
    fn detour(&mut self, content: &str) -> Result<(Nanos, Nanos), SelfishError> {
        let (line, unit) = (self.line, self.unit);
        let err = |why: String| SelfishError { line, why };
        let mut words = content.split_whitespace();
        let mut time = |what: &str| -> Result<i128, SelfishError> {
            let word = words.next().ok_or_else(|| err(format!("it has no {what}")))?;
            picoseconds(word, unit).map_err(|why| err(format!("its {what}, '{word}', {why}")))
        };
        let (start, duration) = (time("offset")?, time("duration")?);
        let end = start + duration;
        if start < self.last_end {
            let (start, end) = (start as f64 / 1e3, self.last_end as f64 / 1e3);
            let why = format!("the detour starts at {start}ns, before the end of the one in front of it, at {end}ns");
            return Err(err(why));
        }
        self.last_end = end;
        let too_late = || err("it ends later than times can hold".to_owned());
        let [begin, end] = [start, end].map(|time| i64::try_from((time + 500).div_euclid(1_000)).ok());
        let (begin, end) = (begin.ok_or_else(too_late)?, end.ok_or_else(too_late)?);
        Ok((Nanos::new(begin), Nanos::new(end - begin)))
    }
}

impl Iterator for SelfishDetours<'_> {
    type Item = Result<(Nanos, Nanos), SelfishError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.rest = rest;
            self.line += 1;
            let content = line.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let detour = self.detour(content);
            if detour.is_err() {
                self.rest = "";
            }
            return Some(detour);
        }
        None
    }
}

/// How long was measured, if the text has netgauge's remark on it, `# Measurement period: 12.34 s`. It is rounded to
/// 10 ms there, and so may end a little before the last detour.
#[must_use]
pub fn measured(text: &str) -> Option<Nanos> {
    let picoseconds = text.lines().rev().find_map(|line| {
        let period = line.trim().strip_prefix("# Measurement period:")?.trim().strip_suffix('s')?;
        picoseconds(period.trim(), "s").ok()
    })?;
    i64::try_from(picoseconds / 1_000).ok().map(Nanos::new)
}

/// A decimal number of a unit, in picoseconds; what is finer is cut off.
fn picoseconds(number: &str, unit: &str) -> Result<i128, &'static str> {
    let scale: u64 = match unit {
        "ns" => 1_000,
        "us" => 1_000_000,
        "ms" => 1_000_000_000,
        "s" => 1_000_000_000_000,
        _ => return Err("has an unknown unit"),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err("is no decimal number of 0 or more");
    }
    // More units than 64 bits hold are more nanoseconds than a time holds.
    let whole: u64 = whole.parse().map_err(|_| "does not fit")?;
    let (mut finer, mut place) = (0, scale);
    for digit in fraction.bytes() {
        place /= 10;
        finer += u64::from(digit - b'0') * place;
    }
    Ok(i128::from(whole) * i128::from(scale) + i128::from(finer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_lines_of_two_numbers() {
        let text = "# offset duration\n\n10 5\n  20.5\t1.25 7\n";
        let times = |numbers: [i64; 4]| {
            let [a, b, c, d] = numbers.map(Nanos::new);
            Ok(vec![(a, b), (c, d)])
        };
        assert_eq!(parse(text, "us"), times([10_000, 5_000, 20_500, 1_250]));
        assert_eq!(parse("10 5\n15 1", "ns"), times([10, 5, 15, 1]));
        assert_eq!(parse("", "ns"), Ok(Vec::new()));
    }

    #[test]
    fn reads_what_netgauge_writes() {
        let text = "# Benchmark Method: selfish\n# Number of Cycles/Detours: 100\n# Selfish Benchmark\n\
                    # Minimal cycle length [ns]: 22.692308 \n# Threshold: [% minimal cycle length]: 900 \n# \n\
                    # Time [ns]\tselfish duration [ns]\n0.00\t203.46\n226.50\t1034.50\n1003988.46\t11.04\n\
                    # CPU overhead due to noise: 0.12%\n# Measurement period: 0.00 s\n";
        let times = [(0, 203), (227, 1_034), (1_003_988, 12)].map(|(at, time)| (Nanos::new(at), Nanos::new(time)));
        assert_eq!(parse(text, "ns"), Ok(times.to_vec()));
        assert_eq!(measured(text), Some(Nanos::ZERO));
        assert_eq!(measured("0.00\t203.46\n# Measurement period: 12.34 s\n"), Some(Nanos::from_millis(12_340)));
        for text in
            ["", "1 2\n", "# Measurement period: long", "# Measurement period: -1 s", "# Measurement period: 1e400 s"]
        {
            assert_eq!(measured(text), None, "{text}");
        }
    }

    #[test]
    fn says_which_line_is_wrong() {
        for (text, line, why) in [
            ("1 2\n3", 2, "no duration"),
            ("1 x", 1, "its duration"),
            ("#\n-1 2", 2, "its offset"),
            ("10 5\n\n14 1", 3, "before the end"),
            ("1 .5", 1, "its duration"),
            ("1 1e3", 1, "no decimal number"),
            ("99999999999999999999999999999999999999999 1", 1, "does not fit"),
            ("9223372036854775807 1", 1, "later than times"),
        ] {
            let error = parse(text, "ns").unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.why.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9 .#\\n-]*", unit in "ns|us|ms|s|h") {
            let _ = parse(&text, &unit);
            let _ = measured(&format!("# Measurement period: {text} s"));
        }

        #[test]
        fn numbers_are_those_of_their_digits(number in "[0-9]{1,22}", fraction in "[0-9]{0,15}", unit in 1..=4_usize) {
            let (zeros, unit) = (3 * unit, ["ns", "us", "ms", "s"][unit - 1]);
            let written = if fraction.is_empty() { number.clone() } else { format!("{number}.{fraction}") };
            let digits = format!("{number}{}", &format!("{fraction:0<zeros$}")[..zeros]);
            let fits = number.parse::<u64>().is_ok();
            prop_assert_eq!(picoseconds(&written, unit).ok(), fits.then(|| digits.parse::<i128>().unwrap()));
        }

        #[test]
        fn rounding_makes_no_overlap(gaps in proptest::collection::vec((0_u32..5_000, 0_u32..5_000), 0..20)) {
            let (mut text, mut now) = (String::new(), 0_u64);
            for (gap, duration) in &gaps {
                let start = now + u64::from(*gap);
                text += &format!("{}.{:03} {}.{:03}\n", start / 1_000, start % 1_000, duration / 1_000, duration % 1_000);
                now = start + u64::from(*duration);
            }
            let detours = parse(&text, "ns").unwrap();
            prop_assert_eq!(detours.len(), gaps.len());
            prop_assert!(detours.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        }
    }
}
