//! Detours as selfish benchmarks print them: a line for each with its offset and its duration, two numbers between blanks. Lines that start
//! with `#` are comments; further columns are ignored, and lines of words are left out.
//!
//! netgauge's noise pattern (`-x noise`, method selfish) writes such files: comments, then `time<TAB>duration` in nanoseconds with two
//! decimals, the duration being the step minus the shortest one, as everywhere here; then comments again, one of them with the length of
//! the measurement. Its times count from the first detour.

use becalm_units::Nanos;

use super::detours::{DetourList, InOrder};
use super::lines::{End, Lines, Progress, is_row, text};
use super::recognize::LOOKED_AT;
use super::time::{TimeUnit, nanos, picoseconds};
use super::{ReadError, Source, netgauge};

/// The comment with which netgauge starts its list.
pub(super) const NETGAUGE: &str = "# Selfish Benchmark";

/// Words of a title that name the two columns, and words that show that it is about something else, such as extents of a file.
const STARTS: [&str; 4] = ["offset", "start", "begin", "time"];
const LENGTHS: [&str; 2] = ["duration", "length"];
const OTHERS: [&str; 9] = ["byte", "bytes", "sector", "sectors", "block", "blocks", "page", "pages", "offset"];
const UNITS: [&str; 6] = ["ns", "us", "µs", "ms", "s", "sec"];

/// Evidence in a text that its numbers are detours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DetourMarker {
    /// netgauge's comment.
    Netgauge,
    /// A comment that says so in words, and numbers that can be detours.
    Words,
}

/// The evidence at the start of a text that its numbers are detours.
pub(super) fn detour_marker(text: &str) -> Option<DetourMarker> {
    let comments = || text.lines().map(str::trim).filter(|line| line.starts_with('#'));
    if comments().any(|line| line == NETGAUGE) {
        return Some(DetourMarker::Netgauge);
    }
    (comments().any(is_title) && can_be_detours(text)).then_some(DetourMarker::Words)
}

/// True if a comment mentions detours, or names the columns of a list of them: `# offset duration`, `# start_ns duration_ns cpu`.
fn is_title(comment: &str) -> bool {
    let comment = comment.to_lowercase();
    let mut words = comment
        .split(|sign: char| !sign.is_alphanumeric() && sign != '_')
        .map(|word| word.rsplit_once('_').filter(|(_, unit)| UNITS.contains(unit)).map_or(word, |(name, _)| name))
        .filter(|word| !word.is_empty() && !UNITS.contains(word));
    if words.clone().any(|word| ["selfish", "detour", "detours"].contains(&word)) {
        return true;
    }
    let first = words.next().filter(|word| STARTS.contains(word));
    let mut second = words.next();
    if second == Some("time") && matches!(first, Some("start" | "begin")) {
        second = words.next();
    }
    first.is_some() && second.is_some_and(|word| LENGTHS.contains(&word)) && !words.any(|word| OTHERS.contains(&word))
}

/// True if a loop can have run between any two: each starts after the end of the one before, and not at it, as parts of a file do.
fn can_be_detours(text: &str) -> bool {
    // The last line may be cut.
    let whole = if text.len() + 4 > LOOKED_AT { text.rsplit_once('\n').map_or("", |(whole, _)| whole) } else { text };
    let rows = whole.lines().map(str::trim).filter(|line| is_row(line));
    let times: Option<Vec<_>> = rows.map(|line| two_times(line, TimeUnit::Ns).ok()).collect();
    times.is_some_and(|times| times.windows(2).all(|pair| pair[0][0] + pair[0][1] < pair[1][0]))
}

/// Reads a file with numbers in this unit. Fails for a line without two numbers, times that are negative or do not fit, and a detour that
/// starts before the end of the one before.
pub fn read(source: Source<'_>, unit: TimeUnit, progress: Progress<'_>) -> Result<DetourList, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let (mut list, mut detours, mut t_min) = (DetourList::default(), InOrder::default(), None);
    let mut is_netgauge = false;
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            if (line == NETGAUGE || line.starts_with(netgauge::FIRST)) && !detours.detours.is_empty() {
                return Err(lines.second_report());
            }
            is_netgauge |= line == NETGAUGE;
            remark(line, &mut list, &mut t_min);
            continue;
        }
        if line.starts_with(char::is_alphabetic) {
            lines.leave_out()?;
            continue;
        }
        let [start, duration] = two_times(line, unit).map_err(|why| lines.error(why))?;
        detours.push(start, duration).map_err(|why| lines.error(why))?;
    }
    list.detours = detours.detours;
    let end = match (is_netgauge, list.length) {
        (_, Some(_)) => End::Marked,
        (true, None) => {
            End::Missing("netgauge's last comment, which says how long was measured, is missing".to_owned())
        }
        (false, None) => End::Unmarked,
    };
    list.warnings = lines.warnings(end);
    Ok(list)
}

/// The offset and the duration of a line, in picoseconds.
pub(super) fn two_times(line: &str, unit: TimeUnit) -> Result<[i128; 2], String> {
    let mut words = line.split_whitespace();
    let mut time = |what: &str| -> Result<i128, String> {
        let word = words.next().ok_or_else(|| format!("it has no {what}"))?;
        picoseconds(word, unit).map_err(|why| format!("its {what}, '{word}', {why}"))
    };
    Ok([time("offset")?, time("duration")?])
}

/// Takes a comment of netgauge. Its length of the measurement is rounded to 10 ms, and so may end a little before the last detour. The
/// threshold, in percent of the shortest step, follows that step, which is kept in picoseconds.
fn remark(line: &str, list: &mut DetourList, t_min: &mut Option<i128>) {
    let Some((name, value)) = line.trim_start_matches('#').rsplit_once(": ") else { return };
    let value = value.trim();
    match name.trim() {
        "Measurement period" => {
            let seconds = value.strip_suffix('s').map(str::trim);
            list.length = seconds.and_then(|seconds| nanos(seconds, TimeUnit::S).ok()).or(list.length);
        }
        "Minimal cycle length [ns]" => {
            *t_min = picoseconds(value, TimeUnit::Ns).ok();
            list.t_min = nanos(value, TimeUnit::Ns).ok();
        }
        "Threshold: [% minimal cycle length]" => {
            let percent = value.parse::<u32>().ok().map(i128::from);
            let threshold = t_min.zip(percent).map(|(t_min, percent)| (t_min * percent / 100 + 500) / 1_000);
            list.threshold = threshold.and_then(|ns| i64::try_from(ns).ok()).map(Nanos::new);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::error::Place;
    use proptest::prelude::*;

    fn parse(text: &str, unit: TimeUnit) -> Result<DetourList, ReadError> {
        read(Source { name: "", bytes: text.as_bytes() }, unit, &mut |_| {})
    }

    fn measured(text: &str) -> Option<Nanos> {
        parse(text, TimeUnit::Ns).unwrap().length
    }

    #[test]
    fn reads_lines_of_two_numbers() {
        let text = "# offset duration\n\n10 5\n  20.5\t1.25 7\r\n";
        let times = |numbers: [i64; 4]| {
            let [a, b, c, d] = numbers.map(Nanos::new);
            vec![(a, b), (c, d)]
        };
        assert_eq!(parse(text, TimeUnit::Us).unwrap().detours, times([10_000, 5_000, 20_500, 1_250]));
        assert_eq!(parse("10 5\n15 1", TimeUnit::Ns).unwrap().detours, times([10, 5, 15, 1]));
        assert!(parse("", TimeUnit::Ns).unwrap().detours.is_empty());
    }

    #[test]
    fn reads_what_netgauge_writes() {
        let text = "# Benchmark Method: selfish\n# Number of Cycles/Detours: 100\n# Selfish Benchmark\n\
                    # Minimal cycle length [ns]: 22.692308 \n# Threshold: [% minimal cycle length]: 900 \n# \n\
                    # Time [ns]\tselfish duration [ns]\n0.00\t203.46\n226.50\t1034.50\n1003988.46\t11.04\n\
                    # CPU overhead due to noise: 0.12%\n# Measurement period: 0.00 s\n";
        let list = parse(text, TimeUnit::Ns).unwrap();
        let times = [(0, 203), (227, 1_034), (1_003_988, 12)].map(|(at, time)| (Nanos::new(at), Nanos::new(time)));
        assert_eq!(list.detours, times);
        assert_eq!((list.t_min, list.threshold), (Some(Nanos::new(23)), Some(Nanos::new(204))));
        assert_eq!(list.length, Some(Nanos::ZERO));
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
            let error = parse(text, TimeUnit::Ns).unwrap_err();
            assert_eq!(error.place, Place::Line(line), "{text}: {error}");
            assert!(error.why.contains(why), "{text}: {error}");
        }
        let error = read(Source { name: "", bytes: b"1 2\n\xff" }, TimeUnit::Ns, &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "byte 4: it is no text in UTF-8");
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9 .#\\n-]*", unit in 0..4_usize) {
            let unit = [TimeUnit::Ns, TimeUnit::Us, TimeUnit::Ms, TimeUnit::S][unit];
            let _ = parse(&text, unit);
            let _ = parse(&format!("# Measurement period: {text} s"), unit);
        }

        #[test]
        fn rounding_makes_no_overlap(gaps in proptest::collection::vec((0_u32..5_000, 0_u32..5_000), 0..20)) {
            let (mut text, mut now) = (String::new(), 0_u64);
            for (gap, duration) in &gaps {
                let start = now + u64::from(*gap);
                text += &format!("{}.{:03} {}.{:03}\n", start / 1_000, start % 1_000, duration / 1_000, duration % 1_000);
                now = start + u64::from(*duration);
            }
            let detours = parse(&text, TimeUnit::Ns).unwrap().detours;
            prop_assert_eq!(detours.len(), gaps.len());
            prop_assert!(detours.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        }
    }
}
