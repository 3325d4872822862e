//! Spans as comma-separated values: a line of column names, then one line per span.
//!
//! The columns `start` and either `end` or `duration` are needed, in nanoseconds or in the unit at the end of their name (`start_us`). `tid` names the
//! thread, or `pid` a process whose main thread is meant, and `cpu` the CPU; `name` and `id` are optional, and other columns are for `--by`. A comment line
//! `# clock: NAME` before them tells the clock. The files that the program's own spans write are such tables.

use becalm_units::counted;
use csv::{ReaderBuilder, StringRecord, Trim};

use super::{FoundSpan, SpanSink, brief, decimal_ns};
use crate::clocks::SpanClock;

/// The places of the columns.
pub(super) struct SpanColumns {
    tid: Option<usize>,
    process: Option<usize>,
    cpu: Option<usize>,
    start: (usize, i64),
    end: Option<(usize, i64)>,
    duration: Option<(usize, i64)>,
    name: Option<usize>,
    id: Option<usize>,
    group: Option<usize>,
}

impl SpanColumns {
    /// Finds the columns by their names. Fails if a needed one is missing, or the one that groups spans.
    pub fn find<'a>(names: impl Iterator<Item = &'a str> + Clone, by: Option<&str>) -> Result<Self, String> {
        let place =
            |wanted: &[&str]| names.clone().position(|name| wanted.iter().any(|want| name.eq_ignore_ascii_case(want)));
        let timed = |wanted: &[&str]| -> Option<(usize, i64)> {
            names.clone().enumerate().find_map(|(place, name)| {
                let name = name.to_ascii_lowercase();
                let (stem, unit) = match name.rsplit_once('_') {
                    Some((stem, "ns")) => (stem, 1),
                    Some((stem, "us")) => (stem, 1_000),
                    Some((stem, "ms")) => (stem, 1_000_000),
                    Some((stem, "s")) => (stem, 1_000_000_000),
                    _ => (name.as_str(), 1),
                };
                wanted.contains(&stem).then_some((place, unit))
            })
        };
        let found = || brief(&names.clone().collect::<Vec<_>>().join(", "), 100).into_owned();
        let missing = |what: &str| format!("there is no column {what}; the first line names {}", found());
        let group = by.map(|by| place(&[by]).ok_or_else(|| missing(by))).transpose()?;
        let columns = Self {
            tid: place(&["tid", "thread", "thread_id"]),
            process: place(&["pid", "process", "process_id"]),
            cpu: place(&["cpu"]),
            start: timed(&["start", "begin", "ts"]).ok_or_else(|| missing("start"))?,
            end: timed(&["end", "stop"]),
            duration: timed(&["duration", "dur"]),
            name: place(&["name"]),
            id: place(&["id", "request", "request_id"]),
            group,
        };
        if columns.end.is_none() && columns.duration.is_none() {
            return Err(missing("end or duration"));
        }
        Ok(columns)
    }

    /// Passes the span of a row, whose fields `get` returns.
    pub fn pass<'a>(&self, get: impl Fn(usize) -> &'a str, sink: &mut SpanSink<'_>) -> Result<(), String> {
        let time = |(place, unit): (usize, i64), what: &str| {
            decimal_ns(get(place), unit).ok_or_else(|| format!("'{}' is no {what} time", brief(get(place), 60)))
        };
        let number = |place: Option<usize>| -> Result<Option<i64>, String> {
            let Some(text) = place.map(&get).filter(|text| !text.is_empty()) else { return Ok(None) };
            text.parse()
                .map(Some)
                .map_err(|_| format!("'{}' is no number of a thread, process or CPU", brief(text, 60)))
        };
        let start = time(self.start, "start")?;
        let end = match (self.end, self.duration) {
            (Some(end), _) => time(end, "end")?,
            (None, Some(length)) => {
                let length = time(length, "duration")?;
                start.checked_add(length).ok_or_else(|| format!("the span is {length} ns long"))?
            }
            (None, None) => start,
        };
        sink.push(FoundSpan {
            tid: number(self.tid)?,
            process: number(self.process)?,
            cpu: number(self.cpu)?,
            start,
            end,
            name: self.name.map_or("span", &get),
            id: self.id.map_or("", &get),
            group: self.group.map(&get),
        })
    }
}

/// Reads a table. The error names the line.
pub(super) fn read(text: &str, sink: &mut SpanSink<'_>) -> Result<(), String> {
    for line in text.lines().take_while(|line| line.starts_with('#')) {
        if let Some(name) = line.trim_start_matches('#').trim().strip_prefix("clock:") {
            let name = name.trim();
            sink.spans.clock = Some(SpanClock::parse(name)?);
        }
    }
    let mut reader = ReaderBuilder::new().comment(Some(b'#')).trim(Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| broken(text, &error))?.clone();
    let columns = SpanColumns::find(header.iter(), sink.by())?;
    let mut row = StringRecord::new();
    while reader.read_record(&mut row).map_err(|error| broken(text, &error))? {
        columns.pass(|place| row.get(place).unwrap_or_default(), sink).map_err(|why| {
            let place = row.position().map_or(0, csv::Position::byte);
            format!("line {}: {why}", line_of(text, place))
        })?;
    }
    Ok(())
}

/// The line of the row that starts at a byte, or after empty lines and comments there.
fn line_of(text: &str, byte: u64) -> usize {
    let begin = text.floor_char_boundary(usize::try_from(byte).unwrap_or(usize::MAX));
    let before = text[..begin].matches('\n').count();
    let skipped = text[begin..].split('\n').take_while(|line| line.trim().is_empty() || line.starts_with('#')).count();
    before + skipped + 1
}

/// An error of the reader in words.
fn broken(text: &str, error: &csv::Error) -> String {
    let line = error.position().map_or(1, |position| line_of(text, position.byte()));
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!(
                "line {line}: it has {}, and the line of column names {expected_len}",
                counted(*len, "field", "fields")
            )
        }
        _ => format!("line {line}: {error}"),
    }
}
