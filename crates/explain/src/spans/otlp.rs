//! Spans of OpenTelemetry's JSON encoding (OTLP), one object or one per line. Times are those of the wall clock.
//!
//! The thread is the span's attribute `thread.id`; without it, the main thread of the resource's `process.pid`.

use std::borrow::Cow;

use serde::Deserialize;

use super::{FoundSpan, SpanSink, brief, decimal_ns, each_object};
use crate::clocks::SpanClock;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OtlpFile<'a> {
    #[serde(borrow, default)]
    resource_spans: Vec<ResourceSpans<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    #[serde(borrow, default)]
    resource: OtlpResource<'a>,
    #[serde(borrow, default)]
    scope_spans: Vec<ScopeSpans<'a>>,
}

#[derive(Deserialize, Default)]
struct OtlpResource<'a> {
    #[serde(borrow, default)]
    attributes: Vec<Attribute<'a>>,
}

#[derive(Deserialize)]
struct ScopeSpans<'a> {
    #[serde(borrow, default)]
    spans: Vec<OtlpSpan<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OtlpSpan<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    start_time_unix_nano: Number<'a>,
    #[serde(borrow)]
    end_time_unix_nano: Number<'a>,
    #[serde(borrow, default)]
    attributes: Vec<Attribute<'a>>,
}

/// 64-bit numbers are texts in this encoding, and some writers have numbers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number<'a> {
    Whole(i64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

#[derive(Deserialize)]
struct Attribute<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow, default)]
    value: AttributeValue<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct AttributeValue<'a> {
    #[serde(borrow, default)]
    string_value: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    int_value: Option<Number<'a>>,
    #[serde(default)]
    bool_value: Option<bool>,
    #[serde(default)]
    double_value: Option<f64>,
}

impl Number<'_> {
    fn get(&self) -> Option<i64> {
        match self {
            Self::Whole(number) => Some(*number),
            Self::Text(text) => decimal_ns(text, 1),
        }
    }
}

fn text(attributes: &[Attribute<'_>], key: &str) -> Option<String> {
    let value = &attributes.iter().find(|attribute| attribute.key == key)?.value;
    let number = || value.int_value.as_ref().and_then(Number::get).map(|number| number.to_string());
    let text = value.string_value.as_ref().map(|text| text.clone().into_owned());
    text.or_else(number)
        .or_else(|| value.bool_value.map(|flag| flag.to_string()))
        .or_else(|| value.double_value.map(|number| number.to_string()))
}

fn number(attributes: &[Attribute<'_>], key: &str) -> Option<i64> {
    text(attributes, key)?.parse().ok()
}

/// Reads the objects of a file. The error names the line.
pub(super) fn read(text_of_file: &str, sink: &mut SpanSink<'_>) -> Result<(), String> {
    sink.spans.clock = Some(SpanClock::Realtime);
    each_object(text_of_file, |file: OtlpFile<'_>| {
        for part in file.resource_spans {
            let process = number(&part.resource.attributes, "process.pid");
            for span in part.scope_spans.iter().flat_map(|scope| &scope.spans) {
                let times = span.start_time_unix_nano.get().zip(span.end_time_unix_nano.get());
                let (start, end) = times
                    .ok_or_else(|| format!("the span '{}' has times that are no numbers", brief(&span.name, 60)))?;
                let group = sink.by().and_then(|by| text(&span.attributes, by));
                let tid = number(&span.attributes, "thread.id");
                let found = FoundSpan {
                    tid,
                    process,
                    start,
                    end,
                    name: &span.name,
                    group: group.as_deref(),
                    ..FoundSpan::default()
                };
                sink.push(found).map_err(|why| format!("the span '{}': {why}", brief(&span.name, 60)))?;
            }
        }
        Ok(())
    })
}
