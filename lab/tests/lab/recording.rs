//! Recordings as guests leave them, and what must hold of each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use becalm_lab::{Outcome, is_timer};
use serde_json::Value;

use crate::guests::{json, text};

/// A run as a guest left it.
pub struct Run {
    /// The node's document.
    pub node: Value,
    /// What `becalm report --json` makes of the run.
    pub report: Value,
}

impl Run {
    /// A run and its report, both as the guest left them in a folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self { node: json(&folder.join("run.becalm/runs/node=guest.json")), report: json(&folder.join("report.json")) }
    }

    pub fn rung(&self) -> &str {
        self.report["rung"].as_str().expect("a report names its rung")
    }

    pub fn cpus(&self) -> Vec<u64> {
        each(&self.report, "cpus").map(|cpu| cpu["cpu"].as_u64().expect("a CPU has a number")).collect()
    }

    /// How many activities of that kind and source lie in detours.
    pub fn count(&self, kind: &str, source: &str) -> u64 {
        each(&self.report, "sources")
            .filter(|entry| entry["kind"] == kind && entry["source"] == source)
            .map(|entry| entry["count"].as_u64().expect("a source has a count"))
            .sum()
    }

    /// How many activities of a kind lie in detours, by source.
    pub fn counts(&self, kind: &str) -> BTreeMap<&str, u64> {
        each(&self.report, "sources")
            .filter(|entry| entry["kind"] == kind)
            .map(|entry| (entry["source"].as_str().expect("a source has a name"), entry["count"].as_u64().unwrap_or(0)))
            .collect()
    }

    /// How long the only measured CPU was observed.
    pub fn seconds(&self) -> f64 {
        assert_eq!(self.cpus().len(), 1);
        self.report["cpus"][0]["duration_ns"].as_f64().expect("a CPU has a duration") / 1e9
    }

    pub fn kinds(&self) -> BTreeSet<&str> {
        each(&self.report, "sources").map(|entry| entry["kind"].as_str().expect("a source has a kind")).collect()
    }

    /// By how much one of the kernel's counters grew on the measured CPUs while the loops ran.
    pub fn growth(&self, counter: &str) -> u64 {
        each(&self.node, "counters")
            .filter(|entry| entry["name"] == counter)
            .map(|entry| entry["growth"].as_u64().expect("a counter has a growth"))
            .sum()
    }

    pub fn warnings(&self) -> String {
        each(&self.report, "warnings").map(|warning| format!("{warning}\n")).collect()
    }

    /// What must hold of every recording with tracepoints.
    pub fn assert_whole(&self) {
        assert_eq!(self.rung(), "tracepoints", "{}", self.warnings());
        assert_eq!(self.report["lost_events"], 0);
        assert_eq!(sum(&self.node, "cpus", "lost_events"), 0);
        assert_eq!(sum(&self.node, "cpus", "incomplete"), 0);
        self.assert_books_close();
    }

    /// What the sources took together, by themselves and with all that goes with them, is what the detours took together
    /// without becalm's own time, to the nanosecond.
    pub fn assert_books_close(&self) {
        let detours = self.assert_measured();
        let noise = sum(&self.report, "cpus", "total_ns");
        assert_eq!(noise + self.own_ns(), detours);
        assert_eq!(sum(&self.report, "sources", "total_ns"), noise);
        assert_eq!(sum(&self.report, "sources", "whole_ns"), noise);
    }

    /// What becalm's own threads took.
    pub fn own_ns(&self) -> u64 {
        self.report["total"]["self_ns"].as_u64().expect("becalm's own time is known")
    }

    /// Where the kernel cannot be seen, detours are measured, the kernel's counters are read, and no source is named.
    pub fn assert_nothing_is_made_up(&self) {
        assert_eq!(self.rung(), "proc");
        self.assert_measured();
        assert_eq!(each(&self.report, "sources").count(), 0, "{}", self.report["sources"]);
        assert!(self.growth("interrupts/LOC") > 0);
    }

    /// Every loop ran and found detours; how long they were together.
    pub fn assert_measured(&self) -> u64 {
        for cpu in each(&self.node, "cpus") {
            assert!(cpu["iterations"].as_u64() > Some(10_000), "the loop hardly ran: {cpu}");
            assert!(cpu["total_ns"].as_u64() > Some(0), "an emulated CPU without a detour is not believable: {cpu}");
        }
        sum(&self.node, "cpus", "total_ns")
    }

    /// The trace has every timer interrupt that the kernel counted while the loops ran, within 1 %, and each has a row in a detour. An
    /// interrupt that runs several timers has a row for each.
    ///
    /// The kernel's counters are read a little before the loops begin and a little after they end, for which two
    /// interrupts a CPU are allowed, and as many as fit into the time until the loop began.
    pub fn assert_timer_interrupts_agree(&self) {
        let (timers, counted) = (&self.report["checked"]["timer_interrupts"], self.growth("interrupts/LOC"));
        let traced = timers["traced"].as_u64().expect("the trace is compared with the kernel's counts");
        let rows: u64 = self.counts("irq").iter().filter(|(source, _)| is_timer(source)).map(|(_, count)| count).sum();
        let loops = sum(&self.node, "cpus", "duration_ns");
        let before = counted * sum(&self.node, "cpus", "start_ns") / loops;
        let allowed = counted / 100 + 2 * self.cpus().len() as u64 + before;
        println!("becalm found {traced} timer interrupts, the kernel {counted}; {allowed} may differ");
        assert!(traced.abs_diff(counted) <= allowed);
        assert!(rows + allowed >= counted, "{rows} of {counted} lie in detours");
    }
}

pub fn each<'a>(document: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    document[list].as_array().unwrap_or_else(|| panic!("the document has no list '{list}': {document}")).iter()
}

/// The row of a comparison that tells how often a source came.
pub fn rate<'a>(comparison: &'a Value, kind: &str, source: &str) -> &'a Value {
    each(comparison, "rows")
        .find(|row| row["what"] == "rate_hz" && row["kind"] == kind && row["source"] == source)
        .unwrap_or_else(|| panic!("{kind} {source} is not compared: {}", comparison["rows"]))
}

/// A row of a comparison has less in B. The host interrupts emulated CPUs up to a thousand times a second, which widens the intervals of all
/// sources; so it may not be sure of it.
pub fn assert_better(row: &Value) {
    assert!(row["b"].as_f64() < row["a"].as_f64(), "{row}");
    let verdicts = ["lower", "no difference shown", "not enough data"];
    assert!(verdicts.iter().any(|verdict| row["verdict"] == *verdict), "{row}");
}

pub fn sum(document: &Value, list: &str, field: &str) -> u64 {
    each(document, list)
        .map(|entry| entry[field].as_u64().unwrap_or_else(|| panic!("no number '{field}' in {entry}")))
        .sum()
}

/// What becalm says it recorded is there, and what it says is missing is not.
pub fn assert_events_are_the_kernels(outcome: &Outcome, run: &Run) {
    let available = text(outcome, "available_events");
    let available: BTreeSet<&str> = available.lines().collect();
    let names = |list: &str| -> Vec<String> {
        each(&run.node["tracing"], list)
            // A missing event is followed by what remains unseen without it.
            .filter_map(|entry| Some(entry.as_str()?.split([' ', ':']).next()?.replace('/', ":")))
            .collect()
    };
    let (recorded, missing) = (names("events"), names("missing"));
    assert!(!recorded.is_empty());
    for event in recorded {
        assert!(available.contains(event.as_str()), "{event} was recorded, yet the kernel does not have it");
    }
    for event in missing {
        assert!(!available.contains(event.as_str()), "{event} is called missing, yet the kernel has it");
    }
}
