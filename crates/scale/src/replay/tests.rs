//! Compares the fast methods with the plain one, and the plain one with the definition.

use becalm_units::Nanos;
use proptest::prelude::*;

use super::{Clock, Method, cheapest_scan, choose, cost, replay_each, skyline, sorted_offsets, walk};
use crate::ScaleError;
use crate::delay::DelayTable;
use crate::delay::tests::{delay_by_finish, small_trace};
use crate::machine::RankStart;
use crate::noise::{Alignment, NodeNoise, Noise, NoiseTrace};
use crate::placement::{Offsets, Placement};

fn delays(table: &DelayTable<'_>, offsets: &Offsets, phases: u64, method: Option<Method>) -> Vec<i64> {
    let mut delays = Vec::new();
    let outcome = replay_each(table, offsets, phases, method, |delay| delays.push(delay.get())).unwrap();
    assert_eq!(outcome.total.get(), delays.iter().sum::<i64>() + phases as i64 * table.grain().get());
    assert_eq!(outcome.worst_phase - table.grain(), Nanos::new(*delays.iter().max().unwrap()));
    delays
}

/// If a grain meets a detour only now and then, the skyline takes a microsecond per phase from a few hundred ranks on, and the other methods ten and
/// more; if it meets many, bounds are cheaper for few ranks.
#[test]
fn the_cheapest_way_is_chosen() {
    let chosen = |seconds: i64, hz: i64, ranks: u64| {
        let (detours, apart) = (seconds * hz, 1_000_000_000 / hz);
        let starts = (0..detours).map(|at| at * apart + at * at % (apart / 3));
        let rows = starts.enumerate().map(|(at, start)| (Nanos::new(start), Nanos::new(200 + 97 * (at as i64 % 61))));
        let noise = Noise::apart("chosen", NoiseTrace::new(Nanos::from_secs(seconds), rows).unwrap());
        let table = DelayTable::new(&noise, 1, Nanos::from_millis(1)).unwrap();
        let offsets = Placement { ranks, per_node: 1, synchronized: false }.draw(&table, 1, 0).unwrap();
        choose(&table, &sorted_offsets(&table, &offsets))
    };
    assert_eq!(chosen(1_000, 200, 8), Method::Plain);
    assert_eq!(chosen(1_000, 200, 1_024), Method::Skyline);
    assert_eq!(chosen(20, 15_000, 64), Method::Bounded);
}

/// Ranks under coalesced noise are whole windows apart, so in most phases no rank is in any of the many pieces. The methods by pieces detect that,
/// and do not walk down all of them phase after phase.
#[test]
fn ways_by_pieces_end_early_where_ranks_are_whole_windows_apart() {
    const WINDOWS: i64 = 20_000;
    let windows = |number: i64| Nanos::from_millis(10 * number);
    let rows = (1..WINDOWS).map(|at| (windows(at), Nanos::new(50_000 + 100 * (at % 977))));
    let noise = Noise::apart("coalesced", NoiseTrace::new(windows(WINDOWS), rows).unwrap());
    let table = DelayTable::new(&noise, 1, Nanos::from_millis(1)).unwrap();
    let ranks = (0..1_000).map(|rank| windows(rank * 7_919 % WINDOWS)).collect();
    let offsets = Offsets::new(&table, vec![ranks]).unwrap();
    let index = sorted_offsets(&table, &offsets);
    let each = cheapest_scan(&table, &index).phase_ns;
    let mut clock = Clock::new(&table, 2_000, |_| {}).unwrap();
    assert!(!walk::run_while_cheaper(&table, &index, &mut clock, each / cost::LOOK_UP).unwrap());
    assert!(clock.done < 20, "{} phases walked", clock.done);
    let mut clock = Clock::new(&table, 2_000, |_| {}).unwrap();
    assert!(!skyline::run_while_cheaper(&table, &index, &mut clock, each, skyline::CELLS_MAX).unwrap());
    assert!(clock.done < 20, "{} phases by the skyline", clock.done);
    assert_eq!(delays(&table, &offsets, 300, None), delays(&table, &offsets, 300, Some(Method::Plain)));
}

/// By the definition: finish() for every rank in every phase.
fn by_definition(noise: &Noise, offsets: &Offsets, grain: i64, phases: u64) -> Vec<i64> {
    let mut now = 0;
    (0..phases)
        .map(|_| {
            let ranks = noise.traces().zip(&offsets.0).flat_map(|(trace, list)| list.iter().map(move |o| (trace, o)));
            let delay = ranks.map(|(trace, offset)| delay_by_finish(trace, offset + now, grain)).max().unwrap();
            now += grain + delay;
            delay
        })
        .collect()
}

/// A trace of rare and frequent detours of very different lengths.
fn long_trace() -> impl Strategy<Value = NoiseTrace> {
    let detours = proptest::collection::vec((0_i64..3_000, prop_oneof![1_i64..20, 1_i64..400, 1_i64..5_000]), 0..60);
    (detours, 1_i64..5_000).prop_map(|(detours, rest)| {
        let mut at = 0;
        let mut rows = Vec::new();
        for (gap, duration) in detours {
            rows.push((Nanos::new(at + gap), Nanos::new(duration)));
            at += gap + duration;
        }
        NoiseTrace::new(Nanos::new(at + rest), rows).unwrap()
    })
}

fn offsets(noise: &Noise, table: &DelayTable<'_>, draws: &[(usize, u64)], step: u64) -> Offsets {
    let traces: Vec<&NoiseTrace> = noise.traces().collect();
    let mut offsets = vec![Vec::new(); traces.len()];
    for (which, draw) in draws {
        let kind = which % traces.len();
        offsets[kind].push(Nanos::new((draw / step * step % traces[kind].length().get() as u64) as i64));
    }
    Offsets::new(table, offsets).unwrap()
}

fn recorded(traces: Vec<NoiseTrace>) -> Noise {
    let nodes = traces.into_iter().map(|trace| NodeNoise::new("node", vec![trace]).unwrap());
    Noise::recorded(nodes.collect()).unwrap()
}

const WAYS: [Option<Method>; 4] = [Some(Method::Bounded), Some(Method::Walk), Some(Method::Skyline), None];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn plain_is_the_definition(
        traces in proptest::collection::vec(small_trace(20), 1..4),
        draws in proptest::collection::vec((any::<usize>(), any::<u64>()), 1..8),
        grain in 1_i64..50,
    ) {
        let noise = recorded(traces);
        let table = DelayTable::new(&noise, 1, Nanos::new(grain)).unwrap();
        let offsets = offsets(&noise, &table, &draws, 1);
        prop_assert_eq!(delays(&table, &offsets, 40, Some(Method::Plain)), by_definition(&noise, &offsets, grain, 40));
    }

    /// Touching detours, circles full except for 1 ns, equal offsets, grains of several laps.
    #[test]
    fn fast_is_plain_on_small_circles(
        traces in proptest::collection::vec(small_trace(40), 1..4),
        draws in proptest::collection::vec((any::<usize>(), any::<u64>()), 1..30),
        grain in 1_i64..100,
    ) {
        let noise = recorded(traces);
        let table = DelayTable::new(&noise, 1, Nanos::new(grain)).unwrap();
        let offsets = offsets(&noise, &table, &draws, 1);
        let plain = delays(&table, &offsets, 400, Some(Method::Plain));
        for way in WAYS {
            prop_assert_eq!(&delays(&table, &offsets, 400, way), &plain, "{:?}", way);
        }
    }

    /// Detours longer and shorter than the grain, single and clustered offsets.
    #[test]
    fn fast_is_plain_on_long_circles(
        traces in proptest::collection::vec(long_trace(), 1..4),
        draws in proptest::collection::vec((any::<usize>(), any::<u64>()), 1..200),
        step in prop_oneof![Just(1_u64), 1_u64..5_000],
        grain in prop_oneof![1_i64..20, 1_i64..3_000, 1_i64..400_000],
    ) {
        let noise = recorded(traces);
        let table = DelayTable::new(&noise, 1, Nanos::new(grain)).unwrap();
        let offsets = offsets(&noise, &table, &draws, step);
        let plain = delays(&table, &offsets, 500, Some(Method::Plain));
        for way in WAYS {
            prop_assert_eq!(&delays(&table, &offsets, 500, way), &plain, "{:?}", way);
        }
    }

    #[test]
    fn fast_is_plain_on_nodes_of_several_ranks(
        cpus in proptest::collection::vec(proptest::collection::vec((1_i64..900, 1_i64..300), 0..20), 2..6),
        nodes in 1_u64..40,
        synchronized: bool,
        grain in 1_i64..2_000,
        seed: u64,
    ) {
        let cpus: Vec<NoiseTrace> = cpus.into_iter().map(|detours| {
            let mut at = 0;
            let rows: Vec<_> = detours.into_iter().map(|(gap, duration)| {
                at += gap + duration;
                (Nanos::new(at - duration), Nanos::new(duration))
            }).collect();
            NoiseTrace::new(Nanos::new(30_000), rows).unwrap()
        }).collect();
        let per_node = cpus.len() as u64;
        let noise = Noise::recorded(vec![NodeNoise::new("node", cpus).unwrap()]).unwrap();
        let table = DelayTable::new(&noise, per_node, Nanos::new(grain)).unwrap();
        let placement = Placement { ranks: nodes * per_node, per_node, synchronized };
        let offsets = placement.draw(&table, seed, 0).unwrap();
        prop_assert_eq!(offsets.units() as u64, nodes);
        let plain = delays(&table, &offsets, 600, Some(Method::Plain));
        for way in WAYS {
            prop_assert_eq!(&delays(&table, &offsets, 600, way), &plain, "{:?}", way);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Compares every rank on its own with the tables, for ranks that do not fill their nodes, in all alignments.
    #[test]
    fn ranks_that_do_not_fill_their_nodes(
        nodes in proptest::collection::vec(proptest::collection::vec(small_trace(24), 3), 1..4),
        alignment in prop_oneof![Just(Alignment::Independent), Just(Alignment::Node), Just(Alignment::Recording)],
        (per_node, ranks, grain) in (1_u64..4, 1_u64..25, 1_i64..40),
        synchronized: bool,
        seed: u64,
    ) {
        let nodes: Vec<NodeNoise> = nodes.into_iter().enumerate().map(|(number, cpus)| {
            // Circles have equal lengths within a node, and everywhere if all are simultaneous.
            let length = if alignment == Alignment::Recording { 24 } else { 24 + number as i64 };
            let cpu = |cpu: &NoiseTrace| NoiseTrace::new(Nanos::new(length), cpu.detours()
                .filter(|(start, duration)| (*start + *duration).get() < length)).unwrap();
            NodeNoise::new("n", cpus.iter().map(cpu).collect()).unwrap()
        }).collect();
        let noise = Noise::recorded(nodes).unwrap().aligned(alignment).unwrap();
        let whole = DelayTable::new(&noise, per_node, Nanos::new(grain)).unwrap();
        let table = whole.for_ranks(ranks).unwrap();
        let placement = Placement { ranks, per_node, synchronized };
        let offsets = placement.draw(&table, seed, 0).unwrap();
        prop_assert_eq!(offsets.units() as u64, ranks.div_ceil(whole.ranks_per_unit()));
        let starts = placement.ranks(&noise, seed, 0).unwrap();
        prop_assert_eq!(starts.len() as u64, ranks);
        let (mut now, mut expected) = (0, Vec::new());
        for _ in 0..50 {
            let delay = |RankStart { trace, offset }: &RankStart<'_>| {
                delay_by_finish(trace, (offset + now).rem_euclid(trace.length_ns()), grain)
            };
            let latest = starts.iter().map(delay).max().unwrap();
            expected.push(latest);
            now += grain + latest;
        }
        for way in WAYS.into_iter().chain([Some(Method::Plain)]) {
            prop_assert_eq!(&delays(&table, &offsets, 50, way), &expected, "{:?}", way);
        }
    }
}

/// Thousands of ranks, so blocks are long and most cells are covered.
#[test]
fn fast_is_plain_at_scale() {
    for (text, grain_us, ranks) in [
        ("poisson:rate=200Hz,detour=50us", 1_000, 4_096),
        ("poisson:rate=200Hz,detour=50us", 1, 2_048),
        ("poisson:rate=5kHz,detour=90us", 100, 512),
        ("periodic:interval=1ms,detour=50us,jitter=400us", 300, 1_024),
        ("periodic:interval=10ms,detour=5ms", 1_000, 333),
    ] {
        let trace = text.parse::<crate::spec::NoiseSpec>().unwrap().trace(5).unwrap();
        let noise = Noise::apart(text, trace);
        let table = DelayTable::new(&noise, 1, Nanos::from_micros(grain_us)).unwrap();
        for synchronized in [false, true] {
            let offsets = Placement { ranks, per_node: 1, synchronized }.draw(&table, 3, 0).unwrap();
            let plain = delays(&table, &offsets, 3_000, Some(Method::Plain));
            for way in WAYS {
                // The walk is slow with one offset for all; only tests use it there.
                let phases = if synchronized && way == Some(Method::Walk) { 30 } else { 3_000 };
                assert!(delays(&table, &offsets, phases, way) == plain[..phases as usize], "{text} {way:?}");
            }
        }
    }
}

/// Every method is chosen by some input, and the skyline hands over to both others. Several nodes with several CPUs, and circles of different
/// lengths.
#[test]
fn every_way_is_chosen_and_takes_over() {
    let second = 1_000_000_000;
    // Detours of one CPU, in us: interval, and alternating lengths.
    let cpu = |seconds: i64, interval_us: i64, lengths_us: &[i64], first_us: i64| {
        let count = seconds * second / (interval_us * 1_000) - 1;
        let rows = (0..count).map(|number| {
            let length = lengths_us[(number * number % 97) as usize % lengths_us.len()] * 1_000 + number % 89;
            (Nanos::new((first_us + number * interval_us) * 1_000 + number % 501), Nanos::new(length))
        });
        NoiseTrace::new(Nanos::new(seconds * second), rows.collect::<Vec<_>>()).unwrap()
    };
    let node = |name: &str, seconds, interval, lengths: &[i64]| {
        let cpus = [0, 7, 13].map(|first| cpu(seconds, interval, lengths, first)).to_vec();
        NodeNoise::new(name, cpus).unwrap()
    };
    let dense = Noise::recorded(vec![node("a", 2, 60, &[5, 9, 30]), node("b", 3, 80, &[7, 50])]).unwrap();
    let rare =
        Noise::recorded(vec![node("a", 20, 90_000, &[40, 900, 5_000]), node("b", 7, 50_000, &[300, 20])]).unwrap();
    let mut chosen = Vec::new();
    let one = Noise::recorded(vec![NodeNoise::new("one", vec![cpu(2, 60, &[5, 30], 0)]).unwrap()]).unwrap();
    for (noise, grain_us, ranks) in [
        (&one, 300_000, 3_u64),
        (&dense, 1_000, 6),
        (&dense, 1_000, 600),
        (&dense, 300_000, 300),
        (&dense, 20, 3),
        (&rare, 1_000, 3),
        (&rare, 1_000, 30_000),
        (&rare, 30_000, 3_000),
        (&rare, 10, 30_000),
    ] {
        // One CPU cannot serve as a node's three.
        for per_node in [1, 3].into_iter().take(noise.nodes()[0].cpus().len()) {
            let table = DelayTable::new(noise, per_node, Nanos::from_micros(grain_us)).unwrap();
            for synchronized in [false, true] {
                let offsets = Placement { ranks, per_node, synchronized }.draw(&table, 9, 0).unwrap();
                let phases = 120;
                let plain = delays(&table, &offsets, phases, Some(Method::Plain));
                let index = super::sorted_offsets(&table, &offsets);
                chosen.push(super::choose(&table, &index));
                for way in [Some(Method::Bounded), None] {
                    assert!(delays(&table, &offsets, phases, way) == plain, "{grain_us} us {ranks} {way:?}");
                }
                for other in [Method::Plain, Method::Bounded] {
                    let mut seen = Vec::new();
                    let mut clock = super::Clock::new(&table, phases, |delay| seen.push(delay.get())).unwrap();
                    super::skyline::run_and_hand_over(&table, &index, &mut clock, other).unwrap();
                    assert!(seen == plain, "{grain_us} us {ranks}, handed over to {other:?}");
                }
            }
        }
    }
    for way in [Method::Plain, Method::Bounded, Method::Walk, Method::Skyline] {
        assert!(chosen.contains(&way), "{way:?} is never chosen: {chosen:?}");
    }
}

/// The unit of a bound is above a nanosecond if delays do not fit into 32 bits.
#[test]
fn bounds_of_long_delays() {
    let detours = [(5, 7_000_000_001_i64), (8_000_000_000, 3), (9_000_000_000, 20_000_000_000)];
    let detours = detours.map(|(start, length)| (Nanos::new(start), Nanos::new(length)));
    let noise = Noise::apart("long", NoiseTrace::new(Nanos::from_secs(60), detours).unwrap());
    for grain in [1, 1_000_000_000, 70_000_000_000] {
        let table = DelayTable::new(&noise, 1, Nanos::new(grain)).unwrap();
        let offsets = Placement { ranks: 9, per_node: 1, synchronized: false }.draw(&table, 2, 0).unwrap();
        let plain = delays(&table, &offsets, 300, Some(Method::Plain));
        assert_eq!(delays(&table, &offsets, 300, Some(Method::Bounded)), plain);
    }
}

#[test]
fn no_noise_costs_nothing() {
    let noise = Noise::apart("silence", NoiseTrace::silent(Nanos::from_secs(1)).unwrap());
    let table = DelayTable::new(&noise, 1, Nanos::from_millis(1)).unwrap();
    let offsets = Placement { ranks: 1 << 14, per_node: 1, synchronized: false }.draw(&table, 1, 0).unwrap();
    for way in [Some(Method::Plain), Some(Method::Bounded), Some(Method::Walk), Some(Method::Skyline), None] {
        let outcome = replay_each(&table, &offsets, 100, way, |_| {}).unwrap();
        assert_eq!((outcome.slowdown(), outcome.delayed, outcome.worst_phase), (1.0, 0, Nanos::from_millis(1)));
    }
}

#[test]
fn times_that_do_not_fit_are_refused() {
    let trace = NoiseTrace::new(Nanos::new(10), [(Nanos::ZERO, Nanos::new(5))]).unwrap();
    let noise = Noise::apart("half", trace);
    let table = DelayTable::new(&noise, 1, Nanos::new(1 << 57)).unwrap();
    let offsets = Placement { ranks: 3, per_node: 1, synchronized: false }.draw(&table, 1, 0).unwrap();
    for way in [Some(Method::Plain), Some(Method::Bounded), Some(Method::Walk), Some(Method::Skyline), None] {
        let refused = replay_each(&table, &offsets, 100, way, |_| {});
        assert!(matches!(refused, Err(ScaleError::Overflow(..))), "{way:?}");
        assert_eq!(replay_each(&table, &offsets, 0, way, |_| {}), Err(ScaleError::NoPhases));
    }
    assert_eq!(Offsets::new(&table, vec![vec![]]), Err(ScaleError::NoRanks));
    assert!(Offsets::new(&table, vec![vec![Nanos::new(10)]]).is_err());
    for ranks in [0, u64::MAX] {
        assert!(Placement { ranks, per_node: 1, synchronized: false }.draw(&table, 1, 0).is_err());
    }
    // A table for full nodes does not fit others.
    let node = NodeNoise::new("n", vec![NoiseTrace::silent(Nanos::new(10)).unwrap(); 2]).unwrap();
    let noise = Noise::recorded(vec![node]).unwrap();
    let table = DelayTable::new(&noise, 2, Nanos::new(5)).unwrap();
    let placement = Placement { ranks: 7, per_node: 2, synchronized: false };
    assert!(matches!(placement.draw(&table, 1, 0), Err(ScaleError::PartialNode(..))));
    assert_eq!(placement.draw(&table.for_ranks(7).unwrap(), 1, 0).unwrap().units(), 4);
}
