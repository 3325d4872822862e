//! Spans of the Trace Event Format, as Chrome, PyTorch (Kineto) and many tracers write it: complete events (`X`), and pairs of `B` and `E`.
//!
//! Times are microseconds, with decimals. They are on the clock that the metadata name, or since `baseTimeNanoseconds` on the wall clock.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{FoundSpan, OpenSpan, SpanSink, brief, decimal_ns};
use crate::clocks::SpanClock;

/// The nanoseconds of the format's unit.
const UNIT: i64 = 1_000;

#[derive(Deserialize)]
struct ChromeEvent<'a> {
    #[serde(borrow, default)]
    ph: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    cat: Cow<'a, str>,
    #[serde(borrow, default)]
    ts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    dur: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pid: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tid: Option<&'a RawValue>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

/// The events so far.
struct Chrome<'a, 'b> {
    sink: &'a mut SpanSink<'b>,
    open: HashMap<(Option<i64>, Option<i64>), Vec<OpenSpan>>,
}

/// Reads a trace: an object with `traceEvents`, or only their list. The error names the line.
pub(super) fn read(text: &str, sink: &mut SpanSink<'_>) -> Result<(), String> {
    let mut chrome = Chrome { sink, open: HashMap::new() };
    let mut json = serde_json::Deserializer::from_str(text);
    let mut base = 0;
    let is_list = text.trim_start().starts_with('[');
    let outcome = if is_list {
        ChromeEvents(&mut chrome).deserialize(&mut json)
    } else {
        ChromeFile(&mut chrome, &mut base).deserialize(&mut json)
    };
    match outcome {
        // A list may lack its end, since writers append to it until they are killed.
        Err(error) if error.is_eof() && is_list => chrome.sink.spans.is_cut = true,
        outcome => outcome.and_then(|()| json.end()).map_err(|error| error.to_string())?,
    }
    for span in &mut chrome.sink.spans.all {
        let moved = span.start.checked_add(base).zip(span.end.checked_add(base));
        (span.start, span.end) = moved.ok_or("baseTimeNanoseconds is no time")?;
    }
    Ok(())
}

/// The number in a raw value: `12`, `"12"`.
fn number(value: Option<&RawValue>) -> Option<i64> {
    value?.get().trim_matches('"').parse().ok()
}

fn time(value: Option<&RawValue>) -> Option<i64> {
    decimal_ns(value?.get().trim_matches('"'), UNIT)
}

impl Chrome<'_, '_> {
    fn take(&mut self, event: &ChromeEvent<'_>) -> Result<(), String> {
        let (pid, tid) = (number(event.pid), number(event.tid));
        // Streams of a GPU have names or numbers that are no threads.
        let is_of_device =
            event.cat.starts_with("gpu_") || event.cat == "kernel" || event.pid.is_some() && pid.is_none();
        if !matches!(&*event.ph, "X" | "B" | "E") || is_of_device || tid.is_none() {
            self.sink.spans.others += u64::from(!matches!(&*event.ph, "M"));
            return Ok(());
        }
        let start = time(event.ts).ok_or_else(|| {
            format!("the event '{}' has no time ts, or one that is no number", brief(&event.name, 60))
        })?;
        match &*event.ph {
            "X" => {
                let length = time(event.dur).ok_or_else(|| {
                    format!("the event '{}' has no duration dur, or one that is no number", brief(&event.name, 60))
                })?;
                let end = start.checked_add(length).ok_or_else(|| format!("the event '{}' is too long", event.name))?;
                let group = self.group(event.args);
                self.pass((pid, tid), start, end, &event.name, group.as_deref())
            }
            "B" => {
                let group = self.group(event.args);
                let open = OpenSpan { start, name: event.name.clone().into_owned(), group };
                self.open.entry((pid, tid)).or_default().push(open);
                Ok(())
            }
            _ => match self.open.get_mut(&(pid, tid)).and_then(Vec::pop) {
                Some(open) => self.pass((pid, tid), open.start, start, &open.name, open.group.as_deref()),
                None => {
                    self.sink.spans.others += 1;
                    Ok(())
                }
            },
        }
    }

    fn pass(
        &mut self,
        (process, tid): (Option<i64>, Option<i64>),
        start: i64,
        end: i64,
        name: &str,
        group: Option<&str>,
    ) -> Result<(), String> {
        self.sink.push(FoundSpan { tid, process, cpu: None, start, end, name, id: "", group })
    }

    /// The argument that groups spans.
    fn group(&self, args: Option<&RawValue>) -> Option<String> {
        let args: HashMap<String, Value> =
            serde_json::from_str(args.filter(|_| self.sink.by().is_some())?.get()).ok()?;
        Some(match args.get(self.sink.by()?)? {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }
}

/// Takes the events of a list one by one.
struct ChromeEvents<'a, 'b, 'c>(&'a mut Chrome<'b, 'c>);

impl<'de> DeserializeSeed<'de> for ChromeEvents<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ChromeEvents<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(event) = list.next_element::<ChromeEvent<'de>>()? {
            self.0.take(&event).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// Reads the object of a file.
struct ChromeFile<'a, 'b, 'c>(&'a mut Chrome<'b, 'c>, &'a mut i64);

impl<'de> DeserializeSeed<'de> for ChromeFile<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ChromeFile<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with traceEvents")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "traceEvents" => map.next_value_seed(ChromeEvents(self.0))?,
                "baseTimeNanoseconds" => {
                    *self.1 = map.next_value()?;
                    self.0.sink.spans.clock = Some(SpanClock::Realtime);
                }
                "metadata" => {
                    let metadata: Value = map.next_value()?;
                    let domain = metadata.get("clock-domain").and_then(Value::as_str);
                    if domain == Some("LINUX_CLOCK_MONOTONIC") {
                        self.0.sink.spans.clock = Some(SpanClock::Monotonic);
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}
