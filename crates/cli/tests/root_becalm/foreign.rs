//! Traces that other programs record on this machine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use becalm_linux::procfs::task::Schedstat;
use becalm_linux::sched::{self, Policy};
use becalm_testing::program::{document, path, report, run_becalm, warning_codes};
use becalm_units::CpuId;
use serde_json::Value;

use crate::observe::{number, spin, threads};
use crate::robust::alone;

const TRACING: &str = "/sys/kernel/tracing";
const SWITCHES: &str = "events/sched/sched_switch/enable";

fn write(file: &str, text: &str) {
    fs::write(Path::new(TRACING).join(file), text).unwrap();
}

/// The files of the top level as they were.
struct AsBefore(Vec<(&'static str, String)>);

impl Drop for AsBefore {
    fn drop(&mut self) {
        write("trace", "\n");
        write("trace_clock", "local");
        self.0.iter().for_each(|(file, text)| write(file, text));
    }
}

/// What `trace-cmd record` of these events does while something acts; some kernels refuse it a file that it does not need. The file lists the
/// formats of all events, and has events of these.
fn record(events: &[&'static str], file: &Path, act: impl FnOnce()) {
    let read = |file| (file, fs::read_to_string(Path::new(TRACING).join(file)).unwrap());
    let mut before: Vec<_> = events.iter().copied().chain(["tracing_on"]).map(read).collect();
    // `7 (expanded: 1408)` if it is small until something is traced.
    let (file_of_size, size) = read("buffer_size_kb");
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    before.push((file_of_size, size.rsplit(' ').next().map_or_else(String::new, digits)));
    let _as_before = AsBefore(before);
    // One event needs neither more room nor a clock that all CPUs share; the kernel changes buffers in its own time.
    let larger = [("trace_clock", "mono"), (file_of_size, "16384")].into_iter().filter(|_| events.len() > 1);
    let set_up = [("tracing_on", "0"), ("trace", "\n")].into_iter().chain(larger);
    let enable = events.iter().map(|event| (*event, "1"));
    set_up.chain(enable).chain([("tracing_on", "1")]).for_each(|(file, text)| write(file, text));
    act();
    write("tracing_on", "0");
    let extracted = Command::new("trace-cmd").args(["extract", "-o", path(file)]).output();
    assert!(extracted.expect("trace-cmd is installed").status.success());
}

/// Interrupts that were not recorded are not known: neither is there none of them, nor is every source known.
#[test]
fn what_trace_cmd_did_not_record_is_not_known() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, bundle) = (folder.path().join("trace.dat"), folder.path().join("switches.becalm"));
    // CPUs that were offline lack the switches of their idle tasks; the first one has some, also on a machine that is otherwise idle.
    let wake_often = || {
        sched::pin_current_thread(CpuId::new(0)).unwrap();
        (0..500).for_each(|_| thread::sleep(Duration::from_millis(1)));
    };
    record(&[SWITCHES], &file, || thread::scope(|scope| scope.spawn(wake_often).join().unwrap()));
    run_becalm(&["import", path(&file), "-o", path(&bundle)]).expect(0, &["trace-dat"]);
    let missing = document(&bundle)["tracing"]["missing"].to_string();
    for event in ["irq/irq_handler_entry", "irq/softirq_entry", "irq_vectors/*", "nmi/nmi_handler"] {
        assert!(missing.contains(event), "{event}: {missing}");
    }
    let report = report(&bundle);
    assert!(warning_codes(&report).contains(&"missing_events"), "{report:#}");
    assert!(report["checked"].is_null() && report["lost_events"].is_null(), "{report:#}");
    let sources = report["sources"].as_array().unwrap();
    assert!(!sources.is_empty(), "threads of the kernel ran: {report:#}");
    assert!(sources.iter().all(|source| source["kind"] == "kthread"), "{sources:#?}");
    let text = run_becalm(&["report", path(&bundle), "--full"]).stdout;
    for words in ["not seen irq/irq_handler_entry", "some of the kernel's tracepoints alone", "dropped  not known"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for words in ["every source by its name", "dropped  no events", "Loops that measured"] {
        assert!(!text.contains(words), "{words}: {text}");
    }
}

/// `perf sched record` until it is ended. It has perf's own events, and one more that shows when a woken thread is on a run queue.
struct PerfSched(Child);

impl PerfSched {
    fn start(file: &Path) -> Self {
        let mut perf = Command::new("perf");
        perf.args(["sched", "record", "-m", "4096", "-e", "sched:sched_wakeup", "-o", path(file)]);
        let perf = perf.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let started = Self(perf.expect("perf is installed"));
        thread::sleep(Duration::from_secs(2));
        started
    }

    fn end(mut self) {
        let interrupt = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status().unwrap();
        assert!(interrupt.success());
        self.0.wait().unwrap();
    }
}

/// Three threads of CPU 0 that work in short bursts when they are let go, next to one that never sleeps.
#[derive(Debug)]
struct Planted {
    start: Barrier,
    end: Barrier,
    stop: AtomicBool,
}

impl Planted {
    const WORKERS: usize = 3;

    fn new() -> Self {
        let [start, end] = [(); 2].map(|()| Barrier::new(Self::WORKERS + 1));
        Self { start, end, stop: AtomicBool::new(false) }
    }

    /// A thread that works; it first sends its number.
    fn work(&self, numbers: &mpsc::Sender<i32>) {
        sched::pin_current_thread(CpuId::new(0)).unwrap();
        // If a wake-up preempts, the kernel accounts the switch as if it came at once, before the rest of the interrupt.
        sched::set_policy(Policy::Batch).unwrap();
        numbers.send(sched::current_tid()).unwrap();
        self.start.wait();
        while !self.stop.load(Ordering::Relaxed) {
            spin(Duration::from_micros(300));
            thread::sleep(Duration::from_millis(5));
        }
        self.end.wait();
    }

    /// Lets the threads work while `trace` acts; returns what the kernel accounted to each: they sleep at both looks.
    fn during(self, trace: impl FnOnce(&dyn Fn())) -> BTreeMap<i64, Schedstat> {
        let accounts = RefCell::new(BTreeMap::new());
        thread::scope(|scope| {
            let (numbers, started) = mpsc::channel();
            let named = |name: &str| thread::Builder::new().name(name.to_owned());
            let planted = &self;
            for _ in 0..Self::WORKERS {
                let numbers = numbers.clone();
                named("im-worker").spawn_scoped(scope, move || planted.work(&numbers)).unwrap();
            }
            let busy = || {
                sched::pin_current_thread(CpuId::new(0)).unwrap();
                while !planted.stop.load(Ordering::Relaxed) {
                    spin(Duration::from_millis(10));
                }
            };
            named("im-busy").spawn_scoped(scope, busy).unwrap();
            let tids: Vec<i32> = (0..Self::WORKERS).map(|_| started.recv().unwrap()).collect();
            let look = || tids.iter().map(|tid| Schedstat::read(Path::new("/"), *tid).unwrap()).collect::<Vec<_>>();
            trace(&|| {
                thread::sleep(Duration::from_millis(200));
                let before = look();
                self.start.wait();
                thread::sleep(Duration::from_secs(2));
                self.stop.store(true, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(200));
                for ((tid, first), last) in tids.iter().zip(before).zip(look()) {
                    let (ran, waited, runs) =
                        (last.ran - first.ran, last.waited - first.waited, last.runs - first.runs);
                    accounts.borrow_mut().insert(i64::from(*tid), Schedstat { ran, waited, runs });
                }
            });
            self.end.wait();
        });
        accounts.into_inner()
    }
}

/// What `perf sched timehist` says of the threads of a file: how often each came to a CPU, and its time there in microseconds.
fn timehist(file: &Path) -> BTreeMap<i64, (i64, i64)> {
    let output = Command::new("perf").args(["sched", "timehist", "--summary", "-i", path(file)]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |line: &str| {
        // name[thread/process], parent, times, milliseconds
        let (_, rest) = line.trim_start().strip_prefix("im-worker[")?.split_once(char::is_whitespace)?;
        let tid = line.split(['[', '/']).nth(1)?.parse().ok()?;
        let mut numbers = rest.split_whitespace().skip(1);
        let (count, time) = (numbers.next()?.parse().ok()?, numbers.next()?.parse::<f64>().ok()?);
        Some((tid, (count, (time * 1e3) as i64)))
    };
    text.lines().filter_map(row).collect()
}

/// The observed threads of a file, compared with the kernel's accounts.
fn compared(file: &Path, accounts: &BTreeMap<i64, Schedstat>) -> Value {
    let bundle = file.with_extension("becalm");
    run_becalm(&["import", path(file), "--comm", "im-worker", "-o", path(&bundle)]).expect(0, &[]);
    let doc = document(&bundle);
    assert_eq!((threads(&doc).len(), number(&doc, "lost_events")), (accounts.len(), 0), "{doc:#}");
    let lacking = number(&doc, "repaired_switches") + number(&doc, "unknown_switches");
    for thread in threads(&doc) {
        let account = &accounts[&number(thread, "tid")];
        let runs = account.runs as i64;
        let host: i64 = thread["ran"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|part| part["kind"] == "host")
            .map(|part| number(part, "ns"))
            .sum();
        let [ran, queued] = [number(thread, "ran_ns") - host, number(thread, "queued_ns")];
        let switches = number(thread, "switches");
        eprintln!(
            "{}: {lacking} lack; {switches} switches ({runs}), unknown {}, ran {ran} ns ({}), queued {queued} ns ({})",
            file.display(),
            number(thread, "unknown_ns"),
            account.ran,
            account.waited
        );
        let near =
            |ours: i64, kernels: i64, percent: i64| (ours - kernels).abs() <= 5_000 * runs + kernels * percent / 100;
        assert!(
            switches > 100 && (switches - runs).abs() <= lacking,
            "{switches} of {runs} switches, and {lacking} lack"
        );
        assert!(near(ran, account.ran.get(), 2), "ran {ran} ns, by the kernel {}", account.ran);
        assert!(near(queued, account.waited.get(), 1), "queued {queued} ns, by the kernel {}", account.waited);
    }
    run_becalm(&["report", path(&bundle)]).expect(0, &[]);
    doc
}

/// One program at a time: the kernel reads its clock before each writes the switch.
#[test]
fn waits_in_traces_of_others_are_those_of_the_kernel() {
    const EVENTS: [&str; 3] = ["events/sched/enable", "events/irq/enable", "events/irq_vectors/enable"];
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [dat, data] = ["trace.dat", "perf.data"].map(|name| folder.path().join(name));
    let accounts = Planted::new().during(|act| record(&EVENTS, &dat, act));
    assert_eq!(accounts.len(), Planted::WORKERS);
    compared(&dat, &accounts);
    let accounts = Planted::new().during(|act| {
        let perf = PerfSched::start(&data);
        act();
        perf.end();
    });
    let doc = compared(&data, &accounts);
    let told = timehist(&data);
    let lacking = number(&doc, "repaired_switches") + number(&doc, "unknown_switches");
    for thread in threads(&doc) {
        // perf tells which threads belong to a process.
        assert_eq!(number(thread, "process"), i64::from(std::process::id()));
        let (count, micros) = told[&number(thread, "tid")];
        let (switches, ran) = (number(thread, "switches"), number(thread, "ran_ns"));
        eprintln!("perf sched timehist: {count} times {micros} us on a CPU; {switches} times {ran} ns");
        assert!((switches - count).abs() <= lacking, "{switches}, and perf counts {count}");
        // perf gives the time up to the next switch of the CPU to the thread whose own switch the trace lacks: a tick of 4 ms at most.
        let most = 5 * count + ran / 50_000 + if lacking > 0 { 4_000 } else { 0 };
        assert!((ran / 1_000 - micros).abs() <= most, "{ran} ns on a CPU, and {micros} us by perf");
    }
}
