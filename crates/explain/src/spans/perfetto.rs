//! Spans of Perfetto's traces: slices on the tracks of threads, and the sections that Android's programs print into the kernel's trace.

mod tracks;

use std::collections::HashMap;

use super::{FoundSpan, OpenSpan, SpanSink};
use crate::clocks::SpanClock;
use crate::perfetto::clocks::{BOOTTIME, MONOTONIC, REALTIME, TraceClocks};
use crate::perfetto::messages::{DebugAnnotation, Ftrace, FtraceEventBundle, InternedName, TracePacket, TrackEvent};
use crate::perfetto::{each_packet, text};

use tracks::{Owner, Tracks, numbers};

/// `TrackEvent.Type`.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;

/// State that the packets of a writer share.
#[derive(Default)]
struct Sequence {
    names: HashMap<u64, String>,
    annotations: HashMap<u64, String>,
    /// The track of events that name none.
    track: u64,
    /// The thread of events without any track.
    thread: Owner,
}

/// The owner of open spans.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Track(u64),
    /// The thread that wrote the sequence.
    Sequence(u32),
    /// The thread that printed into the kernel's trace.
    Printed(u32),
}

/// The packets so far.
struct PerfettoSpans<'a, 'b> {
    sink: &'a mut SpanSink<'b>,
    clocks: TraceClocks,
    tracks: Tracks,
    sequences: HashMap<u32, Sequence>,
    open: HashMap<Place, Vec<OpenSpan>>,
    /// The clock of the kernel's trace, once it has printed sections.
    printed: Option<u32>,
    has_tracks: bool,
}

/// Reads a trace. The error names the byte.
pub(super) fn read(bytes: &[u8], sink: &mut SpanSink<'_>) -> Result<(), String> {
    let (clocks, tracks, sequences, open) = Default::default();
    let mut spans = PerfettoSpans { sink, clocks, tracks, sequences, open, printed: None, has_tracks: false };
    match each_packet(bytes, &mut |packet| spans.take(packet)) {
        Err(error) if error.is_cut => spans.sink.spans.is_cut = true,
        outcome => outcome.map_err(|error| format!("byte {}: {}", error.byte, error.why))?,
    }
    let clock = match (spans.printed, spans.clocks.primary()) {
        // The counter of a recording that was imported from this trace.
        (Some(1..), _) => SpanClock::Counter,
        (_, BOOTTIME) => SpanClock::Boottime,
        (_, MONOTONIC) => SpanClock::Monotonic,
        (_, REALTIME) => SpanClock::Realtime,
        (_, other) => return Err(format!("its times are on Perfetto's clock {other}, which no recording has")),
    };
    spans.sink.spans.clock = Some(clock);
    Ok(())
}

impl PerfettoSpans<'_, '_> {
    fn take(&mut self, packet: &TracePacket) -> Result<(), String> {
        let number = packet.trusted_packet_sequence_id;
        let sequence = self.sequences.entry(number).or_default();
        if packet.clears_state() {
            *sequence = Sequence { thread: sequence.thread, ..Sequence::default() };
        }
        if let Some(data) = &packet.interned_data {
            let keep = |into: &mut HashMap<u64, String>, from: &[InternedName]| {
                into.extend(from.iter().map(|entry| (entry.iid, text(&entry.name).to_owned())));
            };
            keep(&mut sequence.names, &data.event_names);
            keep(&mut sequence.annotations, &data.debug_annotation_names);
        }
        let defaults =
            packet.trace_packet_defaults.as_ref().and_then(|defaults| defaults.track_event_defaults.as_ref());
        if let Some(track) = defaults.and_then(|defaults| defaults.track_uuid) {
            sequence.track = track;
        }
        if let Some(thread) = &packet.thread_descriptor {
            sequence.thread = numbers(thread);
        }
        if let Some(track) = &packet.track_descriptor {
            self.tracks.describe(track);
        }
        let time = self.clocks.time(packet)?;
        if let (Some(event), Some(time)) = (&packet.track_event, time) {
            self.event(number, event, time)?;
        }
        packet.ftrace_events.as_ref().map_or(Ok(()), |bundle| self.printed(bundle))
    }

    /// The owner of a place.
    fn owner(&self, place: Place) -> Owner {
        match place {
            Place::Printed(tid) => (None, Some(tid.into())),
            Place::Sequence(number) => self.sequences.get(&number).map_or((None, None), |sequence| sequence.thread),
            Place::Track(uuid) => self.tracks.owner(uuid),
        }
    }

    /// Takes the start or the end of a slice.
    fn event(&mut self, sequence: u32, event: &TrackEvent, time: i64) -> Result<(), String> {
        if !matches!(event.r#type, SLICE_BEGIN | SLICE_END) {
            self.sink.spans.others += 1;
            return Ok(());
        }
        let Some(written) = self.sequences.get(&sequence) else { return Ok(()) };
        let place = match event.track_uuid.unwrap_or(written.track) {
            0 => Place::Sequence(sequence),
            uuid => Place::Track(uuid),
        };
        self.has_tracks = true;
        if event.r#type == SLICE_END {
            return self.end(place, time);
        }
        let name = match text(&event.name) {
            "" => written.names.get(&event.name_iid).cloned().unwrap_or_default(),
            name => name.to_owned(),
        };
        let group = self.sink.by().and_then(|by| {
            let name = |annotation: &DebugAnnotation| match text(&annotation.name) {
                "" => written.annotations.get(&annotation.name_iid).map_or("", String::as_str) == by,
                name => name == by,
            };
            event.debug_annotations.iter().find(|annotation| name(annotation)).and_then(value)
        });
        self.open.entry(place).or_default().push(OpenSpan { start: time, name, group });
        Ok(())
    }

    /// Ends the latest open span of a place. Those of no thread are counted.
    fn end(&mut self, place: Place, time: i64) -> Result<(), String> {
        let Some(OpenSpan { start, name, group }) = self.open.get_mut(&place).and_then(Vec::pop) else {
            self.sink.spans.others += 1;
            return Ok(());
        };
        let (process, tid) = self.owner(place);
        if process.is_none() && tid.is_none() && self.sink.request.tid.is_none() {
            self.sink.spans.others += 1;
            return Ok(());
        }
        let group = group.as_deref();
        self.sink.push(FoundSpan { tid, process, start, end: time, name: &name, group, ..FoundSpan::default() })
    }

    /// Sections that programs printed into the kernel's trace: `B|PID|NAME`, and `E` or `E|PID`.
    fn printed(&mut self, bundle: &FtraceEventBundle) -> Result<(), String> {
        // Only the clock of boot time is one of the tracks' as well.
        if bundle.ftrace_clock != 0 && self.has_tracks {
            return Ok(());
        }
        for event in &bundle.event {
            let Some(Ftrace::Print(print)) = &event.event else { continue };
            let Ok(mut time) = i64::try_from(event.timestamp) else { return Err("a time is too late".to_owned()) };
            if bundle.ftrace_clock == 0 {
                let primary = self.clocks.to_primary(BOOTTIME, time);
                time = primary.ok_or("no snapshot has the clock of the kernel's trace")?;
            }
            let printed = text(&print.buf).trim_end();
            let place = Place::Printed(event.pid);
            if let Some((_, name)) = printed.strip_prefix("B|").and_then(|rest| rest.split_once('|')) {
                self.printed = Some(bundle.ftrace_clock);
                let span = OpenSpan { start: time, name: name.to_owned(), group: None };
                self.open.entry(place).or_default().push(span);
            } else if printed == "E" || printed.starts_with("E|") {
                self.end(place, time)?;
            }
        }
        Ok(())
    }
}

/// The value of an annotation as text.
fn value(annotation: &DebugAnnotation) -> Option<String> {
    let DebugAnnotation { bool_value, uint_value, int_value, double_value, string_value, .. } = annotation;
    let string = string_value.as_ref().map(|bytes| text(bytes).to_owned());
    string
        .or_else(|| uint_value.map(|value| value.to_string()))
        .or_else(|| int_value.map(|value| value.to_string()))
        .or_else(|| double_value.map(|value| value.to_string()))
        .or_else(|| bool_value.map(|value| value.to_string()))
}
