//! Collectives as steps of a [`JobMachine`](crate::machine::JobMachine): the sender and receiver of each message in each round.
//!
//! The first rank is the root, if there is one. `names` has their names, `run` their steps, `choice` the algorithms that libraries choose by number
//! of ranks and bytes.

mod choice;
mod group;
mod names;
mod parts;
mod run;

pub use choice::Library;

/// The algorithms of a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    /// In round k each rank signals the rank 2^k further (Hensgen, Finkel, Manber 1988).
    Dissemination,
    /// In round k each rank exchanges signals with the rank whose number differs in bit k.
    RecursiveDoubling,
    /// Up a binomial tree to rank 0, and down again.
    Binomial,
    /// The ranks of a node gather at its first, which arms a wire shared by all nodes; all are notified when the last has done so.
    Hardware,
}

/// Algorithms that send rank 0's data to all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bcast {
    /// Down a binomial tree.
    Binomial,
    /// Down a tree with three children per rank and level.
    Knomial,
    /// Rank 0 scatters its parts down a binomial tree, followed by an allgather by recursive doubling (van de Geijn).
    ScatterDoubling,
    /// The same with a ring allgather.
    ScatterRing,
}

/// Algorithms that reduce the data of all ranks at rank 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduce {
    /// Up a binomial tree.
    Binomial,
    /// Reduce-scatter by recursive halving, with the parts gathered up a binomial tree (Rabenseifner 2004).
    Rabenseifner,
}

/// Allreduce algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allreduce {
    /// In round k each rank exchanges the whole payload with the rank whose number differs in bit k; ranks beyond the largest power of two contribute
    /// theirs first and get the result last (Thakur, Rabenseifner, Gropp 2005).
    RecursiveDoubling,
    /// Reduce-scatter by recursive halving, then allgather by recursive doubling (Rabenseifner 2004).
    Rabenseifner,
    /// Reduce-scatter, then allgather, each n - 1 rounds around a ring with an n-th of the payload.
    Ring,
    /// Up a binomial tree to rank 0, and down again, with the whole payload.
    Tree,
    /// The ranks of a node gather at its first, which passes the payload to the network; the network reduces it, and all get the result when the last
    /// node has contributed.
    Hardware,
}

/// Algorithms that give all ranks the data of each; the payload is that of each rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allgather {
    /// In round k each rank exchanges all of its data with the rank whose number differs in bit k; Bruck if the number of ranks is not a power of
    /// two.
    RecursiveDoubling,
    /// n - 1 rounds around a ring.
    Ring,
    /// In round k each rank sends its data to the rank 2^k further (Bruck et al. 1997).
    Bruck,
    /// Neighbors exchange their data, alternately on either side (Chen et al. 2005); a ring if the number of ranks is odd.
    Neighbor,
}

/// Algorithms that give each rank its part of the reduction; the payload is that of each part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReduceScatter {
    /// In each round, pairs halve the data still to be reduced.
    RecursiveHalving,
    /// n - 1 rounds around a ring.
    Ring,
    /// In round k each rank sends its part to the rank k further.
    Pairwise,
    /// To rank 0 up a binomial tree, and down again in parts.
    ReduceFirst,
}

/// All-to-all algorithms; the payload is that of each pair of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alltoall {
    /// Each rank sends to a window of this many others, and receives from as many in order of arrival, before it continues with the next ones.
    Scattered(u32),
    /// In round k each rank sends to the rank k further, and receives from the one k back.
    Pairwise,
    /// Each rank sends to all others, starting with the next rank, and then receives from all others in turn.
    Linear,
    /// In round k each rank sends all blocks with bit k set to the rank 2^k further (Bruck et al. 1997).
    Bruck,
}

/// Collectives in three parts: within each node, between the first ranks of all nodes, within each node again. Within nodes they are trees. The last
/// node may have fewer ranks than the others.
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

/// The purpose of a collective, whatever its algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Operation {
    /// All wait for all.
    Barrier,
    /// All get rank 0's data.
    Bcast,
    /// Rank 0 gets the reduction.
    Reduce,
    /// All get the reduction.
    Allreduce,
    /// All get the data of each.
    Allgather,
    /// Each gets a part of the reduction.
    ReduceScatter,
    /// Each gets a separate message from each.
    Alltoall,
}

/// The end of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collective {
    /// Free; all continue when the last has arrived.
    Ideal,
    /// A barrier: messages of one byte.
    Barrier(Barrier),
    /// All ranks get rank 0's data.
    Bcast(Bcast),
    /// Rank 0 gets the reduction of all ranks' data.
    Reduce(Reduce),
    /// Every rank gets the reduction of all ranks' data.
    Allreduce(Allreduce),
    /// Every rank gets all ranks' data.
    Allgather(Allgather),
    /// Every rank gets a part of the reduction.
    ReduceScatter(ReduceScatter),
    /// Every rank sends a separate message to every other rank.
    Alltoall(Alltoall),
    /// Separate steps within nodes and between them.
    NodeAware(NodeAware),
    /// The algorithm that a library chooses by number of ranks and bytes.
    Chosen(Operation, Library),
}

impl Operation {
    /// Whether libraries split it into steps within nodes and between them.
    const fn has_levels(self) -> bool {
        matches!(self, Self::Barrier | Self::Bcast | Self::Reduce | Self::Allreduce)
    }
}

impl Collective {
    /// Its purpose; `None` for the ideal one.
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

    /// The algorithm itself; for a library's choice, the one for this number of ranks, bytes and ranks per node.
    #[must_use]
    pub fn chosen(self, ranks: u64, bytes: u64, per_node: u64) -> Self {
        match self {
            Self::Chosen(operation, library) => library.choose(operation, ranks, bytes, per_node),
            itself => itself,
        }
    }
}
