//! Collectives as steps of a [`JobMachine`](crate::machine::JobMachine): who sends to whom, in which round.
//!
//! The first rank is the root where there is one. `names` has how they are written, `run` what they do, `choice` which
//! algorithm a library takes for how many ranks and bytes.

mod choice;
mod group;
mod names;
mod parts;
mod run;

pub use choice::Library;

/// The algorithms of a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// In round k everyone signals the rank 2^k further (Hensgen, Finkel, Manber 1988).
    Dissemination,
    /// In round k everyone exchanges signals with the rank whose number differs in bit k.
    RecursiveDoubling,
    /// Up a binomial tree to rank 0, and down again.
    Binomial,
    /// The ranks of a node gather at its first, which arms a wire that all nodes share; all see it when the last has.
    Hardware,
}

/// Algorithms by which all ranks get what rank 0 has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bcast {
    /// Down a binomial tree.
    Binomial,
    /// Down a tree in which each rank has three children on a level.
    Knomial,
    /// Rank 0 scatters its parts down a binomial tree, and all gather them by recursive doubling (van de Geijn).
    ScatterDoubling,
    /// The same, and all gather them around a ring.
    ScatterRing,
}

/// Algorithms by which rank 0 gets the reduction of what all ranks give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduce {
    /// Up a binomial tree.
    Binomial,
    /// Reduce-scatter by recursive halving, whose parts are gathered up a binomial tree (Rabenseifner 2004).
    Rabenseifner,
}

/// Allreduce algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allreduce {
    /// In round k everyone exchanges the whole payload with the rank whose number differs in bit k; ranks beyond the
    /// largest power of two hand theirs in first and get the result last (Thakur, Rabenseifner, Gropp 2005).
    RecursiveDoubling,
    /// Reduce-scatter by recursive halving, then allgather by recursive doubling (Rabenseifner 2004).
    Rabenseifner,
    /// Reduce-scatter, then allgather, each n - 1 rounds around a ring with an n-th of the payload.
    Ring,
    /// Up a binomial tree to rank 0, and down again, with the whole payload.
    Tree,
    /// The ranks of a node gather at its first, which hands the payload to the network; the network reduces it, and all
    /// get the result when the last node has handed its part in.
    Hardware,
}

/// Algorithms by which all ranks get what each gives; the payload is that of each rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allgather {
    /// In round k everyone exchanges all that it has with the rank whose number differs in bit k; where ranks are no power of
    /// two, as Bruck.
    RecursiveDoubling,
    /// n - 1 rounds around a ring.
    Ring,
    /// In round k everyone sends what it has to the rank 2^k further (Bruck et al. 1997).
    Bruck,
    /// Neighbors exchange what they have, in turn with the one on either side (Chen et al. 2005); odd numbers of ranks, around a
    /// ring.
    Neighbor,
}

/// Algorithms by which each rank gets its part of the reduction of what all ranks give; the payload is that of each part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReduceScatter {
    /// Each pair halves what it still has to reduce.
    RecursiveHalving,
    /// n - 1 rounds around a ring.
    Ring,
    /// In round k everyone sends its part to the rank k further.
    Pairwise,
    /// To rank 0 up a binomial tree, and down again in parts.
    ReduceFirst,
}

/// All-to-all algorithms; the payload is that of each pair of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alltoall {
    /// Everyone sends to so many others, and receives from as many in the order in which their messages come, before it goes on
    /// with the next ones.
    Scattered(u32),
    /// In round k everyone sends to the rank k further, and receives from the one k back.
    Pairwise,
    /// Everyone sends to all others, starting with the next rank, and then receives from all others in turn.
    Linear,
    /// In round k everyone sends all blocks with bit k set to the rank 2^k further (Bruck et al. 1997).
    Bruck,
}

/// Collectives in three parts: the ranks of each node, the first ranks of all nodes, the ranks of each node again. Within nodes
/// they are trees. The last node may have fewer ranks than the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeAware {
    /// A barrier of the nodes' first ranks.
    Barrier(Barrier),
    /// A broadcast to the nodes' first ranks, and then within nodes.
    Bcast(Bcast),
    /// A reduction within nodes, and then of their first ranks.
    Reduce(Reduce),
    /// A reduction within nodes, an allreduce of their first ranks, a broadcast within nodes.
    Allreduce(Allreduce),
}

/// What a collective is for, whatever its algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// All wait for all.
    Barrier,
    /// All get what rank 0 has.
    Bcast,
    /// Rank 0 gets the reduction.
    Reduce,
    /// All get the reduction.
    Allreduce,
    /// All get what each has.
    Allgather,
    /// Each gets a part of the reduction.
    ReduceScatter,
    /// Each gets something of its own from each.
    Alltoall,
}

/// What ends a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collective {
    /// It costs nothing and lets all go on when the last has come.
    Ideal,
    /// A barrier: messages of one byte.
    Barrier(Barrier),
    /// All ranks get what rank 0 has.
    Bcast(Bcast),
    /// Rank 0 gets the reduction of what all ranks give.
    Reduce(Reduce),
    /// Every rank gets the reduction of what all ranks give.
    Allreduce(Allreduce),
    /// Every rank gets what all ranks give.
    Allgather(Allgather),
    /// Every rank gets a part of the reduction.
    ReduceScatter(ReduceScatter),
    /// Every rank sends something of its own to every other rank.
    Alltoall(Alltoall),
    /// The same within nodes and between them.
    NodeAware(NodeAware),
    /// The algorithm that a library takes for so many ranks and bytes.
    Chosen(Operation, Library),
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Barrier,
        Self::Bcast,
        Self::Reduce,
        Self::Allreduce,
        Self::Allgather,
        Self::ReduceScatter,
        Self::Alltoall,
    ];

    /// Whether libraries do it within nodes and between them.
    const fn has_levels(self) -> bool {
        matches!(self, Self::Barrier | Self::Bcast | Self::Reduce | Self::Allreduce)
    }
}

impl Collective {
    /// Whether its messages go through the cards of nodes; those of hardware have wires of their own.
    #[must_use]
    pub const fn uses_cards(self) -> bool {
        !matches!(self, Self::Ideal | Self::Barrier(Barrier::Hardware) | Self::Allreduce(Allreduce::Hardware))
    }

    /// What it is for; nothing for the ideal one.
    #[must_use]
    pub const fn operation(self) -> Option<Operation> {
        Some(match self {
            Self::Ideal => return None,
            Self::Chosen(operation, _) => operation,
            Self::Barrier(_) | Self::NodeAware(NodeAware::Barrier(_)) => Operation::Barrier,
            Self::Bcast(_) | Self::NodeAware(NodeAware::Bcast(_)) => Operation::Bcast,
            Self::Reduce(_) | Self::NodeAware(NodeAware::Reduce(_)) => Operation::Reduce,
            Self::Allreduce(_) | Self::NodeAware(NodeAware::Allreduce(_)) => Operation::Allreduce,
            Self::Allgather(_) => Operation::Allgather,
            Self::ReduceScatter(_) => Operation::ReduceScatter,
            Self::Alltoall(_) => Operation::Alltoall,
        })
    }

    /// The algorithm itself: of a library's choice, what it takes for so many ranks, bytes and ranks a node.
    #[must_use]
    pub fn chosen(self, ranks: u64, bytes: u64, per_node: u64) -> Self {
        match self {
            Self::Chosen(operation, library) => library.choose(operation, ranks, bytes, per_node),
            itself => itself,
        }
    }
}
