//! What the papers of METHODS found, found again: each with the tolerance that is stated.

use becalm_scale::blame::blame;
use becalm_scale::books::{BookedNoise, BookedTrace, Entry};
use becalm_scale::collective::{Barrier, Collective};
use becalm_scale::network::Network;
use becalm_scale::predict::{Prediction, Question, Row};
use becalm_scale::random::{Purpose, Stream};
use becalm_scale::spec::NoiseSpec;
use becalm_scale::{NodeNoise, Noise, NoiseTrace};
use becalm_units::Nanos;

/// B07: barriers back to back on Blue Gene/L's global interrupt network, two processes a node.
fn barriers(spec: &str, ranks: u64, phases: u64, synchronized: bool) -> Row {
    let trace = spec.parse::<NoiseSpec>().unwrap().trace(1).unwrap();
    let noise = Noise::apart(spec, trace);
    let question = Question {
        grain: Nanos::ZERO,
        phases,
        collective: Collective::Barrier(Barrier::Hardware),
        network: "bgl".parse::<Network>().unwrap(),
        bytes: 1,
        per_node: 2,
        synchronized,
        seed: 7,
        replicas: 1,
    };
    Prediction::new(&noise, question).unwrap().row(ranks).unwrap()
}

fn slowdown(row: &Row) -> f64 {
    row.slowdown.unwrap().mean
}

/// B07: 1.5 us without noise.
#[test]
fn b07_barrier_without_noise() {
    let row = barriers("periodic:interval=1ms,detour=0us", 1 << 15, 3, false);
    assert_eq!((row.quiet_phase_ns, slowdown(&row)), (1_500.0, 1.0));
}

/// B07: synchronized noise costs at most 26 %, also in its worst case.
#[test]
fn b07_synchronized_noise_costs_at_most_26_percent() {
    let spec = "periodic:interval=1ms,detour=200us";
    // All ranks are in step, so that two of them take as long as all, and a long run needs no more.
    assert_eq!(slowdown(&barriers(spec, 1 << 15, 700, true)), slowdown(&barriers(spec, 2, 700, true)));
    let row = barriers(spec, 2, 1_000_000, true);
    assert!((1.2..=1.26).contains(&slowdown(&row)), "{}", slowdown(&row));
}

/// B07: a factor of up to 268 (within 15 %), which is two detours; linear in the detour's length (within 12 %, as two
/// detours in a row are rarer the shorter they are).
#[test]
fn b07_unsynchronized_noise_saturates_at_two_detours_each_millisecond() {
    for detour_us in [50.0, 100.0, 200.0] {
        let row = barriers(&format!("periodic:interval=1ms,detour={detour_us}us"), 1 << 15, 120, false);
        let detours = (row.mean_phase_ns.unwrap() - 1_500.0) / (detour_us * 1e3);
        assert!((1.76..=2.0).contains(&detours), "{detour_us}: {detours}");
        if detour_us == 200.0 {
            assert!((268.0 * 0.85..=268.0 * 1.15).contains(&slowdown(&row)), "{}", slowdown(&row));
        }
    }
}

/// B07: one detour at intervals of 100 ms.
#[test]
fn b07_rare_noise_saturates_at_one_detour() {
    let row = barriers("periodic:interval=100ms,detour=200us", 1 << 15, 120, false);
    let detours = (row.mean_phase_ns.unwrap() - 1_500.0) / 200e3;
    assert!((0.85..=1.15).contains(&detours), "{detours}");
}

/// B07 saw nothing of 16 us every 100 ms. On its figures' scale, which runs to 400 us, that is what we find: less than
/// one detour, 4 % of the scale. (Against the 1.5 us of a barrier it is visible: half a detour begins on the machine
/// during each.) Synchronized, it is below 0.1 %.
#[test]
fn b07_short_rare_noise_is_invisible() {
    let row = barriers("periodic:interval=100ms,detour=16us", 1 << 15, 120, false);
    assert!(row.mean_phase_ns.unwrap() - 1_500.0 < 16e3);
    let row = barriers("periodic:interval=100ms,detour=16us", 2, 1_000_000, true);
    assert!(slowdown(&row) < 1.001, "{}", slowdown(&row));
}

/// B07: at one noise ratio, long rare detours hurt more than short frequent ones, and the effect levels off with the
/// number of processes once a detour is always under way somewhere.
#[test]
fn b07_constant_ratio() {
    let specs = [
        "periodic:interval=1ms,detour=10us",
        "periodic:interval=10ms,detour=100us",
        "periodic:interval=100ms,detour=1ms",
    ];
    let curve = |spec: &str| -> Vec<f64> {
        [1 << 10, 1 << 12, 1 << 15].iter().map(|ranks| slowdown(&barriers(spec, *ranks, 120, false))).collect()
    };
    let curves: Vec<Vec<f64>> = specs.iter().map(|spec| curve(spec)).collect();
    for (short, long) in curves.iter().zip(&curves[1..]) {
        assert!(short.iter().zip(long).all(|(short, long)| long > &(3.0 * short)), "{curves:?}");
    }
    for curve in &curves {
        assert!(curve.is_sorted(), "{curves:?}");
        // Eight times the processes, and at most a quarter more.
        assert!(curve[2] < 1.25 * curve[1], "{curves:?}");
    }
}

/// A drawn trace with its books.
struct Study {
    sources: Vec<String>,
    detours: Vec<(Nanos, Nanos)>,
    entries: Vec<Entry>,
    length: Nanos,
}

/// A trace with the sources of D09's table: for each its count, one detour of its highest length, and the others spread
/// evenly from its lowest so that its mean is kept. It lasts 700 s, which 170,000 ticks take at about 250 Hz.
fn d09(configuration: &str) -> Study {
    let table = include_str!("data/de2009_sources.csv");
    let length = Nanos::from_secs(700);
    let mut stream = Stream::new(2009, Purpose::Detours, 0);
    let mut sources = Vec::new();
    let mut drawn: Vec<(i64, i64, u32)> = Vec::new();
    for line in table.lines().filter(|line| line.starts_with(configuration)) {
        let columns: Vec<&str> = line.split(',').collect();
        let us = |column: usize| (columns[column].parse::<f64>().unwrap() * 1e3) as i64;
        let (lowest, highest, mean) = (us(2), us(3), us(5));
        let count: i64 = columns[4].parse().unwrap();
        let source = sources.len() as u32;
        sources.push(columns[1].to_owned());
        // One of the longest, and the rest spread so that the mean is kept.
        let rest_mean = if count > 1 { (mean * count - highest) / (count - 1) } else { highest };
        let spread = (rest_mean - lowest).max(0);
        for number in 0..count {
            let long = number == 0;
            let duration = if long { highest } else { lowest + stream.below(2 * spread as u64 + 1) as i64 };
            drawn.push((stream.below(length.get() as u64 - 10_000_000) as i64, duration, source));
        }
    }
    drawn.sort_unstable();
    let (mut detours, mut entries, mut end) = (Vec::new(), Vec::new(), 0);
    for (detour, (start, duration, source)) in drawn.into_iter().enumerate() {
        // What comes while another detour lasts follows it.
        let start = start.max(end);
        end = start + duration;
        detours.push((Nanos::new(start), Nanos::new(duration)));
        entries.push(Entry { detour, source, self_time: Nanos::new(duration) });
    }
    Study { sources, detours, entries, length }
}

fn d09_question() -> Question {
    Question {
        grain: Nanos::from_millis(1),
        phases: 20_000,
        collective: Collective::Ideal,
        network: "bgl".parse().unwrap(),
        bytes: 1,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 3,
    }
}

/// D09: the slowdown grows with the tasks, and isolation lies below the baseline. Published at 16,384 tasks: 31.2 %
/// against 44.2 %; the published table is not the whole trace, so only the order is asked for.
#[test]
fn d09_isolation_helps_and_scale_hurts() {
    let curve = |configuration: &str| -> Vec<f64> {
        let Study { detours, length, .. } = d09(configuration);
        let trace = NoiseTrace::new(length, detours).unwrap();
        let noise = Noise::recorded(vec![NodeNoise::new("node", vec![trace]).unwrap()]).unwrap();
        let prediction = Prediction::new(&noise, d09_question()).unwrap();
        (6..=14).map(|bits| slowdown(&prediction.row(1 << bits).unwrap())).collect()
    };
    let (baseline, isolated) = (curve("baseline"), curve("isolated"));
    assert!(baseline.is_sorted() && isolated.is_sorted(), "{baseline:?} {isolated:?}");
    assert!(
        baseline.iter().zip(&isolated).all(|(baseline, isolated)| baseline > isolated),
        "{baseline:?} {isolated:?}"
    );
    assert!(baseline[8] > 1.2 && isolated[8] > 1.03, "{baseline:?} {isolated:?}");
}

/// Blame on D09's baseline, and nothing left when all sources are out.
#[test]
fn d09_blame() {
    let Study { sources, detours, entries, length } = d09("baseline");
    let trace = BookedTrace::new(Nanos::ZERO, length, detours, entries, sources.len()).unwrap();
    let noise = BookedNoise::new(sources.clone(), vec![("node".to_owned(), vec![trace])]).unwrap();
    let question = Question { phases: 2_000, replicas: 1, ..d09_question() };
    let blames =
        blame(&noise, question, &[64, 16_384], sources.len(), &vec![false; sources.len()], &mut |_| {}).unwrap();
    for blame in &blames {
        assert_eq!(blame.each.len(), sources.len());
        assert!(blame.each.is_sorted_by(|a, b| a.slowdown <= b.slowdown));
        assert_eq!(blame.next[0], blame.each[0]);
        assert!(blame.next.is_sorted_by(|a, b| a.slowdown > b.slowdown));
        assert_eq!(blame.next.last().unwrap().slowdown, 1.0, "without all sources nothing is lost");
    }
    // Alone the tick takes 95 % of the time, but at scale its rare long detours are what costs.
    let silent = noise.without(&vec![true; sources.len()]).unwrap();
    assert!(silent.traces().all(NoiseTrace::is_empty));
    let row = Prediction::new(&silent, question).unwrap().row(1 << 14).unwrap();
    assert_eq!((slowdown(&row), row.expected_ratio), (1.0, Some(1.0)));
}

/// Replays, order statistics and law of independent noise agree where all hold.
#[test]
fn three_ways_to_one_figure() {
    let trace = "poisson:rate=10Hz,detour=50us".parse::<NoiseSpec>().unwrap().trace(4).unwrap();
    let noise = Noise::apart("poisson", trace);
    let question = Question { phases: 50_000, replicas: 8, ..d09_question() };
    let prediction = Prediction::new(&noise, question).unwrap();
    for ranks in [1, 4, 64, 1_024] {
        let row = prediction.row(ranks).unwrap();
        let (slowdown, expected) = (row.slowdown.unwrap(), row.expected_ratio.unwrap());
        let half = slowdown.high - slowdown.mean;
        assert!((slowdown.mean - expected).abs() < 3.0 * half + 1e-6, "{ranks}: {slowdown:?} {expected}");
        assert!((row.law.unwrap().slowdown_ratio / expected - 1.0).abs() < 0.03, "{ranks}: {row:?}");
    }
    // Beyond what can be replayed, order statistics answer; 2^40 in no time.
    let row = prediction.row(1 << 40).unwrap();
    assert!(row.slowdown.is_none() && row.expected_ratio.unwrap() >= 1.05);
}

/// The same numbers with any number of threads.
#[test]
fn threads_change_nothing() {
    let trace = "poisson:rate=200Hz,detour=50us".parse::<NoiseSpec>().unwrap().trace(4).unwrap();
    let noise = Noise::apart("poisson", trace);
    let question = Question { phases: 2_000, replicas: 5, ..d09_question() };
    let row = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Prediction::new(&noise, question).unwrap().row(4_096).unwrap())
    };
    assert_eq!(row(1), row(4));
}

#[test]
fn bad_questions_are_refused() {
    let noise = Noise::apart("silence", NoiseTrace::silent(Nanos::from_secs(1)).unwrap());
    let good = d09_question();
    for bad in [
        Question { phases: 0, ..good },
        Question { replicas: 0, ..good },
        Question { grain: Nanos::ZERO, ..good },
        Question { per_node: 0, ..good },
    ] {
        assert!(Prediction::new(&noise, bad).is_err(), "{bad:?}");
    }
    let prediction = Prediction::new(&noise, good).unwrap();
    assert!(prediction.row(0).is_err());
    let barrier = Question { collective: Collective::Barrier(Barrier::Dissemination), ..good };
    assert!(Prediction::new(&noise, barrier).unwrap().row(1 << 40).is_err());
    let nothing = "L=0ns,o=0ns,g=0ns,G=0ns".parse().unwrap();
    let instant = Question { grain: Nanos::ZERO, network: nothing, ..barrier };
    assert!(Prediction::new(&noise, instant).unwrap().row(8).is_err());
    let nodes = Question { per_node: 3, ..good };
    assert!(Prediction::new(&noise, nodes).unwrap().row(8).is_err());
}
