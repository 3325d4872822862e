//! Whether the intervals of predicted slowdowns hold the truth: known processes are recorded for 10 s, 30 times each, and
//! every interval is held against what the process costs, computed without any recording.
//!
//! The node has ticks (250 Hz, 3 to 6 us) and two rare detours a second; the grain is 1 ms.

use std::process::ExitCode;

use becalm_bench::claims::{Claims, Figure};
use becalm_bench::effort::Effort;
use becalm_bench::figures::Repetitions;
use becalm_scale::delay::DelayTable;
use becalm_scale::noise::NodeNoise;
use becalm_scale::uncertainty::{RecordingBounds, RecordingUncertainty};
use becalm_scale::{Noise, NoiseTrace};
use becalm_testing::noise::Source;
use becalm_testing::rare::RareLaw;
use becalm_units::{Count, Nanos};

const RECORDINGS: u64 = 30;
const RANKS: [u64; 4] = [1 << 10, 1 << 13, 1 << 14, 1 << 17];
const GRAIN: Nanos = Nanos::from_millis(1);
const LENGTH: Nanos = Nanos::from_secs(10);

/// So many ranks times phases are drawn for the truth.
const DRAWN: u64 = 1 << 31;

fn bounds(law: RareLaw, seed: u64) -> Vec<RecordingBounds> {
    let detours = law.recording(&mut Source::seeded(seed), LENGTH.get());
    let detours = detours.into_iter().map(|(start, duration)| (Nanos::new(start), Nanos::new(duration)));
    let trace = NoiseTrace::new(LENGTH, detours).expect("in order and apart");
    let noise = Noise::recorded(vec![NodeNoise::new("node", vec![trace]).expect("one CPU")]).expect("one node");
    let table = DelayTable::new(&noise, 1, GRAIN).expect("a table");
    let known = RecordingUncertainty::new(&noise, &table, seed);
    RANKS.iter().map(|ranks| known.bounds(*ranks)).collect()
}

/// What became of the intervals of one law and number of ranks.
fn claim(claims: &mut Claims, law: RareLaw, ranks: u64, truth: f64, intervals: &[RecordingBounds]) {
    let held = |bounds: &&RecordingBounds| bounds.low <= truth && bounds.high.is_none_or(|high| high >= truth);
    let share = 100.0 * intervals.iter().filter(held).count() as f64 / intervals.len() as f64;
    let name = format!("{law:?}, {} ranks, truth {truth:.4}", Count::new(ranks));
    claims.at_least(&format!("{name}: intervals that hold it"), Figure::percent(share), 85.0);
    let ends: Vec<(f64, f64)> = intervals.iter().filter_map(|bounds| Some((bounds.low, bounds.high?))).collect();
    let bounded = Figure::percent(100.0 * ends.len() as f64 / intervals.len() as f64);
    let what = format!("{name}: with an upper end");
    if ranks == RANKS[0] {
        claims.at_least(&what, bounded, 50.0)
    } else {
        claims.state(&what, bounded, "")
    }
    let median = |values: Vec<f64>| if values.is_empty() { f64::NAN } else { Repetitions::new(values).median() };
    let lows = median(intervals.iter().map(|bounds| bounds.low).collect());
    let widths = median(ends.iter().map(|(low, high)| (high - 1.0) / (low - 1.0)).collect());
    let remark = format!("median low {lows:.4}, upper end's added time over the lower one's {widths:.1}");
    claims.remark(&format!("    {name}: {remark}"));
}

fn main() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Intervals of slowdowns from recordings of 10 s", effort);
    for law in RareLaw::ALL {
        let intervals: Vec<Vec<RecordingBounds>> =
            (0..effort.share(RECORDINGS)).map(|recording| bounds(law, 1_000 + recording)).collect();
        for (at, ranks) in RANKS.into_iter().enumerate() {
            let phases = effort.share(DRAWN) / ranks;
            let truth = 1.0 + law.added(&mut Source::seeded(1), ranks, GRAIN.get() as f64, phases);
            let of_ranks: Vec<RecordingBounds> = intervals.iter().map(|row| row[at]).collect();
            claim(&mut claims, law, ranks, truth, &of_ranks);
        }
    }
    claims.end()
}
