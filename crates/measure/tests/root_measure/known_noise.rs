//! Known noise is found: makers that log what they do, beside recordings. Needs root and two CPUs; the last online CPU
//! is measured, noise comes from the first.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use becalm_linux::clock::{Anchor, Calibration, Native};
use becalm_linux::ftrace::{Faults, Instance, InstanceConfig, TraceClock, Tracefs, WANTED};
use becalm_linux::perf::CpuClock;
use becalm_linux::realtime::RealTimeLimits;
use becalm_linux::sched::{Policy, ThreadUsage, allowed_cpus, current_tid, pin_current_thread};
use becalm_linux::signals::StopSignals;
use becalm_measure::loops::acquire::{Lengths, LoopTally, acquire};
use becalm_measure::loops::ring::Ring;
use becalm_measure::{Batch, Collector, EventClock, HandOver, Names, Pauses, RecordPlan, Sink, TraceSide, Translator};
use becalm_model::node::{Ended, NodeDoc};
use becalm_model::{Activity, Detour, Kind, LoopThread, Pid, Platform};
use becalm_record::{Lane, MemoryStore, Session};
use becalm_testing::{Need, machine_has};
use becalm_units::{CpuId, CpuList, Nanos, TickRate, Ticks, TicksToNanos};

use crate::makers::{burn_until, faults, flood, gremlin, hotplug, ipi, now};
use crate::recording::{Recorded, assert_within_a_hundredth, recorded};

/// The CPU where noise is made from, and the one that is measured.
fn cpus() -> (CpuId, CpuId) {
    let allowed = allowed_cpus().expect("the kernel tells where we may run");
    let first = allowed.iter().next().expect("we run somewhere");
    (first, allowed.iter().last().unwrap_or(first))
}

fn plan(cpu: CpuId, seconds: i64) -> RecordPlan {
    let mut plan = RecordPlan::new();
    plan.cpus = Some([cpu].into_iter().collect());
    plan.duration = Some(Nanos::from_secs(seconds));
    plan
}

#[test]
fn every_burst_of_the_gremlin_is_found_by_name() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let (_, cpu) = cpus();
    let start = Anchor::take::<Native>();
    std::thread::sleep(Duration::from_millis(100));
    let rate = Calibration::from_anchors::<Native>(&start, &Anchor::take::<Native>()).expect("the counter runs").rate;
    let maker = gremlin::start(cpu, rate);
    let run = recorded(plan(cpu, 8));
    let bursts = maker.stop();

    let axis = run.axis();
    let (index, doc) = run.cpu(cpu);
    let all = &run.memory.lanes[index].activities;
    let found = run.activities(cpu, Kind::Task, "gremlin");
    let (mut seen, mut not_traced) = (Vec::new(), 0_usize);
    for burst in bursts {
        let (start, end) = (axis.instant(burst.start), axis.instant(burst.end));
        if start < doc.start_ns + Nanos::from_millis(1) || end > doc.start_ns + doc.duration_ns - Nanos::from_millis(1)
        {
            continue;
        }
        // The burst's own row began when the thread was switched in, just before its first reading.
        let row = found.iter().rfind(|row| row.start <= start).unwrap_or_else(|| panic!("no gremlin before {start}"));
        // The row before is an interval away.
        if start - row.start >= Nanos::from_millis(100) {
            // A busy kernel leaves switches out of its trace. That time has no name, and above all not another's.
            let meets = |other: &Activity| other.start < end && other.start + other.self_time > start;
            let unknown = all.iter().any(|other| other.kind == Kind::NotTraced && meets(other));
            assert!(unknown, "the burst at {start} has no row of its own");
            not_traced += 1;
            continue;
        }
        // Its log does not know of interrupts that hit the burst itself; the books do.
        let nested = |other: &&Activity| {
            matches!(other.kind, Kind::Irq | Kind::Softirq | Kind::Nmi) && other.start >= row.start && other.start < end
        };
        let inside: Nanos = all.iter().filter(nested).map(|other| other.self_time).sum();
        let logged = end - start;
        // What lies between being switched in and the first reading is the kernel's way back to user space.
        let off = row.self_time + inside - (start - row.start) - logged;
        let said = format!(
            "burst at {start}, switched in {} before: {} and {inside} nested, its own log says {logged}",
            start - row.start,
            row.self_time
        );
        seen.push((off, logged, start - row.start, said));
    }
    let checked = seen.len();
    assert!(checked >= 50, "only {checked} bursts in 8 s");
    assert!(not_traced <= checked / 10, "{not_traced} bursts, and {checked} more, lie in time that was not traced");
    // Logging and going to sleep belong to the row as well, and are not in the log. They take some microseconds, and on a
    // virtual machine, which leaves it to set a timer, tens of them, or more while its host is busy.
    let mut offs: Vec<Nanos> = seen.iter().map(|(off, ..)| *off).collect();
    offs.sort_unstable();
    let usual = offs[checked / 2];
    assert!((0..gremlin::BURST.get() / 10).contains(&usual.get()), "bursts end with {usual} more than their log");
    let bursts_that = |is_off: &dyn Fn(Nanos, Nanos, Nanos) -> bool| -> Vec<&str> {
        let off = seen.iter().filter(|(off, logged, before, _)| {
            let allowed = Nanos::new(logged.get() / 50).max(Nanos::from_micros(1));
            is_off(*off - usual, allowed, *before)
        });
        off.map(|(.., said)| said.as_str()).collect()
    };
    let short = bursts_that(&|off, allowed, _| off < -allowed);
    assert!(short.len() <= checked / 50, "{} of {checked} bursts lack time:\n{}", short.len(), short.join("\n"));
    // A hypervisor that takes the CPU just before or after a burst is in the row and not in the log.
    let missed =
        bursts_that(&|off, allowed, before| off.get().abs() > allowed.get() || before > Nanos::from_micros(200));
    assert!(missed.len() <= checked / 4, "{} of {checked} bursts are off:\n{}", missed.len(), missed.join("\n"));
    eprintln!(
        "gremlin: {checked} bursts and {not_traced} not traced, {} of them within 2 % of their own log and the {usual} beyond it",
        checked - missed.len()
    );
}

#[test]
fn every_timer_interrupt_is_found_whatever_it_is_for() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let (_, cpu) = cpus();
    let clock = CpuClock::start(cpu, 5_000).expect("root may open a perf event on a CPU");
    let run = recorded(plan(cpu, 3));
    drop(clock);
    // A further function of an interrupt has a row of its own, which begins where the one before ends.
    let mut rows: Vec<Activity> = Vec::new();
    for source in run.sources(cpu, Kind::Irq) {
        if source == "tick" || source == "local_timer" || source.starts_with("timer:") {
            rows.extend(run.activities(cpu, Kind::Irq, &source));
        }
    }
    rows.sort_unstable_by_key(|row| row.start);
    let further = rows.windows(2).filter(|pair| pair[0].start + pair[0].self_time >= pair[1].start).count();
    let found = (rows.len() - further) as u64;
    assert!(found > 12_000, "{found} timer interrupts in 3 s");
    assert_within_a_hundredth("timer interrupts", found, run.growth(cpu, "interrupts/LOC"));
}

#[test]
fn storms_of_interprocessor_interrupts_are_function_calls() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let (from, cpu) = cpus();
    // One interrupt may bring several functions.
    let calls = |run: &Recorded| {
        let sources = run.sources(cpu, Kind::Irq).into_iter();
        let calls = sources.filter(|source| source.starts_with("call_function") || source.starts_with("ipi:"));
        calls.map(|source| run.activities(cpu, Kind::Irq, &source).len() as u64).sum::<u64>()
    };
    // Real-time loops, as the storms hit only while a thread of this very process runs.
    let plan = || RecordPlan { policy: Policy::Fifo(2), ..plan(cpu, 2) };
    let maker = ipi::mprotect_storm(from, Duration::from_micros(200));
    let run = recorded(plan());
    maker.stop();
    assert!(calls(&run) > 1_000, "{} calls", calls(&run));
    assert_within_a_hundredth("mprotect storm", calls(&run), run.growth(cpu, "interrupts/CAL"));

    // Whether a membarrier interrupts the CPU is for the kernel to decide, by what it believes to run there; some kernels
    // are wrong for whole recordings. Whatever it sends must be found; a recording that it sends nothing to is repeated.
    for barrier in [ipi::Barrier::Private, ipi::Barrier::Global] {
        for _ in 0..4 {
            let maker = ipi::membarrier_storm(from, barrier, Duration::from_micros(200));
            let run = recorded(self::plan(cpu, 1));
            let sent = maker.stop();
            let counted = run.growth(cpu, "interrupts/CAL");
            eprintln!("membarrier storm: {} found of {counted} counted, {sent} sent", calls(&run));
            assert!(calls(&run).abs_diff(counted) <= counted / 100 + 12, "{} of {counted}", calls(&run));
            if counted > 300 {
                break;
            }
        }
    }
}

#[test]
fn a_flood_of_datagrams_is_net_rx() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let (from, cpu) = cpus();
    let maker = flood::start(from, cpu, Duration::from_micros(200));
    let run = recorded(plan(cpu, 2));
    maker.stop();
    let found = run.activities(cpu, Kind::Softirq, "net_rx").len() as u64;
    assert!(found > 1_000, "{found} times net_rx");
    assert_within_a_hundredth("net_rx", found, run.growth(cpu, "softirqs/NET_RX"));
}

#[test]
fn realtime_throttling_is_named() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let limit = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").expect("the limit can be read");
    let runtime: i64 = limit.trim().parse().expect("the limit is a number");
    assert!(runtime > 0, "this machine does not throttle real-time threads: sched_rt_runtime_us is {runtime}");
    let (_, cpu) = cpus();
    // Where somebody wants the CPU all the while, it never idles in what the limit leaves free, so a busy machine gets
    // more than one chance.
    let is_throttled = |run: &Recorded| !run.activities(cpu, Kind::Throttling, "rt_throttling").is_empty();
    let run = (0..4)
        .map(|_| recorded(RecordPlan { policy: Policy::Fifo(80), ..plan(cpu, 6) }))
        .find(is_throttled)
        .expect("no throttling was seen in four times 6 s of a real-time loop");
    let (index, doc) = run.cpu(cpu);
    // What the limit lets in is either nobody, which is throttling, or whoever waited for the CPU meanwhile.
    let throttled = run.activities(cpu, Kind::Throttling, "rt_throttling");
    let idle: Nanos = throttled.iter().map(|row| row.self_time).sum();
    let let_in = |row: &&Activity| matches!(row.kind, Kind::Task | Kind::Kthread | Kind::Workqueue | Kind::Throttling);
    let others: Nanos = run.memory.lanes[index].activities.iter().filter(let_in).map(|row| row.self_time).sum();
    // 50 ms of each second; the first period may pass without. The CPU's fair server may let others in for as long again.
    let expected = Nanos::from_micros(1_000_000 - runtime).get() * doc.duration_ns.get() / 1_000_000_000;
    let share = others.get() as f64 / expected as f64;
    let limits = RealTimeLimits::read(Path::new("/"), [cpu]).held_up().len() as f64;
    assert!((0.6..1.3 * limits).contains(&share), "{idle} idle, {others} in all, of {}ns to be expected", expected);
    eprintln!("throttling: {} times, {idle} idle, {others} with those let in", throttled.len());
}

#[test]
fn another_cpu_going_offline_is_seen_and_harms_nothing() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    // Only the last CPU can be taken offline on most machines, so the first is measured.
    let (measured, other) = cpus();
    let puller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1500));
        let gone = hotplug::offline(other);
        std::thread::sleep(Duration::from_millis(500));
        gone.map(drop)
    });
    let run = recorded(plan(measured, 4));
    puller.join().expect("the puller ends").expect("the last CPU can be taken offline and back");
    let (index, doc) = run.cpu(measured);
    assert!(
        doc.duration_ns >= Nanos::from_millis(3800) && !doc.cut_short,
        "the recording ended early: {}",
        doc.duration_ns
    );
    // Taking a CPU down stops the machine: the stopper threads of all CPUs run.
    let names: Vec<&str> = run.memory.lanes[index]
        .activities
        .iter()
        .filter(|row| row.kind == Kind::Kthread)
        .map(|row| run.memory.labels.text(row.source))
        .collect();
    assert!(names.contains(&"migration"), "no stopper thread among {names:?}");
}

/// What one CPU gave, attributed batch by batch.
struct OneCpu {
    lane: Lane,
    detours: Vec<Detour>,
    activities: Vec<Activity>,
}

impl Sink for OneCpu {
    type Error = std::convert::Infallible;

    fn begin(&mut self, _: &NodeDoc, _: &[LoopThread], _: &mut Names) -> Result<(), Self::Error> {
        Ok(())
    }

    fn batch(&mut self, batch: Batch<'_>, names: &mut Names, _: &mut dyn FnMut()) -> Result<(), Self::Error> {
        let part = self.lane.attribute(batch, &names.tasks, &mut names.labels);
        self.detours.extend_from_slice(part.detours);
        self.activities.extend_from_slice(part.activities);
        Ok(())
    }

    fn end_segment(&mut self, _: &Names, _: &mut dyn FnMut()) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// A trace of this CPU, stamped with the counter; not started yet.
fn trace_of(root: &Path, cpu: CpuId) -> Instance {
    let tracefs = Tracefs::find_or_mount(root, Path::new(Tracefs::MOUNT_POINT), None).expect("tracefs is there");
    let only: CpuList = [cpu].into_iter().collect();
    let config = InstanceConfig {
        cpus: only,
        clock: TraceClock::X86Tsc,
        buffer_kb: 16384,
        subbuf_kb: None,
        faults: Faults::All,
        events: &[WANTED],
        concerned: CpuList::default(),
        threads: None,
    };
    Instance::create(&tracefs, &root.join("proc"), &config, None).expect("an instance can be made")
}

/// Measures on `cpu` for three seconds from this reading of the counter on, while a maker on `from` keeps taking the
/// ring's pages away: what the loop and the kernel say of the thread, and its number.
fn measured_under_faults(
    ring: &Ring,
    from: CpuId,
    cpu: CpuId,
    start: u64,
    rate: TickRate,
) -> (LoopTally, ThreadUsage, i32) {
    let words = ring.memory();
    let (address, length) = (words.as_ptr() as usize, size_of_val(words));
    let duration = rate.ticks_in(Nanos::from_secs(3)).get();
    ring.set_deadline(Ticks::new(start + duration));
    std::thread::scope(|scope| {
        // SAFETY: the ring's memory is one shared anonymous mapping of whole pages, which outlives the maker.
        let maker = unsafe { faults::start(from, address, length, Duration::from_millis(2)) };
        let measuring = scope.spawn(move || {
            pin_current_thread(cpu).expect("the CPU is ours");
            burn_until(start - duration / 1000);
            let before = ThreadUsage::for_current_thread();
            let lengths = Lengths::until_full(rate.ticks_in(Nanos::new(200)), rate);
            let tally = acquire::<Native>(ring, cpu, Ticks::new(start), lengths);
            (tally, ThreadUsage::for_current_thread().since(before), current_tid())
        });
        let measured = measuring.join().expect("the loop ends");
        assert!(maker.stop() > 500, "the maker was at work");
        measured
    })
}

/// Attributes what is left in the ring and in the trace of the thread with this number.
fn attributed(root: &Path, instance: &Instance, ring: &Arc<Ring>, cpu: CpuId, tid: i32, axis: TicksToNanos) -> OneCpu {
    let mut names = Names::new(root);
    let decoder = instance.decoder().clone();
    let translator = Translator::new(
        &decoder,
        None,
        &std::collections::BTreeMap::new(),
        becalm_measure::UNTRACED_TIMER,
        &mut names.labels,
    );
    let trace = TraceSide {
        decoder,
        clock: EventClock::Same(axis),
        translator,
        readers: vec![instance.reader(cpu).expect("the trace can be read")],
    };
    let mut collector = Collector::new(vec![(cpu, Arc::clone(ring))], axis, Some(trace));
    collector.take(true, &mut Pauses::never()).expect("the trace can be read");
    let thread = LoopThread { cpu, pid: Pid(tid), t_min: Nanos::ZERO, realtime: false };
    let lane = Lane::new(thread, Some(Platform::Metal), &mut names.labels);
    let mut sink = OneCpu { lane, detours: Vec::new(), activities: Vec::new() };
    let whole = HandOver { anchor: None, all: true };
    let Ok(()) = collector.hand_over(&mut sink, &mut names, whole, &mut Pauses::never());
    sink
}

#[test]
fn page_faults_in_the_loops_own_memory_are_named() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    // A loop of our own, since its ring must be known to the maker. Its detours come from a raised tick, each of which
    // writes to the ring, whose pages the maker keeps taking away.
    let _signals = StopSignals::block().expect("signals can be blocked");
    let (from, cpu) = cpus();
    let root = Path::new("/");
    let calibration = becalm_linux::clock::calibrate::<Native>(Nanos::from_millis(100)).expect("the counter runs");
    let rate = calibration.rate;
    let instance = trace_of(root, cpu);
    let ring = Arc::new(Ring::new(1 << 16).expect("there is memory"));

    let clock = CpuClock::start(cpu, 2_000).expect("root may open a perf event on a CPU");
    instance.start().expect("tracing starts");
    let start = now().get() + rate.ticks_in(Nanos::from_millis(50)).get();
    let (tally, usage, tid) = measured_under_faults(&ring, from, cpu, start, rate);
    instance.stop().expect("tracing stops");
    drop(clock);
    let found = attributed(root, &instance, &ring, cpu, tid, TicksToNanos::new(Ticks::new(start), rate));
    instance.remove().expect("the instance goes");

    assert_eq!(tally.kept_steps, found.detours.len() as u64);
    let faults = found.activities.iter().filter(|row| row.kind == Kind::Fault).count() as u64;
    assert!(faults > 500, "{faults} faults");
    assert_within_a_hundredth("page faults", faults, usage.faults);
}

/// Real-time loops on every CPU from which nothing is collected end by themselves, and the run says so.
#[test]
fn loops_that_nobody_attends_end_by_themselves() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let plan = RecordPlan {
        duration: Some(Nanos::from_secs(20)),
        policy: Policy::Fifo(50),
        sources: false,
        unattended: Nanos::from_millis(1500),
        ..RecordPlan::new()
    };
    let session = Session::begin(Path::new("/"), false).expect("signals can be blocked");
    let mut stalls = 0;
    let mut stall = |_| {
        if stalls == 0 {
            std::thread::sleep(Duration::from_secs(3));
        }
        stalls += 1;
    };
    let recorded = session.record(plan, MemoryStore::default(), &mut stall);
    let recorded = recorded.unwrap_or_else(|failure| panic!("the recording failed: {}", failure.error));
    assert_eq!(recorded.node.ended, Some(Ended::Unattended));
    assert!(recorded.node.cpus.iter().all(|cpu| cpu.duration_ns < Nanos::from_secs(5)));
}
