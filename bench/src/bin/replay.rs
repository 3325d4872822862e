//! The fast exact replay beside the plain one: both sides in one go, one core, and the ratio.
//!
//! The trace has 1 million detours over 5,000 s; G = 1 ms; 300,000 phases. The plain replay is timed on fewer phases and
//! scaled; both sides must give the same delays on those. `replay big` adds a trace of 10 million detours with its memory,
//! `replay d09` D09's study.

#![allow(clippy::print_stdout, reason = "what is printed is the result")]

use std::time::{Duration, Instant};

use becalm_scale::delay::DelayTable;
use becalm_scale::order::DelayDistribution;
use becalm_scale::placement::Placement;
use becalm_scale::random::{Purpose, Stream};
use becalm_scale::replay::{Method, replay, replay_each};
use becalm_scale::{Noise, NoiseTrace};
use becalm_units::Nanos;

const PHASES: u64 = 300_000;

/// Detours at random instants with lengths from 1 us on, ten times longer ones ten times rarer, up to 10 ms.
fn trace(detours: usize, seconds: i64) -> NoiseTrace {
    let mut stream = Stream::new(1, Purpose::Detours, 0);
    let length = Nanos::from_secs(seconds);
    let mut starts: Vec<i64> = (0..detours).map(|_| stream.below(length.get() as u64 - 100_000_000) as i64).collect();
    starts.sort_unstable();
    let mut end = 0;
    let rows = starts.into_iter().map(|start| {
        let mut scale = 1_000;
        while scale < 1_000_000 && stream.below(10) == 0 {
            scale *= 10;
        }
        let duration = scale + stream.below(9 * scale as u64) as i64;
        let start = start.max(end);
        end = start + duration;
        (Nanos::new(start), Nanos::new(duration))
    });
    NoiseTrace::new(length, rows.collect::<Vec<_>>()).expect("sorted and apart")
}

fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = what();
    (value, start.elapsed())
}

fn per_phase(time: Duration, phases: u64) -> f64 {
    time.as_nanos() as f64 / phases as f64
}

fn compare() {
    let noise = Noise::apart("bench", trace(1_000_000, 5_000));
    let (table, built) = timed(|| DelayTable::new(&noise, 1, Nanos::from_millis(1)).expect("a table"));
    let (order, sorted) = timed(|| DelayDistribution::new(&table));
    let (_, asked) = timed(|| order.expected_slowdown(1 << 40));
    println!(
        "tables: {built:.0?} for {} pieces (target: 1 s); order statistics: {sorted:.0?}, each n {asked:.0?}",
        table.len()
    );
    println!("{:>8} {:>14} {:>12} {:>9} {:>9}  same", "ranks", "plain ns/phase", "fast", "ratio", "target");
    for (ranks, target) in [
        (64, None),
        (512, None),
        (1 << 10, None),
        (1 << 12, None),
        (1 << 14, Some(50)),
        (1 << 16, None),
        (1 << 19, Some(5_000)),
    ] {
        let offsets = Placement { ranks, per_node: 1, synchronized: false }.draw(&table, 1, 0).expect("offsets");
        let some = (40_000_000 / ranks).clamp(100, PHASES);
        let delays = |method, phases| {
            let mut delays = Vec::with_capacity(phases as usize);
            let replayed = replay_each(&table, &offsets, phases, method, |delay| delays.push(delay));
            replayed.expect("a replay");
            delays
        };
        let (plain, plain_time) = timed(|| delays(Some(Method::Plain), some));
        let same = plain == delays(None, some);
        let (_, fast_time) = timed(|| replay(&table, &offsets, PHASES).expect("a replay"));
        let (plain, fast) = (per_phase(plain_time, some), per_phase(fast_time, PHASES));
        let target = target.map_or_else(|| "-".to_owned(), |target: u32| format!("{target}"));
        println!(
            "{ranks:>8} {plain:>14.0} {fast:>12.1} {:>8.0}x {target:>9}  {same}  (plain on {some} phases)",
            plain / fast
        );
    }
}

fn d09() {
    let mut lines = Vec::new();
    let (_, time) = timed(|| {
        for detours in [700_000, 350_000] {
            let noise = Noise::apart("study", trace(detours, 1_750));
            let table = DelayTable::new(&noise, 1, Nanos::from_millis(1)).expect("a table");
            for bits in 6..=14 {
                let placement = Placement { ranks: 1 << bits, per_node: 1, synchronized: false };
                let offsets = placement.draw(&table, 1, 0).expect("offsets");
                lines.push(replay(&table, &offsets, PHASES).expect("a replay").slowdown());
            }
        }
    });
    println!(
        "D09's study, 64 to 16,384 tasks, 300,000 phases, two configurations: {time:.2?} (target: 10 s), {lines:.3?}"
    );
}

fn big() {
    let noise = Noise::apart("big", trace(10_000_000, 50_000));
    let (table, built) = timed(|| DelayTable::new(&noise, 1, Nanos::from_millis(1)).expect("a table"));
    let offsets = Placement { ranks: 1 << 14, per_node: 1, synchronized: false }.draw(&table, 1, 0).expect("offsets");
    let (_, replayed) = timed(|| replay(&table, &offsets, PHASES).expect("a replay"));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map_or("unknown", str::trim);
    println!(
        "10 million detours: table {built:.2?}, {:.0} ns a phase at 16,384 ranks, peak memory {peak} (target: 2 GB)",
        per_phase(replayed, PHASES)
    );
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("big") => big(),
        Some("d09") => d09(),
        _ => compare(),
    }
}
