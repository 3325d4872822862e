//! Traces in Chrome's Trace Event Format: JSON, which Chrome's viewer, Perfetto and speedscope open.
//!
//! Times are microseconds with nanoseconds as decimals, from the earliest origin of the nodes: counted from 1970 they would not fit into
//! the doubles that viewers read. A node is a process, and a CPU a thread of it with the CPU's number plus one, because viewers take thread
//! 0 for idle. A detour is a slice, and its activities are slices within it.
//!
//! A slice is a start (`B`) and an end (`E`), not one event with a duration (`X`): viewers add `ts` and `dur` as doubles, and the sum is
//! often one unit in the last place beyond the next slice's start, which they then reject. Here the same instant always has the same
//! digits. Events of a thread are in order of time, ends before starts at the same instant. An end repeats the name and the arguments of
//! its start, which no other slice has, because speedscope pairs events of the same instant by these. Slices without length are instants
//! (`i`), because speedscope takes the end of such a slice for that of another one if several share an instant.

use std::io::{self, Write};
use std::iter;

use becalm_model::{Activity, Detour, Labels, NodeDoc};

use super::decimal::Decimal;
use super::slices::{Slice, slices};

/// A trace being written.
#[derive(Debug)]
pub struct ChromeTrace<W> {
    out: W,
    /// The earliest origin, in nanoseconds since 1970.
    base: i128,
    is_begun: bool,
    /// The process, and the offset of its times from the base.
    node: (usize, i64),
    slices: Vec<Slice>,
}

impl<W: Write> ChromeTrace<W> {
    /// Starts the trace of these nodes.
    pub fn begin(mut out: W, nodes: &[NodeDoc]) -> io::Result<Self> {
        let base = nodes.iter().filter_map(|doc| doc.origin).map(|origin| origin.as_nanosecond()).min().unwrap_or(0);
        let about: Vec<_> = nodes.iter().enumerate().map(|(at, doc)| about(at + 1, doc, base)).collect();
        // If no node has a start time, its times count from its own start.
        let zero = nodes.iter().any(|doc| doc.origin.is_some()).then(|| base.to_string());
        let about = serde_json::json!({ "zero_ns_since_1970": zero, "nodes": about });
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")?;
        Ok(Self { out, base, is_begun: false, node: (0, 0), slices: Vec::new() })
    }

    /// Starts a node. Its detours follow.
    pub fn node(&mut self, doc: &NodeDoc) -> io::Result<()> {
        let offset = offset(doc, self.base);
        self.node = (self.node.0 + 1, offset);
        let pid = self.node.0;
        let mut named = |kind: &str, tid: u32, args: serde_json::Value| {
            self.separate()?;
            write!(self.out, "{{\"ph\":\"M\",\"name\":\"{kind}\",\"pid\":{pid},\"tid\":{tid},\"args\":{args}}}")
        };
        named("process_name", 0, serde_json::json!({ "name": doc.node }))?;
        for cpu in &doc.cpus {
            let tid = cpu.cpu.get() + 1;
            named("thread_name", tid, serde_json::json!({ "name": format!("CPU {}", cpu.cpu) }))?;
            named("thread_sort_index", tid, serde_json::json!({ "sort_index": cpu.cpu.get() }))?;
        }
        Ok(())
    }

    pub fn detour(&mut self, number: u64, detour: &Detour, activities: &[Activity], labels: &Labels) -> io::Result<()> {
        let tid = detour.cpu.get() + 1;
        let event = |name: &str, category: &str, args: String| {
            let name = serde_json::Value::from(name);
            format!("\"name\":{name},\"cat\":\"{category}\",\"pid\":{},\"tid\":{tid},\"args\":{args}", self.node.0)
        };
        let mut events =
            vec![event("detour", "detour", format!("{{\"detour\":{number},\"incomplete\":{}}}", detour.incomplete))];
        let mut found = std::mem::take(&mut self.slices);
        slices(detour, activities, &mut found);
        events.extend(found.iter().enumerate().map(|(at, slice)| {
            let activity = &activities[slice.activity];
            let detail = serde_json::Value::from(labels.text(activity.detail));
            let own = activity.self_time.get();
            let args = format!("{{\"detour\":{number},\"activity\":{at},\"self_ns\":{own},\"detail\":{detail}}}");
            event(labels.text(activity.source), activity.kind.name(), args)
        }));
        let begin = detour.start.get();
        let whole = (begin, begin.saturating_add(detour.duration.get().max(0)));
        let times = iter::once(whole).chain(found.iter().map(|slice| (slice.begin, slice.end)));
        // The ends of the open slices, the innermost last.
        let mut open: Vec<(i64, &str)> = Vec::new();
        for ((begin, end), event) in times.zip(&events) {
            while let Some((end, event)) = open.pop_if(|(end, _)| *end <= begin) {
                self.event("E", end, event)?;
            }
            if begin == end {
                self.event("i", begin, &format!("\"s\":\"t\",{event}"))?;
            } else {
                self.event("B", begin, event)?;
                open.push((end, event));
            }
        }
        while let Some((end, event)) = open.pop() {
            self.event("E", end, event)?;
        }
        self.slices = found;
        Ok(())
    }

    /// Ends the trace, and returns its writer.
    pub fn end(mut self) -> io::Result<W> {
        writeln!(self.out, "\n]}}")?;
        Ok(self.out)
    }

    /// Writes an event of this phase at an instant of the node, in nanoseconds, with its other fields.
    fn event(&mut self, phase: &str, at: i64, fields: &str) -> io::Result<()> {
        self.separate()?;
        let ts = Decimal::<3>(at.saturating_add(self.node.1).into());
        write!(self.out, "{{\"ph\":\"{phase}\",\"ts\":{ts},{fields}}}")
    }

    fn separate(&mut self) -> io::Result<()> {
        let between = if self.is_begun { ",\n" } else { "\n" };
        self.is_begun = true;
        self.out.write_all(between.as_bytes())
    }
}

/// The offset of a node's times from the base: 0 if its start is unknown.
fn offset(doc: &NodeDoc, base: i128) -> i64 {
    doc.origin.map_or(0, |origin| i64::try_from(origin.as_nanosecond() - base).unwrap_or(i64::MAX))
}

/// The data that ties a node's times to its clocks.
fn about(pid: usize, doc: &NodeDoc, base: i128) -> serde_json::Value {
    serde_json::json!({
        "pid": pid,
        "node": doc.node,
        "origin": doc.origin.map(|origin| origin.to_string()),
        "origin_in_trace_ns": offset(doc, base),
        "counter": doc.clock.counter,
        "counter_at_origin": doc.clock.origin_ticks.to_string(),
        "counter_hz": doc.clock.rate_hz,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::write::slices::tests::{activity, any_activities, detour};
    use becalm_model::Kind;
    use becalm_model::node::CpuDoc;
    use becalm_units::{CpuId, Nanos};
    use proptest::prelude::*;

    /// A node with CPU 0, with its origin this many nanoseconds after 1970.
    pub fn node(name: &str, origin: i128) -> NodeDoc {
        let text = r#"{"schema": "becalm.run/1", "node": "", "program": "", "origin": "1970-01-01T00:00:00Z", "ended": null,
            "machine": {"kernel": "", "processor": "", "hypervisor": null, "architecture": "", "online": "", "isolated": "",
                        "nohz_full": "", "command_line": ""},
            "clock": {"counter": "tsc", "origin_ticks": 77, "rate_hz": 2.5e9, "rate_error_ratio": 0.0, "resolution_ns": 0,
                      "cross_cpu_ns": null, "backwards": 0},
            "settings": {"sched": "", "threshold": "", "duration_ns": null, "command": []},
            "rung": "tracepoints", "cpus": [], "tracing": null, "counters": [], "warnings": []}"#;
        let doc: NodeDoc = serde_json::from_str(text).unwrap();
        let origin = Some(jiff::Timestamp::from_nanosecond(origin).unwrap());
        NodeDoc { node: name.to_owned(), origin, cpus: vec![CpuDoc::new(CpuId::new(0))], ..doc }
    }

    #[test]
    fn a_small_trace_word_by_word() {
        let nodes = [node("n\"1", 2_000), node("n2", 5_250)];
        let mut trace = ChromeTrace::begin(Vec::new(), &nodes).unwrap();
        let mut labels = Labels::new();
        let mut inner = activity(1_100, 300, Kind::Irq);
        (inner.source, inner.detail) = (labels.intern("eth\u{1b}0"), labels.intern("41"));
        trace.node(&nodes[0]).unwrap();
        trace.detour(7, &detour(1_000, 500), &[inner], &labels).unwrap();
        trace.node(&nodes[1]).unwrap();
        trace.detour(0, &detour(1_000, 1), &[], &labels).unwrap();
        let text = String::from_utf8(trace.end().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], r#"{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"n\"1"}},"#);
        assert_eq!(lines[2], r#"{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"CPU 0"}},"#);
        let outer = r#""name":"detour","cat":"detour","pid":1,"tid":1,"args":{"detour":7,"incomplete":false}},"#;
        let inner = r#""name":"eth\u001b0","cat":"irq","pid":1,"tid":1,"args":{"detour":7,"activity":0,"self_ns":300,"detail":"41"}},"#;
        let event = |phase: &str, ts: &str, fields: &str| format!(r#"{{"ph":"{phase}","ts":{ts},{fields}"#);
        let (begins, ends) =
            ([("B", "1.000", outer), ("B", "1.100", inner)], [("E", "1.400", inner), ("E", "1.500", outer)]);
        assert_eq!(
            lines[4..8],
            [begins, ends].concat().iter().map(|(phase, ts, fields)| event(phase, ts, fields)).collect::<Vec<_>>()
        );
        assert!(lines[11].starts_with(r#"{"ph":"B","ts":4.250,"#) && lines[12].starts_with(r#"{"ph":"E","ts":4.251,"#));
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["otherData"]["nodes"][1]["origin_in_trace_ns"], 3_250);
        assert_eq!(read["otherData"]["nodes"][0]["counter_at_origin"], "77");
    }

    /// What speedscope 1.25 does with the events of a thread: it queues starts and ends separately, both sorted by the double `ts`. At the
    /// same instant the end comes first, unless it belongs to the start. Returns each slice's start, end and name; an end that does not fit
    /// is an error.
    fn slices_of_speedscope(events: &[serde_json::Value]) -> Result<Vec<(f64, f64, String)>, String> {
        let time = |event: &serde_json::Value| event["ts"].as_f64().unwrap();
        let first = events.iter().filter(|event| event["ph"] != "M").map(time).fold(f64::MAX, f64::min);
        let key = |event: &serde_json::Value| format!("{} {}", event["name"], event["args"]);
        let queue = |phase: &str| {
            let mut queue: Vec<_> = events
                .iter()
                .filter(|event| event["ph"] == phase)
                .map(|event| (time(event) - first, key(event)))
                .collect();
            queue.sort_by(|a, b| a.0.total_cmp(&b.0));
            std::collections::VecDeque::from(queue)
        };
        let (mut begins, mut ends) = (queue("B"), queue("E"));
        let (mut open, mut found) = (Vec::new(), Vec::new());
        loop {
            let begins_next = match (begins.front(), ends.front()) {
                (None, None) => break,
                (begin, None) => begin.is_some(),
                (None, _) => false,
                (Some((begin, key)), Some((end, ended))) => begin < end || (begin == end && key == ended),
            };
            if begins_next {
                open.extend(begins.pop_front());
                continue;
            }
            let (end, ended) = ends.pop_front().unwrap();
            let (begin, key): (f64, String) =
                open.pop().ok_or_else(|| format!("{ended} ends at {end}, and nothing is open"))?;
            if key != ended {
                return Err(format!("{ended} ends at {end} within {key}"));
            }
            found.push((begin, end, key));
        }
        if open.is_empty() { Ok(found) } else { Err(format!("{open:?} never end")) }
    }

    proptest! {
        #[test]
        fn viewers_that_read_doubles_see_every_slice(
            detours in prop::collection::vec((0_i64..1_500, any_activities()), 1..6),
            start in 0_i64..5 * 86_400_000_000_000,
            gaps in prop::collection::vec(0_i64..3, 6),
            name in ".{0,3}",
        ) {
            let nodes = [node("n", 0)];
            let mut labels = Labels::new();
            let name = labels.intern(&name);
            let mut trace = ChromeTrace::begin(Vec::new(), &nodes).unwrap();
            trace.node(&nodes[0]).unwrap();
            let (mut at, mut slices_ns, mut self_ns) = (start, Vec::new(), 0);
            for (number, (duration, activities)) in detours.into_iter().enumerate() {
                let whole = detour(at, duration);
                let moved = |one: Activity| Activity { start: Nanos::new(at + one.start.get()), source: name, detail: name, ..one };
                let activities: Vec<Activity> = activities.into_iter().map(moved).collect();
                trace.detour(number as u64, &whole, &activities, &labels).unwrap();
                let mut inner = Vec::new();
                slices(&whole, &activities, &mut inner);
                slices_ns.extend(inner.iter().map(|slice| (slice.begin, slice.end)).chain([(at, at + duration)]));
                self_ns += activities.iter().map(|activity| activity.self_time.get()).sum::<i64>();
                at += duration + gaps[number];
            }
            let read: serde_json::Value = serde_json::from_slice(&trace.end().unwrap()).unwrap();
            let events = read["traceEvents"].as_array().unwrap();
            let found = slices_of_speedscope(events).map_err(TestCaseError::fail)?;
            let is_slice = |event: &&serde_json::Value| event["ph"] == "B" || event["ph"] == "i";
            let first = events.iter().filter(is_slice).map(|event| event["ts"].as_f64().unwrap()).fold(f64::MAX, f64::min);
            let mut found: Vec<(i64, i64)> = found.iter().map(|(begin, end, _)| {
                let ns = |time: f64| ((time + first) * 1e3).round() as i64;
                (ns(*begin), ns(*end))
            }).collect();
            slices_ns.retain(|(begin, end)| begin != end);
            found.sort_unstable();
            slices_ns.sort_unstable();
            prop_assert_eq!(found, slices_ns);
            // Readers see the same whether they sort, by any stable sort, or not.
            let threads = events.iter().filter(|event| event["ph"] != "M");
            prop_assert!(threads.is_sorted_by_key(|event| event["ts"].as_f64().unwrap()));
            let own_times = events.iter().filter(is_slice).map(|event| event["args"]["self_ns"].as_i64().unwrap_or(0));
            prop_assert_eq!(own_times.sum::<i64>(), self_ns);
        }
    }
}
