use super::*;
use becalm_linux::clock::{Anchor, MonotonicRaw};
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_measure::{Disturbance, Drained, Names};
use becalm_model::node::TracingDoc;
use becalm_model::{Event, Happening, Label};
use becalm_units::CpuId;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::os::fd::BorrowedFd;

use crate::config::WatchConfig;
use crate::exposition::{Exposition, text};
use crate::feed::Failure;
use crate::request::Format;
use crate::trace::{Take, Trace};

/// A trace with one interrupt on its first CPU in the first read, and this many events in total.
struct PlantedTrace {
    names: Names,
    doc: TracingDoc,
    interrupt: Nanos,
    events: u64,
    readings: u32,
    /// The read at which it is changed, and how that is seen.
    changes: Option<(u32, Disturbance)>,
    /// The first read at which it contains what the kernel counted.
    confirmed: u32,
}

impl PlantedTrace {
    fn new(interrupt: Nanos, events: u64) -> Self {
        let doc = TracingDoc {
            clock: "planted".to_owned(),
            events: Vec::new(),
            missing: Vec::new(),
            buffer_bytes: 0,
            event_cost_ns: None,
            changed: None,
            causes: None,
        };
        Self {
            names: Names::new(Path::new("/nowhere")),
            doc,
            interrupt,
            events,
            readings: 0,
            changes: None,
            confirmed: u32::MAX,
        }
    }
}

impl Trace for PlantedTrace {
    fn event_cost(&self) -> Nanos {
        Nanos::from_micros(1)
    }

    fn doc(&self) -> &TracingDoc {
        &self.doc
    }

    fn origin(&self) -> Anchor {
        Anchor::take::<MonotonicRaw>()
    }

    fn now(&self) -> Nanos {
        Nanos::from_secs(i64::from(self.readings))
    }

    fn symbols(&self) -> Option<&Arc<Kallsyms>> {
        None
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn knows_many(&self) -> bool {
        false
    }

    fn forget_names(&mut self, _: &Path) {}

    fn read_symbols(&mut self, _: &Path) {}

    fn filling(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn turn(&mut self, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn disturbance(&self) -> Option<Disturbance> {
        let (reading, disturbance) = self.changes.as_ref()?;
        (self.readings >= *reading).then(|| disturbance.clone())
    }

    fn is_confirmed(&self) -> bool {
        self.readings >= self.confirmed
    }

    fn drain(&mut self, take: &mut Take<'_>) -> io::Result<Drained> {
        self.readings += 1;
        let (source, detail) = (self.names.labels.intern("disk"), Label::EMPTY);
        let event = |time, what| Event { time, thread: Pid(7), in_interrupt: false, what };
        let start = Nanos::from_micros(10);
        let interrupt = [
            event(start, Happening::IrqEntry { source, detail }),
            event(start + self.interrupt, Happening::IrqExit { source, detail }),
        ];
        let events = if self.readings == 1 { &interrupt[..] } else { &[] };
        take(0, events, &mut self.names);
        Ok(Drained { events: if self.readings == 1 { self.events } else { 0 }, lost: 0, broken: 0 })
    }
}

fn settings(text: &str) -> WatchSettings {
    WatchConfig::parse(text).unwrap().settle().unwrap()
}

/// Runs a watcher with these settings and a fake trace, which cannot record, and collects its messages.
fn with_watcher<T>(
    text: &str,
    open: impl FnMut(&CpuList) -> Result<Box<dyn Trace>, String>,
    act: impl FnOnce(&mut Watcher<'_>, &RefCell<Vec<String>>) -> T,
) -> T {
    let nowhere = Path::new("/nowhere");
    let session = Session::begin(nowhere, false).unwrap();
    let said = RefCell::new(Vec::new());
    let around = Surroundings {
        plan: &|| RecordPlan { root: nowhere.to_owned(), ..RecordPlan::new() },
        reload: &|| Err("nothing is reloaded".to_owned()),
        say: &|text| {
            said.borrow_mut().push(text.to_owned());
            true
        },
        voice: None,
        instead_of_sleep: None,
    };
    let settings = settings(text);
    let observer = Observer::new(Box::new(open), settings.budget, nowhere);
    let shared = Arc::new(Shared::new(Totals::new(settings.budget)));
    // Enough is saved for any test.
    shared.skip(Nanos::from_secs(3_600));
    act(&mut Watcher::new(&session, settings, observer, shared, vec![Pid(1)], &around), &said)
}

fn stat(cpus: u32) -> Stat {
    let lines: Vec<String> = (0..cpus).map(|cpu| format!("cpu{cpu} 1 0 0 9")).collect();
    Stat::parse(&lines.join("\n"), 100).unwrap()
}

#[test]
fn an_alert_is_raised_by_the_look_that_sends_the_trace_to_rest() {
    // Half of an hour's budget is 1.8 s; at 1 us each these events are far above it.
    let planted = |_: &CpuList| -> Result<Box<dyn Trace>, String> {
        Ok(Box::new(PlantedTrace::new(Nanos::from_millis(2), 10_000_000)))
    };
    with_watcher("trigger = detour>1ms", planted, |watcher, said| {
        watcher.observe(&stat(1));
        assert_eq!(watcher.look_at_the_trace(), SignalRequest::Nothing);
        assert!(watcher.observer.longest().is_none());
        // The previous call switched it on. The cost of the events leaves nothing for a recording.
        assert_eq!(watcher.look_at_the_trace(), SignalRequest::Nothing);
        assert_eq!(watcher.shared.totals().traced.rests, 1);
        let longest = watcher.observer.longest().expect("what the last reading found");
        assert_eq!((longest.duration, longest.source.as_str()), (Nanos::from_millis(2), "disk"));
        assert_eq!((watcher.shared.totals().traced.alerts, said.borrow().len()), (1, 0));
    });
}

#[test]
fn an_interval_in_which_others_change_the_trace_does_not_count_and_it_is_set_up_again() {
    let opened = Cell::new(0_u64);
    let planted = |_: &CpuList| -> Result<Box<dyn Trace>, String> {
        opened.set(opened.get() + 1);
        // The first two are changed at their first read, which has an interruption.
        let changes = (opened.get() < 3).then(|| (1, Disturbance::Files(vec!["tracing_on".to_owned()])));
        Ok(Box::new(PlantedTrace { changes, ..PlantedTrace::new(Nanos::from_millis(2), 10) }))
    };
    let traced = |watcher: &Watcher<'_>| {
        let mut out = Exposition::default();
        watcher.shared.totals().traced.tell(&mut out);
        text(&out.end(), Format::OpenMetrics)
    };
    with_watcher("", planted, |watcher, said| {
        for round in 1..=2 {
            watcher.observe(&stat(1));
            watcher.look_at_the_trace();
            watcher.look_at_the_trace();
            assert_eq!((opened.get(), watcher.shared.totals().traced.disturbed), (round, round));
            assert!(watcher.observer.longest().is_none() && watcher.observer.remembered().is_none());
            assert!(!traced(watcher).contains("becalm_traced_seconds_total{"), "{}", traced(watcher));
        }
        // It is reported once.
        assert_eq!(said.borrow().len(), 1, "{said:?}");
        assert!(said.borrow()[0].starts_with("another program changed becalm's trace (tracing_on)"), "{said:?}");
        watcher.observe(&stat(1));
        watcher.look_at_the_trace();
        watcher.look_at_the_trace();
        assert_eq!((opened.get(), watcher.shared.totals().traced.disturbed), (3, 2));
        assert!(watcher.observer.longest().is_some());
        // Its clock advances by a second with each reading.
        watcher.look_at_the_trace();
        assert!(traced(watcher).contains("becalm_traced_seconds_total{cpu=\"0\"} 1.0"), "{}", traced(watcher));
    });
}

#[test]
fn a_trace_that_lacks_what_the_kernel_counted_is_set_up_again_unless_that_does_not_help() {
    let lack = Disturbance::Softirqs { cpu: CpuId::new(0), counted: 900, found: 100 };
    let opened = Cell::new(0_u64);
    let planted = |_: &CpuList| -> Result<Box<dyn Trace>, String> {
        opened.set(opened.get() + 1);
        // Each lacks something in the end; the third from its start.
        let (changes, confirmed) = if opened.get() < 3 { (3, 1) } else { (1, u32::MAX) };
        let changes = Some((changes, lack.clone()));
        Ok(Box::new(PlantedTrace { changes, confirmed, ..PlantedTrace::new(Nanos::ZERO, 10) }))
    };
    with_watcher("", planted, |watcher, said| {
        for _ in 0..40 {
            watcher.observe(&stat(1));
            watcher.look_at_the_trace();
        }
        assert_eq!((opened.get(), watcher.shared.totals().traced.disturbed), (3, 2));
        let said = said.borrow();
        let [first, last] = &said[..] else { panic!("{said:?}") };
        let lack = "the kernel counted 900 softirqs on CPU 0, and becalm's trace holds 100 of them";
        assert!(first.starts_with(&format!("{lack}: that time counts as not traced")), "{first}");
        assert!(last.ends_with(&format!("any more: {lack}, also after it was set up again")), "{last}");
    });
}

#[test]
fn a_reload_with_fewer_cpus_sets_the_trace_up_for_those_alone() {
    let asked = RefCell::new(Vec::new());
    let planted = |cpus: &CpuList| -> Result<Box<dyn Trace>, String> {
        asked.borrow_mut().push(cpus.to_string());
        Ok(Box::new(PlantedTrace::new(Nanos::ZERO, 0)))
    };
    with_watcher("", planted, |watcher, _| {
        watcher.observe(&stat(4));
        watcher.observe(&stat(4));
        // One that goes away may come back.
        watcher.observe(&stat(3));
        watcher.reload(Ok(settings("cpus = 1-2")));
        watcher.observe(&stat(4));
        assert_eq!(watcher.observer.remembered().unwrap().1.map(|cpu| cpu.cpu.get()).collect::<Vec<_>>(), [1, 2]);
        watcher.reload(Ok(settings("trace = no")));
        watcher.observe(&stat(4));
        assert!(watcher.observer.remembered().is_none());
    });
    assert_eq!(*asked.borrow(), ["0-3", "1-2"]);
}

#[test]
fn the_trace_is_set_up_once_that_is_saved() {
    let opened = Cell::new(0);
    let planted = |_: &CpuList| -> Result<Box<dyn Trace>, String> {
        opened.set(opened.get() + 1);
        Err("it cannot be had".to_owned())
    };
    // The cost of this process so far is within the budget, and the setup is not.
    let text = format!("budget = {:.6}%", 100.0 * (usage::cpu_time() + Nanos::from_millis(20)).get() as f64 / 3.6e12);
    with_watcher(&text, planted, |watcher, said| {
        watcher.observe(&stat(2));
        assert_eq!((opened.get(), said.borrow().len()), (0, 0));
        watcher.shared.skip(Nanos::from_secs(1_000_000));
        (0..3).for_each(|_| watcher.observe(&stat(2)));
        // If it is impossible, it is only tried again after a reload.
        assert_eq!((opened.get(), said.borrow().len()), (1, 1));
    });
}

#[test]
fn a_disk_that_is_full_again_and_again_is_said_once() {
    let none = |_: &CpuList| -> Result<Box<dyn Trace>, String> { Err("not wanted".to_owned()) };
    let folder = tempfile::tempdir().unwrap();
    with_watcher("trace = no", none, |watcher, said| {
        watcher.ring = Some(Ring::open(folder.path()).unwrap());
        for round in 0..50 {
            let path = watcher.ring.as_mut().unwrap().next(Holds::Window);
            let why = format!("cannot write {}/a: no space left on device", path.display());
            // Every other one uses the space that the previous one freed.
            let failure = (round % 2 == 0).then_some(Failure { why, disk_is_full: true });
            watcher.keep(&path, Holds::Window, failure);
            watcher.shared.skip(Nanos::from_secs(300));
        }
        assert_eq!(watcher.shared.totals().store_failures, 25);
        assert_eq!(said.borrow().len(), 1, "{said:?}");
        assert!(said.borrow()[0].contains("00000001-window.becalm/a: no space left"), "{said:?}");
        // After a quiet time it is reported again.
        watcher.shared.skip(Nanos::from_secs(4_000));
        let path = watcher.ring.as_mut().unwrap().next(Holds::Window);
        let failure = Failure { why: "no space left".to_owned(), disk_is_full: true };
        watcher.keep(&path, Holds::Window, Some(failure));
        assert_eq!(said.borrow().len(), 2);
    });
}

#[test]
fn a_machine_with_work_to_do_is_left_alone_until_it_is_idle() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("proc")).unwrap();
    // Hundredths of a second since the start: in each interval 11 of one kind of time, and 89 idle.
    let ticks = RefCell::new([0_u64; 8]);
    let tell = |busy: usize| {
        let mut ticks = ticks.borrow_mut();
        ticks[busy] += 11;
        ticks[3] += 89;
        let fields = ticks.map(|ticks| ticks.to_string()).join(" ");
        std::fs::write(root.path().join("proc/stat"), format!("cpu0 {fields}\nctxt 1\n")).unwrap();
    };
    tell(0);
    let session = Session::begin(root.path(), false).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // A response is reused for half a second, separately for each format.
    let counts = |result: &str, format: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "GET /metrics HTTP/1.0\r\nAccept: {format}\r\n\r\n").unwrap();
        let text = std::io::read_to_string(stream).unwrap();
        let series = format!("becalm_windows_total{{result=\"{result}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok()).unwrap()
    };
    let looks = Cell::new(0);
    let around = Surroundings {
        plan: &|| RecordPlan { root: root.path().to_owned(), ring_bytes: 1 << 20, sources: false, ..RecordPlan::new() },
        reload: &|| Err("nothing is reloaded".to_owned()),
        say: &|text| panic!("unexpected message: {text}"),
        voice: None,
        instead_of_sleep: Some(&|_| {
            looks.set(looks.get() + 1);
            // User, system, irq, softirq and steal are work of others; idle and iowait are not.
            tell([0, 2, 5, 6, 7, 4].get(looks.get() / 3).copied().unwrap_or(3));
            if looks.get() == 15 {
                assert_eq!(counts("measured", "text/plain"), 0);
            }
            looks.get() < 20
        }),
    };
    let settings = settings("window = 10ms\nbudget = 100%\nbusy = 10%\ntrace = no\ninterval = 1h");
    watch(&session, settings, listener, &around).unwrap();
    let [busy, measured, failed] =
        ["busy", "measured", "failed"].map(|result| counts(result, "application/openmetrics-text"));
    assert!(busy >= 12 && measured >= 2 && failed == 0, "{busy} busy, {measured} measured, {failed} failed");
}
