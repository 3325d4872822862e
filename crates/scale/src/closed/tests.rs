//! Compares the books with a replay rank by rank, and with planted noise.

use becalm_units::Nanos;
use proptest::prelude::*;

use super::{BookedReplica, DetourBooks, Job, ReplicaBooks, closed_books};
use crate::books::{BookEntry, BookedNode, BookedNoise, BookedTrace};
use crate::collective::Collective;
use crate::delay::DelayTable;
use crate::machine::RankStart;
use crate::noise::NoiseTrace;
use crate::placement::Placement;
use crate::predict::Question;
use crate::random::{Purpose, Stream};
use crate::replay::Method;
use crate::watch::ReplayWatch;

const SOURCES: usize = 3;

pub(super) fn question(
    grain: i64,
    phases: u64,
    per_node: u64,
    synchronized: bool,
    seed: u64,
    replicas: u64,
) -> Question {
    Question {
        grain: Nanos::new(grain),
        phases,
        collective: Collective::Ideal,
        network: "infiniband".parse().unwrap(),
        bytes: 8,
        per_node,
        synchronized,
        seed,
        replicas,
    }
}

/// A detour: the gap before it, its duration, and the percentages of its sources.
type Row = (i64, i64, [i64; 3]);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let duration = prop_oneof![1_i64..4, 1_i64..40, 1_i64..900];
    proptest::collection::vec((prop_oneof![0_i64..3, 0_i64..300], duration, [0_i64..34, 0_i64..34, 0_i64..34]), 0..25)
}

/// A CPU with detours in a window that starts at `begin` and may cut off the first and the last.
fn booked(rows: &[Row], begin: i64, length: i64) -> BookedTrace {
    let (mut at, mut detours, mut entries) = (0, Vec::new(), Vec::new());
    for (number, (gap, duration, parts)) in rows.iter().enumerate() {
        at += gap;
        detours.push((Nanos::new(at), Nanos::new(*duration)));
        for (source, part) in parts.iter().enumerate() {
            let self_time = Nanos::new(duration * part / 100);
            entries.push(BookEntry { detour: number, source: source as u32, root: source as u32, self_time });
        }
        at += duration;
    }
    BookedTrace::new(Nanos::new(begin), Nanos::new(length), detours, entries, SOURCES).unwrap()
}

fn names() -> Vec<String> {
    (0..SOURCES).map(|number| format!("source {number}")).collect()
}

/// The detours that a rank meets, one after another by the definition, with the time of each.
fn met_by_definition(trace: &NoiseTrace, position: i64, grain: i64) -> Vec<(usize, i64)> {
    let detours: Vec<(i64, i64)> = trace.detours().map(|(start, length)| (start.get(), length.get())).collect();
    let (length, count) = (trace.length().get(), detours.len());
    let (mut now, mut left, mut met) = (position, grain, Vec::new());
    if count == 0 {
        return met;
    }
    // A detour may extend over the end of the circle, so start a lap before.
    let mut at: i64 = -(count as i64);
    loop {
        let slot = at.rem_euclid(count as i64) as usize;
        let start = detours[slot].0 + at.div_euclid(count as i64) * length;
        let end = start + detours[slot].1;
        if end > now {
            if start - now >= left {
                return met;
            }
            left -= (start - now).max(0);
            met.push((slot, end - start.max(now)));
            now = end;
        }
        at += 1;
    }
}

/// The sort key of equally late ranks; the lowest is used.
type Order = (bool, usize, usize, usize);

/// The latest rank so far: its delay, its sort key, and the slots that it met with the time of each.
type Latest = (i64, Order, Vec<(usize, i64)>);

/// The reference: every rank in every phase, and the detours of the latest one.
fn plain_books(job: &Job<'_, '_>) -> (i64, Vec<Vec<i64>>) {
    let question = job.question;
    let placement = Placement { ranks: job.ranks, per_node: question.per_node, synchronized: question.synchronized };
    let ranks = placement.ranks(job.noise, question.seed, 0).unwrap();
    let traces: Vec<&NoiseTrace> = job.noise.traces().collect();
    let mut costs: Vec<Vec<i64>> = traces.iter().map(|trace| vec![0; trace.len()]).collect();
    let (mut now, grain) = (0, question.grain.get());
    for _ in 0..question.phases {
        let mut latest: Option<Latest> = None;
        for RankStart { trace, offset } in &ranks {
            let cpu = traces.iter().position(|other| std::ptr::eq(*other, *trace)).unwrap();
            let met = met_by_definition(trace, (offset + now) % trace.length().get(), grain);
            let delay = met.iter().map(|(_, time)| time).sum();
            // Of equally late ranks, those that meet only whole laps, then the first CPU, the first detour, and the fewest.
            let laps = (grain - 1) / trace.work_ns() * trace.noise().get();
            let beyond = met.len() as i64 - (grain - 1) / trace.work_ns() * trace.len() as i64;
            let first = met.first().map_or(0, |(slot, _)| *slot);
            let order = if delay == laps { (false, cpu, 0, 0) } else { (true, cpu, first, beyond as usize) };
            let later = latest.as_ref().is_none_or(|(most, best, _)| delay > *most || delay == *most && order < *best);
            if later {
                latest = Some((delay, order, met));
            }
        }
        let (delay, (_, cpu, ..), met) = latest.unwrap();
        for (slot, time) in met {
            costs[cpu][slot] += time;
        }
        now += grain + delay;
    }
    (now - grain * question.phases as i64, costs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Several CPUs on several nodes, adjacent and cut detours, grains of many laps, with every method of replaying and searching.
    #[test]
    fn books_are_those_of_a_replay_rank_by_rank(
        cpus in proptest::collection::vec(rows(), 1..5),
        together: bool,
        begin in 0_i64..200,
        nodes in 1_u64..30,
        synchronized: bool,
        grain in prop_oneof![1_i64..10, 1_i64..400, 1_i64..9_000],
        seed: u64,
    ) {
        let needed = cpus.iter().map(|rows| rows.iter().map(|row| row.0 + row.1).sum::<i64>()).max().unwrap();
        let cpus: Vec<BookedTrace> = cpus.iter().map(|rows| booked(rows, begin, needed + 3)).collect();
        let per_node = if together { cpus.len() as u64 } else { 1 };
        let booked = BookedNoise::new(names(), ["a", "b"].map(|name| BookedNode { name: name.into(), cpus: cpus.clone() }).to_vec()).unwrap();
        let out = vec![false; SOURCES];
        let noise = booked.without(&out).unwrap();
        let question = question(grain, 60, per_node, synchronized, seed, 1);
        let table = DelayTable::new(&noise, per_node, question.grain).unwrap();
        let books = DetourBooks::new(&booked, &noise, &out);
        let ranks = nodes * per_node;
        let mut job =
            Job { table: &table, noise: &noise, books: &books, question: &question, ranks, method: None, by_bounds: None };
        let (added, costs) = plain_books(&job);
        for method in [None, Some(Method::Bounded), Some(Method::Walk), Some(Method::Skyline)] {
            for by_bounds in [None, Some(false), Some(true)] {
                (job.method, job.by_bounds) = (method, by_bounds);
                let BookedReplica { books: replica, costs: fast } = job.replica(0, ReplayWatch::NOBODY).unwrap();
                prop_assert_eq!(&fast, &costs, "{:?} {:?}", method, by_bounds);
                prop_assert_eq!(replica.added.iter().copied().sum::<Nanos>(), Nanos::new(added));
                prop_assert_eq!(replica.outcome.total.get(), added + grain * 60);
            }
        }
    }

    /// Every single detour is split according to its books, whole and in part.
    #[test]
    fn a_detour_goes_to_its_sources(rows in rows(), cost in 0_i64..1 << 50) {
        let cpu = booked(&rows, 0, rows.iter().map(|row| row.0 + row.1).sum::<i64>() + 1);
        let booked = BookedNoise::new(names(), vec![BookedNode { name: "a".into(), cpus: vec![cpu] }]).unwrap();
        let noise = booked.without(&[false; SOURCES]).unwrap();
        let books = DetourBooks::new(&booked, &noise, &[false; SOURCES]);
        let trace = noise.traces().next().unwrap();
        let totals = booked.totals();
        let mut whole = [0; SOURCES + 1];
        for (slot, duration) in trace.durations_ns().iter().enumerate() {
            books.cpus[0].split(slot, *duration, *duration, |source, time| whole[source] += time);
            let mut parts = 0;
            books.cpus[0].split(slot, cost, *duration, |_, time| parts += time);
            prop_assert_eq!(parts, cost);
        }
        prop_assert_eq!(&whole[..SOURCES], &totals.iter().map(|time| time.get()).collect::<Vec<_>>());
        prop_assert_eq!(whole.iter().sum::<i64>(), trace.noise().get());
    }
}

/// Detours of several sources at random instants: rate in Hz, duration in nanoseconds.
pub(super) fn planted(sources: &[(f64, i64)], seconds: i64, seed: u64) -> BookedNoise {
    let mut stream = Stream::new(seed, Purpose::Detours, 7);
    let length = seconds * 1_000_000_000;
    let mut events: Vec<(i64, i64, u32)> = Vec::new();
    for (source, (rate, duration)) in sources.iter().enumerate() {
        let count = (rate * seconds as f64) as usize;
        events.extend((0..count).map(|_| (stream.below(length as u64) as i64, *duration, source as u32)));
    }
    events.sort_unstable();
    let (mut end, mut detours, mut entries) = (0, Vec::new(), Vec::new());
    for (start, duration, source) in events {
        let start = start.max(end);
        end = start + duration;
        let detour = detours.len();
        detours.push((Nanos::new(start), Nanos::new(duration)));
        entries.push(BookEntry { detour, source, root: source, self_time: Nanos::new(duration) });
    }
    let names = (0..sources.len()).map(|number| number.to_string()).collect();
    let cpu = BookedTrace::new(Nanos::ZERO, Nanos::new(length), detours, entries, sources.len()).unwrap();
    BookedNoise::new(names, vec![BookedNode { name: "a".into(), cpus: vec![cpu] }]).unwrap()
}

fn closed(booked: &BookedNoise, out: &[bool], ranks: u64, question: &Question) -> super::ClosedBooks {
    let noise = booked.without(out).unwrap();
    let table = DelayTable::new(&noise, 1, question.grain).unwrap();
    let books = DetourBooks::new(booked, &noise, out);
    closed_books(&table, &noise, &books, question, ranks, 10, ReplayWatch::NOBODY).unwrap()
}

/// By time the frequent short source comes first (10 ms per second, against 2 and 2), at 64 ranks it is the last.
#[test]
fn planted_sources_are_found_in_their_order() {
    for seed in 1..=30 {
        let booked = planted(&[(1_000.0, 10_000), (20.0, 100_000), (1.0, 2_000_000)], 20, seed);
        let books = closed(&booked, &[false; 3], 64, &question(1_000_000, 3_000, 1, false, seed, 2));
        let order: Vec<Option<usize>> = books.sources().iter().map(|share| share.source).collect();
        assert_eq!(order, [Some(2), Some(1), Some(0)], "seed {seed}");
        assert_eq!(books.dearest.len(), 10);
        assert!(
            books.dearest.iter().all(|detour| detour.sources[0].source == Some(2)),
            "seed {seed}: {:?}",
            books.dearest
        );
        assert!(books.dearest.is_sorted_by(|a, b| a.cost >= b.cost));
    }
}

/// If no two sources ever compete for being the latest, removing one gains what its books show.
#[test]
fn books_equal_removal_where_sources_do_not_compete() {
    let slowdown = |books: &super::ClosedBooks| -> f64 {
        let ratio = |replica: &ReplicaBooks| replica.outcome.slowdown();
        books.replicas.iter().map(ratio).sum::<f64>() / books.replicas.len() as f64
    };
    let booked = planted(&[(300.0, 20_000), (20.0, 200_000)], 30, 5);
    let question = question(1_000_000, 30_000, 1, false, 3, 8);
    let all = closed(&booked, &[false; 2], 1, &question);
    for share in all.sources() {
        let source = share.source.unwrap();
        let out = [0, 1].map(|number| number == source);
        let gain = slowdown(&all) - slowdown(&closed(&booked, &out, 1, &question));
        assert!((gain / share.added.mean - 1.0).abs() < 0.05, "{source}: gains {gain}, books {share:?}");
    }
    // A single source is the whole slowdown; without it nothing is left.
    let single = planted(&[(50.0, 100_000)], 10, 5);
    let books = closed(&single, &[false], 256, &question);
    assert!((books.sources()[0].added.mean - (slowdown(&books) - 1.0)).abs() < 1e-12);
    assert_eq!(books.sources().len(), 1);
    assert!(closed(&single, &[true], 256, &question).sources().is_empty());
}
