//! Traces in the Trace Event Format of Chrome: JSON, which its own viewer, Perfetto and speedscope open.
//!
//! Times are microseconds with the nanoseconds behind the point, from the earliest origin of the nodes on: since 1970 they would not fit into
//! the doubles that viewers read. A node is a process, a CPU a thread of it with the number of the CPU and one more, as viewers
//! take thread 0 for idle; a detour is a slice, and its activities are slices within it.

use std::io::{self, Write};

use becalm_model::{Activity, Detour, Labels, NodeDoc};

use super::slices::{Slice, slices};

/// A trace that is being written.
#[derive(Debug)]
pub struct ChromeTrace<W> {
    out: W,
    /// The earliest origin, in nanoseconds since 1970.
    base: i128,
    is_begun: bool,
    /// The process, and what its times are later than the base.
    node: (usize, i64),
    slices: Vec<Slice>,
}

impl<W: Write> ChromeTrace<W> {
    /// Begins the trace of these nodes.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn begin(mut out: W, nodes: &[NodeDoc]) -> io::Result<Self> {
        let base = nodes.iter().filter_map(|doc| doc.origin).map(|origin| origin.as_nanosecond()).min().unwrap_or(0);
        let about: Vec<_> = nodes.iter().enumerate().map(|(at, doc)| about(at + 1, doc, base)).collect();
        // Where no node says when it began, its times count from its own begin.
        let zero = nodes.iter().any(|doc| doc.origin.is_some()).then(|| base.to_string());
        let about = serde_json::json!({ "zero_ns_since_1970": zero, "nodes": about });
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")?;
        Ok(Self { out, base, is_begun: false, node: (0, 0), slices: Vec::new() })
    }

    /// Begins a node. Its detours come after that.
    ///
    /// # Errors
    /// If `out` cannot be written.
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

    /// Adds a detour with its activities.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn detour(&mut self, number: u64, detour: &Detour, activities: &[Activity], labels: &Labels) -> io::Result<()> {
        let (start, duration) = (detour.start.get(), detour.duration.get());
        let args = format!("{{\"detour\":{number},\"incomplete\":{}}}", detour.incomplete);
        self.slice(detour, ("detour", "detour"), (start, duration), &args)?;
        let mut found = std::mem::take(&mut self.slices);
        slices(detour, activities, &mut found);
        for slice in &found {
            let activity = &activities[slice.activity];
            let detail = serde_json::Value::from(labels.text(activity.detail));
            let args = format!("{{\"self_ns\":{},\"detail\":{detail}}}", activity.self_time.get());
            let name = (labels.text(activity.source), activity.kind.name());
            self.slice(detour, name, (slice.begin, slice.end - slice.begin), &args)?;
        }
        self.slices = found;
        Ok(())
    }

    /// Ends the trace, and gives back what it was written into.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn end(mut self) -> io::Result<W> {
        writeln!(self.out, "\n]}}")?;
        Ok(self.out)
    }

    /// A complete event: of this name and category, with start and duration in nanoseconds of the node.
    fn slice(
        &mut self,
        of: &Detour,
        (name, category): (&str, &str),
        (start, duration): (i64, i64),
        args: &str,
    ) -> io::Result<()> {
        self.separate()?;
        let (pid, offset) = self.node;
        let (ts, dur) = (Micros(start.saturating_add(offset)), Micros(duration));
        let (name, tid) = (serde_json::Value::from(name), of.cpu.get() + 1);
        write!(
            self.out,
            "{{\"ph\":\"X\",\"name\":{name},\"cat\":\"{category}\",\"pid\":{pid},\"tid\":{tid},\"ts\":{ts},\"dur\":{dur},\
             \"args\":{args}}}"
        )
    }

    fn separate(&mut self) -> io::Result<()> {
        let between = if self.is_begun { ",\n" } else { "\n" };
        self.is_begun = true;
        self.out.write_all(between.as_bytes())
    }
}

/// By how much the times of a node are later than the base: not at all, if it does not say when it began.
fn offset(doc: &NodeDoc, base: i128) -> i64 {
    doc.origin.map_or(0, |origin| i64::try_from(origin.as_nanosecond() - base).unwrap_or(i64::MAX))
}

/// What ties a node's times to its clocks.
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

/// Nanoseconds as microseconds with all digits.
struct Micros(i64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let ns = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:03}", ns / 1_000, ns % 1_000)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::write::slices::tests::{activity, any_activities, detour};
    use becalm_model::Kind;
    use becalm_model::node::CpuDoc;
    use becalm_units::CpuId;
    use proptest::prelude::*;

    /// A node with CPU 0, whose origin is so many nanoseconds after 1970.
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
        let first = r#"{"ph":"X","name":"detour","cat":"detour","pid":1,"tid":1,"ts":1.000,"dur":0.500,"args":{"detour":7,"incomplete":false}},"#;
        let second = r#"{"ph":"X","name":"eth\u001b0","cat":"irq","pid":1,"tid":1,"ts":1.100,"dur":0.300,"args":{"self_ns":300,"detail":"41"}},"#;
        assert_eq!(lines[4..6], [first, second]);
        assert!(lines[9].contains(r#""pid":2,"tid":1,"ts":4.250,"dur":0.001"#), "{}", lines[9]);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["otherData"]["nodes"][1]["origin_in_trace_ns"], 3_250);
        assert_eq!(read["otherData"]["nodes"][0]["counter_at_origin"], "77");
    }

    proptest! {
        #[test]
        fn what_is_written_is_json_that_nests(activities in any_activities(), name in ".{0,9}", duration in 0_i64..1_000) {
            let nodes = [node("n", 0)];
            let mut labels = Labels::new();
            let name = labels.intern(&name);
            let named = activities.into_iter().map(|one| Activity { source: name, detail: name, ..one });
            let activities: Vec<Activity> = named.collect();
            let mut trace = ChromeTrace::begin(Vec::new(), &nodes).unwrap();
            trace.node(&nodes[0]).unwrap();
            trace.detour(0, &detour(5, duration), &activities, &labels).unwrap();
            let read: serde_json::Value = serde_json::from_slice(&trace.end().unwrap()).unwrap();
            let mut open: Vec<i64> = Vec::new();
            let mut self_ns = 0;
            let slices = read["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
            for event in slices {
                let ns = |key: &str| (event[key].as_f64().unwrap() * 1e3).round() as i64;
                let (begin, end) = (ns("ts"), ns("ts") + ns("dur"));
                while open.pop_if(|last| *last <= begin && (*last < end || *last < begin)).is_some() {}
                prop_assert!(open.last().is_none_or(|last| end <= *last), "{}", event);
                open.push(end);
                self_ns += event["args"]["self_ns"].as_i64().unwrap_or(0);
            }
            prop_assert_eq!(self_ns, activities.iter().map(|activity| activity.self_time.get()).sum::<i64>());
        }
    }
}
