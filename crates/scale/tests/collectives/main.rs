//! Collectives against their closed forms, and against an independent simulator that plays one event after another.

mod nodes;
mod programs;
mod simulator;

use becalm_scale::NoiseTrace;
use becalm_scale::collective::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Collective, Library, Operation, Reduce, ReduceScatter,
};
use becalm_scale::machine::{JobMachine, RankStart};
use becalm_scale::network::{Links, Network, WithinNode};
use becalm_units::{Named, Nanos};
use proptest::prelude::*;

use nodes::NodeSimulator;
use programs::program;
use simulator::{Action, Simulator};

/// All collectives that send messages, windows of other sizes, and the choices of libraries.
fn with_messages() -> Vec<Collective> {
    let named = Collective::names().filter(|name| *name != "ideal" && !name.ends_with(":hardware"));
    let windows = ["alltoall:scattered=1", "alltoall:scattered=3"];
    let chosen =
        Library::ALL.iter().flat_map(|library| Operation::ALL.iter().map(|what| Collective::Chosen(*what, *library)));
    named.chain(windows).map(|name| name.parse().unwrap()).chain(chosen).collect()
}

fn network(latency: i64, overhead: i64, gap: i64, byte_gap_ps: i64) -> Network {
    Network::new(Nanos::new(latency), Nanos::new(overhead), Nanos::new(gap), byte_gap_ps).unwrap()
}

/// Any network: small parameters, so that each of them decides now and then.
fn any_network() -> impl Strategy<Value = Network> {
    let times = (0_i64..500, 0_i64..100, 0_i64..400, 0_i64..3_000);
    let bytes = (prop_oneof![Just(0_i64), 0_i64..2_000], prop_oneof![Just(0_i64), 0_i64..2_000]);
    let limit = prop_oneof![Just(None), (0_u64..400).prop_map(Some)];
    let links = prop_oneof![Just(Links::Full), Just(Links::Torus), (1_000_u64..5_000).prop_map(Links::Tapered)];
    (times, bytes, limit, links, 0_u64..100, proptest::option::of(within_node())).prop_map(
        |((latency, overhead, gap, byte_gap), bytes, limit, links, packet, within)| {
            let plain = network(latency, overhead, gap, byte_gap);
            let network = plain.with_cpu_bytes(bytes.0, bytes.1).unwrap().with_links(links, packet).unwrap();
            let network = limit.map_or(network, |limit| network.with_rendezvous_above(limit));
            within.map_or(network, |within| network.with_node(within).unwrap())
        },
    )
}

fn within_node() -> impl Strategy<Value = WithinNode> {
    (0_i64..300, 0_i64..100, 0_i64..300, 0_i64..2_000, 0_i64..1_000).prop_map(
        |(latency, overhead, gap, byte_gap_ps, byte_overhead_ps)| WithinNode {
            latency: Nanos::new(latency),
            overhead: Nanos::new(overhead),
            gap: Nanos::new(gap),
            byte_gap_ps,
            byte_overhead_ps,
        },
    )
}

/// A trace of these gaps and detours, the last of which goes over the end of the circle where there is room before the first.
fn trace_of(detours: &[(i64, i64)]) -> Option<NoiseTrace> {
    let mut at = 0;
    let rows: Vec<_> = detours
        .iter()
        .map(|(gap, duration)| {
            at += gap + duration;
            (Nanos::new(at - duration), Nanos::new(*duration))
        })
        .collect();
    let over = (detours[0].0 / 2).min(detours[detours.len() - 1].1 - 1);
    let work: i64 = detours.iter().map(|(gap, _)| gap).sum();
    (work > over).then(|| NoiseTrace::new(Nanos::new(at - over), rows).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]
    #[test]
    fn equals_the_simulator_under_noise(
        which in any::<prop::sample::Index>(),
        detours in proptest::collection::vec((0_i64..400, 1_i64..300), 1..12),
        offsets in proptest::collection::vec(0_i64..100_000, 1..21),
        network in any_network(),
        per_node in prop_oneof![Just(1_usize), 1_usize..8],
        (bytes, grain, phases) in (0_u64..300, prop_oneof![Just(0_i64), 0_i64..3_000], 1_usize..5),
    ) {
        let trace = trace_of(&detours);
        prop_assume!(trace.is_some());
        let trace = trace.unwrap();
        let starts: Vec<RankStart<'_>> = offsets.iter().map(|offset| RankStart { trace: &trace, offset: *offset }).collect();
        let ranks = starts.len();
        let all = with_messages();
        let collective = all[which.index(all.len())];
        // As on the machine: no node has more ranks than there are.
        let per_node = per_node.min(ranks);
        let programs: Vec<Vec<Vec<Action>>> = (0..ranks).map(|rank| {
            let phase = program(collective, rank, ranks, per_node, bytes);
            (0..phases).flat_map(|_| std::iter::once(vec![Action::Work(grain)]).chain(phase.clone())).collect()
        }).collect();
        let everyone = collective.operation() == Some(Operation::Alltoall);
        let share = if everyone { network.share(ranks as u64, per_node as u64) } else { 1_000 };
        let simulated = if per_node == 1 {
            let programs: Vec<Vec<Action>> = programs.iter().map(|steps| steps.concat()).collect();
            Simulator::new(&network, &starts, share).play(&programs)
        } else {
            NodeSimulator::new(&network, &starts, share, per_node).play(&programs)
        };
        let mut machine = JobMachine::new(network, &starts).unwrap().with_nodes(per_node);
        for _ in 0..phases {
            machine.work(Nanos::new(grain)).unwrap();
            collective.run(&mut machine, bytes).unwrap();
        }
        let clocks: Vec<i64> = (0..ranks).map(|rank| machine.clock(rank).get()).collect();
        prop_assert_eq!(clocks, simulated, "{} on {} ranks, {} a node", collective, ranks, per_node);
    }

    #[test]
    fn hardware_barrier_is_its_definition(
        offsets in proptest::collection::vec(0_i64..10_000, 1..10), per_node in 1_usize..4, grain in 0_i64..3_000,
    ) {
        let trace = NoiseTrace::new(Nanos::new(2_000), [(Nanos::new(100), Nanos::new(700))]).unwrap();
        let starts: Vec<RankStart<'_>> = offsets.iter().map(|offset| RankStart { trace: &trace, offset: *offset }).collect();
        let network = network(500, 70, 0, 0);
        let finish = |offset: i64, now: i64, work: i64| {
            trace.finish(Nanos::new(now + offset), Nanos::new(work)).unwrap().get() - offset
        };
        let entered: Vec<i64> = offsets.iter().map(|o| finish(*o, finish(*o, 0, grain), 70)).collect();
        let armed = offsets.chunks(per_node).zip(entered.chunks(per_node))
            .map(|(offsets, entered)| finish(offsets[0], *entered.iter().max().unwrap(), 70));
        let released = armed.max().unwrap() + 500;
        let mut machine = JobMachine::new(network, &starts).unwrap().with_nodes(per_node);
        machine.work(Nanos::new(grain)).unwrap();
        Collective::Barrier(Barrier::Hardware).run(&mut machine, 1).unwrap();
        for (rank, offset) in offsets.iter().enumerate() {
            prop_assert_eq!(machine.clock(rank).get(), finish(*offset, released, 70));
        }
    }

    #[test]
    fn hardware_allreduce_is_its_definition(
        offsets in proptest::collection::vec(0_i64..10_000, 1..10), per_node in 1_usize..4, bytes in 0_u64..300,
    ) {
        let trace = NoiseTrace::new(Nanos::new(2_000), [(Nanos::new(100), Nanos::new(700))]).unwrap();
        let starts: Vec<RankStart<'_>> = offsets.iter().map(|offset| RankStart { trace: &trace, offset: *offset }).collect();
        let network = network(500, 70, 0, 3_000).with_cpu_bytes(1_000, 2_000).unwrap();
        let finish = |offset: i64, now: i64, work: i64| {
            trace.finish(Nanos::new(now + offset), Nanos::new(work)).unwrap().get() - offset
        };
        let others = bytes.saturating_sub(1) as i64;
        let step = 70 + others;
        let given = (per_node.min(offsets.len()) as i64 - 1) * 2 * bytes as i64;
        let entered: Vec<i64> = offsets.iter().map(|offset| finish(*offset, 0, step)).collect();
        let armed = offsets.chunks(per_node).zip(entered.chunks(per_node))
            .map(|(offsets, entered)| finish(offsets[0], *entered.iter().max().unwrap(), step + given));
        let released = armed.max().unwrap() + 500 + 3 * others;
        let mut machine = JobMachine::new(network, &starts).unwrap().with_nodes(per_node);
        Collective::Allreduce(Allreduce::Hardware).run(&mut machine, bytes).unwrap();
        for (rank, offset) in offsets.iter().enumerate() {
            prop_assert_eq!(machine.clock(rank).get(), finish(*offset, released, step));
        }
    }
}

/// Without noise, with a gap that does not bind: m = log2 n rounds of o + L + (b-1)G + o.
#[test]
fn closed_forms_without_noise() {
    let network = network(2_500, 1_500, 1_000, 6_000);
    let round = |bytes: i64| 1_500 + 2_500 + (bytes - 1) * 6 + 1_500;
    let silence = NoiseTrace::silent(Nanos::from_secs(1)).unwrap();
    for m in 0..8 {
        let n = 1_i64 << m;
        let starts = vec![RankStart { trace: &silence, offset: 0 }; n as usize];
        // A half, a quarter ... of 16 n bytes: few enough that the card is ready for the next message before the CPU is.
        let halves: i64 = (1..=m).map(|k| round((16 * n) >> k)).sum();
        for (collective, bytes, time) in [
            (Collective::Barrier(Barrier::Dissemination), 1, m * round(1)),
            (Collective::Barrier(Barrier::Binomial), 1, 2 * m * round(1)),
            (Collective::Barrier(Barrier::Hardware), 1, 3 * 1_500 + 2_500),
            (Collective::Allreduce(Allreduce::RecursiveDoubling), 100, m * round(100)),
            (Collective::Allreduce(Allreduce::Ring), 100 * n, 2 * (n - 1) * round(100)),
            (Collective::Allreduce(Allreduce::Tree), 100, 2 * m * round(100)),
            (Collective::Bcast(Bcast::Binomial), 100, m * round(100)),
            (Collective::Bcast(Bcast::ScatterRing), 16 * n, halves + (n - 1) * round(16)),
            (Collective::Reduce(Reduce::Binomial), 100, m * round(100)),
            (Collective::Reduce(Reduce::Rabenseifner), 16 * n, 2 * halves),
            (Collective::Allreduce(Allreduce::Rabenseifner), 16 * n, 2 * halves),
            (Collective::Allgather(Allgather::Ring), 100, (n - 1) * round(100)),
            (Collective::Allgather(Allgather::RecursiveDoubling), 16, halves),
            (Collective::ReduceScatter(ReduceScatter::RecursiveHalving), 16, halves),
            (Collective::Alltoall(Alltoall::Scattered(1)), 100, (n - 1) * round(100)),
            (Collective::Alltoall(Alltoall::Pairwise), 100, (n - 1) * round(100)),
            (Collective::Alltoall(Alltoall::Bruck), 100, m * round(100 * n / 2)),
            // The first message has come by the time that three are sent; then each receive follows the last.
            (Collective::Alltoall(Alltoall::Linear), 1, if n < 4 { 0 } else { 2 * (n - 1) * 1_500 }),
        ] {
            if time == 0 && n > 1 {
                continue;
            }
            let mut machine = JobMachine::new(network, &starts).unwrap();
            collective.run(&mut machine, bytes as u64).unwrap();
            assert_eq!(machine.latest().get(), time, "{collective} on {n}");
        }
    }
}

/// A message that is asked for: announced, asked for, taken, each with o, and three ways. What is reduced takes its time.
#[test]
fn long_messages_wait_for_their_receiver() {
    let eager = network(2_500, 1_500, 1_000, 6_000).with_cpu_bytes(1_000, 2_000).unwrap();
    let silence = NoiseTrace::silent(Nanos::from_secs(1)).unwrap();
    let time = |network: Network, bytes: u64| {
        let mut machine = JobMachine::new(
            network,
            &[RankStart { trace: &silence, offset: 0 }, RankStart { trace: &silence, offset: 0 }],
        )
        .unwrap();
        Collective::Allreduce(Allreduce::RecursiveDoubling).run(&mut machine, bytes).unwrap();
        machine.latest().get()
    };
    let asked = eager.with_rendezvous_above(1_000);
    assert_eq!(time(eager, 1_001), 1_500 + 1_000 + 2_500 + 6_000 + 1_500 + 1_000 + 2_002);
    assert_eq!(time(asked, 1_000), time(eager, 1_000));
    assert_eq!(time(asked, 1_001), 3 * 1_500 + 3 * 2_500 + 6_000 + 2_002);
    // A receiver that comes late holds up its sender: it is under way for 100 us when the announcement comes.
    let late = NoiseTrace::new(Nanos::from_secs(1), [(Nanos::ZERO, Nanos::from_micros(100))]).unwrap();
    let held_up = |network: Network| {
        let mut machine = JobMachine::new(
            network,
            &[RankStart { trace: &silence, offset: 0 }, RankStart { trace: &late, offset: 0 }],
        )
        .unwrap();
        Collective::Bcast(Bcast::Binomial).run(&mut machine, 1_001).unwrap();
        machine.clock(0).get()
    };
    assert_eq!(held_up(eager), 1_500 + 1_000);
    assert_eq!(held_up(asked), 100_000 + 1_500 + 2_500 + 6_000);
}

/// Sends of a rank leave at least g apart.
#[test]
fn the_gap_binds_sends_and_receives() {
    let network = network(1_000, 10, 5_000, 0);
    let silence = NoiseTrace::silent(Nanos::from_secs(1)).unwrap();
    let starts = vec![RankStart { trace: &silence, offset: 0 }; 5];
    let mut machine = JobMachine::new(network, &starts).unwrap();
    Collective::Alltoall(Alltoall::Linear).run(&mut machine, 1).unwrap();
    // The last of four sends starts at 3 g and takes o; then the last of four receives starts 3 g later and takes o.
    assert_eq!(machine.latest().get(), 3 * 5_000 + 10 + 3 * 5_000 + 10);
}

/// 100 ms of work at 50 % noise takes 200 ms, also in one piece with noise that comes while it is stretched.
#[test]
fn noise_dilates_work() {
    let half = NoiseTrace::new(Nanos::new(1_000), [(Nanos::ZERO, Nanos::new(500))]).unwrap();
    let mut machine = JobMachine::new(network(0, 0, 0, 0), &[RankStart { trace: &half, offset: 0 }]).unwrap();
    machine.work(Nanos::from_millis(100)).unwrap();
    assert_eq!(machine.clock(0), Nanos::from_millis(200));
    // A send that noise hits leaves late.
    let mut machine = JobMachine::new(
        network(100, 10, 0, 0),
        &[RankStart { trace: &half, offset: 0 }, RankStart { trace: &half, offset: 500 }],
    )
    .unwrap();
    machine.send(1, |rank| (rank == 0).then_some(1)).unwrap();
    machine.receive(1, |rank| (rank == 1).then_some(0)).unwrap();
    assert_eq!((machine.clock(0).get(), machine.clock(1).get()), (510, 1_010));
}

#[test]
fn large_machines_use_threads_and_get_the_same() {
    let trace = "poisson:rate=1kHz,detour=20us".parse::<becalm_scale::spec::NoiseSpec>().unwrap().trace(3).unwrap();
    let starts: Vec<RankStart<'_>> =
        (0..80_000_i64).map(|rank| RankStart { trace: &trace, offset: rank * 7_919_131 }).collect();
    let clocks = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let mut machine = JobMachine::new(network(2_500, 1_500, 1_000, 6_000), &starts).unwrap();
            for _ in 0..3 {
                machine.work(Nanos::from_micros(100)).unwrap();
                Collective::Barrier(Barrier::Dissemination).run(&mut machine, 1).unwrap();
            }
            (0..machine.len()).map(|rank| machine.clock(rank)).collect::<Vec<_>>()
        })
    };
    let one = clocks(1);
    assert_eq!(one, clocks(3));
    assert!(one.iter().max() > one.iter().min());
}

#[test]
fn names_read_back_and_defaults_are_the_first() {
    let hardware = [Collective::Barrier(Barrier::Hardware), Collective::Allreduce(Allreduce::Hardware)];
    for collective in with_messages().into_iter().chain(hardware).chain([Collective::Ideal]) {
        assert_eq!(collective.to_string().parse::<Collective>(), Ok(collective));
    }
    for (short, long) in [
        ("barrier", "barrier:dissemination"),
        ("bcast", "bcast:binomial"),
        ("reduce", "reduce:binomial"),
        ("allreduce", "allreduce:recursive-doubling"),
        ("allgather", "allgather:recursive-doubling"),
        ("reduce-scatter", "reduce-scatter:recursive-halving"),
        ("alltoall", "alltoall:scattered"),
        ("alltoall:scattered=32", "alltoall:scattered"),
    ] {
        assert_eq!(short.parse::<Collective>(), long.parse());
    }
    for (text, why) in
        [("barrier:x", "dissemination|recursive-doubling"), ("alltoall:scattered=0", "from 1 on"), ("", "unknown")]
    {
        assert!(text.parse::<Collective>().unwrap_err().to_string().contains(why), "{text}");
    }
}

#[test]
fn clocks_past_the_limit_are_refused() {
    let heavy = NoiseTrace::new(Nanos::new(1 << 59), [(Nanos::ZERO, Nanos::new((1 << 59) - 1))]).unwrap();
    let mut machine = JobMachine::new(
        network(1, 1, 1, 1),
        &[RankStart { trace: &heavy, offset: 0 }, RankStart { trace: &heavy, offset: 5 }],
    )
    .unwrap();
    assert!(machine.work(Nanos::new(-1)).is_err());
    assert!(machine.work(Nanos::MAX).is_err());
    assert!(machine.work(Nanos::new(1 << 60)).is_err());
    assert!(JobMachine::new(network(1, 1, 1, 1), &[]).is_err());
}

/// What is asked before a replay, and what the replay finds.
#[test]
fn payloads_are_refused_for_their_largest_message() {
    // A message of up to 1,001 bytes takes no more than the limit.
    let second_a_byte = 1 << 40;
    let network = Network::new(Nanos::ZERO, Nanos::new(1), Nanos::ZERO, second_a_byte).unwrap();
    let silence = NoiseTrace::silent(Nanos::new(1)).unwrap();
    for collective in Collective::names().map(|name| name.parse::<Collective>().unwrap()) {
        for ranks in [2, 3, 6, 8] {
            for (bytes, per_node) in [1, 126, 167, 200, 334, 501, 1_001, 1_002, 2_002, 2_003, 9_000]
                .into_iter()
                .flat_map(|bytes| [(bytes, 1), (bytes, 2)])
            {
                let machine = JobMachine::new(network, &vec![RankStart { trace: &silence, offset: 0 }; ranks]).unwrap();
                let mut machine = machine.with_nodes(per_node);
                let replayed = collective.run(&mut machine, bytes).is_ok();
                let asked = collective.fits(&network, ranks as u64, bytes, per_node as u64).is_ok();
                assert_eq!(replayed, asked, "{collective}, {ranks} ranks, {per_node} a node, {bytes} bytes");
            }
        }
    }
}

/// 32 ranks behind one card of 200 Gb/s: 32 x 224 messages of 64 KiB leave each node, 0.04 ns a byte.
#[test]
fn the_ranks_of_a_node_share_its_card() {
    let network: Network = "infiniband".parse().unwrap();
    let silence = NoiseTrace::silent(Nanos::from_secs(1)).unwrap();
    let time = |algorithm: Alltoall, ranks: usize, per_node: usize, bytes: u64| {
        let machine = JobMachine::new(network, &vec![RankStart { trace: &silence, offset: 0 }; ranks]).unwrap();
        let mut machine = machine.with_nodes(per_node);
        Collective::Alltoall(algorithm).run(&mut machine, bytes).unwrap();
        machine.latest()
    };
    let over_the_card = Nanos::new(32 * 224 * 65_536 / 25);
    // The linear one receives nothing before all is sent.
    for (algorithm, times) in [(Alltoall::Scattered(32), 1), (Alltoall::Pairwise, 1), (Alltoall::Linear, 2)] {
        let (alone, shared) = (time(algorithm, 256, 1, 65_536), time(algorithm, 256, 32, 65_536));
        assert!(shared >= over_the_card, "{algorithm:?}: {shared}");
        assert!(shared.get() < times * over_the_card.get() * 5 / 4, "{algorithm:?}: {shared}");
        assert!(alone < Nanos::from_millis(2), "{algorithm:?}: {alone}");
    }
    // Without nodes each of 255 exchanges takes 2 o + L + (bytes - 1) G.
    assert_eq!(time(Alltoall::Pairwise, 256, 1, 65_536), Nanos::new(255 * (2 * 200 + 600 + 2_622)));
}

#[test]
fn small_messages_within_a_node_are_cheaper() {
    let network: Network = "infiniband".parse().unwrap();
    let silence = NoiseTrace::silent(Nanos::from_secs(1)).unwrap();
    let time = |per_node: usize| {
        let machine = JobMachine::new(
            network,
            &[RankStart { trace: &silence, offset: 0 }, RankStart { trace: &silence, offset: 0 }],
        )
        .unwrap();
        let mut machine = machine.with_nodes(per_node);
        Collective::Barrier(Barrier::Dissemination).run(&mut machine, 1).unwrap();
        machine.latest()
    };
    assert_eq!((time(1), time(2)), (Nanos::new(1_000), Nanos::new(280)));
}

/// Also with nodes of which no whole number goes into what a thread takes at a time.
#[test]
fn threads_take_whole_nodes() {
    let trace = "poisson:rate=1kHz,detour=20us".parse::<becalm_scale::spec::NoiseSpec>().unwrap().trace(3).unwrap();
    let starts: Vec<RankStart<'_>> =
        (0..70_000_i64).map(|rank| RankStart { trace: &trace, offset: rank * 7_919_131 }).collect();
    let network: Network = "infiniband".parse().unwrap();
    let clocks = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let mut machine = JobMachine::new(network, &starts).unwrap().with_nodes(48);
            machine.work(Nanos::from_micros(100)).unwrap();
            Collective::Barrier(Barrier::Dissemination).run(&mut machine, 1).unwrap();
            Collective::Alltoall(Alltoall::Bruck).run(&mut machine, 64).unwrap();
            (0..machine.len()).map(|rank| machine.clock(rank)).collect::<Vec<_>>()
        })
    };
    assert_eq!(clocks(1), clocks(3));
}
