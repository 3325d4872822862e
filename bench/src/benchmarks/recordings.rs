//! Do the intervals of predicted slowdowns contain the truth? Known processes are recorded for 10 s, 30 times each, and every interval is
//! compared with the cost of the process, computed without a recording.
//!
//! The node has ticks (250 Hz, 3 to 6 us) and two rare detours per second; the grain is 1 ms. Jobs with messages have several: their truth
//! is a replay of a recording so long that ranks rarely meet the same noise.

use std::process::ExitCode;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::figures::Repetitions;
use becalm_scale::noise::NodeNoise;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::sampled::PhaseLosses;
use becalm_scale::uncertainty::RecordingEnds;
use becalm_scale::{Noise, NoiseTrace};
use becalm_testing::noise::Source;
use becalm_testing::rare::RareLaw;
use becalm_units::{Count, Nanos};

const RECORDINGS: u64 = 30;
/// Only the first one can have upper ends, because a phase of all its ranks takes less than a 60th of a recording.
const RANKS: [u64; 4] = [1 << 7, 1 << 10, 1 << 14, 1 << 17];
const GRAIN: Nanos = Nanos::from_millis(1);
const LENGTH: Nanos = Nanos::from_secs(10);

/// The number of ranks times phases drawn for the truth.
const DRAWN: u64 = 1 << 31;

/// The length of the recording that gives the truth for jobs with messages, in seconds, and the number of its replays.
const LONG_SECONDS: u64 = 8_000;
const TRUE_REPLICAS: u64 = 12;

fn recorded(law: RareLaw, seed: u64, length: Nanos) -> Noise {
    let detours = law.recording(&mut Source::seeded(seed), length.get());
    let detours = detours.into_iter().map(|(start, duration)| (Nanos::new(start), Nanos::new(duration)));
    let trace = NoiseTrace::new(length, detours).expect("in order and apart");
    Noise::recorded(vec![NodeNoise::new("node", vec![trace]).expect("one CPU")]).expect("one node")
}

/// The intervals of reports and predictions.
fn intervals(law: RareLaw, seed: u64) -> Vec<RecordingEnds> {
    let noise = recorded(law, seed, LENGTH);
    let losses = PhaseLosses::from_noise(&noise, 1, GRAIN).expect("grains that fit");
    let known = losses.uncertainty().expect("a recording");
    RANKS.iter().map(|ranks| losses.bounds(&known, *ranks).ends()).collect()
}

/// A job with messages, or the ideal one with phases as short as detours: collective, grain, bytes, ranks, and phases per replay.
type Job = (&'static str, Nanos, u64, u64, u64);

const JOBS: [Job; 5] = [
    ("ideal", Nanos::from_micros(6), 0, 64, 200_000),
    ("ideal", Nanos::from_micros(100), 0, 1 << 14, 20_000),
    ("barrier:dissemination", Nanos::ZERO, 0, 256, 20_000),
    ("allreduce:recursive-doubling", Nanos::from_millis(1), 8, 1 << 10, 3_000),
    ("alltoall:bruck", Nanos::from_micros(100), 1 << 16, 256, 3_000),
];

fn question((collective, _, bytes, _, phases): &Job, grain: Nanos, replicas: u64) -> Question {
    Question {
        grain,
        phases: *phases,
        collective: collective.parse().expect("a collective"),
        network: "infiniband".parse().expect("a preset"),
        bytes: *bytes,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas,
    }
}

fn jobs(claims: &mut Claims, effort: Effort) {
    for job in JOBS {
        let (collective, grain, _, ranks, _) = job;
        let question = |replicas| question(&job, grain, replicas);
        let (mut held, mut all) = (0, 0);
        for law in [RareLaw::Exponential, RareLaw::Lognormal, RareLaw::Three] {
            let process = recorded(law, 1, Nanos::from_secs(effort.share(LONG_SECONDS) as i64));
            let replayed = Prediction::new(&process, question(effort.share(TRUE_REPLICAS)))
                .and_then(|prediction| prediction.row(ranks))
                .expect("a replay");
            let truth = replayed.mean_phase_ns.expect("not too many ranks") / replayed.quiet_phase_ns;
            let predicted = |seed: u64| {
                let noise = recorded(law, 1_000 + seed, LENGTH);
                let row =
                    Prediction::new(&noise, question(4)).and_then(|prediction| prediction.with_recording().row(ranks));
                row.expect("a replay").recording.expect("it is asked for").ends()
            };
            let intervals: Vec<RecordingEnds> = (0..effort.share(RECORDINGS)).map(predicted).collect();
            held += intervals.iter().filter(|bounds| holds(bounds, truth)).count();
            all += intervals.len();
            remark(claims, &name(&format!("{law:?}, {collective}, grain {grain}"), ranks, truth), truth, &intervals);
        }
        let share = Figure::percent(100.0 * held as f64 / all as f64);
        let what = format!("{collective}, grain {grain}, {} ranks: intervals that hold the truth", Count::new(ranks));
        claims.at_least(&what, share, 85.0);
    }
}

fn holds(bounds: &RecordingEnds, truth: f64) -> bool {
    bounds.low <= truth && bounds.high.is_none_or(|high| high >= truth)
}

fn name(what: &str, ranks: u64, truth: f64) -> String {
    format!("{what}, {} ranks, truth {truth:.4}", Count::new(ranks))
}

/// Judges the intervals of one distribution and number of ranks.
fn claim(claims: &mut Claims, law: RareLaw, ranks: u64, truth: f64, intervals: &[RecordingEnds]) {
    let held = intervals.iter().filter(|bounds| holds(bounds, truth)).count();
    let share = 100.0 * held as f64 / intervals.len() as f64;
    let name = name(&format!("{law:?}"), ranks, truth);
    claims.at_least(&format!("{name}: intervals that hold it"), Figure::percent(share), 85.0);
    let ends = intervals.iter().filter(|bounds| bounds.high.is_some()).count();
    let bounded = Figure::percent(100.0 * ends as f64 / intervals.len() as f64);
    let what = format!("{name}: with an upper end");
    if ranks == RANKS[0] {
        claims.at_least(&what, bounded, 50.0)
    } else {
        claims.state(&what, bounded, "")
    }
    remark(claims, &name, truth, intervals);
}

/// Notes how many intervals contain the truth, and their width.
fn remark(claims: &mut Claims, name: &str, truth: f64, intervals: &[RecordingEnds]) {
    let held = intervals.iter().filter(|bounds| holds(bounds, truth)).count();
    let ends: Vec<(f64, f64)> = intervals.iter().filter_map(|bounds| Some((bounds.low, bounds.high?))).collect();
    let low = Repetitions::new(intervals.iter().map(|bounds| bounds.low).collect()).median();
    let mut remark = format!("median low {low:.4}");
    if !ends.is_empty() {
        let widths = ends.iter().map(|(low, high)| (high - 1.0) / (low - 1.0)).collect();
        let width = Repetitions::new(widths).median();
        remark = format!("{remark}, upper end's added time over the lower one's {width:.1}");
    }
    claims.remark(&format!("    {name}: {held} of {} hold; {remark}", intervals.len()));
}

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Intervals of slowdowns from recordings of 10 s", effort);
    for law in RareLaw::ALL {
        let found: Vec<Vec<RecordingEnds>> =
            (0..effort.share(RECORDINGS)).map(|recording| intervals(law, 1_000 + recording)).collect();
        for (at, ranks) in RANKS.into_iter().enumerate() {
            let phases = effort.share(DRAWN) / ranks;
            let truth = 1.0 + law.added(&mut Source::seeded(1), ranks, GRAIN.get() as f64, phases);
            let rank_ends: Vec<RecordingEnds> = found.iter().map(|row| row[at]).collect();
            claim(&mut claims, law, ranks, truth, &rank_ends);
        }
    }
    jobs(&mut claims, effort);
    claims.end()
}
