//! What interrupts are for: planted timers, samples, packets and calls of other CPUs are charged to what they serve, and ticks are as many as
//! the kernel was built for. Needs root and two CPUs; the last online CPU is measured.

use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use becalm_linux::perf::CpuClock;
use becalm_linux::procfs::config::KernelConfig;
use becalm_linux::sched::{Policy, allowed_cpus, set_policy};
use becalm_measure::RecordPlan;
use becalm_model::{Activity, Kind, root};
use becalm_testing::{Need, attempts, machine_has};
use becalm_units::{CpuId, Nanos};

use crate::makers::{Maker, Unlimited, burn_until, deadline, flood, now};
use crate::recording::{Recorded, recorded};

const SECONDS: i64 = 3;

fn cpus() -> (CpuId, CpuId) {
    let allowed = allowed_cpus().expect("the kernel tells where we may run");
    let first = allowed.iter().next().expect("we run somewhere");
    (first, allowed.iter().last().unwrap_or(first))
}

/// A recording ahead of programs, so that a busy machine's do not take the CPU.
fn record(cpu: CpuId) -> Recorded {
    let cpus = Some([cpu].into_iter().collect());
    let duration = Some(Nanos::from_secs(SECONDS));
    let _limit = Unlimited::begin();
    recorded(RecordPlan { cpus, duration, policy: Policy::Fifo(2), ..RecordPlan::new() })
}

impl Recorded {
    /// The root of a row, as `kind:source`.
    fn root(&self, row: &Activity) -> String {
        let text = |label| self.memory.labels.text(label);
        let (kind, source) = root::row_root(row.kind, text(row.source), text(row.detail));
        root::text(kind, source)
    }

    /// Of the interrupts that a function named: how many there were, and how many have this root.
    fn carried(&self, cpu: CpuId, source: &str, root: &str) -> (u64, u64) {
        self.carried_by(Kind::Irq, cpu, source, root)
    }

    /// As `carried`, for activities of another kind.
    fn carried_by(&self, kind: Kind, cpu: CpuId, source: &str, root: &str) -> (u64, u64) {
        let rows = self.activities(cpu, kind, source);
        let rows_of_root = rows.iter().filter(|row| self.root(row) == root).count();
        (rows.len() as u64, rows_of_root as u64)
    }

    /// Checks that this root has caused most of a CPU's noise, except for what the hypervisor, the tick, becalm and other programs take: this machine
    /// may have work of its own.
    fn check_first_cause(&self, cpu: CpuId, expected: &str) {
        let (index, _) = self.cpu(cpu);
        let mut wholes = std::collections::BTreeMap::<String, Nanos>::new();
        for row in &self.memory.lanes[index].activities {
            *wholes.entry(self.root(row)).or_default() += row.self_time;
        }
        let others = ["unseen:", "self:", "throttling:", "irq:tick"];
        wholes.retain(|root, _| !others.iter().any(|other| root.starts_with(other)));
        wholes.retain(|root, _| root == expected || !root.starts_with("task:"));
        let first = wholes.iter().max_by_key(|(_, time)| **time).map(|(root, _)| root.as_str());
        assert_eq!(first, Some(expected), "{wholes:?}");
    }
}

fn check_within(what: &str, found: u64, expected: u64, off: f64) -> Result<(), String> {
    let ratio = found as f64 / expected as f64;
    eprintln!("{what}: {found} found, {expected} planted");
    if (ratio - 1.0).abs() <= off { Ok(()) } else { Err(format!("{what}: {found} found, {expected} planted")) }
}

/// Ticks are as many as the kernel was built for, within 2 %, whatever else the timer interrupts for. `None` where it does not say.
fn check_ticks(run: &Recorded, cpu: CpuId) -> Result<(), String> {
    let config = KernelConfig::read(Path::new("/")).ok().flatten();
    let Some(hz) = config.and_then(|config| config.value("HZ")?.parse::<f64>().ok()) else { return Ok(()) };
    let (_, doc) = run.cpu(cpu);
    let ticks = run.activities(cpu, Kind::Irq, "tick").len() as u64;
    check_within("ticks", ticks, (hz * doc.duration_ns.as_secs_f64()) as u64, 0.02)
}

#[test]
fn a_profilers_samples_are_not_the_tick() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let (_, cpu) = cpus();
    attempts(3, || {
        let clock = CpuClock::start(cpu, 2_000).expect("root may open a perf event on a CPU");
        let run = record(cpu);
        drop(clock);
        let (samples, own) = run.carried(cpu, "timer:perf_swevent_hrtimer", "irq:timer:perf_swevent_hrtimer");
        assert_eq!(samples, own);
        check_within("samples", samples, 2_000 * SECONDS as u64, 0.05)?;
        run.check_first_cause(cpu, "irq:timer:perf_swevent_hrtimer");
        // What interrupts no timer was set for, the kernel does not name.
        let nameless = run.activities(cpu, Kind::Irq, "local_timer").len() as u64;
        let counted = run.growth(cpu, "interrupts/LOC");
        assert!(nameless * 50 < counted, "{nameless} of {counted} timer interrupts have no name");
        check_ticks(&run, cpu)
    });
}

#[test]
fn the_timer_that_wakes_a_thread_is_on_its_account() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let (_, cpu) = cpus();
    attempts(3, || {
        let maker = Maker::start("tshort", cpu, |stop| {
            set_policy(Policy::Fifo(50)).expect("root can take a real-time priority");
            let mut bursts = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                burn_until(now().get() + 6_000);
                bursts += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            bursts
        });
        let run = record(cpu);
        maker.stop();
        let stays = run.activities(cpu, Kind::Task, "tshort").len() as u64;
        let (wakes, own) = run.carried(cpu, "timer:hrtimer_wakeup", "task:tshort");
        assert!(stays > 500 * SECONDS as u64, "{stays} stays of the thread");
        check_within("wake-ups", own, stays, 0.02)?;
        check_within("wake-ups of that thread among all", own, wakes, 0.2)?;
        run.check_first_cause(cpu, "task:tshort");
        check_ticks(&run, cpu)
    });
}

/// The tick raises the softirq of ordinary timers, but what expires there is not the tick's.
#[test]
fn a_timer_that_the_tick_finds_expired_is_on_the_account_of_the_thread_that_it_wakes() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let (_, cpu) = cpus();
    attempts(3, || {
        let maker = Maker::start("ttimeout", cpu, |stop| {
            set_policy(Policy::Fifo(50)).expect("root can take a real-time priority");
            // A socket waits with an ordinary timer, not with one of high resolution.
            let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket can be bound to the loopback device");
            silent.set_read_timeout(Some(Duration::from_millis(1))).expect("a socket can have a timeout");
            let mut timeouts = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                burn_until(now().get() + 100_000);
                timeouts += u64::from(silent.recv(&mut [0]).is_err());
            }
            timeouts
        });
        let run = record(cpu);
        let timeouts = maker.stop();
        let stays = run.activities(cpu, Kind::Task, "ttimeout").len() as u64;
        let (_, own) = run.carried_by(Kind::Softirq, cpu, "timer:process_timeout", "task:ttimeout");
        assert!(stays > 30 * SECONDS as u64 && stays <= timeouts, "{stays} stays of the thread, {timeouts} timeouts");
        check_within("timeouts", own, stays, 0.02)?;
        run.check_first_cause(cpu, "task:ttimeout");
        check_ticks(&run, cpu)
    });
}

#[test]
fn the_timer_of_a_deadline_is_on_its_threads_account() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let (_, cpu) = cpus();
    attempts(3, || {
        let maker = deadline::start(cpu, Duration::from_micros(200), Duration::from_millis(8));
        let run = record(cpu);
        maker.stop();
        let stays = run.activities(cpu, Kind::Task, "deadline").len() as u64;
        let (timers, own) = run.carried(cpu, "timer:dl_task_timer", "task:deadline");
        assert!(stays > 100 * SECONDS as u64, "{stays} stays of the thread");
        // The kernel's server of other threads has such a timer, too.
        check_within("deadlines", own, stays, 0.05)?;
        assert!(timers >= own);
        run.check_first_cause(cpu, "task:deadline");
        check_ticks(&run, cpu)
    });
}

#[test]
fn packets_that_another_cpu_passes_on_are_packets() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let (from, cpu) = cpus();
    attempts(3, || {
        let maker = flood::start(from, cpu, Duration::from_micros(200));
        let run = record(cpu);
        maker.stop();
        let (calls, own) = run.carried(cpu, "ipi:rps_trigger_softirq", "softirq:net_rx");
        let packets = run.activities(cpu, Kind::Softirq, "net_rx").len() as u64;
        assert_eq!(calls, own);
        check_within("calls for packets", calls, packets, 0.05)?;
        run.check_first_cause(cpu, "softirq:net_rx");
        check_ticks(&run, cpu)
    });
}

#[test]
fn reads_of_counters_from_another_cpu_are_named() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let (from, cpu) = cpus();
    attempts(3, || {
        let clock = CpuClock::start(cpu, 10).expect("root may open a perf event on a CPU");
        let maker = Maker::start("monitor", from, move |stop| {
            let mut reads = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                clock.read().expect("the event can be read");
                reads += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            reads
        });
        let run = record(cpu);
        let reads = maker.stop();
        let (found, own) = run.carried(cpu, "ipi:__perf_event_read", "irq:ipi:__perf_event_read");
        assert_eq!(found, own);
        assert!(found <= reads && found > reads / 2, "{found} of {reads} reads");
        run.check_first_cause(cpu, "irq:ipi:__perf_event_read");
        check_ticks(&run, cpu)
    });
}
