//! The steps of collectives, their number, and the size of their messages.

use super::group::Group;
use super::parts::{self, Core};
use super::{Allgather, Allreduce, Alltoall, Barrier, Bcast, Collective, NodeAware, Reduce, ReduceScatter};
use crate::ScaleError;
use crate::machine::{JobMachine, Payload, Time};
use crate::network::Network;

/// The radix of the wide tree: three children of a rank on each level, and itself.
const RADIX: usize = 4;

type Done = Result<(), ScaleError>;

impl Collective {
    /// Runs it on all ranks of a machine, with this payload in bytes. Fails for messages or clocks beyond their limits.
    pub fn run<T: Time>(&self, machine: &mut JobMachine<'_, T>, bytes: u64) -> Result<(), ScaleError> {
        let per_node = machine.per_node();
        let all = Group::all(machine.len());
        match self.chosen(machine.len() as u64, bytes, per_node as u64) {
            Self::Ideal => {
                let latest = machine.latest_time();
                machine.wait(|_| latest)
            }
            Self::Barrier(Barrier::Hardware) | Self::NodeAware(NodeAware::Barrier(Barrier::Hardware)) => {
                hardware(machine, per_node, None)
            }
            Self::Allreduce(Allreduce::Hardware) | Self::NodeAware(NodeAware::Allreduce(Allreduce::Hardware)) => {
                hardware(machine, per_node, Some(bytes))
            }
            Self::Barrier(barrier) => self::barrier(machine, all, barrier),
            Self::Bcast(bcast) => self::bcast(machine, all, bcast, bytes),
            Self::Reduce(reduce) => self::reduce(machine, all, reduce, bytes),
            Self::Allreduce(allreduce) => self::allreduce(machine, all, allreduce, bytes),
            Self::Allgather(allgather) => self::allgather(machine, all, allgather, bytes),
            Self::ReduceScatter(scatter) => reduce_scatter(machine, all, scatter, bytes),
            Self::Alltoall(alltoall) => {
                let share = machine.network().share(machine.len() as u64, per_node as u64);
                machine.share_links(share);
                let done = self::alltoall(machine, all, alltoall, bytes);
                machine.links_alone();
                done
            }
            Self::NodeAware(aware) => node_aware(machine, aware, per_node, bytes),
            Self::Chosen(..) => unreachable!("a choice is an algorithm"),
        }
    }

    /// The number of steps of one collective on each rank: the cost of a replay is proportional to ranks times steps.
    pub fn rounds(&self, ranks: u64, bytes: u64, per_node: u64) -> u64 {
        let log = u64::from(ranks.max(1).next_power_of_two().ilog2());
        let others = ranks.saturating_sub(1);
        match self.chosen(ranks, bytes, per_node) {
            Self::Ideal | Self::Chosen(..) => 0,
            Self::Barrier(Barrier::Hardware) | Self::Allreduce(Allreduce::Hardware) => 3,
            Self::Barrier(Barrier::Dissemination)
            | Self::Bcast(Bcast::Binomial)
            | Self::Reduce(Reduce::Binomial)
            | Self::Allgather(Allgather::Bruck | Allgather::RecursiveDoubling)
            | Self::Alltoall(Alltoall::Bruck) => log,
            Self::Barrier(Barrier::RecursiveDoubling)
            | Self::Allreduce(Allreduce::RecursiveDoubling)
            | Self::ReduceScatter(ReduceScatter::RecursiveHalving) => log + 2,
            Self::Bcast(Bcast::Knomial) => 3 * log.div_ceil(2),
            Self::Barrier(Barrier::Binomial)
            | Self::Bcast(Bcast::ScatterDoubling)
            | Self::Allreduce(Allreduce::Tree)
            | Self::ReduceScatter(ReduceScatter::ReduceFirst) => 2 * log,
            Self::Reduce(Reduce::Rabenseifner) | Self::Allreduce(Allreduce::Rabenseifner) => 2 * log + 2,
            Self::Bcast(Bcast::ScatterRing) => log + others,
            Self::Allgather(Allgather::Neighbor) => ranks / 2 + ranks % 2 * (ranks / 2),
            Self::Allgather(Allgather::Ring)
            | Self::ReduceScatter(ReduceScatter::Ring | ReduceScatter::Pairwise)
            | Self::Alltoall(Alltoall::Pairwise) => others,
            Self::Allreduce(Allreduce::Ring) | Self::Alltoall(Alltoall::Linear | Alltoall::Scattered(_)) => 2 * others,
            Self::NodeAware(aware) => {
                let within = u64::from(per_node.clamp(1, ranks.max(1)).next_power_of_two().ilog2());
                node_part(aware).rounds(ranks.div_ceil(per_node.max(1)), bytes, 1) + 2 * within
            }
        }
    }

    /// The size of its largest message in bytes; 1 for a barrier, whatever the payload.
    pub fn largest_message(&self, ranks: u64, bytes: u64, per_node: u64) -> u64 {
        if ranks <= 1 {
            return 0;
        }
        let part = bytes.div_ceil(ranks);
        let total = bytes.saturating_mul(ranks);
        // The largest power of two below the number of ranks.
        let half = ranks.next_power_of_two() / 2;
        // Ranks outside of a power of two contribute all of the data that the others halve.
        let halved = |bytes: u64| if ranks.is_power_of_two() { bytes.div_ceil(2) } else { bytes };
        let bruck = half.min(ranks - half).max(half / 2);
        match self.chosen(ranks, bytes, per_node) {
            Self::Ideal | Self::Barrier(Barrier::Hardware) | Self::Chosen(..) => 0,
            Self::Barrier(_) | Self::NodeAware(NodeAware::Barrier(_)) => 1,
            Self::Bcast(Bcast::ScatterDoubling | Bcast::ScatterRing) => part.saturating_mul(half),
            Self::Reduce(Reduce::Rabenseifner) | Self::Allreduce(Allreduce::Rabenseifner) => halved(bytes),
            Self::Allreduce(Allreduce::Ring) => part,
            Self::Allgather(Allgather::Neighbor) if ranks.is_multiple_of(2) && ranks > 2 => bytes.saturating_mul(2),
            Self::Allgather(Allgather::Bruck | Allgather::RecursiveDoubling) => bytes.saturating_mul(bruck),
            Self::ReduceScatter(ReduceScatter::RecursiveHalving) => halved(total),
            Self::ReduceScatter(ReduceScatter::ReduceFirst) => total,
            Self::Alltoall(Alltoall::Bruck) => {
                let bits = (0..u64::BITS - 1).map(|bit| 1 << bit).take_while(|bit| *bit < ranks);
                let blocks = bits.map(|bit| blocks_with_bit(ranks, bit)).max().unwrap_or(0);
                bytes.saturating_mul(blocks)
            }
            Self::NodeAware(aware) => {
                let across = node_part(aware).largest_message(ranks.div_ceil(per_node.max(1)), bytes, 1);
                if per_node > 1 { across.max(bytes) } else { across }
            }
            Self::Bcast(_)
            | Self::Reduce(_)
            | Self::Allreduce(_)
            | Self::Allgather(_)
            | Self::ReduceScatter(_)
            | Self::Alltoall(_) => bytes,
        }
    }

    /// Checks before a replay whether a network can carry its messages. Fails for messages that take more than 18 minutes.
    pub fn fits(&self, network: &Network, ranks: u64, bytes: u64, per_node: u64) -> Result<(), ScaleError> {
        let largest = self.largest_message(ranks, bytes, per_node);
        network.bytes_time(largest)?;
        network.cpu_time(largest)?;
        network.reduction_time(largest)?;
        network.gap_after(largest, network.share(ranks, per_node))?;
        if per_node > 1 {
            let within = network.within_node();
            within.bytes_time(largest)?;
            within.cpu_time(largest)?;
            within.gap_after(largest, within.share(ranks, per_node))?;
        }
        Ok(())
    }
}

/// The part between nodes.
const fn node_part(aware: NodeAware) -> Collective {
    match aware {
        NodeAware::Barrier(barrier) => Collective::Barrier(barrier),
        NodeAware::Bcast(bcast) => Collective::Bcast(bcast),
        NodeAware::Reduce(reduce) => Collective::Reduce(reduce),
        NodeAware::Allreduce(allreduce) => Collective::Allreduce(allreduce),
    }
}

fn node_aware<T: Time>(machine: &mut JobMachine<'_, T>, aware: NodeAware, per_node: usize, bytes: u64) -> Done {
    let (nodes, firsts) = (Group::nodes(per_node), Group::leaders(machine.len(), per_node));
    match aware {
        NodeAware::Barrier(between) => {
            parts::ascend(machine, nodes, 2, Payload::plain(1))?;
            barrier(machine, firsts, between)?;
            parts::descend(machine, nodes, 2, 1)
        }
        NodeAware::Bcast(between) => {
            bcast(machine, firsts, between, bytes)?;
            let radix = if between == Bcast::Knomial { RADIX } else { 2 };
            parts::descend(machine, nodes, radix, bytes)
        }
        NodeAware::Reduce(between) => {
            parts::ascend(machine, nodes, 2, Payload::reduced(bytes))?;
            reduce(machine, firsts, between, bytes)
        }
        NodeAware::Allreduce(between) => {
            parts::ascend(machine, nodes, 2, Payload::reduced(bytes))?;
            allreduce(machine, firsts, between, bytes)?;
            parts::descend(machine, nodes, 2, bytes)
        }
    }
}

fn barrier<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, barrier: Barrier) -> Done {
    match barrier {
        Barrier::Dissemination => parts::shifts(machine, group, |_| 1),
        Barrier::RecursiveDoubling => doubling(machine, group, Payload::plain(1)),
        Barrier::Binomial => {
            parts::ascend(machine, group, 2, Payload::plain(1))?;
            parts::descend(machine, group, 2, 1)
        }
        Barrier::Hardware => unreachable!("its steps are not those of a group"),
    }
}

fn bcast<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, bcast: Bcast, bytes: u64) -> Done {
    let part = bytes.div_ceil(group.size() as u64);
    match bcast {
        Bcast::Binomial => parts::descend(machine, group, 2, bytes),
        Bcast::Knomial => parts::descend(machine, group, RADIX, bytes),
        Bcast::ScatterDoubling => {
            parts::scatter(machine, group, part)?;
            allgather(machine, group, Allgather::RecursiveDoubling, part)
        }
        Bcast::ScatterRing => {
            parts::scatter(machine, group, part)?;
            allgather(machine, group, Allgather::Ring, part)
        }
    }
}

fn reduce<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, reduce: Reduce, bytes: u64) -> Done {
    match reduce {
        Reduce::Binomial => parts::ascend(machine, group, 2, Payload::reduced(bytes)),
        Reduce::Rabenseifner => {
            let core = Core::new(group);
            core.fold(machine, Payload::reduced(bytes))?;
            core.halve(machine, bytes)?;
            core.gather(machine, bytes)
        }
    }
}

fn allreduce<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, allreduce: Allreduce, bytes: u64) -> Done {
    match allreduce {
        Allreduce::RecursiveDoubling => doubling(machine, group, Payload::reduced(bytes)),
        Allreduce::Rabenseifner => {
            let core = Core::new(group);
            core.fold(machine, Payload::reduced(bytes))?;
            core.halve(machine, bytes)?;
            core.double(machine, bytes)?;
            core.unfold(machine, bytes)
        }
        Allreduce::Ring => {
            let part = bytes.div_ceil(group.size() as u64);
            parts::circle(machine, group, Payload::reduced(part))?;
            parts::circle(machine, group, Payload::plain(part))
        }
        Allreduce::Tree => {
            parts::ascend(machine, group, 2, Payload::reduced(bytes))?;
            parts::descend(machine, group, 2, bytes)
        }
        Allreduce::Hardware => unreachable!("its steps are not those of a group"),
    }
}

/// Sends the whole payload to the rank whose number differs in one bit, bit after bit.
fn doubling<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, payload: Payload) -> Done {
    let core = Core::new(group);
    core.fold(machine, payload)?;
    for bit in Group::all(core.size()).powers(2) {
        core.pairs(machine, payload, bit)?;
    }
    core.unfold(machine, payload.bytes)
}

fn allgather<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, allgather: Allgather, bytes: u64) -> Done {
    let size = group.size();
    match allgather {
        Allgather::RecursiveDoubling if size.is_power_of_two() => {
            let core = Core::new(group);
            for bit in group.powers(2) {
                core.pairs(machine, Payload::plain(bytes.saturating_mul(bit as u64)), bit)?;
            }
            Ok(())
        }
        Allgather::Neighbor if size.is_multiple_of(2) => parts::neighbors(machine, group, bytes),
        Allgather::Ring | Allgather::Neighbor => parts::circle(machine, group, Payload::plain(bytes)),
        Allgather::Bruck | Allgather::RecursiveDoubling => {
            parts::shifts(machine, group, |distance| bytes.saturating_mul(distance.min(size as u64 - distance)))
        }
    }
}

fn reduce_scatter<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, scatter: ReduceScatter, bytes: u64) -> Done {
    let total = bytes.saturating_mul(group.size() as u64);
    match scatter {
        ReduceScatter::RecursiveHalving => {
            let core = Core::new(group);
            core.fold(machine, Payload::reduced(total))?;
            core.halve(machine, total)?;
            core.unfold(machine, bytes)
        }
        ReduceScatter::Ring => parts::circle(machine, group, Payload::reduced(bytes)),
        ReduceScatter::Pairwise => parts::pairwise(machine, group, Payload::reduced(bytes)),
        ReduceScatter::ReduceFirst => {
            parts::ascend(machine, group, 2, Payload::reduced(total))?;
            parts::scatter(machine, group, bytes)
        }
    }
}

fn alltoall<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, alltoall: Alltoall, bytes: u64) -> Done {
    match alltoall {
        Alltoall::Scattered(window) => {
            let (ranks, window) = (group.size(), usize::try_from(window).unwrap_or(usize::MAX).max(1));
            let mut next = 1;
            while next < ranks {
                let end = next.saturating_add(window).min(ranks);
                machine.exchange_window(bytes, next..end)?;
                next = end;
            }
            Ok(())
        }
        Alltoall::Linear => linear(machine, bytes),
        Alltoall::Pairwise => parts::pairwise(machine, group, Payload::plain(bytes)),
        Alltoall::Bruck => {
            let ranks = group.size() as u64;
            parts::shifts(machine, group, |distance| bytes.saturating_mul(blocks_with_bit(ranks, distance)))
        }
    }
}

/// The number of integers below `ranks` with the bit set.
const fn blocks_with_bit(ranks: u64, bit: u64) -> u64 {
    ranks / (2 * bit) * bit + (ranks % (2 * bit)).saturating_sub(bit)
}

/// The ranks of a node gather at its first; the wire connects the nodes, and reduces `bytes` if there are any.
fn hardware<T: Time>(machine: &mut JobMachine<'_, T>, per_node: usize, bytes: Option<u64>) -> Done {
    let network = *machine.network();
    let bytes = bytes.unwrap_or(0);
    let wire = (network.barrier_wire() + network.bytes_time(bytes)?).get();
    let step = (network.barrier_step() + network.cpu_time(bytes)? - network.overhead()).get();
    // Each rank notifies its node; the node's first rank waits for all of them, reduces their data and arms the wire.
    machine.work_some(step, |_| true)?;
    let nodes = machine.latest_by_node(per_node);
    let first = |rank: usize| rank.is_multiple_of(per_node);
    machine.wait(|rank| if first(rank) { nodes[rank / per_node] } else { T::default() })?;
    let given = per_node.min(machine.len()) as u64 - 1;
    machine.work_some(step + network.reduction_time(bytes.saturating_mul(given))?.get(), first)?;
    // The wire falls when the last node has armed it, and each rank has to notice that.
    let released = machine.latest_time().plus(wire);
    machine.wait(|_| released)?;
    machine.work_some(step, |_| true)
}

fn linear<T: Time>(machine: &mut JobMachine<'_, T>, bytes: u64) -> Done {
    let ranks = machine.len();
    let asked_for = machine.network().waits_for_receiver(bytes);
    let target = |rank: usize, distance: usize| Some((rank + distance) % ranks);
    let send = |machine: &mut JobMachine<'_, T>, distance: usize| match asked_for {
        true => machine.announce(|rank| target(rank, distance)),
        false => machine.send(bytes, |rank| target(rank, distance)),
    };
    // All sends come before the first receive. Storing their times would take n^2 numbers, so the sends are played twice: once for their end, and
    // again in step with the receives.
    let mut senders = machine.clone();
    for distance in 1..ranks {
        send(machine, distance)?;
    }
    let payload = Payload::plain(bytes);
    let mut left = vec![T::default(); if asked_for { ranks } else { 0 }];
    for distance in 1..ranks {
        send(&mut senders, distance)?;
        let source = |rank: usize| Some((rank + ranks - distance) % ranks);
        if !asked_for {
            machine.receive_sent(senders.sent(), payload, source)?;
            continue;
        }
        machine.take_announced(senders.sent(), payload, |rank| target(rank, distance), source)?;
        for (rank, left) in left.iter_mut().enumerate() {
            *left = left.later(machine.sent()[(rank + distance) % ranks]);
        }
    }
    if asked_for && ranks > 1 { machine.leave(|rank| Some(left[rank])) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use becalm_units::Nanos;

    use super::*;
    use crate::NoiseTrace;
    use crate::machine::RankStart;

    /// Eight of the 1,024 windows of the largest published alltoall (lines B27 to B29 of the book's page of published figures), because the whole
    /// takes minutes: 8 bytes between 32,768 processes, two on each node of a Blue Gene/L, 200 us of noise every 1 ms. The windows' distances are
    /// spread over the full range. Changes to B27 and B28 affect this test, too.
    #[test]
    fn windows_of_the_largest_published_alltoall() {
        let (ranks, window, parts) = (32_768, 32, 8);
        let millisecond = Nanos::from_millis(1);
        let noise = NoiseTrace::new(millisecond, vec![(Nanos::ZERO, Nanos::from_micros(200))]).unwrap();
        let silence = NoiseTrace::silent(millisecond).unwrap();
        let network: Network = "bgl".parse().unwrap();
        let time = |trace: &NoiseTrace| {
            // 387,421 and a million are coprime: the ranks start evenly spread over the interval, in no order.
            let start = |rank| RankStart { trace, offset: rank * 387_421 % 1_000_000 };
            let starts: Vec<_> = (0..ranks as i64).map(start).collect();
            let mut machine = JobMachine::new(network, &starts).unwrap().with_nodes(2);
            machine.share_links(network.share(ranks as u64, 2));
            for part in 0..parts {
                let first = 1 + part * (ranks / parts / window) * window;
                machine.exchange_window(8, first..first + window).unwrap();
            }
            machine.latest().get()
        };
        let (quiet, noisy) = (time(&silence), time(&noise));
        // Links are the bottleneck, so this is in proportion to the whole (B29).
        let whole_ns = 151.4e6;
        let share = quiet as f64 / (whole_ns * parts as f64 * window as f64 / (ranks - 1) as f64);
        assert!((share - 1.0).abs() < 0.02, "{quiet} ns are {share} of what the whole would let expect");
        assert_eq!((quiet, noisy), (1_182_152, 2_256_564));
    }
}
