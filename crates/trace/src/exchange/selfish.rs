//! Detours as selfish benchmarks print them: a line for each with its offset and its duration, two numbers between blanks.
//! Lines that begin with `#` are remarks; further columns are left alone.

use becalm_units::Nanos;

/// What is wrong with a line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct SelfishError {
    /// Which line.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// The detours `(start, duration)` of a text, whose numbers are in the given unit: `ns`, `us`, `ms` or `s`.
///
/// # Errors
/// [`SelfishError`] for a line without two numbers, times that are no whole nanoseconds or do not fit, and detours that are
/// not in order of time or overlap.
pub fn parse(text: &str, unit: &str) -> Result<Vec<(Nanos, Nanos)>, SelfishError> {
    let mut detours = Vec::new();
    let mut end = Nanos::ZERO;
    for (at, content) in text.lines().enumerate() {
        let err = |why: String| SelfishError { line: at + 1, why };
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let mut words = content.split_whitespace();
        let mut time = |what: &str| -> Result<Nanos, SelfishError> {
            let word = words.next().ok_or_else(|| err(format!("it has no {what}")))?;
            format!("{word}{unit}").parse().map_err(|error| err(format!("its {what}: {error}")))
        };
        let (start, duration) = (time("offset")?, time("duration")?);
        if start < end {
            return Err(err(format!(
                "the detour starts at {start}, before the end of the one in front of it, at {end}"
            )));
        }
        end = start.checked_add(duration).ok_or_else(|| err("it ends later than times can hold".to_owned()))?;
        detours.push((start, duration));
    }
    Ok(detours)
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
    fn says_which_line_is_wrong() {
        for (text, line, why) in [
            ("1 2\n3", 2, "no duration"),
            ("1 x", 1, "its duration"),
            ("#\n-1 2", 2, "its offset"),
            ("10 5\n\n14 1", 3, "before the end"),
            ("1 0.5", 1, "its duration"),
            ("9223372036854775807 1", 1, "later than times"),
        ] {
            let error = parse(text, "ns").unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.why.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9 .#\\n-]*", unit in "ns|us|ms|s") {
            let _ = parse(&text, &unit);
        }
    }
}
