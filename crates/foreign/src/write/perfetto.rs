//! Traces of Perfetto: a `Trace` of `protos/perfetto/trace/trace.proto`, packet by packet.
//!
//! A node is a sequence of packets with a process track, and each CPU a track below it. Times are those of a clock of the sequence:
//! nanoseconds since the run's origin. A snapshot of clocks at the origin ties it to the wall clock, and to the counter that the loops
//! read.

use std::collections::HashMap;
use std::io::{self, Write};

use becalm_model::{Activity, Detour, Labels, NodeDoc};
use becalm_units::protobuf::Message;

use super::slices::{Slice, slices};

// Fields of `TracePacket`.
const CLOCK_SNAPSHOT: u64 = 6;
const TIMESTAMP: u64 = 8;
const SEQUENCE: u64 = 10;
const TRACK_EVENT: u64 = 11;
const INTERNED_DATA: u64 = 12;
const SEQUENCE_FLAGS: u64 = 13;
const TIMESTAMP_CLOCK: u64 = 58;
const DEFAULTS: u64 = 59;
const TRACK_DESCRIPTOR: u64 = 60;
const FIRST_ON_SEQUENCE: u64 = 87;

/// Flags of a sequence: interned data is cleared; interned data is needed.
const CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// Clocks by `BuiltinClock`; the last is the sequence's own.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const MONOTONIC_RAW: u64 = 5;
const TSC: u64 = 9;
const SINCE_ORIGIN: u64 = 64;

/// `TrackEvent.Type`.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;

/// `TrackDescriptor.ChildTracksOrdering`: by the rank of each child.
const EXPLICIT: u64 = 3;

/// The base of track numbers. Each node has `TRACKS_A_NODE` of them, more than it can have CPUs.
const FIRST_TRACK: u64 = 1;
const TRACKS_A_NODE: u64 = 1 << 32;

/// Names of annotations, interned as the first of their kind.
const ANNOTATIONS: [&str; 4] = ["detour", "incomplete", "self_ns", "detail"];

/// The number of names that are interned before all are cleared.
const NAMES: usize = 1 << 16;

/// A trace being written.
#[derive(Debug)]
pub struct PerfettoTrace<W> {
    out: W,
    /// The number of the sequence: that of the node, from 1.
    sequence: u64,
    /// True if names are to be interned from scratch.
    is_cleared: bool,
    names: HashMap<String, u64>,
    categories: HashMap<&'static str, u64>,
    slices: Vec<Slice>,
    /// Reused from packet to packet.
    packet: Message,
}

impl<W: Write> PerfettoTrace<W> {
    pub fn begin(out: W) -> Self {
        let (names, categories) = (HashMap::new(), HashMap::new());
        let (slices, packet) = (Vec::new(), Message::default());
        Self { out, sequence: 0, is_cleared: true, names, categories, slices, packet }
    }

    /// Starts a node. Its detours follow.
    pub fn node(&mut self, doc: &NodeDoc) -> io::Result<()> {
        self.sequence += 1;
        self.forget();
        // Without a wall clock, any clock that counts from the origin ties the times of the node to the trace.
        let (trace_clock, at_origin) = match doc.origin.map(|origin| u64::try_from(origin.as_nanosecond())) {
            Some(Ok(origin)) => (REALTIME, origin),
            _ => (MONOTONIC, 0),
        };
        let counter = match doc.clock.counter.as_str() {
            "tsc" => Some(TSC),
            "monotonic_raw" => Some(MONOTONIC_RAW),
            _ => None,
        };
        let clocks = [(SINCE_ORIGIN, 0), (trace_clock, at_origin)].into_iter();
        let clocks = clocks.chain(counter.map(|id| (id, doc.clock.origin_ticks)));
        self.packet.message(CLOCK_SNAPSHOT, |snapshot| {
            for (id, at_origin) in clocks {
                snapshot.message(1, |clock| {
                    clock.number(1, id).number(2, at_origin);
                });
            }
            snapshot.number(2, trace_clock);
        });
        self.packet.number(SEQUENCE_FLAGS, CLEARED).number(FIRST_ON_SEQUENCE, 1).message(DEFAULTS, |defaults| {
            defaults.number(TIMESTAMP_CLOCK, SINCE_ORIGIN);
        });
        self.end_packet()?;
        let (process, node) = (self.process(), self.sequence);
        self.packet.message(TRACK_DESCRIPTOR, |track| {
            track.number(1, process).number(11, EXPLICIT).message(3, |descriptor| {
                descriptor.number(1, node).bytes(6, doc.node.as_bytes());
            });
        });
        self.end_packet()?;
        for cpu in &doc.cpus {
            let number = u64::from(cpu.cpu.get());
            self.packet.message(TRACK_DESCRIPTOR, |track| {
                track.number(1, process + 1 + number).bytes(2, format!("CPU {number}").as_bytes());
                track.number(5, process).number(12, number);
            });
            self.end_packet()?;
        }
        Ok(())
    }

    pub fn detour(&mut self, number: u64, detour: &Detour, activities: &[Activity], labels: &Labels) -> io::Result<()> {
        if self.names.len() > NAMES {
            self.forget();
        }
        let track = self.process() + 1 + u64::from(detour.cpu.get());
        let end = detour.start + detour.duration;
        self.begin_slice(track, detour.start.get(), ("detour", "detour"), |event| {
            event.message(4, |descriptor| {
                descriptor.number(1, 1).number(3, number);
            });
            if detour.incomplete {
                event.message(4, |descriptor| {
                    descriptor.number(1, 2).number(2, 1);
                });
            }
        })?;
        let mut found = std::mem::take(&mut self.slices);
        slices(detour, activities, &mut found);
        // The ends of the slices under way, the innermost last.
        let mut open: Vec<i64> = Vec::new();
        for slice in &found {
            self.end_slices(track, &mut open, slice.begin)?;
            let activity = &activities[slice.activity];
            let name = (labels.text(activity.source), activity.kind.name());
            self.begin_slice(track, slice.begin, name, |event| {
                event.message(4, |descriptor| {
                    descriptor.number(1, 3).int(4, activity.self_time.get());
                });
                let detail = labels.text(activity.detail);
                if !detail.is_empty() {
                    event.message(4, |descriptor| {
                        descriptor.number(1, 4).bytes(6, detail.as_bytes());
                    });
                }
            })?;
            open.push(slice.end);
        }
        self.slices = found;
        self.end_slices(track, &mut open, i64::MAX)?;
        self.end_slice(track, end.get())
    }

    /// Returns the writer: the trace is complete after each detour.
    pub fn end(self) -> W {
        self.out
    }

    /// The track of the node.
    const fn process(&self) -> u64 {
        FIRST_TRACK + self.sequence * TRACKS_A_NODE
    }

    /// Ends the slices that end by an instant, innermost first.
    fn end_slices(&mut self, track: u64, open: &mut Vec<i64>, limit: i64) -> io::Result<()> {
        while let Some(end) = open.pop_if(|end| *end <= limit) {
            self.end_slice(track, end)?;
        }
        Ok(())
    }

    fn begin_slice(
        &mut self,
        track: u64,
        time: i64,
        (name, category): (&str, &'static str),
        annotate: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        let mut interned = Message::default();
        if std::mem::take(&mut self.is_cleared) {
            self.packet.number(SEQUENCE_FLAGS, CLEARED | NEEDS_STATE);
            for (name, iid) in ANNOTATIONS.into_iter().zip(1..) {
                interned.message(3, |entry| {
                    entry.number(1, iid).bytes(2, name.as_bytes());
                });
            }
        } else {
            self.packet.number(SEQUENCE_FLAGS, NEEDS_STATE);
        }
        let name_iid = match self.names.get(name) {
            Some(iid) => *iid,
            None => {
                let iid = self.names.len() as u64 + 1;
                self.names.insert(name.to_owned(), iid);
                interned.message(2, |entry| {
                    entry.number(1, iid).bytes(2, name.as_bytes());
                });
                iid
            }
        };
        let categories = self.categories.len() as u64;
        let category_iid = *self.categories.entry(category).or_insert_with(|| {
            interned.message(1, |entry| {
                entry.number(1, categories + 1).bytes(2, category.as_bytes());
            });
            categories + 1
        });
        if !interned.as_bytes().is_empty() {
            self.packet.bytes(INTERNED_DATA, interned.as_bytes());
        }
        self.packet.number(TIMESTAMP, stamp(time)).message(TRACK_EVENT, |event| {
            event.number(3, category_iid).number(9, SLICE_BEGIN).number(10, name_iid).number(11, track);
            annotate(event);
        });
        self.end_packet()
    }

    fn end_slice(&mut self, track: u64, time: i64) -> io::Result<()> {
        self.packet.number(SEQUENCE_FLAGS, NEEDS_STATE).number(TIMESTAMP, stamp(time));
        self.packet.message(TRACK_EVENT, |event| {
            event.number(9, SLICE_END).number(11, track);
        });
        self.end_packet()
    }

    fn end_packet(&mut self) -> io::Result<()> {
        self.packet.number(SEQUENCE, self.sequence);
        let mut head = Message::default();
        // `Trace.packet`.
        head.bytes(1, self.packet.as_bytes());
        self.packet.clear();
        self.out.write_all(head.as_bytes())
    }

    /// Starts to intern names from scratch.
    fn forget(&mut self) {
        self.names.clear();
        self.categories.clear();
        self.is_cleared = true;
    }
}

/// An instant since the origin; the format has no earlier ones, so these become 0.
fn stamp(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::chrome::tests::node;
    use crate::write::slices::tests::{activity, any_activities, detour};
    use becalm_model::Kind;
    use proptest::prelude::*;

    /// The fields of a message: number and value, or bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let (mut value, mut shift) = (0, 0);
            while let Some((byte, rest)) = bytes.split_first() {
                *bytes = rest;
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            value
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = varint(&mut bytes);
            match key & 7 {
                0 => found.push((key >> 3, value, &[][..])),
                2 => {
                    let (inner, rest) = bytes.split_at(value as usize);
                    bytes = rest;
                    found.push((key >> 3, 0, inner));
                }
                other => panic!("nothing is written as {other}"),
            }
        }
        found
    }

    fn number(fields: &[(u64, u64, &[u8])], field: u64) -> Option<u64> {
        fields.iter().find(|(found, ..)| *found == field).map(|(_, value, _)| *value)
    }

    fn inner<'a>(fields: &[(u64, u64, &'a [u8])], field: u64) -> Option<&'a [u8]> {
        fields.iter().find(|(found, ..)| *found == field).map(|(.., bytes)| *bytes)
    }

    fn packets(trace: &[u8]) -> Vec<&[u8]> {
        fields(trace)
            .into_iter()
            .map(|(field, _, bytes)| if field == 1 { bytes } else { panic!("field {field}") })
            .collect()
    }

    #[test]
    fn a_small_trace_byte_by_byte() {
        let doc = node("n", 300);
        let mut trace = PerfettoTrace::begin(Vec::new());
        trace.node(&doc).unwrap();
        trace.detour(7, &detour(10, 5), &[], &Labels::new()).unwrap();
        let bytes = trace.end();
        let packets = packets(&bytes);
        assert_eq!(packets.len(), 5);
        // The clocks at the origin: 64 at 0, the wall clock at 300, the TSC at 77; flags, first packet, the clock of what follows, sequence 1.
        let clocks = b"\x32\x15\x0a\x04\x08\x40\x10\x00\x0a\x05\x08\x01\x10\xac\x02\x0a\x04\x08\x09\x10\x4d\x10\x01";
        let rest = b"\x68\x01\xb8\x05\x01\xda\x03\x03\xd0\x03\x40\x50\x01";
        assert_eq!(packets[0], [&clocks[..], rest].concat());
        // The track of the node: number 2^32 + 1, children by rank, process 1 called n.
        let process = b"\xe2\x03\x0f\x08\x81\x80\x80\x80\x10\x58\x03\x1a\x05\x08\x01\x32\x01n\x50\x01";
        assert_eq!(packets[1], process);
        let cpu = b"\xe2\x03\x15\x08\x82\x80\x80\x80\x10\x12\x05CPU 0\x28\x81\x80\x80\x80\x10\x60\x00\x50\x01";
        assert_eq!(packets[2], cpu);
        // The end of the detour: needs what was interned, at 15 ns, type 2, the track of the CPU.
        assert_eq!(packets[4], b"\x68\x02\x40\x0f\x5a\x08\x48\x02\x58\x82\x80\x80\x80\x10\x50\x01");
    }

    proptest! {
        #[test]
        fn begins_and_ends_pair(activities in any_activities(), duration in 0_i64..1_000) {
            let (doc, mut labels) = (node("n", 0), Labels::new());
            let label = labels.intern("x");
            let activities: Vec<Activity> = activities.into_iter().map(|one| Activity { source: label, ..one }).collect();
            let mut trace = PerfettoTrace::begin(Vec::new());
            trace.node(&doc).unwrap();
            trace.detour(0, &detour(5, duration), &activities, &labels).unwrap();
            let bytes = trace.end();
            let (mut open, mut begun, mut last, mut self_ns) = (0, 0, 0, 0);
            for packet in packets(&bytes) {
                let packet = fields(packet);
                let Some(event) = inner(&packet, TRACK_EVENT).map(fields) else { continue };
                let time = number(&packet, TIMESTAMP).unwrap();
                prop_assert!(time >= last, "{} after {}", time, last);
                last = time;
                match number(&event, 9) {
                    Some(SLICE_BEGIN) => {
                        open += 1;
                        begun += 1;
                        prop_assert!(number(&event, 10).is_some_and(|iid| iid > 0));
                        let own = event.iter().filter(|(field, ..)| *field == 4).map(|(.., bytes)| fields(bytes));
                        self_ns += own.filter_map(|own| number(&own, 4)).sum::<u64>();
                    }
                    _ => open -= 1,
                }
                prop_assert!(open >= 0);
            }
            prop_assert_eq!((open, begun), (0, 1 + activities.len()));
            prop_assert_eq!(last, 5 + duration as u64);
            prop_assert_eq!(self_ns, activities.iter().map(|one| one.self_time.get() as u64).sum::<u64>());
        }
    }

    #[test]
    fn names_are_said_once_and_again_after_so_many() {
        let doc = node("n", 0);
        let mut trace = PerfettoTrace::begin(Vec::new());
        trace.node(&doc).unwrap();
        let mut said = Vec::new();
        for round in 0..2_usize {
            let mut labels = Labels::new();
            let mut one = activity(5, 1, Kind::Task);
            one.source = labels.intern("often");
            trace.detour(0, &detour(5, 9), &[one], &labels).unwrap();
            said.push(trace.out.windows(5).filter(|part| part == b"often").count());
            if round == 0 {
                (0..=NAMES).for_each(|at| _ = trace.names.insert(at.to_string(), 0));
            }
        }
        assert_eq!(said, [1, 2]);
        let hostile = "\u{1b};".repeat(100_000);
        let mut labels = Labels::new();
        let mut one = activity(5, 1, Kind::Task);
        one.source = labels.intern(&hostile);
        trace.detour(0, &detour(5, 9), &[one], &labels).unwrap();
        trace.detour(1, &detour(15, 9), &[one], &labels).unwrap();
        assert_eq!(trace.out.len() / hostile.len(), 1, "a name of 200 KB is said once");
    }
}
