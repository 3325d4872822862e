use super::lateness::{CELLS_PER_OCTAVE, middle, place};
use super::*;
use crate::books::{BookEntry, BookedNode, BookedNoise, BookedTrace};
use crate::delay::DelayTable;
use crate::placement::Placement;
use crate::replay::replay;
use proptest::prelude::*;

fn ns(ns: i64) -> Nanos {
    Nanos::new(ns)
}

/// Detours with their parts: start, and source and time of each part.
type Detours = Vec<(i64, Vec<(u32, i64)>)>;

fn sampled(detours: &Detours, length: i64, grain: i64, step: Option<i64>) -> PhaseLosses<u32> {
    let mut losses = PhaseLosses::new(ns(grain));
    let mut sampler = PhaseSampler::new(ns(0), ns(length), ns(grain));
    (sampler.step, sampler.weight) = step.map_or((sampler.step, sampler.weight), |step| (step, 1));
    for (number, (start, parts)) in (0..).zip(detours) {
        parts.iter().for_each(|(source, time)| sampler.part(number, ns(*start), *source, ns(*time), &mut losses));
    }
    sampler.finish(&mut losses);
    losses
}

/// Nanosecond by nanosecond: the lateness of each phase that starts and ends in time, without a source.
fn plain(detours: &Detours, length: i64, grain: i64) -> Vec<i64> {
    let mut busy = vec![false; length as usize];
    for (start, parts) in detours {
        let total: i64 = parts.iter().map(|(_, time)| time).sum();
        (*start..(start + total).min(length)).for_each(|at| busy[at as usize] = true);
    }
    let late = |start: usize| {
        let mut work = 0;
        for (at, busy) in busy.iter().enumerate().skip(start) {
            work += i64::from(!busy);
            if work == grain {
                return Some((at - start + 1) as i64 - grain);
            }
        }
        None
    };
    (0..length as usize).filter_map(late).collect()
}

fn detours() -> impl Strategy<Value = (Detours, i64)> {
    let detour = (1_i64..30, proptest::collection::vec((0_u32..3, 1_i64..10), 1..4));
    (proptest::collection::vec(detour, 0..12), 0_i64..40).prop_map(|(gaps, rest)| {
        let mut at = 0;
        let mut detours = Vec::new();
        for (gap, parts) in gaps {
            at += gap;
            let total: i64 = parts.iter().map(|(_, time)| time).sum();
            detours.push((at, parts));
            at += total;
        }
        (detours, at + rest)
    })
}

proptest! {
    /// With a phase from every nanosecond on, the lateness is that of a plain count. Phases that are not over at the end of the loop are counted by
    /// neither.
    #[test]
    fn every_phase_is_late_by_what_it_meets((detours, length) in detours(), grain in 1_i64..40) {
        let losses = sampled(&detours, length, grain, Some(1));
        let plain = plain(&detours, length, grain);
        let mut cells = LatenessCells::default();
        plain.iter().for_each(|late| cells.add(None, *late, PARTS));
        let counts = |cells: &LatenessCells| -> Vec<i64> {
            let mut counts: Vec<i64> = cells.at_work.clone();
            for (_, late, phases) in cells.in_detour() {
                counts.resize(counts.len().max(late + 1), 0);
                counts[late] += phases;
            }
            counts.truncate(counts.iter().rposition(|phases| *phases != 0).map_or(0, |last| last + 1));
            counts
        };
        prop_assert_eq!(counts(&losses.all), counts(&cells));
    }

    /// Removing a source never makes anything worse, all phases stay, and for a run with a single source nothing is left.
    #[test]
    fn what_a_source_leaves((detours, length) in detours(), grain in 1_i64..40, ranks in 1_u64..5_000) {
        let losses = sampled(&detours, length, grain, None);
        let all = losses.slowdown(ranks, None);
        prop_assert!(all >= 1.0);
        for source in losses.sources() {
            let left = losses.slowdown(ranks, Some(source));
            // Both come from iterations that end when they are close enough.
            prop_assert!((1.0..=all * (1.0 + 1e-4)).contains(&left), "{} {}", left, all);
            let change = &losses.without[source];
            prop_assert_eq!(change.at_work.iter().copied().chain(change.in_detour().map(|cell| cell.2)).sum::<i64>(), 0);
        }
        let alone: Detours = detours.iter()
            .map(|(start, parts)| (*start, vec![(7, parts.iter().map(|(_, time)| time).sum())])).collect();
        let losses = sampled(&alone, length, grain, None);
        prop_assert_eq!(losses.slowdown(ranks, Some(&7)), 1.0);
    }
}

/// A sampler that watches a part of the time cuts detours at its ends like a noise trace.
#[test]
fn a_window_cuts_detours_as_a_trace_is_cut() {
    // On a trace, which is a circle, two cut ones would be merged.
    let all = [(0, 5), (50, 1), (96, 7)].map(|(start, length)| (Nanos::from_millis(start), Nanos::from_millis(length)));
    let (begin, length) = (Nanos::from_millis(2), Nanos::from_millis(97));
    let sampled = |begin: Nanos, detours: &mut dyn Iterator<Item = (Nanos, Nanos)>| {
        let mut losses = PhaseLosses::new(ns(1_000_000));
        let mut sampler = PhaseSampler::new(begin, length, ns(1_000_000));
        for (number, (start, time)) in (0..).zip(detours) {
            // The first millisecond goes to one source, the rest to another.
            sampler.part(number, start, 0, Nanos::from_millis(1), &mut losses);
            sampler.part(number, start, 1, time - Nanos::from_millis(1), &mut losses);
        }
        sampler.finish(&mut losses);
        let mut in_detour: Vec<_> = losses.all.in_detour().collect();
        in_detour.sort_unstable();
        (losses.slowdown(64, None), losses.all.at_work.clone(), in_detour, format!("{:?}", losses.blocks))
    };
    for detours in [&all[..2], &all[1..]] {
        let trace = crate::NoiseTrace::from_window(begin, length, detours.iter().copied()).unwrap();
        assert_eq!(sampled(begin, &mut detours.iter().copied()), sampled(Nanos::ZERO, &mut trace.detours()));
    }
}

/// A detour of a day, and times that only occur in a damaged file, are processed quickly and without a panic.
#[test]
fn takes_every_time() {
    let day = 86_400_000_000_000;
    let losses = sampled(&vec![(day, vec![(0, day), (1, day)])], 4 * day, 1_000_000, None);
    let halved = (losses.slowdown(1, Some(&0)) - 1.0) / (losses.slowdown(1, None) - 1.0);
    // Half as late, and three days are work instead of two.
    assert!((halved - 1.0 / 3.0).abs() < 0.01, "{halved}");
    let ends = [i64::MIN, -1, 0, 1, i64::MAX];
    for (begin, length) in ends.iter().flat_map(|begin| ends.map(|length| (*begin, length))) {
        let mut losses = PhaseLosses::new(ns(1_000_000));
        let mut sampler = PhaseSampler::new(ns(begin), ns(length), ns(1_000_000));
        for (number, (start, time)) in (0..).zip(ends.iter().flat_map(|start| ends.map(|time| (*start, time)))) {
            sampler.part(number, ns(start), number as u32 % 3, ns(time), &mut losses);
        }
        sampler.finish(&mut losses);
        assert!(losses.slowdown(1 << 40, Some(&0)) >= 1.0);
    }
}

#[test]
fn cells_are_narrow_and_in_order() {
    let mut last = 0;
    for late in (0..5_000).chain((13..62).map(|octave| (1 << octave) - 1)).chain([i64::MAX]) {
        let cell = place(late, CELLS_PER_OCTAVE);
        assert!(cell == last || cell == last + 1 || late > 5_000 && cell > last, "{late}");
        let middle = middle(cell, CELLS_PER_OCTAVE);
        assert!((middle - late as f64).abs() <= late as f64 / 128.0, "{late} {middle}");
        last = cell;
    }
    assert!(last < 4_000);
}

/// A recording of a minute with events of the given mean gaps and lengths, and ticks.
fn minute(rare: &[(u32, i64, i64)]) -> (Detours, i64) {
    let length = 60_000_000_000_i64;
    let mut random = crate::random::Stream::new(3, crate::random::Purpose::Detours, 0);
    let mut events: Vec<(i64, Vec<(u32, i64)>)> = Vec::new();
    let mut at = 0;
    while at < length - 200_000_000 {
        at += 4_000_000;
        events.push((at, vec![(0, 12_000 + random.below(9_000) as i64), (1, random.below(6_000) as i64 + 1)]));
    }
    for (source, mean_gap, time) in rare {
        let mut at = 0;
        loop {
            let uniform = (random.below(1 << 52) as f64 + 1.0) / (1_u64 << 52) as f64;
            at += (-libm::log(uniform) * *mean_gap as f64) as i64 + 1;
            if at > length - 200_000_000 {
                break;
            }
            events.push((at, vec![(*source, time / 2 + random.below(*time as u64) as i64)]));
        }
    }
    events.sort();
    let mut detours: Detours = Vec::new();
    let mut end = 0;
    for (start, parts) in events {
        let start = start.max(end + 1);
        end = start + parts.iter().map(|(_, time)| time).sum::<i64>();
        detours.push((start, parts));
    }
    (detours, length)
}

fn booked(detours: &Detours, length: i64) -> BookedNoise {
    let entries = detours.iter().enumerate().flat_map(|(detour, (_, parts))| {
        let entry = move |(source, time): &(u32, i64)| BookEntry {
            detour,
            source: *source,
            root: *source,
            self_time: ns(*time),
        };
        parts.iter().map(entry)
    });
    let spans = detours.iter().map(|(start, parts)| (ns(*start), ns(parts.iter().map(|part| part.1).sum())));
    let cpu = BookedTrace::new(ns(0), ns(length), spans.collect(), entries.collect(), 4).unwrap();
    let names = ["tick", "softirq", "daemon", "other"].map(str::to_owned).to_vec();
    BookedNoise::new(names, vec![BookedNode { name: "a".into(), cpus: vec![cpu] }]).unwrap()
}

/// Compared with replays of the same noise, with and without each source: a tick with its softirq, a daemon of milliseconds, and short detours
/// without end; then detours of many grains, which are rare or never end for so many ranks.
#[test]
fn agrees_with_replays() {
    for rare in [&[(2, 300_000_000, 3_000_000), (3, 900_000, 4_000)][..], &[(2, 5_000_000_000, 20_000_000)]] {
        let (detours, length) = minute(rare);
        let losses = sampled(&detours, length, 1_000_000, None);
        let noise = booked(&detours, length);
        for out in [None, Some(0), Some(2), Some(3)] {
            let marked: Vec<bool> = (0..4).map(|source| Some(source) == out).collect();
            let left = noise.without(&marked).unwrap();
            let table = DelayTable::new(&left, 1, Nanos::from_millis(1)).unwrap();
            for ranks in [1, 64, 1024] {
                let placement = Placement { ranks, per_node: 1, synchronized: false };
                // A single rank meets all that is in a lap.
                let (replicas, phases) = if ranks == 1 { (8, 60_000) } else { (4, 30_000) };
                let replayed = (0..replicas).map(|replica| {
                    let offsets = placement.draw(&table, 5, replica).unwrap();
                    replay(&table, &offsets, phases).unwrap().slowdown() - 1.0
                });
                let replayed = replayed.sum::<f64>() / replicas as f64;
                let all = losses.slowdown(ranks, None) - 1.0;
                let ours = losses.slowdown(ranks, out.as_ref()) - 1.0;
                // Without a source it is unknown whether its detours came before or after the others of a phase.
                let close = if out.is_none() { 0.025 } else { 0.1 };
                assert!(
                    (ours - replayed).abs() <= close * all,
                    "{rare:?} without {out:?}, {ranks} ranks: {ours} {replayed}"
                );
            }
        }
    }
}

/// Two CPUs that are always stopped together meet a stop as often as one CPU with half of the ranks.
#[test]
fn stops_of_both_cpus_count_once() {
    let stops = (0..100).map(|at| (ns(at * 97_000_000 + 5_000_000), Nanos::from_millis(3)));
    let added = |cpus: usize, ranks| {
        let traces = (0..cpus).map(|_| crate::NoiseTrace::new(Nanos::from_secs(10), stops.clone()).unwrap()).collect();
        let noise = Noise::recorded(vec![crate::NodeNoise::new("node", traces).unwrap()]).unwrap();
        PhaseLosses::from_noise(&noise, cpus as u64, Nanos::from_millis(1)).unwrap().slowdown(ranks, None) - 1.0
    };
    let (alone, together) = (added(1, 32), added(2, 64));
    assert!((together / alone - 1.0).abs() < 0.05, "{together} for {alone}");
}
