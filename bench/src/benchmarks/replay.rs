//! The fast exact replay compared with the plain one: both in one run, on one core, with their ratio.
//!
//! The trace has 1 million detours over 5,000 s; G = 1 ms; 300,000 phases. The plain replay is timed on fewer phases and scaled; both must
//! give the same delays on those. Then D09's study, and a trace of 10 million detours with its memory, measured in a separate process
//! (`replay big`).

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::programs;
use becalm_scale::delay::DelayTable;
use becalm_scale::order::DelayDistribution;
use becalm_scale::placement::Placement;
use becalm_scale::random::{Purpose, Stream};
use becalm_scale::replay::{Method, replay, replay_each};
use becalm_scale::{Noise, NoiseTrace};
use becalm_units::Nanos;
use rustix::time::{ClockId, clock_gettime};

const PHASES: u64 = 300_000;
/// The argument that selects the process for measuring memory.
const BIG: &str = "big";

/// Detours at random instants with lengths from 1 us to 10 ms; ten times longer ones are ten times rarer.
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

/// Measures the processor time of this thread, which does all the work: other programs do not count.
fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let start = now();
    let value = what();
    (value, now() - start)
}

fn per_phase(time: Duration, phases: u64) -> f64 {
    time.as_nanos() as f64 / phases as f64
}

fn compare(claims: &mut Claims, effort: Effort) {
    let noise = Noise::apart("bench", trace(1_000_000, 5_000));
    let (table, built) = timed(|| DelayTable::new(&noise, 1, Nanos::from_millis(1)).expect("a table"));
    claims.at_most(&format!("tables of {} pieces", table.len()), Figure::seconds(built.as_secs_f64()), 1.0);
    let (order, sorted) = timed(|| DelayDistribution::new(&table));
    let (_, asked) = timed(|| order.expected_slowdown(1 << 40));
    let figure = Figure::seconds((sorted + asked).as_secs_f64());
    claims.at_most("order statistics, and their answer for 2^40 ranks", figure, 1.0);
    let phases = effort.share(PHASES);
    for (ranks, at_least) in [
        (64, None),
        (512, None),
        (1 << 10, None),
        (1 << 12, None),
        (1 << 14, Some(50.0)),
        (1 << 16, None),
        (1 << 19, Some(5_000.0)),
    ] {
        let offsets = Placement { ranks, per_node: 1, synchronized: false }.draw(&table, 1, 0).expect("offsets");
        let some = (effort.share(40_000_000) / ranks).clamp(effort.share(100), phases);
        let delays = |method, phases| {
            let mut delays = Vec::with_capacity(phases as usize);
            let replayed = replay_each(&table, &offsets, phases, method, |delay| delays.push(delay));
            replayed.expect("a replay");
            delays
        };
        let (plain, plain_time) = timed(|| delays(Some(Method::Plain), some));
        let apart = plain.iter().zip(delays(None, some)).filter(|(plain, fast)| *plain != fast).count();
        let (_, fast_time) = timed(|| replay(&table, &offsets, phases).expect("a replay"));
        let (plain, fast) = (per_phase(plain_time, some), per_phase(fast_time, phases));
        let what = format!("a phase of {ranks} ranks, against plain");
        claims.state_beside(&what, Figure::ns(fast), Figure::ns(plain), "");
        claims.none(&format!("  delays that differ, of {some}"), apart as u64);
        match at_least {
            Some(least) => claims.at_least("  times faster", Figure::times(plain / fast), least),
            None => claims.state("  times faster", Figure::times(plain / fast), ""),
        }
    }
}

fn d09(claims: &mut Claims, effort: Effort) {
    let (_, time) = timed(|| {
        for detours in [700_000, 350_000] {
            let noise = Noise::apart("study", trace(detours, 1_750));
            let table = DelayTable::new(&noise, 1, Nanos::from_millis(1)).expect("a table");
            for bits in 6..=14 {
                let placement = Placement { ranks: 1 << bits, per_node: 1, synchronized: false };
                let offsets = placement.draw(&table, 1, 0).expect("offsets");
                black_box(replay(&table, &offsets, effort.share(PHASES)).expect("a replay"));
            }
        }
    });
    claims.at_most("D09's study: 64 to 16,384 tasks, 2 configurations", Figure::seconds(time.as_secs_f64()), 10.0);
}

/// Measured from outside.
fn big(effort: Effort) {
    let noise = Noise::apart("big", trace(effort.share(10_000_000) as usize, 50_000));
    let table = DelayTable::new(&noise, 1, Nanos::from_millis(1)).expect("a table");
    let offsets = Placement { ranks: 1 << 14, per_node: 1, synchronized: false }.draw(&table, 1, 0).expect("offsets");
    black_box(replay(&table, &offsets, effort.share(PHASES)).expect("a replay"));
}

fn memory_of_big(claims: &mut Claims, effort: Effort) {
    let what = "peak memory with 10 million detours";
    let quick = (effort == Effort::Quick).then_some(Effort::QUICK);
    let program = std::env::current_exe();
    match program.and_then(|program| programs::cost(Command::new(program).args(["replay", BIG]).args(quick), None)) {
        Ok(cost) if cost.success => {
            claims.at_most(what, Figure::megabytes(cost.peak_bytes), 2_000.0);
            claims.state("  all of it, with 300,000 phases", Figure::seconds(cost.wall.as_secs_f64()), "");
        }
        Ok(_) => claims.fail(what, "its program failed"),
        Err(error) => claims.fail(what, &error.to_string()),
    }
}

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    if std::env::args().nth(2).as_deref() == Some(BIG) {
        big(effort);
        return ExitCode::SUCCESS;
    }
    let mut claims = Claims::begin("Replay: 1 million detours over 5,000 s, G = 1 ms, one core", effort);
    // First, because the peak memory of a child process includes that of this one.
    memory_of_big(&mut claims, effort);
    compare(&mut claims, effort);
    d09(&mut claims, effort);
    claims.end()
}
