//! Spans: intervals of threads that a program or its tracer wrote, such as requests, steps and repetitions.

mod chrome;
mod decimal;
mod nccl;
mod otlp;
mod perfetto;
mod table;
#[cfg(test)]
mod tests;
mod wide;

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use becalm_model::{Label, Labels};
use becalm_units::CpuId;
use becalm_units::fault::{self, Context, UsageError, Wording};
use serde::Deserialize;

use crate::clocks::SpanClock;
use crate::perfetto::looks_so;

pub use decimal::decimal_ns;

/// A span as its file has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadSpan {
    /// The kernel's number of the thread; only spans of CPUs may lack it.
    pub tid: Option<i32>,
    /// The CPU, if the file names it.
    pub cpu: Option<CpuId>,
    /// The start on the file's clock, in nanoseconds; for [`SpanClock::Counter`] in ticks.
    pub start: i64,
    /// The end.
    pub end: i64,
    /// The name, without a number after `#` at its end: `ProfilerStep#12` is one of `ProfilerStep`.
    pub name: Label,
    /// The value of the column or attribute that groups spans: the name unless another one is wanted.
    pub group: Label,
    /// The common key of several spans of one request; empty for a span of its own.
    pub id: Label,
}

/// Which spans are wanted, and how.
#[derive(Clone, Debug, Default)]
pub struct SpanRequest {
    /// Only spans with this name; `*` matches any characters.
    pub name: Option<String>,
    /// The column or attribute that groups them, instead of the name.
    pub by: Option<String>,
    /// The thread of spans whose file names none.
    pub tid: Option<i32>,
    /// Whether they are intervals of CPUs, which need no thread.
    pub of_cpus: bool,
}

/// The spans of a file.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// The spans, in the order of the file.
    pub all: Vec<ReadSpan>,
    /// Their names.
    pub labels: Labels,
    /// The clock, if the format or the file tells it.
    pub clock: Option<SpanClock>,
    /// Entries that are no spans of a thread: of a GPU, instants, counters.
    pub others: u64,
    /// Whether the file ends in the middle of a span.
    pub is_cut: bool,
    /// Whether only processes are named, so each span is taken as one of the main thread.
    pub of_main_threads: bool,
}

/// A span as found.
#[derive(Clone, Copy, Debug, Default)]
struct FoundSpan<'a> {
    tid: Option<i64>,
    process: Option<i64>,
    cpu: Option<i64>,
    start: i64,
    end: i64,
    name: &'a str,
    id: &'a str,
    group: Option<&'a str>,
}

/// The start of a span whose end comes later.
#[derive(Clone, Debug, Default)]
struct OpenSpan {
    start: i64,
    name: String,
    group: Option<String>,
}

/// Collects the wanted spans.
#[derive(Debug)]
struct SpanSink<'a> {
    request: &'a SpanRequest,
    spans: Spans,
    /// What helps, if a parameter does: a template for the error.
    fix: Option<&'static str>,
}

impl SpanSink<'_> {
    /// Takes a span. Fails if it ends before it starts, has no thread, or lacks the value that groups spans.
    fn push(&mut self, found: FoundSpan<'_>) -> Result<(), String> {
        if self.request.name.as_ref().is_some_and(|pattern| !is_like(found.name, pattern)) {
            return Ok(());
        }
        if found.end < found.start {
            return Err(format!("the span ends at {}, before its start at {}", found.end, found.start));
        }
        let tid = match (found.tid, self.request.tid, found.process) {
            (Some(tid), ..) => Some(tid),
            (None, Some(tid), _) => Some(i64::from(tid)),
            (None, None, Some(process)) => {
                self.spans.of_main_threads = true;
                Some(process)
            }
            (None, None, None) if self.request.of_cpus => None,
            (None, None, None) => {
                self.fix = Some("{}; give it with {tid}");
                return Err("the span names no thread".to_owned());
            }
        };
        let tid =
            tid.map(|tid| i32::try_from(tid).map_err(|_| format!("{tid} is no number of a thread"))).transpose()?;
        let cpu = |number: i64| {
            let known = u32::try_from(number).ok().filter(|number| *number < CpuId::LIMIT);
            known.map(CpuId::new).ok_or_else(|| format!("{number} is no number of a CPU"))
        };
        let cpu = found.cpu.map(cpu).transpose()?;
        let Spans { all, labels, .. } = &mut self.spans;
        let name = labels.intern(without_number(found.name));
        let group = match (&self.request.by, found.group) {
            (None, _) => name,
            (Some(by), _) if by == "name" => name,
            (Some(_), Some(group)) => labels.intern(group),
            (Some(by), None) => return Err(format!("the span has no '{by}'")),
        };
        all.push(ReadSpan { tid, cpu, start: found.start, end: found.end, name, group, id: labels.intern(found.id) });
        Ok(())
    }

    /// The column or attribute that groups spans, if it is not the name.
    fn by(&self) -> Option<&str> {
        self.request.by.as_deref().filter(|by| *by != "name")
    }
}

/// Reads the spans of a file; its contents determine the format. Fails if it cannot be read, is in no known format, is damaged, or holds none of the
/// wanted spans.
pub fn read(path: &Path, request: &SpanRequest) -> fault::Result<Spans> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let spans = parse(bytes, request).map_err(UsageError::new).with_context(|| path.display())?;
    if spans.all.is_empty() {
        let named = request.name.as_ref().map_or_else(String::new, |name| format!(" named '{name}'"));
        let others = if spans.others > 0 { ", only other entries, such as those of a GPU" } else { "" };
        return Err(UsageError::new(format!("{} has no spans of threads{named}{others}", path.display())).into());
    }
    Ok(spans)
}

/// Reads the spans of a file with these contents. The error names the place in the file.
pub fn parse(bytes: Vec<u8>, request: &SpanRequest) -> Result<Spans, Wording> {
    let mut sink = SpanSink { request, spans: Spans::default(), fix: None };
    // The empty label comes first.
    sink.spans.labels.intern("");
    match any(bytes, &mut sink) {
        Ok(()) => Ok(sink.spans),
        Err(why) => Err(Wording::new(sink.fix.unwrap_or("{}")).with(brief(&why, 300))),
    }
}

/// Reads spans in the format that their first bytes show.
fn any(bytes: Vec<u8>, sink: &mut SpanSink<'_>) -> Result<(), String> {
    if bytes.starts_with(b"PAR1") {
        return wide::read(bytes, sink);
    }
    if looks_so(&bytes) {
        return perfetto::read(&bytes, sink);
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| format!("byte {} is no UTF-8 text", error.valid_up_to()))?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().is_empty() {
        return Err("the file is empty".to_owned());
    }
    if text.trim_start().starts_with(['{', '[']) { json(text, sink) } else { table::read(text, sink) }
}

/// Reads JSON in the format that its first keys show.
fn json(text: &str, sink: &mut SpanSink<'_>) -> Result<(), String> {
    let begins = &text[..text.floor_char_boundary(1 << 16)];
    let has = |key: &str| begins.contains(key);
    if has("\"resourceSpans\"") {
        otlp::read(text, sink)
    } else if has("\"coll_perf\"") {
        nccl::read(text, sink)
    } else if has("\"traceEvents\"") || text.trim_start().starts_with('[') {
        chrome::read(text, sink)
    } else if has("\"results\"") && has("\"times\"") {
        sink.fix = Some("{}; let becalm observe start hyperfine, and take the threads of its runs with {lives}");
        Err("this is a file of hyperfine, which has the lengths of its runs and not when they started".to_owned())
    } else if text.contains("\"traceEvents\"") {
        chrome::read(text, sink)
    } else {
        Err("this JSON is no trace of Chrome, OpenTelemetry or the NCCL Inspector: a key traceEvents, resourceSpans or \
             coll_perf was expected"
            .to_owned())
    }
}

/// Passes each object of a text of JSON objects. The error names the line where its object starts, or where the text is no JSON.
fn each_object<'t, T: Deserialize<'t>>(
    text: &'t str,
    mut take: impl FnMut(T) -> Result<(), String>,
) -> Result<(), String> {
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<T>();
    loop {
        let end_of_last = objects.byte_offset();
        let Some(object) = objects.next() else { return Ok(()) };
        take(object.map_err(|error| error.to_string())?).map_err(|why| {
            let start = text.len() - text[end_of_last..].trim_start().len();
            format!("line {}: {why}", text[..start].matches('\n').count() + 1)
        })?;
    }
}

/// A text of at most so many characters.
fn brief(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A name without a number after `#` at its end.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('#') {
        Some((stem, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => stem,
        _ => name,
    }
}

/// Whether a name matches a pattern; `*` matches any characters.
pub fn is_like(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}
