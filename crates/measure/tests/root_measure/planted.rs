//! Planted threads: each one's time on the measured CPUs is what the kernel itself says it was, and all of it stands under its own
//! name.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use becalm_linux::sched::{allowed_cpus, current_tid, pin_current_thread};
use becalm_measure::RecordPlan;
use becalm_model::Kind;
use becalm_model::node::Rung;
use becalm_record::{MemoryLane, MemoryStore, Session};
use becalm_testing::{Need, attempts, machine_has};
use becalm_units::{CpuId, Nanos};

/// For how long the threads work. The recording begins before and ends after.
const WORK: Duration = Duration::from_millis(2_500);
/// How long the recording is.
const RECORDING: Nanos = Nanos::from_secs(4);

/// When all threads begin: once the loops run.
type Gate = Arc<OnceLock<Instant>>;

/// Report of a thread once it is done.
struct ThreadReport {
    tid: i32,
    name: &'static str,
    /// Its time on CPUs while it worked, by the kernel, in nanoseconds.
    cpu_ns: i64,
}

/// The time that the calling thread has had on CPUs, from the first number of its `schedstat`. The kernel brings that up to date when the
/// thread leaves the CPU, which it does first.
fn schedstat() -> i64 {
    thread::sleep(Duration::from_millis(1));
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel has schedstat");
    text.split_whitespace().next().and_then(|number| number.parse().ok()).expect("schedstat begins with a time")
}

/// Starts a thread that waits for the gate, and then works until its time is over. `work` does one round.
fn plant(
    gate: &Gate,
    name: &'static str,
    cpu: Option<CpuId>,
    mut work: impl FnMut() + Send + 'static,
) -> JoinHandle<ThreadReport> {
    let gate = Arc::clone(gate);
    let body = move || {
        if let Some(cpu) = cpu {
            pin_current_thread(cpu).expect("a planted thread can be pinned");
        }
        let before = schedstat();
        while gate.get().is_none() {
            thread::sleep(Duration::from_millis(20));
        }
        // What it slept through before was before the recording.
        let began = schedstat();
        assert!(began >= before, "time on CPUs only grows");
        let end = *gate.wait() + WORK;
        while Instant::now() < end {
            work();
        }
        ThreadReport { tid: current_tid(), name, cpu_ns: schedstat() - began }
    };
    thread::Builder::new().name(name.to_owned()).spawn(body).expect("a thread starts")
}

fn burn(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Work that begins when the other one sends a token, and sends it back; a lost one ends in a round without work.
fn in_turns(time: Duration, wake: SyncSender<()>, woken: Receiver<()>) -> impl FnMut() + Send {
    move || {
        if woken.recv_timeout(Duration::from_millis(50)).is_ok() {
            burn(time);
        }
        let _ = wake.try_send(());
    }
}

/// The rows of one detour after the other: what each planted thread has itself, what came while it was on a CPU (interrupts with their ways in
/// and out, and what the host took), and what stands under a wrong name.
#[derive(Default)]
struct RowTimes {
    own: BTreeMap<i32, i64>,
    nested: BTreeMap<i32, i64>,
    wrong: Vec<String>,
}

impl RowTimes {
    fn add(&mut self, lane: &MemoryLane, store: &MemoryStore, names: &BTreeMap<i32, &str>) {
        let (mut on_cpu, mut detour, mut rest) = (None, u64::MAX, 0);
        for row in &lane.activities {
            if row.detour != detour {
                (on_cpu, detour, rest) = (None, row.detour, 0);
            }
            // The scheduler counts from when it picks a thread on, which is in the rest before the event of the switch.
            let before = std::mem::replace(&mut rest, if row.kind == Kind::Edge { row.self_time.get() } else { 0 });
            let (source, detail) = (store.labels.text(row.source), store.labels.text(row.detail));
            match row.kind {
                Kind::Irq | Kind::Softirq | Kind::Nmi | Kind::Edge | Kind::Unseen => {
                    if let Some(tid) = on_cpu {
                        *self.nested.entry(tid).or_default() += row.self_time.get();
                    }
                    continue;
                }
                _ => {}
            }
            let tid = detail.strip_prefix("pid ").and_then(|tid| tid.parse().ok());
            let planted = tid.filter(|tid| names.contains_key(tid));
            on_cpu = planted;
            let right = planted.is_some_and(|tid| names[&tid] == source && row.kind == Kind::Task);
            if let Some(tid) = planted {
                *self.own.entry(tid).or_default() += row.self_time.get();
                *self.nested.entry(tid).or_default() += before;
            }
            let named = names.values().any(|name| *name == source);
            if (planted.is_some() || named) && !right {
                self.wrong.push(format!("{} of {} {source} ({detail})", row.self_time, row.kind));
            }
        }
    }
}

#[test]
fn planted_threads_have_their_time_under_their_own_names() {
    if machine_has(&[Need::Root, Need::TwoCpus]) {
        // What a host takes while the scheduler switches is counted on another side of the switch here and there.
        attempts(3, threads_against_their_schedstat);
    }
}

fn threads_against_their_schedstat() -> Result<(), String> {
    let cpus = allowed_cpus().expect("the kernel tells where we may run");
    let (first, last) = (cpus.iter().next().expect("we run somewhere"), cpus.iter().last().expect("we run somewhere"));
    let gate = Gate::default();
    let ((to_pong, pong_woken), (to_ping, ping_woken)) = (sync_channel(1), sync_channel(1));
    let micros = Duration::from_micros;
    let nap = |work, sleep| {
        move || {
            burn(work);
            thread::sleep(sleep);
        }
    };
    let threads = [
        // Two that wake each other across CPUs, two that share one with them and sleep, one that goes where it is put.
        plant(&gate, "planted-ping", Some(first), in_turns(micros(1_500), to_pong, ping_woken)),
        plant(&gate, "planted-pong", Some(last), in_turns(micros(700), to_ping, pong_woken)),
        plant(&gate, "planted-short", Some(first), nap(micros(600), micros(3_000))),
        plant(&gate, "planted-long", Some(last), nap(micros(5_000), micros(9_000))),
        plant(&gate, "planted-free", None, nap(micros(900), micros(1_100))),
    ];
    let mut plan = RecordPlan::new();
    (plan.cpus, plan.duration) = (Some([first, last].into_iter().collect()), Some(RECORDING));
    // The tests have several threads, so that no guard process can be started.
    let session = Session::begin(Path::new("/"), false).expect("signals can be blocked");
    let mut begin = |_| {
        let _ = gate.set(Instant::now());
    };
    let recorded = session.record(plan, MemoryStore::default(), &mut begin);
    let mut recorded = recorded.unwrap_or_else(|failure| panic!("the recording failed: {}", failure.error));
    let Ok(()) = recorded.complete();
    assert_eq!(recorded.node.rung, Rung::Tracepoints, "{:?}", recorded.node.warnings);
    let lost: u64 = recorded.node.cpus.iter().map(|cpu| cpu.lost_events).sum();
    assert_eq!(lost, 0, "events were lost");

    let said: Vec<ThreadReport> =
        threads.into_iter().map(|thread| thread.join().expect("a planted thread ends")).collect();
    let names = said.iter().map(|said| (said.tid, said.name)).collect();
    let mut found = RowTimes::default();
    recorded.store.lanes.iter().for_each(|lane| found.add(lane, &recorded.store, &names));
    let steal = recorded.node.counters.iter().filter(|counter| counter.name == "stat/steal");
    let stolen = i64::try_from(steal.map(|counter| counter.growth).sum::<u64>()).expect("it is less than a century");
    assert!(found.wrong.is_empty(), "under a wrong name: {}", found.wrong.join("; "));
    for ThreadReport { tid, name, cpu_ns } in said {
        let own = found.own.get(&tid).copied().unwrap_or(0);
        let nested = found.nested.get(&tid).copied().unwrap_or(0);
        eprintln!(
            "{name}: {own} ns found, and {nested} ns came meanwhile; {cpu_ns} ns by its schedstat, {stolen} ns stolen of all CPUs"
        );
        assert!(cpu_ns > 10_000_000, "{name} hardly ran: {cpu_ns} ns");
        // Kernels that account the time of interrupts apart do not count it for the thread; the others do. What a host admits to
        // have stolen no kernel counts for it, and there is no telling from whom it was.
        let slack = cpu_ns / 50;
        let between = own - stolen - slack..=own + nested + slack;
        if !between.contains(&cpu_ns) {
            return Err(format!("{name}: {cpu_ns} ns by its schedstat, but {own} to {} found", own + nested));
        }
    }
    Ok(())
}
