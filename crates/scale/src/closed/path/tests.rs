//! Compares the critical path with the machine without anything off the path, and with planted noise.

use becalm_units::Nanos;
use proptest::prelude::*;

use super::path_costs;
use crate::ScaleError;
use crate::blame::{BlameWanted, blame};
use crate::collective::{Alltoall, Collective};
use crate::machine::{JobMachine, RankStart, Time, Traced};
use crate::network::Network;
use crate::noise::NoiseTrace;
use crate::predict::Question;
use crate::random::{Purpose, Stream};
use crate::watch::ReplayWatch;

use super::super::tests::{planted, question};

/// Longer than any job of the tests, so no detour comes twice.
const LENGTH: i64 = 1 << 40;

fn collectives() -> impl Strategy<Value = Collective> {
    let names: Vec<&str> = Collective::names().collect();
    proptest::sample::select(names).prop_map(|name| name.parse().unwrap())
}

fn networks() -> impl Strategy<Value = Network> {
    let times = (0_i64..500, 0_i64..100, 0_i64..400, 0_i64..3_000);
    (times, prop_oneof![Just(None), (0_u64..400).prop_map(Some)]).prop_map(|((latency, overhead, gap, byte), limit)| {
        let ns = Nanos::new;
        let network = Network::new(ns(latency), ns(overhead), ns(gap), byte).unwrap();
        limit.map_or(network, |limit| network.with_rendezvous_above(limit))
    })
}

/// A rank's detours: gaps and lengths.
fn traces() -> impl Strategy<Value = Vec<Vec<(i64, i64)>>> {
    let detour = (prop_oneof![1_i64..50, 1_i64..3_000], prop_oneof![1_i64..20, 1_i64..2_000]);
    proptest::collection::vec(proptest::collection::vec(detour, 0..40), 1..14)
}

/// The detours after these gaps, by start and length.
fn placed(gaps: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut at = 0;
    let detour = |(gap, length): &(i64, i64)| {
        at += gap + length;
        (at - length, *length)
    };
    gaps.iter().map(detour).collect()
}

fn trace(detours: &[(i64, i64)]) -> NoiseTrace {
    NoiseTrace::new(Nanos::new(LENGTH), detours.iter().map(|(start, length)| (Nanos::new(*start), Nanos::new(*length))))
        .unwrap()
}

/// The work of all ranks.
struct Work {
    network: Network,
    collective: Collective,
    bytes: u64,
    grain: i64,
    phases: u64,
    per_node: usize,
}

impl Work {
    /// Gives each rank its trace, and plays it; calls `after` after each phase.
    fn played<'a, T: Time>(
        &self,
        traces: &'a [NoiseTrace],
        mut after: impl FnMut(&mut JobMachine<'_, T>),
    ) -> Result<JobMachine<'a, T>, ScaleError> {
        let starts: Vec<RankStart<'_>> = traces.iter().map(|trace| RankStart { trace, offset: 0 }).collect();
        let mut machine = JobMachine::<T>::with_times(self.network, &starts)?.with_nodes(self.per_node);
        for _ in 0..self.phases {
            machine.work(Nanos::new(self.grain))?;
            self.collective.run(&mut machine, self.bytes)?;
            after(&mut machine);
        }
        Ok(machine)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// With only the detours on the critical path, the job ends at the same nanosecond; without any, it is not shorter than the path without its
    /// noise.
    #[test]
    fn nothing_but_the_path_decides_the_end(
        network in networks(),
        collective in collectives(),
        bytes in 1_u64..600,
        grain in prop_oneof![0_i64..20, 0_i64..4_000],
        phases in 1_u64..6,
        gaps in traces(),
        forgets: bool,
    ) {
        // Windows of messages are received in order of arrival, so noise off the path reorders those on it.
        prop_assume!(!matches!(collective, Collective::Alltoall(Alltoall::Scattered(_))));
        let work = Work { network, collective, bytes, grain, phases, per_node: 1 };
        let placed: Vec<Vec<(i64, i64)>> = gaps.iter().map(|gaps| placed(gaps)).collect();
        let all: Vec<NoiseTrace> = placed.iter().map(|detours| trace(detours)).collect();
        let plain = work.played::<i64>(&all, |_| ()).unwrap();
        let traced = work
            .played::<Traced>(&all, |machine| if forgets { machine.forget_paths() })
            .unwrap();
        for rank in 0..all.len() {
            prop_assert_eq!(plain.clock(rank), traced.clock(rank));
        }
        let starts: Vec<RankStart<'_>> = all.iter().map(|trace| RankStart { trace, offset: 0 }).collect();
        let costs = path_costs(&traced.critical_path(), &starts, &starts.iter().map(|start| start.trace).collect::<Vec<_>>());
        let left: Vec<NoiseTrace> = placed
            .iter()
            .zip(&costs)
            .map(|(detours, costs)| {
                let on_path: Vec<(i64, i64)> =
                    detours.iter().zip(costs).filter(|(_, cost)| **cost > 0).map(|(detour, _)| *detour).collect();
                trace(&on_path)
            })
            .collect();
        prop_assert_eq!(work.played::<i64>(&left, |_| ()).unwrap().latest(), plain.latest());
        let silent: Vec<NoiseTrace> = placed.iter().map(|_| trace(&[])).collect();
        let quiet = work.played::<i64>(&silent, |_| ()).unwrap().latest();
        let booked: i64 = costs.iter().flatten().sum();
        let hidden = booked - (plain.latest() - quiet).get();
        prop_assert!(hidden >= 0, "{} booked, {} added", booked, plain.latest() - quiet);
        for (detours, costs) in placed.iter().zip(&costs) {
            for ((_, length), cost) in detours.iter().zip(costs) {
                prop_assert!(cost <= length, "no detour comes twice");
            }
        }
    }

    /// Paths of later phases need nothing that is dropped between phases: if cards are busy for long, a path may lead to a message several phases
    /// back.
    #[test]
    fn forgetting_changes_no_path(
        collective in collectives(),
        (latency, overhead, gap) in (0_i64..500, 0_i64..100, 400_i64..40_000),
        grain in prop_oneof![Just(0_i64), 0_i64..4_000],
        phases in 2_u64..9,
        gaps in traces(),
        per_node in 1_usize..4,
    ) {
        let ns = Nanos::new;
        let network = Network::new(ns(latency), ns(overhead), ns(gap), 500).unwrap();
        let work = Work { network, collective, bytes: 8, grain, phases, per_node };
        let traces: Vec<NoiseTrace> = gaps.iter().map(|gaps| trace(&placed(gaps))).collect();
        prop_assert_eq!(costs(&work, &traces), costs_after(&work, &traces, |_| ()));
    }

    /// Times with paths equal the times without, even if ranks share cards.
    #[test]
    fn paths_change_no_time(
        network in networks(),
        collective in collectives(),
        bytes in 1_u64..600,
        grain in 0_i64..4_000,
        gaps in traces(),
        per_node in 1_usize..5,
    ) {
        let work = Work { network, collective, bytes, grain, phases: 3, per_node };
        let all: Vec<NoiseTrace> = gaps.iter().map(|gaps| trace(&placed(gaps))).collect();
        let plain = work.played::<i64>(&all, |_| ()).unwrap();
        let traced = work.played::<Traced>(&all, |machine| machine.forget_paths()).unwrap();
        for rank in 0..all.len() {
            prop_assert_eq!(plain.clock(rank), traced.clock(rank));
        }
    }
}

/// The time that each detour of each rank takes from the work on the critical path.
fn costs(work: &Work, traces: &[NoiseTrace]) -> Vec<Vec<i64>> {
    costs_after(work, traces, |machine| machine.forget_paths())
}

fn costs_after(work: &Work, traces: &[NoiseTrace], after: impl FnMut(&mut JobMachine<'_, Traced>)) -> Vec<Vec<i64>> {
    let traced = work.played::<Traced>(traces, after).unwrap();
    let starts: Vec<RankStart<'_>> = traces.iter().map(|trace| RankStart { trace, offset: 0 }).collect();
    path_costs(&traced.critical_path(), &starts, &traces.iter().collect::<Vec<_>>())
}

/// For every collective, and with shared cards: making a detour on the path a nanosecond longer ends the job a nanosecond later; any other one does
/// not. Neither does one after which the path waits into another detour, whose end then decides. Times are so long that the nanosecond almost never
/// decides anything else.
#[test]
fn a_longer_detour_ends_the_job_later_if_it_is_on_the_path() {
    let mut stream = Stream::new(1, Purpose::Detours, 3);
    let names: Vec<&str> = Collective::names().collect();
    let (mut on, mut off, mut wrong) = (0, 0, Vec::new());
    for number in 0..600 {
        let mut below = |most: u64| Nanos::new(stream.below(1_000 * most) as i64);
        let mut network = Network::new(below(500), below(100), below(400), below(3_000).get()).unwrap();
        if stream.below(2) == 0 {
            network = network.with_rendezvous_above(stream.below(400));
        }
        let work = Work {
            network,
            collective: names[number % names.len()].parse().unwrap(),
            bytes: 1 + stream.below(600),
            grain: stream.below(4_000_000) as i64,
            phases: 1 + stream.below(4),
            per_node: 1 + stream.below(4) as usize,
        };
        let mut gap = || (1_000 + stream.below(3_000_000) as i64, 1_000 + stream.below(1_000_000) as i64);
        let mut detours: Vec<Vec<(i64, i64)>> =
            (0..2 + number % 11).map(|_| placed(&(0..12).map(|_| gap()).collect::<Vec<_>>())).collect();
        let traces = |detours: &[Vec<(i64, i64)>]| detours.iter().map(|detours| trace(detours)).collect::<Vec<_>>();
        let end = |detours: &[Vec<(i64, i64)>]| work.played::<i64>(&traces(detours), |_| ()).unwrap().latest().get();
        let (costs, before) = (costs(&work, &traces(&detours)), end(&detours));
        let both = detours.iter().flatten().zip(costs.iter().flatten());
        let in_part = both.filter(|((_, length), cost)| (1..*length).contains(*cost));
        let waited_into = in_part.map(|((start, length), _)| start + length).max().unwrap_or(0);
        let tried: Vec<(usize, usize)> = (0..detours.len())
            .flat_map(|rank| (0..12).map(move |slot| (rank, slot)))
            .filter(|(rank, slot)| costs[*rank][*slot] > 0 || stream.below(10) == 0)
            .collect();
        for (rank, slot) in tried {
            detours[rank][slot].1 += 1;
            let later = end(&detours) - before;
            detours[rank][slot].1 -= 1;
            let ends = detours[rank][slot].0 + detours[rank][slot].1;
            let on_path = costs[rank][slot] > 0 && ends >= waited_into;
            *if on_path { &mut on } else { &mut off } += 1;
            if later != i64::from(on_path) {
                wrong.push((work.collective, work.per_node, later, on_path));
            }
        }
    }
    assert!(on > 500 && off > 1_000, "{on} on the path, {off} off it");
    assert!(wrong.len() * 500 < on + off, "{} of {}: {wrong:?}", wrong.len(), on + off);
}

fn allreduce(phases: u64, seed: u64) -> Question {
    Question { collective: "allreduce".parse().unwrap(), ..question(1_000_000, phases, 1, false, seed, 2) }
}

const WANTED: BlameWanted = BlameWanted { without: 3, detours: 10 };

/// As without messages: the rare long source comes first, although it takes the least time.
#[test]
fn planted_sources_are_found_in_their_order() {
    for seed in 1..=30 {
        let booked = planted(&[(1_000.0, 10_000), (20.0, 100_000), (1.0, 2_000_000)], 20, seed);
        let blames = blame(&booked, allreduce(600, seed), &[64], WANTED, &[false; 3], ReplayWatch::NOBODY).unwrap();
        let books = blames[0].books.as_ref().unwrap();
        let order: Vec<Option<usize>> = books.sources().iter().map(|share| share.source).collect();
        assert_eq!(order, [Some(2), Some(1), Some(0)], "seed {seed}");
        assert!(
            books.dearest.iter().all(|detour| detour.sources[0].source == Some(2)),
            "seed {seed}: {:?}",
            books.dearest
        );
        // A single path adds up to the job: the attributed time is the added time, plus the little that is hidden.
        let added: f64 = books.sources().iter().map(|share| share.added.mean).sum();
        assert!((added - books.hidden_ratio() - (blames[0].all.slowdown - 1.0)).abs() < 1e-9, "seed {seed}");
        assert!(books.hidden_ratio() >= 0.0 && books.hidden_ratio() < 0.1 * added, "seed {seed}: {books:?}");
    }
}

/// If no two sources ever compete for the path, removing one gains what its books show.
#[test]
fn books_equal_removal_where_sources_do_not_compete() {
    let booked = planted(&[(300.0, 20_000), (20.0, 200_000)], 30, 5);
    let question = Question { replicas: 8, ..allreduce(30_000, 3) };
    let blames = blame(&booked, question, &[1], WANTED, &[false; 2], ReplayWatch::NOBODY).unwrap();
    for share in blames[0].books.as_ref().unwrap().sources() {
        let without = blames[0].each.iter().find(|without| without.sources == [share.source.unwrap()]).unwrap();
        let gain = without.gain.unwrap().mean;
        assert!((gain / share.added.mean - 1.0).abs() < 0.05, "gains {gain}, books {share:?}");
    }
}
