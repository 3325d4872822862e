//! Collectives against their closed forms, and against an independent simulator that plays one event after another.

use std::collections::{HashMap, VecDeque};

use becalm_scale::NoiseTrace;
use becalm_scale::collective::{Allreduce, Alltoall, Barrier, Collective};
use becalm_scale::machine::JobMachine;
use becalm_scale::network::Network;
use becalm_units::Nanos;
use proptest::prelude::*;

/// What one rank does, one thing after another.
#[derive(Clone, Copy, Debug)]
enum Action {
    Work(i64),
    Send { to: usize, bytes: u64 },
    Receive { from: usize },
}

/// Plays programs rank by rank as far as messages have come, with a textbook finish() for every CPU time.
fn simulate(network: &Network, starts: &[(&NoiseTrace, i64)], programs: &[Vec<Action>]) -> Vec<i64> {
    let finish = |rank: usize, now: i64, work: i64| {
        let (trace, offset) = starts[rank];
        trace.finish(Nanos::new(now + offset), Nanos::new(work)).unwrap().get() - offset
    };
    let ranks = programs.len();
    let (mut clock, mut send_free, mut receive_free) = (vec![0; ranks], vec![0; ranks], vec![0; ranks]);
    let mut at = vec![0; ranks];
    let mut wire: HashMap<(usize, usize), VecDeque<(i64, u64)>> = HashMap::new();
    loop {
        let mut moved = false;
        for rank in 0..ranks {
            while let Some(action) = programs[rank].get(at[rank]) {
                let overhead = network.overhead().get();
                let busy = |bytes| network.gap().get() + network.bytes_time(bytes).unwrap().get();
                match *action {
                    Action::Work(work) => clock[rank] = finish(rank, clock[rank], work),
                    Action::Send { to, bytes } => {
                        let start: i64 = Ord::max(clock[rank], send_free[rank]);
                        send_free[rank] = start + busy(bytes);
                        clock[rank] = finish(rank, start, overhead);
                        wire.entry((rank, to)).or_default().push_back((clock[rank], bytes));
                    }
                    Action::Receive { from } => {
                        let Some((left, bytes)) = wire.get_mut(&(from, rank)).and_then(VecDeque::pop_front) else {
                            break;
                        };
                        let arrival = left + network.latency().get() + network.bytes_time(bytes).unwrap().get();
                        let start = arrival.max(clock[rank]).max(receive_free[rank]);
                        receive_free[rank] = start + busy(bytes);
                        clock[rank] = finish(rank, start, overhead);
                    }
                }
                at[rank] += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    for (rank, program) in programs.iter().enumerate() {
        assert_eq!(at[rank], program.len(), "rank {rank} waits forever");
    }
    clock
}

const fn send(to: usize, bytes: u64) -> Action {
    Action::Send { to, bytes }
}

const fn receive(from: usize) -> Action {
    Action::Receive { from }
}

/// The collective as its authors describe it, from the view of one rank.
fn program(collective: Collective, rank: usize, n: usize, bytes: u64) -> Vec<Action> {
    // To the rank that lies so far ahead, from the one that lies so far behind.
    let exchange = |distance: usize, bytes| [send((rank + distance) % n, bytes), receive((rank + n - distance) % n)];
    match collective {
        Collective::Barrier(Barrier::Dissemination) => (0..rounds(n)).flat_map(|k| exchange(1 << k, 1)).collect(),
        Collective::Barrier(Barrier::Binomial) => up_and_down_the_tree(rank, n, 1),
        Collective::Allreduce(Allreduce::Tree) => up_and_down_the_tree(rank, n, bytes),
        Collective::Allreduce(Allreduce::RecursiveDoubling) => recursive_doubling(rank, n, bytes),
        Collective::Allreduce(Allreduce::Ring) => {
            (0..2 * (n - 1)).flat_map(|_| exchange(1, bytes.div_ceil(n as u64))).collect()
        }
        Collective::Alltoall(Alltoall::Linear) => {
            let sends = (1..n).map(|k| send((rank + k) % n, bytes));
            sends.chain((1..n).map(|k| receive((rank + n - k) % n))).collect()
        }
        Collective::Alltoall(Alltoall::Pairwise) => (1..n).flat_map(|k| exchange(k, bytes)).collect(),
        Collective::Alltoall(Alltoall::Bruck) => {
            let blocks = |k: u32| (0..n).filter(|block| block >> k & 1 == 1).count() as u64;
            (0..rounds(n)).flat_map(|k| exchange(1 << k, bytes * blocks(k))).collect()
        }
        Collective::Ideal | Collective::Barrier(Barrier::Hardware) => unreachable!("they send no messages"),
    }
}

/// The logarithm of the number of ranks to base 2, rounded up.
fn rounds(n: usize) -> u32 {
    (0..).take_while(|k| 1 << k < n).count() as u32
}

/// Up a binomial tree and down again.
fn up_and_down_the_tree(rank: usize, n: usize, bytes: u64) -> Vec<Action> {
    // A rank's parent lacks its lowest bit; its children add a lower one.
    let lowest = if rank == 0 { rounds(n) } else { rank.trailing_zeros() };
    let children: Vec<usize> = (0..lowest).map(|k| rank + (1 << k)).filter(|child| *child < n).collect();
    let mut out: Vec<Action> = children.iter().map(|child| receive(*child)).collect();
    if rank > 0 {
        out.extend([send(rank & (rank - 1), bytes), receive(rank & (rank - 1))]);
    }
    out.extend(children.iter().rev().map(|child| send(*child, bytes)));
    out
}

/// Pairs of ranks over a power of two of them; those beyond it first give theirs to a neighbor, which tells them at the end.
fn recursive_doubling(rank: usize, n: usize, bytes: u64) -> Vec<Action> {
    let mut core = 1;
    while core * 2 <= n {
        core *= 2;
    }
    let extra = n - core;
    if rank < 2 * extra && rank.is_multiple_of(2) {
        return vec![send(rank + 1, bytes), receive(rank + 1)];
    }
    let mut out = Vec::new();
    if rank < 2 * extra {
        out.push(receive(rank - 1));
    }
    let number = if rank < 2 * extra { (rank - 1) / 2 } else { rank - extra };
    let mut bit = 1;
    while bit < core {
        let other = number ^ bit;
        let other = if other < extra { other * 2 + 1 } else { other + extra };
        out.extend([send(other, bytes), receive(other)]);
        bit *= 2;
    }
    if rank < 2 * extra {
        out.push(send(rank - 1, bytes));
    }
    out
}

const WITH_MESSAGES: [Collective; 8] = [
    Collective::Barrier(Barrier::Dissemination),
    Collective::Barrier(Barrier::Binomial),
    Collective::Allreduce(Allreduce::RecursiveDoubling),
    Collective::Allreduce(Allreduce::Ring),
    Collective::Allreduce(Allreduce::Tree),
    Collective::Alltoall(Alltoall::Linear),
    Collective::Alltoall(Alltoall::Pairwise),
    Collective::Alltoall(Alltoall::Bruck),
];

fn network(latency: i64, overhead: i64, gap: i64, byte_gap_ps: i64) -> Network {
    Network::new(Nanos::new(latency), Nanos::new(overhead), Nanos::new(gap), byte_gap_ps).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn equals_the_simulator_under_noise(
        which in 0..WITH_MESSAGES.len(),
        detours in proptest::collection::vec((0_i64..400, 1_i64..300), 1..12),
        offsets in proptest::collection::vec(0_i64..100_000, 1..21),
        (latency, overhead, gap, byte_gap) in (0_i64..500, 0_i64..100, 0_i64..400, 0_i64..3_000),
        (bytes, grain, phases) in (0_u64..300, prop_oneof![Just(0_i64), 0_i64..3_000], 1_usize..5),
    ) {
        let mut at = 0;
        let rows: Vec<_> = detours.iter().map(|(gap, duration)| {
            at += gap + duration;
            (Nanos::new(at - duration), Nanos::new(*duration))
        }).collect();
        // The last detour goes over the end of the circle where there is room before the first.
        let over = (detours[0].0 / 2).min(detours[detours.len() - 1].1 - 1);
        prop_assume!(detours.iter().map(|(gap, _)| gap).sum::<i64>() > over);
        let trace = NoiseTrace::new(Nanos::new(at - over), rows).unwrap();
        let network = network(latency, overhead, gap, byte_gap);
        let starts: Vec<(&NoiseTrace, i64)> = offsets.iter().map(|offset| (&trace, *offset)).collect();
        let collective = WITH_MESSAGES[which];
        let programs: Vec<Vec<Action>> = (0..starts.len()).map(|rank| {
            let phase = program(collective, rank, starts.len(), bytes);
            (0..phases).flat_map(|_| std::iter::once(Action::Work(grain)).chain(phase.clone())).collect()
        }).collect();
        let simulated = simulate(&network, &starts, &programs);
        let mut machine = JobMachine::new(network, &starts).unwrap();
        for _ in 0..phases {
            machine.work(Nanos::new(grain)).unwrap();
            collective.run(&mut machine, 1, bytes).unwrap();
        }
        let clocks: Vec<i64> = (0..starts.len()).map(|rank| machine.clock(rank).get()).collect();
        prop_assert_eq!(clocks, simulated, "{} on {} ranks", collective, starts.len());
    }

    #[test]
    fn hardware_barrier_is_its_definition(
        offsets in proptest::collection::vec(0_i64..10_000, 1..10), per_node in 1_usize..4, grain in 0_i64..3_000,
    ) {
        let trace = NoiseTrace::new(Nanos::new(2_000), [(Nanos::new(100), Nanos::new(700))]).unwrap();
        let starts: Vec<(&NoiseTrace, i64)> = offsets.iter().map(|offset| (&trace, *offset)).collect();
        let network = network(500, 70, 0, 0);
        let finish = |offset: i64, now: i64, work: i64| {
            trace.finish(Nanos::new(now + offset), Nanos::new(work)).unwrap().get() - offset
        };
        let entered: Vec<i64> = offsets.iter().map(|o| finish(*o, finish(*o, 0, grain), 70)).collect();
        let armed = offsets.chunks(per_node).zip(entered.chunks(per_node))
            .map(|(offsets, entered)| finish(offsets[0], *entered.iter().max().unwrap(), 70));
        let released = armed.max().unwrap() + 500;
        let mut machine = JobMachine::new(network, &starts).unwrap();
        machine.work(Nanos::new(grain)).unwrap();
        Collective::Barrier(Barrier::Hardware).run(&mut machine, per_node, 1).unwrap();
        for (rank, offset) in offsets.iter().enumerate() {
            prop_assert_eq!(machine.clock(rank).get(), finish(*offset, released, 70));
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
        let starts = vec![(&silence, 0); n as usize];
        for (collective, bytes, time) in [
            (Collective::Barrier(Barrier::Dissemination), 1, m * round(1)),
            (Collective::Barrier(Barrier::Binomial), 1, 2 * m * round(1)),
            (Collective::Barrier(Barrier::Hardware), 1, 3 * 1_500 + 2_500),
            (Collective::Allreduce(Allreduce::RecursiveDoubling), 100, m * round(100)),
            (Collective::Allreduce(Allreduce::Ring), 100 * n, 2 * (n - 1) * round(100)),
            (Collective::Allreduce(Allreduce::Tree), 100, 2 * m * round(100)),
            (Collective::Alltoall(Alltoall::Pairwise), 100, (n - 1) * round(100)),
            (Collective::Alltoall(Alltoall::Bruck), 100, m * round(100 * n / 2)),
            // The first message has come by the time that three are sent; then each receive follows the last.
            (Collective::Alltoall(Alltoall::Linear), 1, if n < 4 { 0 } else { 2 * (n - 1) * 1_500 }),
        ] {
            if time == 0 && n > 1 {
                continue;
            }
            let mut machine = JobMachine::new(network, &starts).unwrap();
            collective.run(&mut machine, 2, bytes as u64).unwrap();
            assert_eq!(machine.latest().get(), time, "{collective} on {n}");
        }
    }
}

/// Sends of a rank leave at least g apart.
#[test]
fn the_gap_binds_sends_and_receives() {
    let network = network(1_000, 10, 5_000, 0);
    let silence = NoiseTrace::silent(Nanos::from_secs(1)).unwrap();
    let starts = vec![(&silence, 0); 5];
    let mut machine = JobMachine::new(network, &starts).unwrap();
    Collective::Alltoall(Alltoall::Linear).run(&mut machine, 1, 1).unwrap();
    // The last of four sends starts at 3 g and takes o; then the last of four receives starts 3 g later and takes o.
    assert_eq!(machine.latest().get(), 3 * 5_000 + 10 + 3 * 5_000 + 10);
}

/// 100 ms of work at 50 % noise takes 200 ms, also in one piece with noise that comes while it is stretched.
#[test]
fn noise_dilates_work() {
    let half = NoiseTrace::new(Nanos::new(1_000), [(Nanos::ZERO, Nanos::new(500))]).unwrap();
    let mut machine = JobMachine::new(network(0, 0, 0, 0), &[(&half, 0)]).unwrap();
    machine.work(Nanos::from_millis(100)).unwrap();
    assert_eq!(machine.clock(0), Nanos::from_millis(200));
    // A send that noise hits leaves late.
    let mut machine = JobMachine::new(network(100, 10, 0, 0), &[(&half, 0), (&half, 500)]).unwrap();
    machine.send(1, |rank| rank == 0).unwrap();
    machine.receive(1, |rank| (rank == 1).then_some(0)).unwrap();
    assert_eq!((machine.clock(0).get(), machine.clock(1).get()), (510, 1_010));
}

#[test]
fn large_machines_use_threads_and_get_the_same() {
    let trace = "poisson:rate=1kHz,detour=20us".parse::<becalm_scale::spec::NoiseSpec>().unwrap().trace(3).unwrap();
    let starts: Vec<(&NoiseTrace, i64)> = (0..80_000_i64).map(|rank| (&trace, rank * 7_919_131)).collect();
    let clocks = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let mut machine = JobMachine::new(network(2_500, 1_500, 1_000, 6_000), &starts).unwrap();
            for _ in 0..3 {
                machine.work(Nanos::from_micros(100)).unwrap();
                Collective::Barrier(Barrier::Dissemination).run(&mut machine, 1, 1).unwrap();
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
    for collective in WITH_MESSAGES.into_iter().chain([Collective::Ideal, Collective::Barrier(Barrier::Hardware)]) {
        assert_eq!(collective.to_string().parse::<Collective>(), Ok(collective));
    }
    assert_eq!("barrier".parse(), Ok(Collective::Barrier(Barrier::Dissemination)));
    assert_eq!("allreduce".parse(), Ok(Collective::Allreduce(Allreduce::RecursiveDoubling)));
    assert_eq!("alltoall".parse(), Ok(Collective::Alltoall(Alltoall::Pairwise)));
    assert!("barrier:x".parse::<Collective>().unwrap_err().to_string().contains("dissemination|binomial"));
    assert!("".parse::<Collective>().is_err());
}

#[test]
fn clocks_past_the_limit_are_refused() {
    let heavy = NoiseTrace::new(Nanos::new(1 << 59), [(Nanos::ZERO, Nanos::new((1 << 59) - 1))]).unwrap();
    let mut machine = JobMachine::new(network(1, 1, 1, 1), &[(&heavy, 0), (&heavy, 5)]).unwrap();
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
    for name in [
        "ideal",
        "barrier:dissemination",
        "barrier:binomial",
        "barrier:hardware",
        "allreduce:recursive-doubling",
        "allreduce:ring",
        "allreduce:tree",
        "alltoall:pairwise",
        "alltoall:linear",
        "alltoall:bruck",
    ] {
        let collective: Collective = name.parse().unwrap();
        for ranks in [2, 3, 6, 8] {
            for bytes in [1, 200, 334, 501, 1_001, 1_002, 2_002, 2_003, 9_000] {
                let mut machine = JobMachine::new(network, &vec![(&silence, 0); ranks]).unwrap();
                let replayed = collective.run(&mut machine, 1, bytes).is_ok();
                let asked = network.bytes_time(collective.largest_message(ranks as u64, bytes)).is_ok();
                assert_eq!(replayed, asked, "{name}, {ranks} ranks, {bytes} bytes");
            }
        }
    }
}
