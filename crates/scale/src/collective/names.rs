//! The names of collectives: the operation, a colon, and the algorithm.

use std::fmt;
use std::str::FromStr;

use becalm_units::Named;

use super::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Collective, Library, NodeAware, Operation, Reduce, ReduceScatter,
};
use crate::ScaleError;

/// MPICH's maximum number of messages under way (`MPIR_CVAR_ALLTOALL_THROTTLE`).
pub(super) const WINDOW: u32 = 32;

const SCATTERED: &str = "alltoall:scattered";

/// The first algorithm of each collective is its default. Libraries' choices and windows are not included.
const NAMES: [(&str, Collective); 41] = [
    ("ideal", Collective::Ideal),
    ("barrier:dissemination", Collective::Barrier(Barrier::Dissemination)),
    ("barrier:recursive-doubling", Collective::Barrier(Barrier::RecursiveDoubling)),
    ("barrier:binomial", Collective::Barrier(Barrier::Binomial)),
    ("barrier:hardware", Collective::Barrier(Barrier::Hardware)),
    ("barrier:node-dissemination", Collective::NodeAware(NodeAware::Barrier(Barrier::Dissemination))),
    ("barrier:node-recursive-doubling", Collective::NodeAware(NodeAware::Barrier(Barrier::RecursiveDoubling))),
    ("barrier:node-binomial", Collective::NodeAware(NodeAware::Barrier(Barrier::Binomial))),
    ("bcast:binomial", Collective::Bcast(Bcast::Binomial)),
    ("bcast:knomial", Collective::Bcast(Bcast::Knomial)),
    ("bcast:scatter-doubling", Collective::Bcast(Bcast::ScatterDoubling)),
    ("bcast:scatter-ring", Collective::Bcast(Bcast::ScatterRing)),
    ("bcast:node-binomial", Collective::NodeAware(NodeAware::Bcast(Bcast::Binomial))),
    ("bcast:node-knomial", Collective::NodeAware(NodeAware::Bcast(Bcast::Knomial))),
    ("bcast:node-scatter-doubling", Collective::NodeAware(NodeAware::Bcast(Bcast::ScatterDoubling))),
    ("bcast:node-scatter-ring", Collective::NodeAware(NodeAware::Bcast(Bcast::ScatterRing))),
    ("reduce:binomial", Collective::Reduce(Reduce::Binomial)),
    ("reduce:rabenseifner", Collective::Reduce(Reduce::Rabenseifner)),
    ("reduce:node-binomial", Collective::NodeAware(NodeAware::Reduce(Reduce::Binomial))),
    ("reduce:node-rabenseifner", Collective::NodeAware(NodeAware::Reduce(Reduce::Rabenseifner))),
    ("allreduce:recursive-doubling", Collective::Allreduce(Allreduce::RecursiveDoubling)),
    ("allreduce:rabenseifner", Collective::Allreduce(Allreduce::Rabenseifner)),
    ("allreduce:ring", Collective::Allreduce(Allreduce::Ring)),
    ("allreduce:tree", Collective::Allreduce(Allreduce::Tree)),
    ("allreduce:hardware", Collective::Allreduce(Allreduce::Hardware)),
    ("allreduce:node-recursive-doubling", Collective::NodeAware(NodeAware::Allreduce(Allreduce::RecursiveDoubling))),
    ("allreduce:node-rabenseifner", Collective::NodeAware(NodeAware::Allreduce(Allreduce::Rabenseifner))),
    ("allreduce:node-ring", Collective::NodeAware(NodeAware::Allreduce(Allreduce::Ring))),
    ("allreduce:node-tree", Collective::NodeAware(NodeAware::Allreduce(Allreduce::Tree))),
    ("allgather:recursive-doubling", Collective::Allgather(Allgather::RecursiveDoubling)),
    ("allgather:ring", Collective::Allgather(Allgather::Ring)),
    ("allgather:bruck", Collective::Allgather(Allgather::Bruck)),
    ("allgather:neighbor", Collective::Allgather(Allgather::Neighbor)),
    ("reduce-scatter:recursive-halving", Collective::ReduceScatter(ReduceScatter::RecursiveHalving)),
    ("reduce-scatter:ring", Collective::ReduceScatter(ReduceScatter::Ring)),
    ("reduce-scatter:pairwise", Collective::ReduceScatter(ReduceScatter::Pairwise)),
    ("reduce-scatter:reduce-first", Collective::ReduceScatter(ReduceScatter::ReduceFirst)),
    (SCATTERED, Collective::Alltoall(Alltoall::Scattered(WINDOW))),
    ("alltoall:pairwise", Collective::Alltoall(Alltoall::Pairwise)),
    ("alltoall:linear", Collective::Alltoall(Alltoall::Linear)),
    ("alltoall:bruck", Collective::Alltoall(Alltoall::Bruck)),
];

const FORM: &str = "write ideal, barrier, bcast, reduce, allreduce, allgather, reduce-scatter or alltoall, which stand for \
                    their first algorithm, or with one: \
                    barrier[:dissemination|recursive-doubling|binomial|hardware], \
                    bcast[:binomial|knomial|scatter-doubling|scatter-ring], reduce[:binomial|rabenseifner], \
                    allreduce[:recursive-doubling|rabenseifner|ring|tree|hardware], \
                    allgather[:recursive-doubling|ring|bruck|neighbor], \
                    reduce-scatter[:recursive-halving|ring|pairwise|reduce-first], \
                    alltoall[:scattered[=32]|pairwise|linear|bruck]; the first four also with node- in front of an algorithm, all \
                    of them with openmpi, mpich or cray as the algorithm, which choose by ranks and bytes";

impl FromStr for Collective {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        let err = |why: String| ScaleError::Text { text: text.to_owned(), expected: "a collective", why, form: FORM };
        if let Some(window) = text.strip_prefix(SCATTERED).and_then(|rest| rest.strip_prefix('=')) {
            let number = window.parse::<u32>().ok().filter(|number| *number > 0);
            let number = number.ok_or_else(|| err(format!("its window is '{window}', not a number from 1 on")))?;
            return Ok(Self::Alltoall(Alltoall::Scattered(number)));
        }
        let same = |name: &str| name == text || name.split(':').next() == Some(text);
        let named = NAMES.iter().find(|(name, _)| same(name)).map(|(_, collective)| *collective);
        let chosen = || {
            let (operation, library) = text.split_once(':')?;
            let operation = Operation::ALL.iter().find(|known| known.name() == operation)?;
            let library = Library::ALL.iter().find(|known| known.name() == library)?;
            Some(Self::Chosen(*operation, *library))
        };
        named.or_else(chosen).ok_or_else(|| err("its name is unknown".to_owned()))
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chosen(operation, library) => f.pad(&format!("{operation}:{library}")),
            Self::Alltoall(Alltoall::Scattered(window)) if *window != WINDOW => f.pad(&format!("{SCATTERED}={window}")),
            _ => {
                let name = NAMES.iter().find(|(_, collective)| collective == self);
                f.pad(name.map_or("", |(name, _)| name))
            }
        }
    }
}

impl Collective {
    /// The names of all collectives with their algorithms, except for other windows and the choices of libraries.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }
}
