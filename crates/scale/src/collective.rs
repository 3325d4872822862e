//! Collectives as steps of a [`JobMachine`]: who sends to whom, in which round.

use std::fmt;
use std::str::FromStr;

use crate::ScaleError;
use crate::machine::JobMachine;

/// The algorithms of a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// In round k everyone signals the rank 2^k further (Hensgen, Finkel, Manber 1988).
    Dissemination,
    /// Up a binomial tree to rank 0, and down again.
    Binomial,
    /// The ranks of a node gather at its first, which arms a wire that all nodes share; all see it when the last has.
    Hardware,
}

/// Allreduce algorithms. The time of the reduction itself is part of the grain, not of the collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allreduce {
    /// In round k everyone exchanges the whole payload with the rank whose number differs in bit k; ranks beyond the
    /// largest power of two hand theirs in first and get the result last (Thakur, Rabenseifner, Gropp 2005).
    RecursiveDoubling,
    /// Reduce-scatter, then allgather, each n - 1 rounds around a ring with an n-th of the payload.
    Ring,
    /// Up a binomial tree to rank 0, and down again, with the whole payload.
    Tree,
}

/// All-to-all algorithms; the payload is that of each pair of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alltoall {
    /// Everyone sends to all others, starting with the next rank, and then receives from all others in turn.
    Linear,
    /// In round k everyone sends to the rank k further, and receives from the one k back.
    Pairwise,
    /// In round k everyone sends all blocks with bit k set to the rank 2^k further (Bruck et al. 1997).
    Bruck,
}

/// What ends a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collective {
    /// It costs nothing and lets all go on when the last has come.
    Ideal,
    /// A barrier: messages of one byte.
    Barrier(Barrier),
    /// Every rank gets the reduction of what all ranks give.
    Allreduce(Allreduce),
    /// Every rank sends something of its own to every other rank.
    Alltoall(Alltoall),
}

/// How the names are written; the first algorithm of each collective is its default.
const NAMES: [(&str, Collective); 10] = [
    ("ideal", Collective::Ideal),
    ("barrier:dissemination", Collective::Barrier(Barrier::Dissemination)),
    ("barrier:binomial", Collective::Barrier(Barrier::Binomial)),
    ("barrier:hardware", Collective::Barrier(Barrier::Hardware)),
    ("allreduce:recursive-doubling", Collective::Allreduce(Allreduce::RecursiveDoubling)),
    ("allreduce:ring", Collective::Allreduce(Allreduce::Ring)),
    ("allreduce:tree", Collective::Allreduce(Allreduce::Tree)),
    ("alltoall:pairwise", Collective::Alltoall(Alltoall::Pairwise)),
    ("alltoall:linear", Collective::Alltoall(Alltoall::Linear)),
    ("alltoall:bruck", Collective::Alltoall(Alltoall::Bruck)),
];

const FORM: &str = "write ideal, barrier[:dissemination|binomial|hardware], allreduce[:recursive-doubling|ring|tree] or \
                    alltoall[:pairwise|linear|bruck]; without an algorithm the first one is meant";

impl FromStr for Collective {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        let same = |name: &str| name == text || name.split(':').next() == Some(text);
        NAMES.iter().find(|(name, _)| same(name)).map(|(_, collective)| *collective).ok_or_else(|| {
            let why = "its name is unknown".to_owned();
            ScaleError::Text { text: text.to_owned(), expected: "a collective", why, form: FORM }
        })
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, collective)| collective == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

impl Collective {
    /// How each of them is written, with its algorithm.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// The steps that one collective takes on each rank: what a replay costs is in proportion to ranks times steps.
    #[must_use]
    pub fn rounds(&self, ranks: u64) -> u64 {
        let log = u64::from(ranks.max(1).next_power_of_two().ilog2());
        match self {
            Self::Ideal => 0,
            Self::Barrier(Barrier::Dissemination) | Self::Alltoall(Alltoall::Bruck) => log,
            Self::Barrier(Barrier::Binomial) | Self::Allreduce(Allreduce::Tree) => 2 * log,
            Self::Barrier(Barrier::Hardware) => 3,
            Self::Allreduce(Allreduce::RecursiveDoubling) => log + 2,
            Self::Allreduce(Allreduce::Ring) => 2 * ranks.saturating_sub(1),
            Self::Alltoall(Alltoall::Pairwise) => ranks.saturating_sub(1),
            Self::Alltoall(Alltoall::Linear) => 2 * ranks.saturating_sub(1),
        }
    }

    /// The bytes of its largest message; a barrier's have one, whatever the payload.
    #[must_use]
    pub fn largest_message(&self, ranks: u64, bytes: u64) -> u64 {
        match self {
            Self::Ideal | Self::Barrier(Barrier::Hardware) => 0,
            Self::Barrier(_) => 1,
            Self::Allreduce(Allreduce::Ring) => bytes.div_ceil(ranks.max(1)),
            Self::Allreduce(_) | Self::Alltoall(Alltoall::Linear | Alltoall::Pairwise) => bytes,
            Self::Alltoall(Alltoall::Bruck) => {
                let bits = (0..u64::BITS - 1).map(|bit| 1 << bit).take_while(|bit| *bit < ranks);
                let blocks = bits.map(|bit| blocks_with_bit(ranks, bit)).max().unwrap_or(0);
                bytes.saturating_mul(blocks)
            }
        }
    }

    /// Lets all ranks of a machine go through it, with so many ranks a node and bytes of payload.
    ///
    /// # Errors
    /// [`ScaleError`] for messages or clocks that pass their limits.
    pub fn run(&self, machine: &mut JobMachine<'_>, per_node: usize, bytes: u64) -> Result<(), ScaleError> {
        match self {
            Self::Ideal => {
                let latest = machine.latest().get();
                machine.wait(|_| latest)
            }
            Self::Barrier(Barrier::Dissemination) => shifts_by_powers(machine, |_| 1),
            Self::Barrier(Barrier::Binomial) => tree(machine, 1),
            Self::Barrier(Barrier::Hardware) => hardware(machine, per_node.max(1)),
            Self::Allreduce(Allreduce::RecursiveDoubling) => recursive_doubling(machine, bytes),
            Self::Allreduce(Allreduce::Ring) => ring(machine, bytes),
            Self::Allreduce(Allreduce::Tree) => tree(machine, bytes),
            Self::Alltoall(Alltoall::Linear) => linear(machine, bytes),
            Self::Alltoall(Alltoall::Pairwise) => pairwise(machine, bytes),
            Self::Alltoall(Alltoall::Bruck) => {
                let ranks = machine.len() as u64;
                shifts_by_powers(machine, |distance| bytes.saturating_mul(blocks_with_bit(ranks, distance)))
            }
        }
    }
}

/// Everyone sends to the rank `distance` further and receives from the one as far back.
fn shift(machine: &mut JobMachine<'_>, distance: usize, bytes: u64) -> Result<(), ScaleError> {
    let ranks = machine.len();
    machine.send(bytes, |_| true)?;
    machine.receive(bytes, |rank| Some(if rank >= distance { rank - distance } else { rank + ranks - distance }))
}

fn powers_below(ranks: usize) -> impl DoubleEndedIterator<Item = usize> {
    (0..usize::BITS).map(|bit| 1_usize << bit).take_while(move |power| *power < ranks).collect::<Vec<_>>().into_iter()
}

fn shifts_by_powers(machine: &mut JobMachine<'_>, bytes: impl Fn(u64) -> u64) -> Result<(), ScaleError> {
    for distance in powers_below(machine.len()) {
        shift(machine, distance, bytes(distance as u64))?;
    }
    Ok(())
}

/// How many of the numbers below `ranks` have the bit set.
fn blocks_with_bit(ranks: u64, bit: u64) -> u64 {
    ranks / (2 * bit) * bit + (ranks % (2 * bit)).saturating_sub(bit)
}

fn tree(machine: &mut JobMachine<'_>, bytes: u64) -> Result<(), ScaleError> {
    let ranks = machine.len();
    let parent = |rank: usize, distance: usize| rank.is_multiple_of(2 * distance) && rank + distance < ranks;
    let child = |rank: usize, distance: usize| rank % (2 * distance) == distance;
    for distance in powers_below(ranks) {
        machine.send(bytes, |rank| child(rank, distance))?;
        machine.receive(bytes, |rank| parent(rank, distance).then(|| rank + distance))?;
    }
    for distance in powers_below(ranks).rev() {
        machine.send(bytes, |rank| parent(rank, distance))?;
        machine.receive(bytes, |rank| child(rank, distance).then(|| rank - distance))?;
    }
    Ok(())
}

fn hardware(machine: &mut JobMachine<'_>, per_node: usize) -> Result<(), ScaleError> {
    let (wire, step) = (machine.network().barrier_wire().get(), machine.network().barrier_step().get());
    // Everyone tells its node; the node's first rank waits for all of them and arms the wire.
    machine.work_of(step, |_| true)?;
    let nodes = machine.latest_of_each(per_node);
    let first = |rank: usize| rank.is_multiple_of(per_node);
    machine.wait(|rank| if first(rank) { nodes[rank / per_node] } else { 0 })?;
    machine.work_of(step, first)?;
    // The wire falls when the last node has armed it, and everyone has to see that.
    let released = machine.latest().get() + wire;
    machine.wait(|_| released)?;
    machine.work_of(step, |_| true)
}

fn recursive_doubling(machine: &mut JobMachine<'_>, bytes: u64) -> Result<(), ScaleError> {
    let ranks = machine.len();
    let core = if ranks.is_power_of_two() { ranks } else { ranks.next_power_of_two() / 2 };
    // Of the first 2 * extra ranks the even ones hand in their payload and wait.
    let extra = ranks - core;
    let outside = move |rank: usize| rank < 2 * extra && rank.is_multiple_of(2);
    let partner = move |rank: usize| rank < 2 * extra && !rank.is_multiple_of(2);
    if extra > 0 {
        machine.send(bytes, outside)?;
        machine.receive(bytes, |rank| partner(rank).then(|| rank - 1))?;
    }
    let number = move |rank: usize| if rank < 2 * extra { rank / 2 } else { rank - extra };
    let rank_of = move |number: usize| if number < extra { 2 * number + 1 } else { number + extra };
    for distance in powers_below(core) {
        machine.send(bytes, |rank| !outside(rank))?;
        machine.receive(bytes, |rank| (!outside(rank)).then(|| rank_of(number(rank) ^ distance)))?;
    }
    if extra > 0 {
        machine.send(bytes, partner)?;
        machine.receive(bytes, |rank| outside(rank).then(|| rank + 1))?;
    }
    Ok(())
}

fn ring(machine: &mut JobMachine<'_>, bytes: u64) -> Result<(), ScaleError> {
    let ranks = machine.len();
    let part = bytes.div_ceil(ranks as u64);
    for _ in 0..2 * (ranks - 1) {
        shift(machine, 1, part)?;
    }
    Ok(())
}

fn pairwise(machine: &mut JobMachine<'_>, bytes: u64) -> Result<(), ScaleError> {
    for distance in 1..machine.len() {
        shift(machine, distance, bytes)?;
    }
    Ok(())
}

fn linear(machine: &mut JobMachine<'_>, bytes: u64) -> Result<(), ScaleError> {
    let ranks = machine.len();
    // All sends come before the first receive. Their times would fill n^2 numbers, so the sends are played twice:
    // once to know when they are over, and once more in step with the receives.
    let mut senders = machine.clone();
    for _ in 1..ranks {
        machine.send(bytes, |_| true)?;
    }
    for distance in 1..ranks {
        senders.send(bytes, |_| true)?;
        machine.receive_of(senders.sent(), bytes, |rank| Some((rank + ranks - distance) % ranks))?;
    }
    Ok(())
}
