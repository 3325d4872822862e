//! The JSON that rt-tests write with `--json=FILE`: of cyclictest and of oslat.
//!
//! Two keys end in a colon, in the tools themselves. cyclictest's values are microseconds unless `resolution_in_ns` is 1; its histogram may
//! lack cycles, because those beyond it are not printed. oslat's buckets are named by their upper edges in microseconds, and the last one
//! has everything longer. Its average is wrong for all threads but the first, so it is left out. Only the command line has the width of
//! buckets. If that is no multiple of 1 us, edges have three decimals, and the shortest and longest are nanoseconds.

use std::collections::{BTreeMap, BTreeSet};

use becalm_model::node::Warning;
use becalm_units::{CpuId, Nanos};
use serde::Deserialize;

use super::distribution::{LARGEST, MOST, Rows, overflow, short, some_series, times};
use super::lines::text;
use super::time::{TimeUnit, nanos};
use super::{Format, ReadError, Source, oslat};
use crate::distribution::{DistributionDoc, Edges, Quantity, Series};

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "cmdline:", alias = "cmdline")]
    command: Option<String>,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    version: Option<String>,
    start_time: Option<String>,
    end_time: Option<String>,
    sysinfo: Option<System>,
    #[serde(default)]
    resolution_in_ns: u8,
    thread: BTreeMap<String, JsonThread>,
}

#[derive(Deserialize)]
struct System {
    release: Option<String>,
    nodename: Option<String>,
}

#[derive(Deserialize)]
struct JsonThread {
    cpu: Option<i64>,
    min: Option<f64>,
    max: Option<f64>,
    avg: Option<f64>,
    /// For cyclictest.
    cycles: Option<u64>,
    /// For oslat: the length of the measurement, in seconds.
    duration: Option<f64>,
    #[serde(default)]
    histogram: BTreeMap<String, u64>,
}

/// True if a file is JSON and not text.
pub(super) fn is_json(source: Source<'_>) -> bool {
    source.bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// The tool that wrote the document, if it is one of these.
pub(super) fn whose(head: &str) -> Option<Format> {
    let head = head.trim_start();
    if !head.starts_with('{') || !head.contains("\"rt_test_version") {
        return None;
    }
    let names = |tool: &str| {
        head.split("\"cmdline").nth(1).is_some_and(|rest| rest.lines().next().unwrap_or("").contains(tool))
    };
    if names("cyclictest") {
        Some(Format::Cyclictest)
    } else if names("oslat") {
        Some(Format::Oslat)
    } else {
        None
    }
}

/// Reads a document of cyclictest or oslat. Fails if it is no such JSON, or its numbers are no histogram.
pub fn read(source: Source<'_>, format: Format) -> Result<DistributionDoc, ReadError> {
    let text = text(source.bytes)?;
    // The printed average of nothing, which is no JSON.
    let repaired = text.contains("nan").then(|| text.replace(": -nan", ": null").replace(": nan", ": null"));
    let text = repaired.as_deref().unwrap_or(text);
    let document: Document = serde_json::from_str(text).map_err(|error| {
        // The text after a whole document.
        let rest = text.lines().nth(error.line().max(1) - 1).and_then(|line| line.get(error.column().max(1) - 1..));
        if error.to_string().starts_with("trailing characters") && rest.is_some_and(|rest| rest.starts_with('{')) {
            return ReadError::second_report(error.line());
        }
        let why = error.to_string();
        let why = why.rsplit_once(" at line ").map_or(why.as_str(), |(why, _)| why);
        ReadError::line(error.line().max(1), format!("{why}, at column {}", error.column()))
    })?;
    let (tool, quantity) =
        if format == Format::Oslat { ("oslat", Quantity::Steps) } else { ("cyclictest", Quantity::Wakeup) };
    let version = document.version.map(|version| format!("{tool} of rt-tests {version}"));
    let mut found = DistributionDoc::new(version.as_deref().unwrap_or(tool), quantity);
    found.command = document.command;
    found.begun = document.start_time;
    found.ended = document.end_time;
    if let Some(system) = document.sysinfo {
        found.kernel = system.release;
        found.node = system.nodename.unwrap_or(found.node);
    }
    found.loop_subtracted = (format == Format::Oslat).then_some(false);
    let unit_ns = if document.resolution_in_ns == 1 { 1 } else { 1_000 };
    let threads = document.thread.len();
    let mut form = OslatForm::default();
    if format == Format::Oslat {
        let unsure;
        (form, unsure) = OslatForm::from_threads(&document.thread, found.command.as_deref()).map_err(ReadError::new)?;
        found.warnings.extend(unsure);
    }
    for (name, thread) in document.thread {
        let series = if format == Format::Oslat {
            oslat(&name, &thread, threads, form)
        } else {
            cyclictest(&name, &thread, unit_ns)
        };
        found.series.push(series.map_err(|why| ReadError::new(format!("thread '{}': {why}", short(&name))))?);
    }
    // By number, which differs from the order of names.
    found.series.sort_by_key(|series| (series.name.len(), series.name.clone()));
    some_series(found, tool)
}

/// The buckets of a histogram, by their keys.
fn numbered(
    histogram: &BTreeMap<String, u64>,
    number_of: impl Fn(&str) -> Option<i64>,
) -> Result<BTreeMap<i64, u64>, String> {
    let number = |(key, count): (&String, &u64)| {
        if *count >= MOST {
            return Err(format!("a count of {count} cannot be"));
        }
        Ok((number_of(key).ok_or_else(|| format!("'{}' is no latency of a histogram", short(key)))?, *count))
    };
    histogram.iter().map(number).collect()
}

fn time(value: Option<f64>, unit_ns: i64) -> Result<Option<i64>, String> {
    let Some(value) = value else { return Ok(None) };
    let ns = value * unit_ns as f64;
    if (0.0..9e18).contains(&ns) { Ok(Some(ns.round() as i64)) } else { Err(format!("{value} is no time")) }
}

fn cpu(thread: &JsonThread) -> Result<Option<CpuId>, String> {
    // -1 if a thread is bound to no CPU.
    let Some(cpu) = thread.cpu.filter(|cpu| *cpu >= 0) else { return Ok(None) };
    let known = u32::try_from(cpu).ok().filter(|cpu| *cpu < CpuId::LIMIT);
    known.map(|cpu| Some(CpuId::new(cpu))).ok_or_else(|| format!("there is no CPU {cpu}"))
}

fn cyclictest(name: &str, thread: &JsonThread, unit_ns: i64) -> Result<Series, String> {
    let mut rows = Rows::default();
    for (value, count) in numbered(&thread.histogram, |key| key.parse().ok().filter(|value: &i64| *value >= 0))? {
        let from = times(value, unit_ns, "latency")?;
        rows.push(from, from.checked_add(unit_ns).ok_or("a latency is longer than times can be")?, count)?;
    }
    let end = rows.buckets.last().map_or(0, |bucket| bucket.below_ns);
    let cycles = thread.cycles.ok_or("it has no cycles")?;
    if cycles >= MOST {
        return Err(format!("{cycles} cycles are more than can be counted"));
    }
    let some = cycles > 0;
    let mut series = Series {
        name: match cpu(thread)? {
            Some(cpu) => format!("thread {name} on CPU {cpu}"),
            None => format!("thread {name}"),
        },
        // Threads that are bound to no CPU have that of the last one, or none.
        cpu: cpu(thread)?,
        count: Some(cycles),
        min_ns: time(thread.min, unit_ns)?.filter(|_| some),
        mean_ns: thread.avg.filter(|avg| some && (0.0..LARGEST).contains(avg)).map(|avg| avg * unit_ns as f64),
        max_ns: time(thread.max, unit_ns)?.filter(|_| some),
        buckets: rows.buckets,
        ..Series::default()
    };
    if !series.buckets.is_empty() {
        let inside = series.in_histogram();
        let beyond = cycles.checked_sub(inside).ok_or("its histogram has more than all cycles")?;
        series.above = overflow(end, beyond);
    }
    Ok(series)
}

#[derive(Clone, Copy, Default)]
struct OslatForm {
    width_ns: i64,
    /// The unit of the shortest and the longest.
    unit_ns: i64,
}

impl OslatForm {
    /// Takes the bucket width of the command line if the edges of the buckets fit it, or else the width that the edges show, with a warning
    /// if there are too few of them.
    fn from_threads(
        threads: &BTreeMap<String, JsonThread>,
        command: Option<&str>,
    ) -> Result<(Self, Option<Warning>), String> {
        let asked = command.and_then(asked_width);
        let mut edges = BTreeSet::new();
        for thread in threads.values() {
            edges.extend(numbered(&thread.histogram, edge)?.into_keys());
        }
        let edges: Vec<i64> = edges.into_iter().collect();
        let mut names = threads.values().flat_map(|thread| thread.histogram.keys());
        let is_in_ns =
            names.any(|name| name.contains('.')) || edges.is_empty() && asked.is_some_and(|ns| ns % 1_000 > 0);
        let unit_ns = if is_in_ns { 1 } else { 1_000 };
        let fits = |asked: &i64| edges.windows(2).all(|pair| (pair[1] - pair[0]) % asked == 0);
        let (width_ns, unsure) = match asked.filter(fits) {
            Some(asked) => (asked, None),
            None => oslat::width(&edges, None, unit_ns),
        };
        Ok((Self { width_ns, unit_ns }, unsure))
    }
}

/// An upper edge, in nanoseconds.
fn edge(key: &str) -> Option<i64> {
    nanos(key, TimeUnit::Us).ok().map(Nanos::get)
}

/// The bucket width that oslat's command line requests, in nanoseconds: 1 us by default; `None` if it is no number.
fn asked_width(command: &str) -> Option<i64> {
    /// Options of one letter without a value, so others may follow in the same word.
    const FLAGS: [char; 5] = ['B', 'q', 's', 'v', 'z'];
    /// The shortest form that getopt takes for --bucket-width.
    const SHORTEST: usize = "bucket-w".len();
    let (mut words, mut asked) = (command.split_whitespace(), Some(1_000));
    while let Some(word) = words.next() {
        let value = if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').unwrap_or((long, ""));
            ("bucket-width".starts_with(name) && name.len() >= SHORTEST).then_some(value)
        } else {
            word.strip_prefix('-').and_then(|word| word.trim_start_matches(FLAGS).strip_prefix('W'))
        };
        if let Some(value) = value {
            let value = if value.is_empty() { words.next().unwrap_or_default() } else { value };
            asked = value.parse().ok().filter(|ns| *ns > 0);
        }
    }
    asked
}

fn oslat(name: &str, thread: &JsonThread, threads: usize, form: OslatForm) -> Result<Series, String> {
    let edges = numbered(&thread.histogram, edge)?;
    let last = edges.keys().next_back().copied();
    let (mut rows, mut beyond) = (Rows::default(), None);
    let max = time(thread.max, form.unit_ns)?;
    for (edge, count) in edges {
        let from = (edge - form.width_ns).max(0);
        // The edge is the upper one. The last possible bucket also has everything longer, and the longest shows whether it is there.
        if Some(edge) == last && max.is_some_and(|max| max > edge) {
            beyond = overflow(from, count);
        } else {
            rows.push(from, edge.max(1), count)?;
        }
    }
    let mut series = Series {
        name: format!("CPU {name}"),
        cpu: cpu(thread)?,
        observed_ns: time(thread.duration, 1_000_000_000)?,
        min_ns: time(thread.min, form.unit_ns)?,
        mean_ns: thread.avg.filter(|avg| threads == 1 && (0.0..LARGEST).contains(avg)).map(|avg| avg * 1e3),
        max_ns: max,
        edges: Some(Edges::Upper),
        buckets: rows.buckets,
        above: beyond,
        ..Series::default()
    };
    series.name = series.cpu.map_or_else(|| format!("thread {name}"), |cpu| format!("CPU {cpu}"));
    series.count = (!thread.histogram.is_empty()).then(|| series.in_histogram());
    Ok(series)
}
