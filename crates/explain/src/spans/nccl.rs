//! Collectives that the NCCL or RCCL Inspector wrote with `NCCL_INSPECTOR_DUMP_VERBOSE=1`: JSON objects, one per operation. Times are microseconds of
//! the wall clock. A collective lasts from its start to the end of its last kernel.

use std::borrow::Cow;

use serde::Deserialize;

use super::{FoundSpan, SpanSink, each_object};
use crate::clocks::SpanClock;

/// The nanoseconds of the format's unit.
const UNIT: i64 = 1_000;

#[derive(Deserialize)]
struct Operation<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    coll_perf: Collective<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    pid: i64,
    #[serde(borrow, default)]
    hostname: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Collective<'a> {
    #[serde(borrow)]
    coll: Cow<'a, str>,
    #[serde(default)]
    coll_msg_size_bytes: u64,
    event_trace_ts: Option<EventTimes>,
}

#[derive(Deserialize)]
struct EventTimes {
    coll_start_ts: i64,
    coll_stop_ts: i64,
    #[serde(default)]
    kernel_events: Vec<KernelTimes>,
}

#[derive(Deserialize)]
struct KernelTimes {
    #[serde(default)]
    kernel_stop_ts: i64,
}

/// Reads the objects of a file. The error names the line.
pub(super) fn read(text: &str, sink: &mut SpanSink<'_>) -> Result<(), String> {
    sink.spans.clock = Some(SpanClock::Realtime);
    each_object(text, |Operation { metadata, coll_perf }: Operation<'_>| {
        let times = coll_perf
            .event_trace_ts
            .ok_or("the operations have no times of events: run with NCCL_INSPECTOR_DUMP_VERBOSE=1 to have them")?;
        let end = times.kernel_events.iter().map(|kernel| kernel.kernel_stop_ts).fold(times.coll_stop_ts, i64::max);
        let scaled = times.coll_start_ts.checked_mul(UNIT).zip(end.checked_mul(UNIT));
        let (start, end) = scaled.ok_or_else(|| format!("{} us is no time", times.coll_start_ts))?;
        let size = coll_perf.coll_msg_size_bytes.to_string();
        let group = match sink.by() {
            Some("coll_msg_size_bytes") => Some(size.as_str()),
            Some("hostname") => Some(&*metadata.hostname),
            _ => None,
        };
        sink.push(FoundSpan {
            process: Some(metadata.pid),
            start,
            end,
            name: &coll_perf.coll,
            group,
            ..FoundSpan::default()
        })
    })
}
