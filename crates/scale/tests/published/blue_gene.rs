//! What the inputs of B07's figures rest on.

use becalm_scale::predict::{Prediction, Question, RankPrediction};
use becalm_units::Nanos;

use crate::figures::{blue_gene, periodic};

/// Collectives back to back, two processes a node.
fn row(collective: &str, detour: &str, ranks: u64, phases: u64, synchronized: bool) -> RankPrediction {
    let noise = periodic("1ms", detour).noise();
    let question = Question {
        grain: Nanos::ZERO,
        phases,
        collective: collective.parse().unwrap(),
        network: blue_gene(),
        bytes: 8,
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

/// The barrier takes 1.5 us without noise, which is what a factor of 268 at two detours implies.
#[test]
fn the_barrier_without_noise() {
    let row = row("barrier:hardware", "0us", 1 << 15, 3, false);
    assert_eq!((row.quiet_phase_ns, slowdown(&row)), (1_500.0, 1.0));
}

/// Where all ranks are in step, two take as long as all: a long run of barriers needs no more.
#[test]
fn in_step_two_ranks_are_enough() {
    let barriers = |ranks| slowdown(&row("barrier:hardware", "200us", ranks, 700, true));
    assert_eq!(barriers(1 << 15), barriers(2));
}

/// Two detours of a barrier miss the two whole ones by what the nearest such pair is apart: I sqrt(pi / (2 N)) on average, 9.8 us with
/// 16,384 nodes, whatever the detour's length. With 16 times the nodes no length misses more than 2 %.
#[test]
fn more_nodes_come_nearer_to_two_detours() {
    let row = row("barrier:hardware", "50us", 1 << 19, 40, false);
    let detours = (row.mean_phase_ns.unwrap() - row.quiet_phase_ns) / 50e3;
    assert!((1.96..=2.0).contains(&detours), "{detours}");
}

/// At a noise ratio of 1 % one detour is under way with 100 processes, and ten with 1,024: between them the effect grows.
#[test]
fn more_processes_cost_more_before_it_levels_off() {
    let added = |ranks, phases| {
        let row = row("barrier:hardware", "10us", ranks, phases, false);
        row.mean_phase_ns.unwrap() - row.quiet_phase_ns
    };
    let (few, many) = (added(1 << 7, 100_000), added(1 << 10, 2_000));
    assert!(many > 2.0 * few, "{few} ns with 128 processes, {many} ns with 1,024");
}

/// What the published share of alltoall hangs on, the number of messages under way; and that a chain of blocking exchanges, which no
/// library sends so short messages by, is none of it.
#[test]
fn alltoall_hangs_on_its_window() {
    let added = |collective: &str| 100.0 * (slowdown(&row(collective, "200us", 1 << 10, 8, false)) - 1.0);
    let window = added("alltoall:scattered=24");
    assert!((194.0..=216.0).contains(&window), "{window} %");
    let chain = added("alltoall:pairwise");
    assert!(chain > 1_000.0, "{chain} %");
}

/// 16 us every 100 ms cost the collectives that are made of messages next to nothing.
#[test]
fn short_rare_noise_costs_messages_little() {
    for collective in ["allreduce:recursive-doubling", "allreduce:tree", "alltoall:scattered", "alltoall:linear"] {
        let noise = periodic("100ms", "16us").noise();
        let question = Question {
            grain: Nanos::ZERO,
            phases: 20,
            collective: collective.parse().unwrap(),
            network: blue_gene(),
            bytes: 8,
            per_node: 2,
            synchronized: false,
            seed: 7,
            replicas: 1,
        };
        let row = Prediction::new(&noise, question).unwrap().row(1 << 10).unwrap();
        assert!(slowdown(&row) < 1.06, "{collective}: {}", slowdown(&row));
    }
}
