//! What the papers of METHODS found, found again: each with the tolerance that is stated.

use becalm_scale::blame::blame_by_removal;
use becalm_scale::books::{BookEntry, BookedNoise, BookedTrace};
use becalm_scale::collective::{Barrier, Collective};
use becalm_scale::network::Network;
use becalm_scale::predict::{Prediction, Question, RankPrediction};
use becalm_scale::random::{Purpose, Stream};
use becalm_scale::spec::NoiseSpec;
use becalm_scale::watch::ReplayWatch;
use becalm_scale::{NodeNoise, Noise, NoiseTrace};
use becalm_units::Nanos;

/// B07: barriers back to back on Blue Gene/L's global interrupt network, two processes a node.
fn barriers(spec: &str, ranks: u64, phases: u64, synchronized: bool) -> RankPrediction {
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

fn slowdown(row: &RankPrediction) -> f64 {
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

/// The mean delay of a barrier by unsynchronized detours, in nanoseconds.
fn barrier_delay_ns(spec: &str, ranks: u64, phases: u64) -> f64 {
    barriers(spec, ranks, phases, false).mean_phase_ns.unwrap() - 1_500.0
}

/// B07: a factor of up to 268, found within 3 %, which is two detours: one before a process tells its node, and one of
/// the other process once it has. Linear in the detour's length, with a slope of two detours, found within 4 %.
///
/// A second detour has to begin about when the first ends. Among N nodes and intervals I the nearest such pair misses the
/// two whole detours by x with probability exp(-N x^2 / (2 I^2)), by I sqrt(pi / (2 N)) = 9.8 us on average, whatever
/// the detour's length; the barrier's own steps let a few more pairs count. So two detours of 50 us miss 10 %, and with 16
/// times the nodes no length misses more than 2 %.
#[test]
fn b07_unsynchronized_noise_saturates_at_two_detours_each_millisecond() {
    let spec = |detour_us: f64| format!("periodic:interval=1ms,detour={detour_us}us");
    let delay_us = |detour_us: f64| barrier_delay_ns(&spec(detour_us), 1 << 15, 120) / 1e3;
    let lengths = [50.0, 100.0, 200.0];
    let delays = lengths.map(delay_us);
    for (length, delay) in lengths.iter().zip(delays) {
        let missed = 2.0 * length - delay;
        assert!((3.0..=11.0).contains(&missed), "two detours of {length} us, but for {missed} us");
    }
    for (lengths, delays) in lengths.windows(2).zip(delays.windows(2)) {
        let slope = (delays[1] - delays[0]) / (lengths[1] - lengths[0]);
        assert!((1.92..=2.08).contains(&slope), "{slope} detours");
    }
    let slowdown = (delays[2] + 1.5) / 1.5;
    assert!((268.0 * 0.97..=268.0 * 1.03).contains(&slowdown), "{slowdown}");
    let detours = barrier_delay_ns(&spec(50.0), 1 << 19, 40) / 50e3;
    assert!((1.96..=2.0).contains(&detours), "{detours}");
}

/// B07: one detour at intervals of 100 ms, found within 5 %.
#[test]
fn b07_rare_noise_saturates_at_one_detour() {
    let detours = barrier_delay_ns("periodic:interval=100ms,detour=200us", 1 << 15, 120) / 200e3;
    assert!((0.95..=1.05).contains(&detours), "{detours}");
}

/// B07 saw nothing of 16 us every 100 ms. For the collectives that are not hardware, and for synchronized noise, so
/// do we: at most 6 % of their time.
///
/// For the unsynchronized barrier of 1.5 us it holds on the figures' scale only, which runs to 400 us: we find 13.6 us,
/// 3.4 % of the scale, but 10 times the barrier. That is no matter of the model: 32,768 processes begin half a detour in
/// each 1.5 us and have 5 under way at any time, so that no barrier without delay is to be expected of any machine.
#[test]
fn b07_short_rare_noise_is_invisible() {
    let spec = "periodic:interval=100ms,detour=16us";
    let trace = spec.parse::<NoiseSpec>().unwrap().trace(1).unwrap();
    let noise = Noise::apart(spec, trace);
    for collective in ["allreduce:recursive-doubling", "allreduce:tree", "alltoall:pairwise", "alltoall:linear"] {
        let collective = collective.parse().unwrap();
        let question = Question {
            grain: Nanos::ZERO,
            phases: 20,
            collective,
            network: "bgl".parse().unwrap(),
            bytes: 8,
            per_node: 2,
            synchronized: false,
            seed: 7,
            replicas: 1,
        };
        let row = Prediction::new(&noise, question).unwrap().row(1 << 10).unwrap();
        assert!(slowdown(&row) < 1.06, "{collective}: {}", slowdown(&row));
    }
    let row = barriers(spec, 2, 1_000_000, true);
    assert!(slowdown(&row) < 1.001, "{}", slowdown(&row));
    let delay = barrier_delay_ns(spec, 1 << 15, 120);
    assert!((0.0..=0.04 * 400e3).contains(&delay), "{delay}");
}

/// The relative cost of 200 us each 1 ms, and the others, to an all-to-all of 8 bytes on Blue Gene/L.
fn alltoall_added(collective: &str, detour_us: u64, ranks: u64) -> f64 {
    let spec = format!("periodic:interval=1ms,detour={detour_us}us");
    let trace = spec.parse::<NoiseSpec>().unwrap().trace(1).unwrap();
    let noise = Noise::apart(&spec, trace);
    let question = Question {
        grain: Nanos::ZERO,
        phases: (1 << 13) / ranks,
        collective: collective.parse().unwrap(),
        network: "bgl".parse().unwrap(),
        bytes: 8,
        per_node: 2,
        synchronized: false,
        seed: 7,
        replicas: 1,
    };
    slowdown(&Prediction::new(&noise, question).unwrap().row(ranks).unwrap()) - 1.0
}

/// B07's alltoall: time linear in the processes, links saturated; 200 us each 1 ms cost 173 % at 1,024 processes, falling to
/// 34 % (53 ms) at 32,768, more than in proportion to the detour.
///
/// Nothing is fitted: the window of 32 messages is MPICH's, of which Blue Gene/L's MPI was made, and the torus has its links'
/// speed, which the two processes of a node share. We find 146 % at 1,024 processes and still 147 % at 8,192, since a node's links
/// take less time than the CPU of each process up to there. That the cost falls all the way from 1,024 on does not come out.
/// The small end hangs on the window (24 messages give 205 %), which was not published. A chain of blocking exchanges, which
/// no library sends so short messages by, would cost 1,190 % at any size.
#[test]
fn b07_alltoall_under_heavy_noise() {
    let added = [1 << 10, 1 << 12, 1 << 13].map(|ranks| alltoall_added("alltoall:scattered", 200, ranks));
    assert!((1.38..=1.53).contains(&added[0]), "published: 1.73, {added:?}");
    assert!((1.38..=1.56).contains(&added[2]), "{added:?}");
    assert!((1.94..=2.16).contains(&alltoall_added("alltoall:scattered=24", 200, 1 << 10)));
    let half = alltoall_added("alltoall:scattered", 100, 1 << 10);
    assert!(added[0] > 2.2 * half, "superlinear: {half} {added:?}");
    assert!(alltoall_added("alltoall:pairwise", 200, 1 << 10) > 10.0);
}

/// B07: at one noise ratio (of 1 %), long rare detours hurt more than short frequent ones, and the effect levels off
/// with the number of processes once a detour is always under way somewhere.
///
/// With 1,024 processes ten detours are under way at any time. To there the effect doubles at least with eight times the
/// processes; from there on it stays within a quarter of one detour, and grows by 15 % at most while their number does by
/// four. It does not become level altogether, since two detours in a row come into reach, the second level.
#[test]
fn b07_constant_ratio() {
    let levels = [(1.0, 10.0), (10.0, 100.0), (100.0, 1_000.0)];
    let curves = levels.map(|(interval_ms, detour_us)| {
        let spec = format!("periodic:interval={interval_ms}ms,detour={detour_us}us");
        let detours = |ranks: u64, phases: u64| barrier_delay_ns(&spec, ranks, phases) / (detour_us * 1e3);
        let curve = [detours(1 << 7, 100_000), detours(1 << 10, 2_000), detours(1 << 12, 120), detours(1 << 13, 120)];
        assert!(curve.is_sorted(), "{spec}: {curve:?}");
        assert!(curve[1] > 2.0 * curve[0], "{spec}: {curve:?}");
        assert!(curve[1..].iter().all(|detours| (0.75..=1.25).contains(detours)), "{spec}: {curve:?}");
        assert!(curve[2] < 1.15 * curve[1], "{spec}: {curve:?}");
        curve.map(|detours| detours * detour_us)
    });
    for (short, long) in curves.iter().zip(&curves[1..]) {
        assert!(short[1..].iter().zip(&long[1..]).all(|(short, long)| long > &(8.0 * short)), "{curves:?}");
    }
}

/// A drawn trace with its books.
struct Study {
    sources: Vec<String>,
    detours: Vec<(Nanos, Nanos)>,
    entries: Vec<BookEntry>,
    length: Nanos,
}

/// A line of D09's table, in microseconds.
struct Source {
    name: String,
    lowest: f64,
    highest: f64,
    count: usize,
    mean: f64,
    stddev: f64,
}

fn d09_sources(configuration: &str) -> Vec<Source> {
    let table = include_str!("data/de2009_sources.csv");
    let source = |line: &str| {
        let columns: Vec<&str> = line.split(',').collect();
        let number = |column: usize| columns[column].parse::<f64>().unwrap();
        Source {
            name: columns[1].to_owned(),
            lowest: number(2),
            highest: number(3),
            count: columns[4].parse().unwrap(),
            mean: number(5),
            stddev: number(6),
        }
    };
    table.lines().filter(|line| line.starts_with(configuration)).map(source).collect()
}

/// Numbers above 0 by a power law that is cut at `highest`, with the given mean and standard deviation: its quantiles at
/// the middles of `count` equally probable parts.
fn power_law(count: usize, mean: f64, stddev: f64, highest: f64) -> Vec<f64> {
    let mean_of = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count as f64;
    let with_exponent = |exponent: f64| -> Vec<f64> {
        let shape: Vec<f64> = (0..count).map(|part| ((part as f64 + 0.5) / count as f64).powf(-exponent)).collect();
        // What is cut is made up for by a larger scale.
        let (mut low, mut high) = (-60.0_f64, 30.0_f64);
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            let reached = mean_of(&mut shape.iter().map(|value| (value * middle.exp()).min(highest)));
            if reached < mean { low = middle } else { high = middle }
        }
        shape.iter().map(|value| (value * low.exp()).min(highest)).collect()
    };
    let (mut low, mut high) = (0.0, 6.0);
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        let variance = mean_of(&mut with_exponent(middle).iter().map(|value| (value - mean).powi(2)));
        if variance < stddev.powi(2) { low = middle } else { high = middle }
    }
    with_exponent(low)
}

impl Source {
    /// Durations that have the table's lowest, highest, count, mean and standard deviation: one of the highest, and the
    /// others above the lowest by a power law. The moments alone do not decide: with a lognormal law, which has the same,
    /// the baseline's slowdown at 16,384 tasks is 47.9 % where it is 44.9 % with this one.
    fn durations(&self) -> Vec<f64> {
        if self.count == 1 {
            return vec![self.mean];
        }
        let count = self.count as f64;
        let others_mean = ((self.mean * count - self.highest) / (count - 1.0)).max(self.lowest);
        let squares = self.stddev.powi(2) * count - (self.highest - self.mean).powi(2);
        let others_variance = (squares / (count - 1.0) - (others_mean - self.mean).powi(2)).max(0.0);
        let (above, room) = (others_mean - self.lowest, self.highest - self.lowest);
        let others = if above > 0.0 && others_variance > 0.0 {
            power_law(self.count - 1, above, others_variance.sqrt(), room)
        } else {
            vec![above; self.count - 1]
        };
        others.into_iter().map(|above| self.lowest + above).chain([self.highest]).collect()
    }
}

/// A trace with the sources of D09's table: ticks each 4 ms, as 250 Hz gives, and all others at random times.
fn d09(configuration: &str) -> Study {
    let table = d09_sources(configuration);
    let ticks = table.iter().find(|source| source.name == "timer").unwrap().count as i64;
    let length = Nanos::from_millis(4 * ticks);
    let mut stream = Stream::new(2009, Purpose::Detours, 0);
    let mut drawn: Vec<(i64, i64, u32)> = Vec::new();
    for (number, source) in (0..).zip(&table) {
        let mut durations = source.durations();
        for last in (1..durations.len()).rev() {
            durations.swap(last, stream.below(last as u64 + 1) as usize);
        }
        for (tick, duration) in (0..).zip(durations) {
            let start = match source.name.as_str() {
                "timer" => tick * 4_000_000,
                _ => stream.below(length.get() as u64 - 10_000_000) as i64,
            };
            drawn.push((start, (duration * 1e3).round() as i64, number));
        }
    }
    drawn.sort_unstable();
    let (mut detours, mut entries, mut end) = (Vec::new(), Vec::new(), 0);
    for (detour, (start, duration, source)) in drawn.into_iter().enumerate() {
        // What comes while another detour lasts follows it.
        let start = start.max(end);
        end = start + duration;
        detours.push((Nanos::new(start), Nanos::new(duration)));
        entries.push(BookEntry { detour, source, root: source, self_time: Nanos::new(duration) });
    }
    Study { sources: table.into_iter().map(|source| source.name).collect(), detours, entries, length }
}

/// The drawn durations are the table's, up to what the table contradicts itself in: its migratio events take less
/// together than their highest.
#[test]
fn d09_traces_have_the_published_moments() {
    for source in ["baseline", "isolated"].into_iter().flat_map(d09_sources).filter(|source| source.count > 3) {
        let durations = source.durations();
        let count = durations.len() as f64;
        let mean = durations.iter().sum::<f64>() / count;
        let stddev = (durations.iter().map(|duration| (duration - mean).powi(2)).sum::<f64>() / count).sqrt();
        let highest = durations.iter().copied().fold(0.0, f64::max);
        assert_eq!((durations.len(), highest), (source.count, source.highest), "{}", source.name);
        assert!((mean / source.mean - 1.0).abs() < 0.001, "{}: {mean}", source.name);
        assert!((stddev / source.stddev - 1.0).abs() < 0.02, "{}: {stddev}", source.name);
    }
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

/// D09: the slowdown grows with the tasks, and isolation lies below the baseline. Published for the baseline at 16,384
/// tasks: 44.2 %. The table names neither the tick rate nor the law of the durations, and the slowdown hangs on both:
/// with 250 Hz, the power law gives 44.9 % and a lognormal one of the same moments 47.9 %. The laws were chosen with the
/// published figure in view, so this shows that the figure can follow from the table, not that it must.
///
/// Published for isolated CPUs: 31.2 %, of which we find 5.3 %. It cannot follow from the table alone: were its longest
/// event of every source to fall into the same 1 ms of work, which has one tick at most, all together would take 107 us,
/// 10.7 %. Missing here are the 450 unidentified events of 100 to 1,000 us that section 4.1.2 of the paper names beside the
/// table.
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
    assert!((1.392..=1.492).contains(&baseline[8]), "{baseline:?}");
    let most = 1.0 + d09_sources("isolated").iter().map(|source| source.highest).sum::<f64>() / 1e3;
    assert!((1.04..=1.07).contains(&isolated[8]) && most < 1.312, "{isolated:?} {most}");
}

/// Blame on D09's baseline, and nothing left when all sources are out.
#[test]
fn d09_blame() {
    let Study { sources, detours, entries, length } = d09("baseline");
    let trace = BookedTrace::new(Nanos::ZERO, length, detours, entries, sources.len()).unwrap();
    let noise = BookedNoise::new(sources.clone(), vec![("node".to_owned(), vec![trace])]).unwrap();
    let question = Question { phases: 2_000, replicas: 1, ..d09_question() };
    let blames = blame_by_removal(
        &noise,
        question,
        &[64, 16_384],
        sources.len(),
        &vec![false; sources.len()],
        ReplayWatch::NOBODY,
    )
    .unwrap();
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
    // The last node may have fewer ranks.
    let nodes = Question { per_node: 3, ..good };
    assert!(Prediction::new(&noise, nodes).unwrap().row(8).is_ok());
}
