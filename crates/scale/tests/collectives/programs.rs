//! Collectives as their authors describe them, from the view of one rank. They are given in steps, of which all ranks of a
//! collective have as many: what a rank does in one, it does at the same time as the others with whom it does it.

use becalm_scale::collective::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Collective, NodeAware, Reduce, ReduceScatter,
};

use crate::simulator::Action;

/// What a rank does in each step.
type Steps = Vec<Vec<Action>>;

/// A message out, complete when it has left.
fn send(to: usize, bytes: u64) -> Vec<Action> {
    vec![Action::Send { to, bytes }, Action::Wait { to, bytes }]
}

fn receive(from: usize, bytes: u64) -> Vec<Action> {
    vec![Action::Receive { from, bytes, reduced: 0 }]
}

fn reduce(from: usize, bytes: u64) -> Vec<Action> {
    vec![Action::Receive { from, bytes, reduced: bytes }]
}

/// Out and in at the same time.
fn exchange(to: usize, from: usize, bytes: u64, reduced: u64) -> Vec<Action> {
    vec![Action::Send { to, bytes }, Action::Receive { from, bytes, reduced }, Action::Wait { to, bytes }]
}

/// To the rank that lies so far ahead, from the one that lies so far behind.
fn shift(rank: usize, n: usize, distance: usize, bytes: u64, reduced: u64) -> Vec<Action> {
    exchange((rank + distance) % n, (rank + n - distance) % n, bytes, reduced)
}

/// The logarithm of the number of ranks to base 2, rounded up.
pub fn rounds(n: usize) -> u32 {
    (0..).take_while(|k| 1 << k < n).count() as u32
}

pub fn program(collective: Collective, rank: usize, n: usize, per_node: usize, bytes: u64) -> Steps {
    let part = bytes.div_ceil(n as u64);
    match collective.chosen(n as u64, bytes, per_node as u64) {
        Collective::Barrier(Barrier::Dissemination) => (0..rounds(n)).map(|k| shift(rank, n, 1 << k, 1, 0)).collect(),
        Collective::Barrier(Barrier::RecursiveDoubling) => doubling(rank, n, 1, false),
        Collective::Barrier(Barrier::Binomial) => [up(rank, n, 1, false), down(rank, n, 2, |_| 1)].concat(),
        Collective::Bcast(Bcast::Binomial) => down(rank, n, 2, |_| bytes),
        Collective::Bcast(Bcast::Knomial) => down(rank, n, 4, |_| bytes),
        Collective::Bcast(Bcast::ScatterDoubling) => {
            let all = program(Collective::Allgather(Allgather::RecursiveDoubling), rank, n, 1, part);
            [down(rank, n, 2, |ranks| part * ranks), all].concat()
        }
        Collective::Bcast(Bcast::ScatterRing) => {
            let all = program(Collective::Allgather(Allgather::Ring), rank, n, 1, part);
            [down(rank, n, 2, |ranks| part * ranks), all].concat()
        }
        Collective::Reduce(Reduce::Binomial) => up(rank, n, bytes, true),
        Collective::Reduce(Reduce::Rabenseifner) => [halving(rank, n, bytes), gather(rank, n, bytes)].concat(),
        Collective::Allreduce(Allreduce::Tree) => [up(rank, n, bytes, true), down(rank, n, 2, |_| bytes)].concat(),
        Collective::Allreduce(Allreduce::RecursiveDoubling) => doubling(rank, n, bytes, true),
        Collective::Allreduce(Allreduce::Rabenseifner) => {
            [halving(rank, n, bytes), widening(rank, n, bytes), unfold(rank, n, bytes)].concat()
        }
        Collective::Allreduce(Allreduce::Ring) => {
            (0..2 * (n - 1)).map(|k| shift(rank, n, 1, part, if k < n - 1 { part } else { 0 })).collect()
        }
        Collective::Allgather(allgather) => self::allgather(allgather, rank, n, bytes),
        Collective::ReduceScatter(ReduceScatter::Ring) => (1..n).map(|_| shift(rank, n, 1, bytes, bytes)).collect(),
        Collective::ReduceScatter(ReduceScatter::Pairwise) => (1..n).map(|k| shift(rank, n, k, bytes, bytes)).collect(),
        Collective::ReduceScatter(ReduceScatter::RecursiveHalving) => {
            [halving(rank, n, bytes * n as u64), unfold(rank, n, bytes)].concat()
        }
        Collective::ReduceScatter(ReduceScatter::ReduceFirst) => {
            [up(rank, n, bytes * n as u64, true), down(rank, n, 2, |ranks| bytes * ranks)].concat()
        }
        Collective::Alltoall(alltoall) => self::alltoall(alltoall, rank, n, bytes),
        Collective::NodeAware(aware) => node_aware(aware, rank, n, per_node, bytes),
        other => unreachable!("{other} sends no messages"),
    }
}

fn allgather(allgather: Allgather, rank: usize, n: usize, bytes: u64) -> Steps {
    match allgather {
        Allgather::RecursiveDoubling if n.is_power_of_two() => {
            (0..rounds(n)).map(|k| exchange(rank ^ 1 << k, rank ^ 1 << k, bytes << k, 0)).collect()
        }
        Allgather::Neighbor if n.is_multiple_of(2) => {
            let (right, left) = ((rank + 1) % n, (rank + n - 1) % n);
            // Even ranks begin with the one on their right.
            let sides = if rank.is_multiple_of(2) { [right, left] } else { [left, right] };
            let first = exchange(sides[0], sides[0], bytes, 0);
            let others = (1..n / 2).map(|k| exchange(sides[k % 2], sides[k % 2], 2 * bytes, 0));
            std::iter::once(first).chain(others).collect()
        }
        Allgather::Ring | Allgather::Neighbor => (1..n).map(|_| shift(rank, n, 1, bytes, 0)).collect(),
        Allgather::Bruck | Allgather::RecursiveDoubling => {
            let blocks = |k: u32| (1 << k).min(n - (1 << k)) as u64;
            (0..rounds(n)).map(|k| shift(rank, n, 1 << k, bytes * blocks(k), 0)).collect()
        }
    }
}

fn alltoall(alltoall: Alltoall, rank: usize, n: usize, bytes: u64) -> Steps {
    let (ahead, behind) = (|k: usize| (rank + k) % n, |k: usize| (rank + n - k) % n);
    match alltoall {
        Alltoall::Linear => {
            let sends = (1..n).map(|k| vec![Action::Send { to: ahead(k), bytes }]);
            let waits = (1..n).map(|k| Action::Wait { to: ahead(k), bytes }).collect();
            sends.chain((1..n).map(|k| receive(behind(k), bytes))).chain([waits]).collect()
        }
        Alltoall::Pairwise => (1..n).map(|k| shift(rank, n, k, bytes, 0)).collect(),
        Alltoall::Scattered(window) => {
            let others: Vec<usize> = (1..n).collect();
            let some = |some: &[usize]| -> Vec<Action> {
                let from = some.iter().map(|k| behind(*k)).collect();
                let sends = some.iter().map(|k| Action::Send { to: ahead(*k), bytes });
                let waits = some.iter().map(|k| Action::Wait { to: ahead(*k), bytes });
                sends.chain([Action::ReceiveAll { from, bytes }]).chain(waits).collect()
            };
            others.chunks(window as usize).map(some).collect()
        }
        Alltoall::Bruck => {
            let blocks = |k: u32| (0..n).filter(|block| block >> k & 1 == 1).count() as u64;
            (0..rounds(n)).map(|k| shift(rank, n, 1 << k, bytes * blocks(k), 0)).collect()
        }
    }
}

/// A rank, and the level of the tree on which it is a relative.
type Relative = (usize, u32);

/// A rank's parent in a tree lacks its lowest digit; its children have one more below. Gives the level of that digit, too.
fn family(rank: usize, n: usize, radix: usize) -> (Option<Relative>, Vec<Relative>) {
    let levels = (0..).take_while(|level| radix.pow(*level) < n).count() as u32;
    let digit = |level: u32| rank / radix.pow(level) % radix;
    let lowest = (0..levels).find(|level| digit(*level) > 0);
    let parent = lowest.map(|level| (rank - digit(level) * radix.pow(level), level));
    let below = 0..lowest.unwrap_or(levels);
    let children = below.flat_map(|level| (1..radix).map(move |digit| (rank + digit * radix.pow(level), level)));
    (parent, children.filter(|(child, _)| *child < n).collect())
}

/// The steps of a tree: of each level one for every child that a rank may have there.
fn tree(n: usize, radix: usize) -> Steps {
    let levels = (0..).take_while(|level| radix.pow(*level) < n).count();
    vec![Vec::new(); levels * (radix - 1)]
}

/// Down a tree, with bytes by the ranks of a subtree. The largest subtrees come first.
fn down(rank: usize, n: usize, radix: usize, bytes: impl Fn(u64) -> u64) -> Steps {
    let mut steps = tree(n, radix);
    let levels = steps.len() / (radix - 1);
    let payload = |level: u32| bytes(radix.pow(level) as u64);
    let step = |level: u32, apart: usize| (levels - 1 - level as usize) * (radix - 1) + apart / radix.pow(level) - 1;
    let (parent, children) = family(rank, n, radix);
    if let Some((parent, level)) = parent {
        steps[step(level, rank - parent)] = receive(parent, payload(level));
    }
    for (child, level) in children {
        steps[step(level, child - rank)] = send(child, payload(level));
    }
    steps
}

/// Up a binomial tree, the smallest subtrees first.
fn up(rank: usize, n: usize, bytes: u64, reduces: bool) -> Steps {
    let mut steps = tree(n, 2);
    let (parent, children) = family(rank, n, 2);
    for (child, level) in children {
        steps[level as usize] = if reduces { reduce(child, bytes) } else { receive(child, bytes) };
    }
    if let Some((parent, level)) = parent {
        steps[level as usize] = send(parent, bytes);
    }
    steps
}

/// The largest power of two, and how many ranks are beyond it.
fn core(n: usize) -> (usize, usize) {
    let core = (0..).map(|k| 1 << k).take_while(|core| *core <= n).last().unwrap();
    (core, n - core)
}

/// The place of a rank in the core, nothing for one outside; and the rank at a place.
fn place(rank: usize, n: usize) -> Option<usize> {
    let (_, extra) = core(n);
    match rank {
        _ if rank >= 2 * extra => Some(rank - extra),
        _ if rank.is_multiple_of(2) => None,
        _ => Some(rank / 2),
    }
}

fn at(place: usize, n: usize) -> usize {
    let (_, extra) = core(n);
    if place < extra { 2 * place + 1 } else { place + extra }
}

/// Ranks beyond a power of two give theirs to a neighbor.
fn fold(rank: usize, n: usize, bytes: u64, reduces: bool) -> Steps {
    vec![match (place(rank, n), rank < 2 * core(n).1) {
        (None, _) => send(rank + 1, bytes),
        (Some(_), true) if reduces => reduce(rank - 1, bytes),
        (Some(_), true) => receive(rank - 1, bytes),
        (Some(_), false) => Vec::new(),
    }]
}

/// And are told at the end.
fn unfold(rank: usize, n: usize, bytes: u64) -> Steps {
    vec![match (place(rank, n), rank < 2 * core(n).1) {
        (None, _) => receive(rank + 1, bytes),
        (Some(_), true) => send(rank - 1, bytes),
        (Some(_), false) => Vec::new(),
    }]
}

/// What a rank of the core does with the one whose place differs in a bit, for each bit; the others wait.
fn pairs(rank: usize, n: usize, each: impl Fn(u32, usize) -> Vec<Action>) -> Steps {
    let pair = |k: u32| place(rank, n).map_or_else(Vec::new, |own| each(k, at(own ^ 1 << k, n)));
    (0..rounds(core(n).0)).map(pair).collect()
}

/// Pairs over a power of two of ranks, with the whole payload.
fn doubling(rank: usize, n: usize, bytes: u64, reduces: bool) -> Steps {
    let reduced = if reduces { bytes } else { 0 };
    let pairs = pairs(rank, n, |_, other| exchange(other, other, bytes, reduced));
    [fold(rank, n, bytes, reduces), pairs, unfold(rank, n, bytes)].concat()
}

/// Pairs that halve what they reduce, after those beyond a power of two have given theirs.
fn halving(rank: usize, n: usize, bytes: u64) -> Steps {
    let half = |k: u32| bytes.div_ceil(2 << k);
    [fold(rank, n, bytes, true), pairs(rank, n, |k, other| exchange(other, other, half(k), half(k)))].concat()
}

/// And the same pairs back, with what they have.
fn widening(rank: usize, n: usize, bytes: u64) -> Steps {
    let pairs = pairs(rank, n, |k, other| exchange(other, other, bytes.div_ceil(2 << k), 0));
    pairs.into_iter().rev().collect()
}

/// The parts that halving left, up to rank 0.
fn gather(rank: usize, n: usize, bytes: u64) -> Steps {
    let part = |k: u32| {
        let size = bytes.div_ceil(2 << k);
        match place(rank, n) {
            Some(own) if own >> k == 1 => send(at(own - (1 << k), n), size),
            Some(own) if own >> k == 0 => receive(at(own + (1 << k), n), size),
            _ => Vec::new(),
        }
    };
    // Rank 0 is beyond the power of two where there is anyone.
    let last = match (core(n).1 > 0, rank) {
        (true, 0) => receive(1, bytes),
        (true, 1) => send(0, bytes),
        _ => Vec::new(),
    };
    (0..rounds(core(n).0)).rev().map(part).chain([last]).collect()
}

fn node_aware(aware: NodeAware, rank: usize, n: usize, per_node: usize, bytes: u64) -> Steps {
    let (first, own) = (rank - rank % per_node, rank % per_node);
    // The last node may have fewer ranks, and then its tree has fewer levels than the others, where those are large.
    let here = per_node.min(n - first);
    let within = |actions: Steps| renumbered(actions, |number| first + number);
    let late = |mut steps: Steps| {
        steps.resize(tree(per_node, 2).len(), Vec::new());
        steps
    };
    let early = |steps: Steps, radix: usize| {
        let missing = tree(per_node, radix).len() - steps.len();
        [vec![Vec::new(); missing], steps].concat()
    };
    let between = |collective: Collective| {
        let steps = program(collective, rank / per_node, n.div_ceil(per_node), 1, bytes);
        match own {
            0 => renumbered(steps, |number| number * per_node),
            _ => vec![Vec::new(); steps.len()],
        }
    };
    let (sum, told) = (late(up(own, here, bytes, true)), early(down(own, here, 2, |_| bytes), 2));
    match aware {
        NodeAware::Barrier(barrier) => {
            let (up, down) = (late(up(own, here, 1, false)), early(down(own, here, 2, |_| 1), 2));
            [within(up), between(Collective::Barrier(barrier)), within(down)].concat()
        }
        NodeAware::Bcast(bcast) => {
            let radix = if bcast == Bcast::Knomial { 4 } else { 2 };
            let down = early(down(own, here, radix, |_| bytes), radix);
            [between(Collective::Bcast(bcast)), within(down)].concat()
        }
        NodeAware::Reduce(reduce) => [within(sum), between(Collective::Reduce(reduce))].concat(),
        NodeAware::Allreduce(all) => [within(sum), between(Collective::Allreduce(all)), within(told)].concat(),
    }
}

fn renumbered(steps: Steps, number: impl Fn(usize) -> usize) -> Steps {
    let one = |action| match action {
        Action::Send { to, bytes } => Action::Send { to: number(to), bytes },
        Action::Receive { from, bytes, reduced } => Action::Receive { from: number(from), bytes, reduced },
        Action::Wait { to, bytes } => Action::Wait { to: number(to), bytes },
        other => other,
    };
    steps.into_iter().map(|actions| actions.into_iter().map(one).collect()).collect()
}
