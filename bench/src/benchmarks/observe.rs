//! `becalm observe`: how fast its books are, what it costs a program that only switches, and whether they agree with `perf sched`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{PoisonError, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::clock::thread_time;
use becalm_linux::procfs::task::Schedstat;
use becalm_linux::sched;
use becalm_testing::program::document;
use becalm_testing::{Need, wait_until};
use becalm_units::{CpuId, Nanos};
use serde_json::Value;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::figures::Repetitions;
use crate::programs;
use crate::switching::Switching;

const PERF: Need<'_> = Need::Program("perf");

/// Seconds of the stream in a replay.
const SECONDS: u64 = 20;
/// Replays.
const REPLAYS: u64 = 20;
/// The least number of events per second of processor time.
const EVENTS_PER_SECOND: f64 = 5e6;

/// Each block has four runs of `perf bench sched pipe`: alone, observed, observed, and alone.
const BLOCKS: u64 = 10;
/// Round trips of a run.
const ROUND_TRIPS: u64 = 200_000;
/// What observing may add to a round trip of two switches, two wake-ups and four system calls.
const MOST_ADDED_US: f64 = 3.5;

/// The length of a recording that `perf sched` makes as well, in seconds.
const COMPARED: u64 = 5;
/// By how much run time and wait may differ from those of `perf sched` for each switch, and from the kernel's account.
const NS_PER_SWITCH: f64 = 5e3;
const NS_PER_SWITCH_OF_THE_KERNEL: f64 = 20e3;
/// Threads that spin all the while, and threads that spin for 300 us and sleep for 5 ms.
const SPINNING: usize = 3;
const SLEEPING: usize = 5;

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Observe: books of running threads", effort);
    replay(&mut claims, effort);
    if let Err(why) = cost(&mut claims, effort) {
        claims.fail_as_root("what observing adds to a round trip", &why);
    }
    if let Err(why) = beside_perf(&mut claims, effort) {
        claims.fail_as_root("run and wait of each thread, compared with perf sched", &why);
    }
    claims.end()
}

/// Feeds a synthetic stream to the books.
fn replay(claims: &mut Claims, effort: Effort) {
    let mut stream = Switching::default();
    let seconds = effort.share(SECONDS).max(2);
    let mut unbalanced = 0;
    let rates = (0..effort.share(REPLAYS).max(2)).map(|_| {
        let before = thread_time();
        let replayed = stream.replay(seconds as i64);
        unbalanced += replayed.unbalanced;
        replayed.events as f64 / (thread_time() - before).as_secs_f64()
    });
    let rates = Repetitions::new(rates.collect());
    let (rate, (low, high)) = (rates.median(), rates.median_interval());
    claims.at_least("events worked out per second, one core", Figure::a_second(rate.round()), EVENTS_PER_SECOND);
    let (switches, events) = (stream.switches, stream.events());
    claims.remark(&format!(
        "95 % interval {:.1} to {:.1} million; {switches} switches and {events} events in a second",
        low / 1e6,
        high / 1e6
    ));
    claims.none("  threads whose parts do not add up", unbalanced);
}

/// Compares `perf bench sched pipe` with and without an observation of it.
fn cost(claims: &mut Claims, effort: Effort) -> Result<(), String> {
    const WHAT: &str = "observing adds to a round trip through two pipes";
    if !PERF.is_met() {
        claims.skip(WHAT, "perf is not installed");
        return Ok(());
    }
    let cpu =
        sched::allowed_cpus().map_err(|error| error.to_string())?.iter().next().ok_or("there is no CPU to run on")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let trips = effort.share(ROUND_TRIPS);
    let mut lost = 0;
    let (mut added, mut alone) = (Vec::new(), Vec::new());
    for block in 0..effort.share(BLOCKS).max(2) {
        let mut us = [0.0; 4];
        for (place, is_observed) in [false, true, true, false].into_iter().enumerate() {
            let bundle = folder.path().join(format!("{block}-{place}.becalm"));
            us[place] = round_trip_us(cpu, trips, is_observed.then_some(bundle.as_path()))?;
            if is_observed {
                lost += number(&document(&bundle), "lost_events");
                fs::remove_dir_all(&bundle).map_err(|error| error.to_string())?;
            }
        }
        let [first, observed, again, last] = us;
        added.push((observed + again - first - last) / 2.0);
        alone.push(f64::midpoint(first, last));
    }
    let (added, alone) = (Repetitions::new(added), Repetitions::new(alone));
    let (low, high) = added.median_interval();
    let us = |value| Figure { value, unit: "us" };
    claims.at_most(WHAT, us(added.median()), MOST_ADDED_US);
    let blocks = effort.share(BLOCKS).max(2);
    claims.remark(&format!(
        "95 % interval {low:.2} to {high:.2}us; {blocks} blocks of 4 x {trips} round trips, CPU {cpu}"
    ));
    claims.state("  a round trip without it", us(alone.median()), "two switches, two wake-ups, four system calls");
    claims.at_most("  events lost", Figure::count(lost as u64), 0.0);
    Ok(())
}

/// The time of a round trip of `perf bench sched pipe`, on one CPU.
fn round_trip_us(cpu: CpuId, trips: u64, bundle: Option<&Path>) -> Result<f64, String> {
    let trips = trips.to_string();
    let bench = ["perf", "bench", "-f", "simple", "sched", "pipe", "-l", &trips];
    let on_cpu = ["taskset", "-c", &cpu.to_string()].map(str::to_owned);
    let mut command = match bundle {
        // The observer may use any CPU.
        Some(bundle) => {
            let mut command = Command::new(programs::becalm());
            command.args(["observe", "-q", "-o"]).arg(bundle).arg("--").args(&on_cpu);
            command
        }
        None => {
            let mut command = Command::new(&on_cpu[0]);
            command.args(&on_cpu[1..]);
            command
        }
    };
    let output = command.args(bench).stdin(Stdio::null()).output().map_err(|error| format!("cannot run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("perf bench failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let seconds: f64 = text.trim().parse().map_err(|_| format!("perf bench printed {text}"))?;
    let trips: f64 = trips.parse().map_err(|_| "a number")?;
    Ok(seconds * 1e6 / trips)
}

fn number(value: &Value, name: &str) -> i64 {
    value[name].as_i64().unwrap_or(0)
}

/// Times of a thread, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Times {
    switches: f64,
    ran: f64,
    waited: f64,
    /// Sleep and wait together, if the end of the sleep is not in the trace.
    unclear: f64,
}

impl Times {
    /// By how much our run time and wait differ from these.
    fn differences(self, ours: Self) -> (f64, f64) {
        let waited = ours.waited - ours.waited.clamp(self.waited, self.waited + self.unclear);
        ((ours.ran - self.ran).abs(), waited.abs())
    }

    /// Whether ours are the same within this time per switch, and 2 % of the run time and 1 % of the wait.
    fn is_near(self, ours: Self, ns_per_switch: f64) -> bool {
        let (ran, waited) = self.differences(ours);
        let most = |of: f64, percent: f64| ns_per_switch * ours.switches + of * percent / 100.0;
        ran <= most(self.ran, 2.0) && waited <= most(self.waited, 1.0)
    }

    /// How far ours are from these, run time and wait together.
    fn distance(self, ours: Self) -> f64 {
        let (ran, waited) = self.differences(ours);
        ran + waited
    }
}

/// Records the same threads in the same time with `perf sched record`, and compares both for each thread.
fn beside_perf(claims: &mut Claims, effort: Effort) -> Result<(), String> {
    const WHAT: &str = "threads whose run or wait differs from perf sched's";
    if !PERF.is_met() {
        claims.skip(WHAT, "perf is not installed");
        return Ok(());
    }
    let failed = |error: std::io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(failed)?;
    let place = |name: &str| folder.path().join(name);
    let accounts = observe_and_perf(folder.path(), Duration::from_secs(effort.share(COMPARED).max(1)))?;
    let doc = document(&place("run.becalm"));
    let history = Command::new("perf").args(["sched", "timehist", "--state", "-i"]).arg(place("perf.data")).output();
    let history = String::from_utf8_lossy(&history.map_err(failed)?.stdout).into_owned();
    let threads = doc["threads"].as_array().ok_or("the document has no threads")?;
    let (mut different, mut incomplete, mut worst, mut switches) = (0, 0, Times::default(), 0.0);
    for (tid, account) in &accounts {
        let thread = threads.iter().find(|thread| number(thread, "tid") == i64::from(*tid));
        let thread = thread.ok_or_else(|| format!("thread {tid} was not observed"))?;
        let of = |name: &str| number(thread, name) as f64;
        let ours = Times { switches: of("switches"), ran: of("ran_ns"), waited: of("waited_ns"), unclear: 0.0 };
        let theirs = perf_times(*tid, &history);
        let (mut is_near, (ran, waited)) = (theirs.is_near(ours, NS_PER_SWITCH), theirs.differences(ours));
        // perf does not repair switches that the trace lacks. The kernel's account shows which side is right; its own
        // times start and end at other instants of a switch than the trace's.
        let parts = thread["ran"].as_array().into_iter().flatten().filter(|part| part["kind"] == "host");
        let host: f64 = parts.map(|part| number(part, "ns") as f64).sum();
        let accounted =
            |times: Times| Times { ran: times.ran - host, waited: of("queued_ns") + of("quota_ns"), ..times };
        let is_nearer = account.distance(accounted(ours)) < account.distance(accounted(theirs));
        if !is_near && is_nearer && account.is_near(accounted(ours), NS_PER_SWITCH_OF_THE_KERNEL) {
            incomplete += 1;
            is_near = true;
        }
        different += u64::from(!is_near);
        switches += ours.switches;
        worst.ran = worst.ran.max(ran / ours.switches.max(1.0));
        worst.waited = worst.waited.max(waited / ours.switches.max(1.0));
        if !is_near {
            claims.remark(&format!(
                "{} {tid}: {ours:?}, perf sched: {theirs:?}, the kernel: {account:?}, host time {host}",
                thread["name"]
            ));
        }
    }
    let lacking = number(&doc, "repaired_switches") + number(&doc, "unknown_switches");
    claims.none(WHAT, different);
    claims.remark(&format!(
        "within 5us per switch and 2 % of the run time, 1 % of the wait; {} threads, {switches} switches; the trace lacks {lacking}",
        accounts.len()
    ));
    claims.state("  threads that perf sched has wrong by the kernel's account", Figure::count(incomplete), "");
    claims.state("  largest difference of run time, per switch", Figure::ns(worst.ran.round()), "");
    claims.state("  largest difference of wait, per switch", Figure::ns(worst.waited.round()), "perf prints 1us");
    Ok(())
}

/// The figures of a thread in the output of `perf sched timehist --state`, with a row per stay on a CPU, in milliseconds: the time off the CPU before
/// it, the part of that after the wake-up, and the run time.
fn perf_times(tid: i32, history: &str) -> Times {
    let (mut times, mut was_preempted) = (Times::default(), true);
    for line in history.lines() {
        let Some((before, columns)) = line.rsplit_once(']') else { continue };
        let Some((_, numbers)) = before.rsplit_once('[') else { continue };
        if numbers.split('/').next().and_then(|number| number.parse().ok()) != Some(tid) {
            continue;
        }
        let columns: Vec<&str> = columns.split_whitespace().collect();
        let [off, delay, run, state] = columns[..] else { continue };
        let [off, delay, run] = [off, delay, run].map(|ms| ms.parse::<f64>().unwrap_or(0.0) * 1e6);
        times.switches += 1.0;
        times.ran += run;
        match was_preempted {
            true if times.switches > 1.0 => times.waited += off,
            false if delay == 0.0 => times.unclear += off,
            _ => times.waited += delay,
        }
        was_preempted = state.starts_with('R');
    }
    times
}

/// Observes threads that sleep until both recordings run and until both have ended. Returns their numbers, and by
/// how much the kernel's accounts of them grew.
fn observe_and_perf(folder: &Path, length: Duration) -> Result<Vec<(i32, Times)>, String> {
    let failed = |error: std::io::Error| error.to_string();
    let place = |name: &str| folder.join(name);
    let made = Command::new("mkfifo").arg(place("fifo")).status().map_err(failed)?;
    if !made.success() {
        return Err("no named pipe can be made".to_owned());
    }
    // Open for reading as well, so opening it does not wait for the other side.
    let mut fifo = OpenOptions::new().read(true).write(true).open(place("fifo")).map_err(failed)?;
    let count = SPINNING + SLEEPING;
    let tids: Vec<AtomicI32> = (0..count).map(|_| AtomicI32::new(0)).collect();
    let (gate, done) = (RwLock::new(()), RwLock::new(()));
    thread::scope(|scope| {
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        let ended = done.write().unwrap_or_else(PoisonError::into_inner);
        let mut acting = Vec::new();
        for (number, tid) in tids.iter().enumerate() {
            let (gate, done) = (&gate, &done);
            let (tell, told) = mpsc::channel();
            let body = move || {
                tid.store(sched::current_tid(), Ordering::Relaxed);
                drop(gate.read());
                act(number < SPINNING, length);
                let _ = tell.send(());
                drop(done.read());
            };
            let thread = thread::Builder::new().name("bench-observed".to_owned()).spawn_scoped(scope, body);
            thread.map_err(|error| format!("cannot start a thread: {error}"))?;
            acting.push(told);
        }
        wait_until("all threads run", || tids.iter().all(|tid| tid.load(Ordering::Relaxed) != 0));
        let read = || -> Vec<(i32, Schedstat)> {
            let tids = tids.iter().map(|tid| tid.load(Ordering::Relaxed));
            tids.map(|tid| (tid, Schedstat::read("/".as_ref(), tid).unwrap_or_default())).collect()
        };
        // They fall asleep.
        thread::sleep(Duration::from_millis(100));
        let before = read();
        let mut command = Command::new(programs::becalm());
        command.args(["observe", "-q", "--comm", "bench-observed", "-o"]).arg(place("run.becalm"));
        command.args(["--", "perf", "sched", "record", "-a", "-o"]).arg(place("perf.data"));
        command.args(["--", "sh", "-c", r#"echo > "$0"; read line < "$1""#]).args([place("ready"), place("fifo")]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("cannot run becalm: {error}"))?;
        wait_until("both recordings run", || place("ready").exists() || !matches!(child.try_wait(), Ok(None)));
        drop(closed);
        for told in acting {
            let _ = told.recv();
        }
        thread::sleep(Duration::from_millis(100));
        let after = read();
        fifo.write_all(b"\n").map_err(failed)?;
        let output = child.wait_with_output().map_err(failed)?;
        drop(ended);
        if !output.status.success() {
            return Err(format!("the recording failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let grown = before.into_iter().zip(after).map(|((tid, before), (_, after))| {
            let ns = |of: fn(&Schedstat) -> Nanos| (of(&after) - of(&before)).get() as f64;
            let (ran, waited) = (ns(|account| account.ran), ns(|account| account.waited));
            let switches = after.runs.saturating_sub(before.runs) as f64;
            (tid, Times { switches, ran, waited, unclear: 0.0 })
        });
        Ok(grown.collect())
    })
}

/// Spins for this long, with or without naps.
fn act(only_spins: bool, length: Duration) {
    let since = Instant::now();
    while since.elapsed() < length {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(300) {
            std::hint::spin_loop();
        }
        if !only_spins {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_perf_sched_are_read() {
        let history = "
           time    cpu  task name                       wait time  sch delay   run time  state
                        [tid/pid]                          (msec)     (msec)     (msec)
--------------- ------  ------------------------------  ---------  ---------  ---------  -----
   49535.819508 [0001]  opt cgu.15[28094/28085]             0.000      0.007      0.008      S
   49537.846471 [0000]  opt cgu.15[28094/28085]             5.087      0.026      0.303      S
   49537.861890 [0000]  opt cgu.15[28094/28085]             9.422      0.000      0.306      R
   49537.861895 [0000]  rcu_preempt[15]                     9.422      0.000      0.306      I
   49537.899305 [0000]  opt cgu.15[28094/28085]             0.913      0.000      0.002      S
";
        let times = perf_times(28094, history);
        let all = [times.switches, times.ran, times.waited, times.unclear].map(f64::round);
        assert_eq!(all, [4.0, 619_000.0, 7_000.0 + 26_000.0 + 913_000.0, 9_422_000.0]);
        let is_near = |waited| times.is_near(Times { waited, unclear: 0.0, ..times }, NS_PER_SWITCH);
        assert!(is_near(950_000.0) && is_near(5_000_000.0));
        assert!(!is_near(900_000.0) && !is_near(11_000_000.0));
        assert_eq!(perf_times(5, history), Times::default());
    }
}
