//! Intervals of slowdowns against known processes: each is recorded for 10 s, and the interval must hold what the process
//! costs. `bench/src/bin/recordings.rs` has the whole table.

use becalm_scale::noise::NodeNoise;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::sampled::{PhaseLosses, PhaseSampler};
use becalm_scale::uncertainty::RecordingBounds;
use becalm_scale::{Noise, NoiseTrace};
use becalm_testing::noise::Source;
use becalm_testing::rare::RareLaw;
use becalm_units::Nanos;

const GRAIN: Nanos = Nanos::from_millis(1);

fn recorded(law: RareLaw, seed: u64, length: Nanos) -> Noise {
    let detours = law.recording(&mut Source::seeded(seed), length.get());
    let detours = detours.into_iter().map(|(start, duration)| (Nanos::new(start), Nanos::new(duration)));
    let trace = NoiseTrace::new(length, detours).unwrap();
    Noise::recorded(vec![NodeNoise::new("node", vec![trace]).unwrap()]).unwrap()
}

fn bounds(noise: &Noise, ranks: &[u64]) -> Vec<RecordingBounds> {
    let losses = PhaseLosses::from_noise(noise, 1, GRAIN).unwrap();
    ranks.iter().map(|ranks| open(&losses, *ranks).unwrap()).collect()
}

/// What other recordings leave open.
fn open<S: Ord>(losses: &PhaseLosses<S>, ranks: u64) -> Option<RecordingBounds> {
    Some(losses.bounds(&losses.uncertainty()?, ranks))
}

/// A job whose ranks work for a grain and then send each other messages.
fn with_messages(collective: &str, grain: Nanos, bytes: u64, phases: u64) -> Question {
    Question {
        grain,
        phases,
        collective: collective.parse().unwrap(),
        network: "infiniband".parse().unwrap(),
        bytes,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 1,
    }
}

/// What a process costs by replays, of which there is a recording so long that ranks seldom meet the same noise.
fn cost(process: &Noise, question: Question, ranks: u64) -> f64 {
    let row = Prediction::new(process, question).unwrap().row(ranks).unwrap();
    row.mean_phase_ns.unwrap() / row.quiet_phase_ns
}

/// What a recording says of it.
fn predicted(noise: &Noise, question: Question, ranks: u64) -> RecordingBounds {
    Prediction::new(noise, question).unwrap().with_recording().row(ranks).unwrap().recording.unwrap()
}

fn holds(bounds: &RecordingBounds, truth: f64) -> bool {
    bounds.low <= truth && bounds.high.is_none_or(|high| high >= truth)
}

#[test]
fn intervals_hold_what_the_process_costs() {
    const RANKS: [u64; 3] = [1 << 7, 1 << 10, 1 << 17];
    const RECORDINGS: u64 = 8;
    let (mut held, mut bounded, mut all) = (0, 0, 0);
    for law in RareLaw::ALL {
        let truth = RANKS.map(|ranks| 1.0 + law.added(&mut Source::seeded(1), ranks, 1e6, (1 << 25) / ranks));
        for seed in 0..RECORDINGS {
            let bounds = bounds(&recorded(law, 100 + seed, Nanos::from_secs(10)), &RANKS);
            held += bounds.iter().zip(truth).filter(|(bounds, truth)| holds(bounds, *truth)).count();
            bounded += usize::from(bounds[0].high.is_some());
            // In 10 s, which more than ten seconds of each phase of so many ranks are not.
            assert!(bounds[1..].iter().all(|bounds| bounds.high.is_none() && bounds.missed.is_some()), "{bounds:?}");
            all += 1;
        }
    }
    assert!(held * 100 >= 3 * all * 85, "{held} of {} intervals hold the truth", 3 * all);
    assert!(bounded * 2 > all, "{bounded} of {all} are bounded at 128 ranks");
}

/// Phases of 1,024 ranks take a tenth of the recorded time, and may each meet what comes every few seconds.
#[test]
fn what_a_recording_may_have_missed_has_no_upper_end() {
    let ticks = (0..2_500).map(|tick| (Nanos::new(4_000_000 * tick + 7), Nanos::new(3_000 + tick % 50)));
    let trace = NoiseTrace::new(Nanos::from_secs(10), ticks).unwrap();
    let noise = Noise::recorded(vec![NodeNoise::new("node", vec![trace]).unwrap()]).unwrap();
    let [few, many] = <[RecordingBounds; 2]>::try_from(bounds(&noise, &[160, 1 << 10])).unwrap();
    assert!(few.high.is_some() && few.missed.is_none() && few.needed.is_none(), "{few:?}");
    let missed = many.missed.expect("1,024 ms of work in 10 s");
    // 1 - exp(-1.024 s / (10 s / 3)).
    assert!((missed.phases - 0.264_5).abs() < 1e-4 && missed.every == Nanos::new(3_333_333_333), "{missed:?}");
    assert_eq!(many.high, None);
    // Where 3 times in the recording are 5 % of the phases.
    let needed = many.needed.unwrap();
    assert!((needed.get() - 61_440_000_000).abs() <= 1, "{needed}");
    let losses = sampled_detours(noise.nodes()[0].cpus()[0].detours(), Nanos::from_secs(10));
    let ends = [160, 1 << 10].map(|ranks| open(&losses, ranks).unwrap());
    assert!(ends[0].high.is_some() && ends[1].high.is_none() && ends[1].missed == Some(missed), "{ends:?}");
}

/// Quiet for 2 s on average, then for 0.3 s a detour every 2 ms on average.
fn bursts(source: &mut Source, length: f64) -> Vec<(Nanos, Nanos)> {
    let mut detours = Vec::new();
    // Begins in a burst as often as not.
    let mut at = if source.uniform() < 0.3 / 2.3 { 0.0 } else { source.exponential(2e9) };
    while at < length {
        let end = length.min(at + source.exponential(3e8));
        at += source.exponential(2e6);
        while at < end {
            let duration = 5_000.0 + source.exponential(5e4);
            if at + duration < length {
                detours.push((Nanos::new(at as i64), Nanos::new(duration as i64)));
            }
            at += duration + source.exponential(2e6);
        }
        at = end.max(at) + source.exponential(2e9);
    }
    detours
}

/// How many times as long a job takes whose ranks have such detours to themselves: by walking through them.
fn walked(ranks: usize, phases: usize) -> f64 {
    const TIME: f64 = 60e9;
    let mut source = Source::seeded(99);
    let noise: Vec<_> = (0..ranks).map(|_| bursts(&mut source, TIME)).collect();
    let (mut next, mut time) = (vec![0; ranks], 0);
    for _ in 0..phases {
        let mut latest = time;
        for (noise, next) in noise.iter().zip(&mut next) {
            let (mut at, mut work) = (time, GRAIN.get());
            while let Some((start, duration)) = noise.get(*next) {
                let (start, end) = (start.get(), start.get() + duration.get());
                if at < start && work <= start - at {
                    break;
                }
                if at < end {
                    work -= (start - at).max(0);
                    at = end;
                }
                *next += 1;
            }
            latest = latest.max(at + work);
        }
        time = latest;
    }
    assert!((time as f64) < TIME - 1e9, "the noise ends before the job");
    time as f64 / (phases as i64 * GRAIN.get()) as f64
}

/// Blocks of a 64th of the recording, drawn as if each had noise of its own, held it in 68 to 75 of 100.
#[test]
fn intervals_of_bursts_hold_what_the_process_costs() {
    const RANKS: u64 = 64;
    let truth = walked(RANKS as usize, 40_000);
    let length = Nanos::from_secs(10);
    let held = (0..100).filter(|seed| {
        let detours = bursts(&mut Source::seeded(1_000 + seed), length.get() as f64);
        holds(&open(&sampled_detours(detours.into_iter(), length), RANKS).unwrap(), truth)
    });
    let held = held.count();
    assert!(held >= 85, "{held} of 100 intervals hold {truth}");
}

#[test]
fn a_recording_of_the_length_that_is_named_has_an_upper_end() {
    let law = RareLaw::Exponential;
    let short = bounds(&recorded(law, 7, Nanos::from_secs(10)), &[1 << 14])[0];
    assert_eq!(short.high, None);
    let needed = short.needed.expect("an exponential law can be bounded");
    assert!(needed > Nanos::from_secs(10) && needed < Nanos::from_secs(10_000), "{needed}");
    let long = bounds(&recorded(law, 8, needed + needed), &[1 << 14])[0];
    assert!(long.high.is_some(), "not bounded by {needed}");
}

#[test]
fn longer_recordings_have_narrower_intervals() {
    let width = |seconds: i64| {
        let bounds = bounds(&recorded(RareLaw::Exponential, 9, Nanos::from_secs(seconds)), &[1 << 7])[0];
        (bounds.high.expect("few ranks are bounded") - 1.0) / (bounds.low - 1.0)
    };
    assert!(width(1_000) < 1.5, "{}", width(1_000));
    assert!(width(1_000) < width(10) / 2.0, "{} and {}", width(1_000), width(10));
}

#[test]
fn one_detour_makes_all_of_it_and_bounds_nothing() {
    let trace = NoiseTrace::new(Nanos::from_secs(10), [(Nanos::from_secs(3), GRAIN)]).unwrap();
    let noise = Noise::recorded(vec![NodeNoise::new("node", vec![trace]).unwrap()]).unwrap();
    let bounds = bounds(&noise, &[64])[0];
    assert_eq!((bounds.high, bounds.needed), (None, None));
    assert!(bounds.longest.iter().all(|share| (share - 1.0).abs() < 0.02), "{bounds:?}");
    assert!(bounds.low >= 1.0 && bounds.low < 1.02, "{bounds:?}");
}

#[test]
fn silence_costs_nothing() {
    let silent = NodeNoise::new("node", vec![NoiseTrace::silent(Nanos::from_secs(10)).unwrap()]).unwrap();
    let bounds = bounds(&Noise::recorded(vec![silent]).unwrap(), &[64])[0];
    assert_eq!((bounds.low, bounds.high, bounds.longest), (1.0, None, [0.0; 3]));
}

#[test]
fn the_same_seed_gives_the_same_interval() {
    let noise = recorded(RareLaw::Three, 3, Nanos::from_secs(10));
    assert_eq!(bounds(&noise, &[64, 4_096]), bounds(&noise, &[64, 4_096]));
}

/// The threshold above which there are only rare detours lies among the longest ticks, which come far more often: these must not
/// count as rare ones. They did, and 23 of these 30 intervals held the truth.
#[test]
fn a_threshold_among_many_ticks_counts_the_rare_ones_alone() {
    let law = RareLaw::Exponential;
    let truth = 1.0 + law.added(&mut Source::seeded(1), 1 << 7, 1e6, 1 << 20);
    let recording = |seed: u64| bounds(&recorded(law, 1_000 + seed, Nanos::from_secs(10)), &[1 << 7])[0];
    let held = (0..30).filter(|seed| holds(&recording(*seed), truth)).count();
    assert!(held >= 27, "{held} of 30 intervals hold {truth}");
}

/// With messages, too; the truth is a replay of the process for so long that it meets itself seldom. Grains that are long and short
/// against the messages, and messages that are.
#[test]
fn intervals_with_messages_hold_what_the_process_costs() {
    const RANKS: u64 = 64;
    const RECORDINGS: u64 = 6;
    let jobs = [
        ("allreduce:recursive-doubling", GRAIN, 8, 1_000),
        ("barrier:dissemination", Nanos::ZERO, 0, 20_000),
        ("alltoall:bruck", Nanos::from_micros(100), 1 << 16, 500),
    ];
    let (mut held, mut bounded, mut all) = (0, 0, 0);
    for (number, (collective, grain, bytes, phases)) in (1..).zip(jobs) {
        let question = |phases| with_messages(collective, grain, bytes, phases);
        for law in [RareLaw::Exponential, RareLaw::Lognormal, RareLaw::Three] {
            let process = recorded(law, 1, Nanos::from_secs(1_000));
            let truth = cost(&process, Question { replicas: 6, ..question(phases) }, RANKS);
            for seed in 0..RECORDINGS {
                let noise = recorded(law, 100 * number + seed, Nanos::from_secs(10));
                let bounds = predicted(&noise, Question { replicas: 3, ..question(phases) }, RANKS);
                held += usize::from(holds(&bounds, truth));
                bounded += usize::from(bounds.high.is_some());
                all += 1;
            }
        }
    }
    assert!(held * 100 >= all * 85, "{held} of {all} intervals hold the truth");
    assert!(bounded * 2 > all, "{bounded} of {all} are bounded");
}

/// Phases that are as short as detours seldom start within one: where that was not seen, all intervals lay above the truth (2 to 10 of
/// 30 held it).
#[test]
fn intervals_of_short_phases_hold_what_the_process_costs() {
    const RANKS: u64 = 64;
    const RECORDINGS: u64 = 8;
    let (mut held, mut all) = (0, 0);
    for (grain, phases) in [(Nanos::from_micros(6), 30_000), (Nanos::from_micros(20), 15_000)] {
        let question = |replicas, phases| Question { replicas, ..with_messages("ideal", grain, 0, phases) };
        for law in [RareLaw::Exponential, RareLaw::Three] {
            let process = recorded(law, 1, Nanos::from_secs(1_000));
            let truth = cost(&process, question(16, 2 * phases), RANKS);
            for seed in 0..RECORDINGS {
                let noise = recorded(law, 100 + seed, Nanos::from_secs(10));
                held += usize::from(holds(&predicted(&noise, question(5, phases), RANKS), truth));
                all += 1;
            }
        }
    }
    assert!(held * 100 >= all * 85, "{held} of {all} intervals hold the truth");
}

/// What phases sampled in passing say, as a report does that keeps no detours.
fn sampled(law: RareLaw, seed: u64, length: Nanos) -> PhaseLosses<u32> {
    let detours = law.recording(&mut Source::seeded(seed), length.get()).into_iter();
    sampled_detours(detours.map(|(start, duration)| (Nanos::new(start), Nanos::new(duration))), length)
}

fn sampled_detours(detours: impl Iterator<Item = (Nanos, Nanos)>, length: Nanos) -> PhaseLosses<u32> {
    let mut losses = PhaseLosses::new(GRAIN);
    let mut sampler = PhaseSampler::new(Nanos::ZERO, length, GRAIN).for_cpus(1);
    for (number, (start, duration)) in (0..).zip(detours) {
        sampler.part(number, start, 0, duration, &mut losses);
    }
    sampler.finish(&mut losses);
    losses
}

/// The same with two ranks on a node of two CPUs, whose noise is independent.
#[test]
fn a_prediction_of_nodes_is_that_of_a_report() {
    let length = Nanos::from_secs(10);
    let law = RareLaw::Exponential;
    let cpus = [71, 72].map(|seed| recorded(law, seed, length).nodes()[0].cpus()[0].clone());
    let noise = Noise::recorded(vec![NodeNoise::new("node", cpus.to_vec()).unwrap()]).unwrap();
    let mut losses = PhaseLosses::<u32>::new(GRAIN);
    for cpu in &cpus {
        let mut sampler = PhaseSampler::new(Nanos::ZERO, length, GRAIN).for_cpus(2);
        for (number, (start, duration)) in (0..).zip(cpu.detours()) {
            sampler.part(number, start, 0, duration, &mut losses);
        }
        sampler.finish(&mut losses);
    }
    // A report has the nodes of a recording one by one.
    let mut report = PhaseLosses::<u32>::new(GRAIN);
    report.merge(&losses, |source| *source);
    for ranks in [64, 1 << 10] {
        let question = Question { replicas: 4, per_node: 2, ..with_messages("ideal", GRAIN, 0, 20_000) };
        let row = Prediction::new(&noise, question).unwrap().with_recording().row(ranks).unwrap();
        assert_eq!(row.slowdown.unwrap().mean, report.slowdown(ranks, None), "{ranks}");
        assert_eq!(row.recording, open(&report, ranks), "{ranks}");
    }
}

/// A report samples phases while detours pass by, and a prediction has them all: both give one slowdown and one interval.
#[test]
fn a_prediction_is_that_of_a_report() {
    let length = Nanos::from_secs(10);
    for (number, law) in (40..).zip(RareLaw::ALL) {
        let report = sampled(law, number, length);
        let noise = recorded(law, number, length);
        let question = Question { replicas: 4, ..with_messages("ideal", GRAIN, 0, 20_000) };
        for ranks in [16, 128, 1 << 12] {
            let row = Prediction::new(&noise, question).unwrap().with_recording().row(ranks).unwrap();
            assert_eq!(row.slowdown.unwrap().mean, report.slowdown(ranks, None), "{law:?}");
            assert_eq!(row.recording, open(&report, ranks), "{law:?}");
            let replayed = row.mean_phase_ns.unwrap() / row.quiet_phase_ns;
            assert!((report.slowdown(ranks, None) / replayed - 1.0).abs() < 0.03, "{law:?}");
        }
    }
}

#[test]
fn intervals_of_sampled_phases_hold_what_the_process_costs() {
    const RECORDINGS: u64 = 12;
    let (mut held, mut bounded, mut all) = (0, 0, 0);
    for law in RareLaw::ALL {
        for ranks in [1 << 5, 1 << 7] {
            let truth = 1.0 + law.added(&mut Source::seeded(1), ranks, 1e6, (1 << 24) / ranks);
            for seed in 0..RECORDINGS {
                let losses = sampled(law, 100 + seed, Nanos::from_secs(10));
                let ends = open(&losses, ranks).expect("phases were sampled");
                assert!(ends.low <= losses.slowdown(ranks, None));
                held += usize::from(ends.low <= truth && ends.high.is_none_or(|high| high >= truth));
                bounded += usize::from(ends.high.is_some());
                all += 1;
            }
        }
    }
    assert!(held * 100 >= all * 85, "{held} of {all} intervals hold the truth");
    assert!(bounded * 2 > all, "{bounded} of {all} are bounded");
}

/// Many nodes have fewer blocks each, and the longest detours of all; nothing sampled says nothing.
#[test]
fn phases_of_many_nodes_say_about_what_those_of_one_do() {
    let law = RareLaw::Exponential;
    let mut nodes = PhaseLosses::new(GRAIN);
    assert_eq!(open(&nodes, 64), None);
    for seed in 0..40 {
        nodes.merge(&sampled(law, 500 + seed, Nanos::from_secs(5)), |source| *source);
    }
    let one = sampled(law, 7, Nanos::from_secs(200));
    let [nodes, one] = [nodes, one].map(|losses| open(&losses, 1 << 10).unwrap());
    let truth = 1.0 + law.added(&mut Source::seeded(1), 1 << 10, 1e6, 1 << 14);
    for ends in [nodes, one] {
        let high = ends.high.expect("so much is bounded");
        assert!(ends.low <= truth && truth <= high && high - 1.0 < 2.0 * (ends.low - 1.0), "{ends:?} {truth}");
    }
}
