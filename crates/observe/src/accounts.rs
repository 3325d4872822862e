//! Observation without the kernel's trace: the kernel's own accounts in `/proc/PID/schedstat` and `cpu.stat`. They do not name anyone.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::Duration;

use becalm_linux::clock::{Anchor, MonotonicRaw, thread_time};
use becalm_linux::procfs::task::Schedstat;
use becalm_linux::{sched, signals};
use becalm_measure::Companion;
use becalm_measure::machine::{self, Host};
use becalm_model::node::{ClockDoc, Ended, Warning};
use becalm_record::Session;
use becalm_units::Nanos;
use becalm_units::fault::{self, Context};

use crate::document::{CostDoc, ObservedDoc, PartDoc, QuotaDoc, ThreadDoc};
use crate::look::{Lookout, SeenThread};
use crate::recorder::ObservePlan;

/// How often accounts are read: a thread that ends loses at most this much.
const INTERVAL: Duration = Duration::from_millis(100);

/// A chosen thread, and its accounts so far.
struct Accounted {
    seen: SeenThread,
    first: (u64, Schedstat),
    last: (u64, Schedstat),
}

/// Observes by the kernel's accounts alone.
pub fn observe(
    mut plan: ObservePlan,
    session: &Session,
    warnings: Vec<Warning>,
    program: String,
) -> fault::Result<(ObservedDoc, Companion)> {
    let now = <MonotonicRaw as becalm_linux::clock::Counter>::read;
    let anchor = Anchor::take::<MonotonicRaw>();
    let (cpu_before, began) = (thread_time(), now());
    let mut lookout = Lookout::new(&plan.root);
    let mut choice = plan.choice.clone();
    let mut threads: BTreeMap<i32, Accounted> = BTreeMap::new();
    let mut command = Companion::start(plan.command.take(), &sched::allowed_cpus()?, session.signals())
        .map_err(|(name, error)| fault::Error::new(format!("cannot start '{name}': {error}")))?;
    choice.processes.extend(command.number());
    let mut groups = BTreeMap::new();
    let ended = loop {
        for seen in lookout.look_at_all(now)? {
            let tid = seen.stat.pid;
            // Children of chosen processes are chosen as well.
            let is_child = threads.values().any(|known| known.seen.process == seen.stat.ppid);
            if !is_child && !choice.has(tid, seen.process, &seen.stat.comm, &seen.group) {
                continue;
            }
            if let Some(throttling) = lookout.groups.throttling(&seen.group) {
                groups.entry(seen.group.clone()).or_insert(throttling);
            }
            let Some(account) = Schedstat::read(&plan.root, tid) else { continue };
            let at = now();
            // A thread that started meanwhile had no account before.
            let first = if at - began < INTERVAL.as_nanos() as u64 { account } else { Schedstat::default() };
            let known = threads.entry(tid).or_insert(Accounted { seen, first: (at, first), last: (at, account) });
            known.last = (at, account);
        }
        let elapsed = Nanos::new((now() - began) as i64);
        let left = plan.duration.map_or(Nanos::MAX, |duration| duration - elapsed);
        if left <= Nanos::ZERO {
            break Ended::Duration;
        }
        let waited_for = [Some(session.signals().as_fd()), command.end_fd()];
        signals::wait_readable(waited_for, INTERVAL.min(left.to_std())).context("cannot wait")?;
        if session.signals().take().is_some() {
            break Ended::Signal;
        }
        if command.has_ended() {
            break Ended::Command;
        }
    };
    let host = Host::read(&plan.root);
    let quotas = groups.into_iter().filter_map(|(cgroup, before)| {
        let grown = lookout.groups.throttling(&cgroup)?.since(&before);
        let (periods, throttled, throttled_ns) = (grown.periods, grown.throttled, grown.throttled_time);
        Some(QuotaDoc { cgroup, periods, throttled, throttled_ns, waited_ns: Nanos::ZERO })
    });
    let mut doc = ObservedDoc {
        origin: jiff::Timestamp::from_nanosecond(i128::from(anchor.wall_ns)).ok(),
        ended: Some(ended),
        machine: machine::describe(&plan.root),
        clock: ClockDoc {
            counter: "monotonic_raw".to_owned(),
            origin_ticks: anchor.ticks.get(),
            rate_hz: 1e9,
            resolution_ns: Nanos::new(1),
            ..ClockDoc::default()
        },
        duration_ns: Nanos::new((now() - began) as i64),
        threads: threads.into_values().map(|thread| thread_doc(thread, anchor.ticks.get())).collect(),
        quotas: quotas.collect(),
        cost: CostDoc { trace_bytes: 0, cpu_ns: thread_time() - cpu_before },
        warnings: host.warning.into_iter().chain(warnings).collect(),
        ..ObservedDoc::new(host.node, program)
    };
    doc.threads.sort_by_key(|thread| (std::cmp::Reverse(thread.waited_ns), thread.process, thread.tid));
    Ok((doc, command))
}

/// The accounts of a thread as its books: the rest of its time is not known.
fn thread_doc(thread: Accounted, origin: u64) -> ThreadDoc {
    let Accounted { seen, first, last } = thread;
    let wall = Nanos::new((last.0 - first.0) as i64);
    let grown = |of: fn(&Schedstat) -> Nanos| (of(&last.1) - of(&first.1)).max(Nanos::ZERO);
    // The account and the clock are read one after the other.
    let ran = grown(|account| account.ran).min(wall);
    let queued = grown(|account| account.waited).min(wall - ran);
    ThreadDoc {
        tid: seen.stat.pid,
        process: seen.process,
        name: seen.stat.comm,
        command: seen.command,
        cgroup: seen.group,
        rank: seen.rank,
        start_ns: Nanos::new(first.0.saturating_sub(origin) as i64),
        wall_ns: wall,
        ran_ns: ran,
        waited_ns: queued,
        queued_ns: queued,
        unknown_ns: wall - ran - queued,
        switches: last.1.runs.saturating_sub(first.1.runs),
        ran: vec![PartDoc { kind: "program".to_owned(), source: String::new(), ns: ran, count: 0 }],
        ..ThreadDoc::default()
    }
}
