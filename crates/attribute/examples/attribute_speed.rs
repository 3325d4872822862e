//! The time per event for attribution: ten million events of a busy CPU, in calls of 4,096.
//!
//! `cargo run --release -p becalm-analyze --example attribute_speed`

use std::io::Write;
use std::time::{Duration, Instant};

use becalm_attribute::Attributor;
use becalm_model::{Event, Happening, Kind, Labels, Pid, Platform, ThreadState};
use becalm_model::{LoopThread, Step, Task, Tasks};
use becalm_units::{CpuId, Nanos};

const EVENTS: usize = 10_000_000;
const CALL: usize = 4_096;
const LOOP: Pid = Pid(100);
const KWORKER: Pid = Pid(40);

fn main() -> std::io::Result<()> {
    let mut labels = Labels::new();
    let mut tasks = Tasks::new();
    // As many threads as on a real machine, for realistic lookup costs.
    for pid in 1..2_000 {
        let (source, detail) = (labels.intern("kworker"), labels.intern(&format!("kworker/0:{pid}")));
        tasks.set(Pid(pid), Task { kind: Kind::Kthread, source, detail });
    }
    let detours = detours(&mut labels);
    let thread = LoopThread { cpu: CpuId::new(0), pid: LOOP, t_min: Nanos::new(20), realtime: false };
    let mut attributor = Attributor::new(thread, Platform::Guest, &mut labels);

    let (mut steps, mut events) = (Vec::new(), Vec::new());
    let (mut found, mut rows) = (Vec::new(), Vec::new());
    let (mut count, mut detour_count, mut row_count) = (0, 0, 0);
    let mut origin = 0;
    let mut spent = Duration::ZERO;
    while count < EVENTS {
        steps.clear();
        events.clear();
        for (length, what) in detours.iter().cycle() {
            if events.len() >= CALL {
                break;
            }
            steps.push(Step { start: Nanos::new(origin), end: Nanos::new(origin + length) });
            events.extend(what.iter().map(|event| Event { time: event.time + Nanos::new(origin), ..*event }));
            origin += length + 1_000;
        }
        let start = Instant::now();
        attributor.attribute(&steps, &events, &tasks, &mut labels, &mut found, &mut rows);
        spent += start.elapsed();
        count += events.len();
        detour_count += found.len();
        row_count += rows.len();
        found.clear();
        rows.clear();
    }
    let tally = attributor.finish(&mut labels);
    let each = spent.as_nanos() as f64 / count as f64;
    writeln!(
        std::io::stdout(),
        "{count} events, {detour_count} detours, {row_count} rows in {spent:.3?}: {each:.1} ns an event; {tally:?}"
    )
}

/// The repeated detours: their lengths, and their events from 0 on.
fn detours(labels: &mut Labels) -> Vec<(i64, Vec<Event>)> {
    let (irq, vector) = (labels.intern("local_timer"), labels.intern("vector 236"));
    let (timer, sched, net) = (labels.intern("timer"), labels.intern("sched"), labels.intern("net_rx"));
    let eth = labels.intern("eth0-TxRx-0");
    let (item, fault, perf) =
        (labels.intern("kworker:vmstat_update"), labels.intern("page_fault_user"), labels.intern("perf"));
    let work = 0xffff_8881_0000_1000;
    let entry = Happening::IrqEntry { source: irq, detail: vector };
    let exit = Happening::IrqExit { source: irq, detail: vector };
    let tick = [entry, exit, Happening::SoftirqEntry { source: timer }, Happening::SoftirqExit { source: timer }];
    let rebalance = [Happening::SoftirqEntry { source: sched }, Happening::SoftirqExit { source: sched }];
    let packet = [
        Happening::IrqEntry { source: eth, detail: vector },
        Happening::IrqExit { source: eth, detail: vector },
        Happening::SoftirqEntry { source: net },
        entry,
        Happening::Nmi { source: perf, delta: Nanos::new(50) },
        exit,
        Happening::SoftirqExit { source: net },
    ];
    let worker = [
        Happening::Switch { prev: LOOP, prev_state: ThreadState::RUNNABLE, next: KWORKER },
        Happening::WorkStart { source: item, work },
        Happening::WorkEnd { source: item, work },
        Happening::Switch { prev: KWORKER, prev_state: ThreadState::SLEEPING, next: LOOP },
    ];
    let touch = [Happening::Fault { source: fault, detail: vector }];
    [tick.to_vec(), [&tick[..], &rebalance].concat(), packet.to_vec(), [&tick[..], &worker].concat(), touch.to_vec()]
        .into_iter()
        .map(|what| {
            let time = |position: usize| Nanos::new(200 + 300 * position as i64);
            let length = 400 + 300 * what.len() as i64;
            let mut thread = LOOP;
            let event = |(at, what): (usize, Happening)| {
                let running = thread;
                if let Happening::Switch { next, .. } = what {
                    thread = next;
                }
                Event { time: time(at), thread: running, in_interrupt: false, what }
            };
            (length, what.into_iter().enumerate().map(event).collect())
        })
        .collect()
}
