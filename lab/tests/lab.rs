//! What becalm does on kernels that are not the one at hand.
//!
//! Durations are the emulator's and mean little; counts are the kernel's, and becalm's must agree with them.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the test harness keeps it and shows it when the test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs, io};

use becalm_lab::{Console, Guest, Kernel, LabError, Outcome, Scenario};
use serde_json::Value;

/// How long a guest may take; without load the longest takes a third of it.
const LIMIT: Duration = Duration::from_secs(180);

/// By which factor the rates that becalm and osnoise find one after the other may differ. An emulated CPU that does not
/// get its time loses ticks, and not the same number each time.
const RATES_AGREE: f64 = 1.5;

/// Where the lab finds its parts.
struct Lab {
    cache: PathBuf,
    becalm: PathBuf,
}

impl Lab {
    /// The lab, unless this is a plain `cargo test`, which must neither fetch kernels nor take minutes.
    fn open() -> Option<Self> {
        let (Some(cache), Some(becalm)) = (env::var_os("BECALM_LAB_CACHE"), env::var_os("BECALM_LAB_PROGRAM")) else {
            assert!(env::var_os("BECALM_CI").is_none(), "the lab must not be skipped here");
            tell("skipped: the lab runs with `make test-lab`");
            return None;
        };
        Some(Self { cache: cache.into(), becalm: becalm.into() })
    }

    fn boot(&self, scenario: &Scenario, limit: Duration) -> Result<Outcome, LabError> {
        let kernel = Kernel::debian(scenario.flavor, &self.cache)?;
        Guest { scenario, kernel: &kernel, becalm: &self.becalm, console: Console::Kept, limit }.run()
    }

    /// Boots a guest whose scenario must come to its end. One that hangs is booted once more: now and then an emulated
    /// kernel does not come up, and what becalm does wrong it does again.
    fn run(&self, name: &str) -> Outcome {
        self.run_scenario(&named(name))
    }

    fn run_scenario(&self, scenario: &Scenario) -> Outcome {
        let name = &scenario.name;
        let mut booted = self.boot(scenario, LIMIT);
        if let Err(error @ LabError::Hang { .. }) = &booted {
            tell(&format!("{name}: once more, as {error}"));
            booted = self.boot(scenario, LIMIT);
        }
        let outcome = booted.unwrap_or_else(|error| panic!("{error}"));
        tell(&format!("{name}: the guest took {:.1} s", outcome.wall().as_secs_f64()));
        println!("{name} printed:\n{}", text(&outcome, "log"));
        assert_eq!(outcome.status(), 0, "{name} failed");
        outcome
    }

    /// What becalm, on this machine, makes of runs that a guest left: the document that it prints for these arguments.
    fn ask(&self, arguments: &[&OsStr]) -> Value {
        let output = Command::new(&self.becalm).args(arguments).arg("--json").output();
        let output = output.unwrap_or_else(|error| panic!("cannot start {}: {error}", self.becalm.display()));
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// A run that a guest left under that name, with the report that becalm makes of it here.
    fn recorded(&self, outcome: &Outcome, name: &str) -> Run {
        let bundle = outcome.path(name);
        let report = self.ask(&["report".as_ref(), bundle.as_ref()]);
        Run { node: json(&bundle.join("runs/node=guest.json")), report }
    }
}

fn named(name: &str) -> Scenario {
    Scenario::named(name).unwrap_or_else(|error| panic!("{error}"))
}

/// Writes past the test harness, which keeps to itself what a passing test prints.
fn tell(line: &str) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(io::stderr(), "{line}");
}

fn text(outcome: &Outcome, name: &str) -> String {
    outcome.text(name).unwrap_or_else(|error| panic!("{error}\n{}", outcome.console()))
}

fn number(outcome: &Outcome, name: &str) -> u64 {
    text(outcome, name).parse().unwrap_or_else(|_| panic!("{name} holds no number"))
}

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}: {text}", path.display()))
}

/// A run as a guest left it.
struct Run {
    /// The node's document.
    node: Value,
    /// What `becalm report --json` makes of the run.
    report: Value,
}

impl Run {
    fn of(outcome: &Outcome) -> Self {
        Self::in_folder(&outcome.path(""))
    }

    fn in_folder(folder: &Path) -> Self {
        Self { node: json(&folder.join("run.becalm/runs/node=guest.json")), report: json(&folder.join("report.json")) }
    }

    fn rung(&self) -> &str {
        self.report["rung"].as_str().expect("a report names its rung")
    }

    fn cpus(&self) -> Vec<u64> {
        each(&self.report, "cpus").map(|cpu| cpu["cpu"].as_u64().expect("a CPU has a number")).collect()
    }

    /// How many activities of that kind and source lie in detours.
    fn count(&self, kind: &str, source: &str) -> u64 {
        each(&self.report, "sources")
            .filter(|entry| entry["kind"] == kind && entry["source"] == source)
            .map(|entry| entry["count"].as_u64().expect("a source has a count"))
            .sum()
    }

    /// How many activities of a kind lie in detours, by source.
    fn counts(&self, kind: &str) -> BTreeMap<&str, u64> {
        each(&self.report, "sources")
            .filter(|entry| entry["kind"] == kind)
            .map(|entry| (entry["source"].as_str().expect("a source has a name"), entry["count"].as_u64().unwrap_or(0)))
            .collect()
    }

    /// How long the only measured CPU was observed.
    fn seconds(&self) -> f64 {
        assert_eq!(self.cpus().len(), 1);
        self.report["cpus"][0]["duration_ns"].as_f64().expect("a CPU has a duration") / 1e9
    }

    fn kinds(&self) -> BTreeSet<&str> {
        each(&self.report, "sources").map(|entry| entry["kind"].as_str().expect("a source has a kind")).collect()
    }

    /// By how much one of the kernel's counters grew on the measured CPUs while the loops ran.
    fn growth(&self, counter: &str) -> u64 {
        each(&self.node, "counters")
            .filter(|entry| entry["name"] == counter)
            .map(|entry| entry["growth"].as_u64().expect("a counter has a growth"))
            .sum()
    }

    fn warnings(&self) -> String {
        each(&self.report, "warnings").map(|warning| format!("{warning}\n")).collect()
    }

    /// What must hold of every recording with tracepoints.
    fn assert_whole(&self) {
        assert_eq!(self.rung(), "tracepoints", "{}", self.warnings());
        assert_eq!(self.report["lost_events"], 0);
        assert_eq!(sum(&self.node, "cpus", "lost_events"), 0);
        assert_eq!(sum(&self.node, "cpus", "incomplete"), 0);
        self.assert_books_close();
    }

    /// What the sources took together is what the detours took together, to the nanosecond.
    fn assert_books_close(&self) {
        let detours = self.assert_measured();
        assert_eq!(sum(&self.report, "sources", "total_ns"), detours);
    }

    /// Where the kernel cannot be seen, detours are measured, the kernel's counters are read, and no source is named.
    fn assert_nothing_is_made_up(&self) {
        assert_eq!(self.rung(), "proc");
        self.assert_measured();
        assert_eq!(each(&self.report, "sources").count(), 0, "{}", self.report["sources"]);
        assert!(self.growth("interrupts/LOC") > 0);
    }

    /// Every loop ran and found detours; how long they were together.
    fn assert_measured(&self) -> u64 {
        for cpu in each(&self.node, "cpus") {
            assert!(cpu["iterations"].as_u64() > Some(10_000), "the loop hardly ran: {cpu}");
            assert!(cpu["total_ns"].as_u64() > Some(0), "an emulated CPU without a detour is not believable: {cpu}");
        }
        sum(&self.node, "cpus", "total_ns")
    }

    /// Every timer interrupt that the kernel counted while the loops ran was traced and lies in a detour, within 1 %.
    ///
    /// The kernel's counters are read a little before the loops begin and a little after they end, for which two
    /// interrupts a CPU are allowed, and as many as fit into the time until the loop began.
    fn assert_timer_interrupts_agree(&self) {
        let (traced, counted) = (self.count("irq", "local_timer"), self.growth("interrupts/LOC"));
        let loops = sum(&self.node, "cpus", "duration_ns");
        let before = counted * sum(&self.node, "cpus", "start_ns") / loops;
        let allowed = counted / 100 + 2 * self.cpus().len() as u64 + before;
        println!("becalm found {traced} timer interrupts, the kernel {counted}; {allowed} may differ");
        assert!(traced.abs_diff(counted) <= allowed);
    }
}

fn each<'a>(document: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    document[list].as_array().unwrap_or_else(|| panic!("the document has no list '{list}': {document}")).iter()
}

/// The row of a comparison that tells how often a source came.
fn rate<'a>(comparison: &'a Value, kind: &str, source: &str) -> &'a Value {
    each(comparison, "rows")
        .find(|row| row["what"] == "rate_hz" && row["kind"] == kind && row["source"] == source)
        .unwrap_or_else(|| panic!("{kind} {source} is not compared: {}", comparison["rows"]))
}

fn sum(document: &Value, list: &str, field: &str) -> u64 {
    each(document, list)
        .map(|entry| entry[field].as_u64().unwrap_or_else(|| panic!("no number '{field}' in {entry}")))
        .sum()
}

#[test]
fn the_lab_brings_back_files_and_the_status_of_a_failed_scenario() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.boot(&named("failing"), LIMIT).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.status(), 1);
    assert!(text(&outcome, "release").ends_with("-amd64"), "{}", text(&outcome, "release"));
    assert_eq!(number(&outcome, "cpus"), 2);
    assert_eq!(number(&outcome, "uid"), 0);
    assert!(!outcome.path("after").exists(), "the scenario went on after a failed command");
}

#[test]
fn the_lab_ends_a_guest_that_takes_too_long() {
    let Some(lab) = Lab::open() else { return };
    let error = lab.boot(&named("failing"), Duration::from_millis(500)).expect_err("no kernel boots so fast");
    assert!(matches!(error, LabError::Hang { .. }), "{error}");
}

#[test]
fn an_isolated_cpu_is_measured_and_is_quiet() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("isolated");
    let run = Run::of(&outcome);

    assert_eq!(run.cpus(), [1]);
    assert_eq!(run.node["machine"]["isolated"], "1");
    assert_eq!(run.node["machine"]["nohz_full"], "1");
    run.assert_whole();
    run.assert_timer_interrupts_agree();

    // With its tick, 250 times a second, the CPU would take 1,250 in the 5 s of the recording alone.
    let counted = number(&outcome, "timer_interrupts");
    assert!(counted < 250, "{counted} timer interrupts on a CPU without a tick");
    assert!(run.growth("interrupts/LOC") <= counted);
    // Beside the CPU that kept its tick, which under emulation comes late, but not less than a tenth as often.
    let comparison = json(&outcome.path("compare.json"));
    let tick = rate(&comparison, "irq", "local_timer");
    let (kept, gone) = (tick["a"].as_f64().expect("a rate"), tick["b"].as_f64().expect("a rate"));
    tell(&format!("isolated: {kept:.0} timer interrupts a second on CPU 0, {gone:.1} on CPU 1"));
    assert!(kept > 10.0 * gone, "{tick}");
    assert_eq!(tick["verdict"], "better", "{tick}");
    assert_eq!(text(&outcome, "instances"), "", "a trace instance was left behind");
}

#[test]
fn a_realtime_kernel_is_explained() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("realtime");
    let run = Run::of(&outcome);

    assert_eq!(run.cpus(), [0, 1]);
    run.assert_whole();
    run.assert_timer_interrupts_agree();
    // On PREEMPT_RT softirqs run in threads; they must still be found by name.
    assert!(run.kinds().contains("softirq"), "{:?}", run.kinds());
    let counted = number(&outcome, "timer_interrupts");
    assert!(counted >= 1_000, "{counted} timer interrupts on a CPU with a tick");
    assert_eq!(text(&outcome, "instances"), "", "a trace instance was left behind");
    assert_events_are_the_kernels(&outcome, &run);

    let beside = lab.recorded(&outcome, "beside.becalm");
    beside.assert_whole();
    let osnoise = Osnoise::of(&outcome);
    osnoise.assert_same_sources(&beside);
    osnoise.assert_same_rates(&beside);
}

/// What the kernel's noise meter found on CPU 1 of the same guest, right after becalm and under the same load.
struct Osnoise {
    /// How often interrupts and threads came, a second.
    irq_hz: f64,
    thread_hz: f64,
    /// How often each of them came in all, by name.
    irqs: BTreeMap<String, u64>,
    threads: BTreeMap<String, u64>,
}

impl Osnoise {
    /// Reads the table of `rtla osnoise top` and the events that were recorded meanwhile.
    fn of(outcome: &Outcome) -> Self {
        let table = text(outcome, "rtla");
        println!("rtla osnoise top:\n{table}");
        // CPU, number of periods, runtime, noise, available, longest period, longest, and the counts of hardware, NMI, IRQ,
        // softirq and thread noise; times in microseconds.
        let row: Vec<&str> = table.lines().last().unwrap_or_default().split_whitespace().collect();
        assert!(row.len() == 12 && row[0] == "1", "not as rtla of Linux 6.1 prints it: {table}");
        let cell = |column: usize| row[column].parse::<f64>().unwrap_or_else(|_| panic!("no number: {}", row[column]));
        let seconds = cell(2) / 1e6;
        let (mut irqs, mut threads) = (BTreeMap::new(), BTreeMap::new());
        for line in text(outcome, "osnoise").lines() {
            // `irq_noise: local_timer:236 start ...` and `thread_noise: rcuc/1:27 start ...`
            for (mark, counts) in [(" irq_noise: ", &mut irqs), (" thread_noise: ", &mut threads)] {
                if let Some((_, what)) = line.split_once(mark)
                    && let Some((name, _)) = what.split_once(" start ").and_then(|(what, _)| what.rsplit_once(':'))
                {
                    *counts.entry(name.trim().to_owned()).or_insert(0) += 1;
                }
            }
        }
        Self { irq_hz: cell(9) / seconds, thread_hz: cell(11) / seconds, irqs, threads }
    }

    /// What came often to one of the two, in about as much time, was seen by the other, too, under the same name.
    fn assert_same_sources(&self, becalm: &Run) {
        // What comes 4 times a second is missed for 5 seconds only if it is not seen.
        const OFTEN: u64 = 20;
        let merged = |kinds: &[&str]| {
            let mut counts = BTreeMap::new();
            for (source, count) in kinds.iter().flat_map(|kind| becalm.counts(kind)) {
                *counts.entry(source.to_owned()).or_insert(0) += count;
            }
            counts
        };
        // Threads of the kernel that are bound to a CPU are one source on all CPUs to becalm: `rcuc` for `rcuc/1`.
        let mut threads = BTreeMap::new();
        for (name, count) in &self.threads {
            *threads.entry(name.split('/').next().unwrap_or_default().to_owned()).or_insert(0) += count;
        }
        for (what, osnoise, becalm) in
            [("irq", &self.irqs, merged(&["irq"])), ("thread", &threads, merged(&["kthread", "task", "workqueue"]))]
        {
            println!("{what}: osnoise {osnoise:?}, becalm {becalm:?}");
            for (one, other) in [(osnoise, &becalm), (&becalm, osnoise)] {
                let often = one.iter().filter(|&(_, &count)| count >= OFTEN);
                for (name, count) in often {
                    assert!(other.contains_key(name), "{what} {name} came {count} times to one and never to the other");
                }
            }
            assert!(osnoise.values().any(|&count| count >= OFTEN), "osnoise saw no {what}");
        }
    }

    /// Interrupts and switches to other threads come as often to both, within [`RATES_AGREE`].
    fn assert_same_rates(&self, becalm: &Run) {
        let rate = |kinds: &[&str]| {
            let count: u64 = kinds.iter().flat_map(|kind| becalm.counts(kind).into_values()).sum();
            count as f64 / becalm.seconds()
        };
        for (what, osnoise, becalm) in
            [("interrupts", self.irq_hz, rate(&["irq"])), ("threads", self.thread_hz, rate(&["kthread", "task"]))]
        {
            tell(&format!("realtime: {what} a second on CPU 1: becalm {becalm:.1}, osnoise {osnoise:.1}"));
            assert!((becalm / osnoise).ln().abs() < RATES_AGREE.ln(), "{what}: becalm {becalm}, osnoise {osnoise}");
        }
    }
}

#[test]
fn the_stock_kernel_is_explained_to_root_and_measured_for_a_user() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("stock");

    let root = Run::of(&outcome);
    assert_eq!(root.cpus(), [0, 1]);
    root.assert_whole();
    root.assert_timer_interrupts_agree();
    assert_events_are_the_kernels(&outcome, &root);

    let user = Run::in_folder(&outcome.path("user"));
    assert_eq!(number(&outcome, "user/status"), 0);
    assert_eq!(user.cpus(), [0, 1]);
    user.assert_nothing_is_made_up();
    assert!(!user.warnings().is_empty(), "what a user cannot see must be said");
    assert_eq!(text(&outcome, "instances"), "", "a trace instance was left behind");
}

#[test]
fn a_locked_down_kernel_is_measured_without_its_trace() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("lockdown");
    assert!(text(&outcome, "lockdown").contains("[confidentiality]"), "{}", text(&outcome, "lockdown"));

    let run = Run::of(&outcome);
    assert_eq!(run.cpus(), [0, 1]);
    run.assert_nothing_is_made_up();
    assert!(run.warnings().contains("lockdown"), "the reason must be named: {}", run.warnings());
    assert!(text(&outcome, "audit").contains("lockdown"), "{}", text(&outcome, "audit"));
}

#[test]
fn a_cpu_that_goes_away_ends_its_recording_and_no_more() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("hotplug");
    assert_eq!(text(&outcome, "online"), "0");

    let run = Run::of(&outcome);
    assert_eq!(run.cpus(), [1]);
    run.assert_books_close();
    let cpu = &run.node["cpus"][0];
    assert_eq!(cpu["cut_short"], true, "{cpu}");
    let recorded = cpu["duration_ns"].as_u64().expect("a CPU has a duration");
    assert!((1_000_000_000..6_000_000_000).contains(&recorded), "{recorded} ns before the CPU went away");
    assert_ne!(run.node["ended"], "buffer_full", "the CPU went away, and its buffer was not the reason");
    assert!(run.warnings().contains("offline"), "the reason must be named: {}", run.warnings());
    assert_eq!(text(&outcome, "instances"), "", "a trace instance was left behind");
}

#[test]
fn an_interrupt_that_was_moved_away_is_gone() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("affinity");
    for cpu in [0, 1] {
        assert_eq!(number(&outcome, &format!("effective_on_{cpu}")), cpu);
    }
    let (here, away) = (lab.recorded(&outcome, "on_1.becalm"), lab.recorded(&outcome, "on_0.becalm"));
    here.assert_whole();
    away.assert_whole();
    // It comes up to 100 times a second, as the kernel's own counter says; before and after the loops, too.
    let traced = here.count("irq", "ttyS1");
    assert!(traced >= 30, "{traced} interrupts of a port that was written to for 3 s");
    assert!(traced.abs_diff(here.growth("interrupts/ttyS1")) <= 3 + traced / 50, "{traced}: {}", here.node["counters"]);
    assert!(traced <= number(&outcome, "counted_on_1"));
    assert_eq!((away.count("irq", "ttyS1"), number(&outcome, "counted_on_0")), (0, 0));

    let (a, b) = (outcome.path("on_1.becalm"), outcome.path("on_0.becalm"));
    let comparison = lab.ask(&["compare".as_ref(), a.as_ref(), b.as_ref()]);
    assert_eq!(rate(&comparison, "irq", "ttyS1")["verdict"], "better", "{comparison}");
    assert!(text(&outcome, "managed").contains("Input/output error"), "a managed interrupt could be moved");
}

#[test]
fn throttling_is_told_from_other_noise() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("throttling");
    // What real-time threads may use of a period, and the period, in microseconds.
    assert_eq!(text(&outcome, "throttling"), "950000\n1000000");
    let (throttled, free) = (lab.recorded(&outcome, "throttled.becalm"), lab.recorded(&outcome, "unthrottled.becalm"));
    throttled.assert_whole();
    free.assert_whole();

    let entry = each(&throttled.report, "sources").find(|entry| entry["kind"] == "throttling");
    let entry = entry.unwrap_or_else(|| panic!("no throttling: {}", throttled.report["sources"]));
    assert_eq!(entry["source"], "rt_throttling");
    // Every second once, for 50 ms, in the 4 s; the kernel notices at a tick, which an emulated CPU gets late.
    let count = entry["count"].as_u64().expect("a source has a count");
    let mean_ms = entry["mean_ns"].as_f64().expect("a source has a mean") / 1e6;
    assert!((2..=5).contains(&count), "{entry}");
    assert!((20.0..100.0).contains(&mean_ms), "{entry}");
    assert!(throttled.warnings().contains("throttling"), "{}", throttled.warnings());

    assert!(!free.kinds().contains("throttling"), "{:?}", free.kinds());
    assert!(!free.warnings().contains("throttling"), "{}", free.warnings());
}

#[test]
fn becalm_records_inside_an_isolated_partition() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("partition");
    assert_eq!(text(&outcome, "fresh"), "member");
    let invalid = text(&outcome, "without_cpus");
    assert!(invalid.starts_with("isolated invalid (") && invalid.contains("cpuset.cpus"), "{invalid}");
    let rival = text(&outcome, "with_rival");
    assert!(rival.starts_with("isolated invalid (") && rival.contains("exclusive"), "{rival}");
    assert_eq!(text(&outcome, "made"), "isolated");
    assert_eq!(text(&outcome, "undone"), "member");
    // The partition took the CPU from everybody else, and gave it back.
    assert_eq!(text(&outcome, "effective_before"), "0-1");
    assert_eq!(text(&outcome, "effective_meanwhile"), "0");
    assert_eq!(text(&outcome, "effective_after"), "0-1");
    assert_eq!(text(&outcome, "allowed_outside"), "Cpus_allowed_list:\t0");
    assert_eq!(text(&outcome, "allowed_inside"), "Cpus_allowed_list:\t1");

    let run = lab.recorded(&outcome, "inside.becalm");
    assert_eq!(run.cpus(), [1]);
    run.assert_whole();
    run.assert_timer_interrupts_agree();
    // All of becalm is inside, on the one CPU, and says that its own work shows.
    assert!(run.kinds().contains("self"), "{:?}", run.kinds());
    assert!(run.warnings().contains("collector"), "{}", run.warnings());
}

/// What becalm says it recorded is there, and what it says is missing is not.
fn assert_events_are_the_kernels(outcome: &Outcome, run: &Run) {
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
