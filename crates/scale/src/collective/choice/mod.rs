//! The algorithms that MPI libraries choose by number of ranks and bytes, according to their sources. Their thresholds are facts; the substitutes for
//! algorithms that are not modeled are documented with each.

mod openmpi;

use super::{Allgather, Allreduce, Alltoall, Barrier, Bcast, Collective, NodeAware, Operation, Reduce, ReduceScatter};

/// A library with known choices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Library {
    /// Open MPI 5.0.10: the fixed rules of its component `tuned` (`ompi/mca/coll/tuned/coll_tuned_decision_fixed.c`), for commutative operations. If
    /// several nodes have several ranks each, its component `han` takes precedence (priority 35 against 30) with barriers, broadcasts and reductions
    /// in two levels; between nodes it uses `libnbc`, which is not modeled and is replaced by `tuned`.
    OpenMpi,
    /// MPICH 5.0.1: `maint/tuning/coll/mpir/generic.json`, and for ranks that share nodes `maint/tuning/coll/ch4/generic.json` with the compositions
    /// of `src/mpid/ch4/src/ch4_coll_impl.h`; for built-in operations on elements of 8 bytes.
    Mpich,
    /// Cray MPICH 8.1.17, whose source is not public: MPICH's rules, with the thresholds that it shows on Crusher (`MPICH_ENV_DISPLAY`).
    Cray,
}

/// The size of an element, in bytes.
const ELEMENT: u64 = 8;

/// `MPICH_ALLREDUCE_MAX_SMP_SIZE`.
const CRAY_NODE_AWARE: u64 = 262_144;

/// `MPICH_ALLTOALL_SHORT_MSG` falls from 512 to 64 with the number of ranks; that it does so at 1,024 is an assumption.
const CRAY_SHORT: [(u64, u64); 2] = [(1_024, 512), (u64::MAX, 64)];

/// The largest of `MPICH_ALLTOALL_SYNC_FREQ`, 1 to 24; that it is the window is an assumption.
const CRAY_WINDOW: u32 = 24;

impl Library {
    /// The algorithm for this number of ranks, bytes (as in [`Collective::run`]) and ranks per node.
    pub(super) fn choose(self, operation: Operation, ranks: u64, bytes: u64, per_node: u64) -> Collective {
        match self {
            Self::OpenMpi => match full_nodes(ranks, per_node).filter(|_| operation.has_levels()) {
                Some(nodes) => by_nodes(openmpi::choose(operation, nodes, bytes)),
                None => openmpi::choose(operation, ranks, bytes),
            },
            Self::Mpich => mpich(operation, ranks, bytes, per_node),
            Self::Cray => cray(operation, ranks, bytes, per_node),
        }
    }
}

/// The number of nodes, if there are several with several ranks each. The last may have fewer.
fn nodes(ranks: u64, per_node: u64) -> Option<u64> {
    (per_node > 1 && ranks > per_node).then(|| ranks.div_ceil(per_node))
}

/// The same if all nodes are full.
fn full_nodes(ranks: u64, per_node: u64) -> Option<u64> {
    nodes(ranks, per_node).filter(|_| ranks.is_multiple_of(per_node))
}

/// The part of a choice between nodes.
fn by_nodes(collective: Collective) -> Collective {
    let aware = match collective {
        Collective::Barrier(barrier) => NodeAware::Barrier(barrier),
        Collective::Bcast(bcast) => NodeAware::Bcast(bcast),
        Collective::Reduce(reduce) => NodeAware::Reduce(reduce),
        Collective::Allreduce(allreduce) => NodeAware::Allreduce(allreduce),
        other => return other,
    };
    Collective::NodeAware(aware)
}

fn mpich(operation: Operation, ranks: u64, bytes: u64, per_node: u64) -> Collective {
    let Some(nodes) = nodes(ranks, per_node) else { return mpich_flat(operation, ranks, bytes) };
    let aware = match operation {
        Operation::Bcast if ranks < 8 => true,
        Operation::Bcast if ranks.is_power_of_two() => bytes < 524_288,
        Operation::Bcast => bytes < 12_288,
        _ => operation.has_levels(),
    };
    if aware { by_nodes(mpich_flat(operation, nodes, bytes)) } else { mpich_flat(operation, ranks, bytes) }
}

/// MPICH's choices if no ranks share a node.
fn mpich_flat(operation: Operation, ranks: u64, bytes: u64) -> Collective {
    let power = ranks.is_power_of_two();
    let total = bytes.saturating_mul(ranks);
    // With fewer elements than the largest power of two of the ranks, the payload cannot be halved often enough.
    let few = bytes / ELEMENT < (ranks / 2 + 1).next_power_of_two();
    match operation {
        Operation::Barrier => Collective::Barrier(Barrier::Dissemination),
        Operation::Bcast => Collective::Bcast(match bytes {
            _ if ranks < 8 => Bcast::Binomial,
            ..=12_288 => Bcast::Binomial,
            ..=524_288 if power => Bcast::ScatterDoubling,
            _ => Bcast::ScatterRing,
        }),
        Operation::Reduce => Collective::Reduce(match bytes {
            ..=2_048 => Reduce::Binomial,
            _ if few => Reduce::Binomial,
            _ => Reduce::Rabenseifner,
        }),
        Operation::Allreduce => Collective::Allreduce(match bytes {
            ..=8 => Allreduce::RecursiveDoubling,
            _ if few => Allreduce::RecursiveDoubling,
            _ => Allreduce::Rabenseifner,
        }),
        Operation::Allgather => Collective::Allgather(match total {
            ..524_288 if power => Allgather::RecursiveDoubling,
            ..81_920 if !power => Allgather::Bruck,
            _ => Allgather::Ring,
        }),
        Operation::ReduceScatter => Collective::ReduceScatter(match total {
            ..524_288 => ReduceScatter::RecursiveHalving,
            _ => ReduceScatter::Pairwise,
        }),
        Operation::Alltoall => Collective::Alltoall(match bytes {
            ..=256 if ranks >= 8 => Alltoall::Bruck,
            ..=32_768 => Alltoall::Scattered(super::names::WINDOW),
            _ => Alltoall::Pairwise,
        }),
    }
}

fn cray(operation: Operation, ranks: u64, bytes: u64, per_node: u64) -> Collective {
    let nodes = nodes(ranks, per_node);
    match operation {
        // `MPICH_BCAST_ONLY_TREE` is 1, and the radix is 4 between nodes and within.
        Operation::Bcast => {
            let tree = Collective::Bcast(Bcast::Knomial);
            if nodes.is_some() { by_nodes(tree) } else { tree }
        }
        Operation::Allreduce if bytes > CRAY_NODE_AWARE => mpich_flat(operation, ranks, bytes),
        Operation::Alltoall => {
            let short = CRAY_SHORT.iter().find(|(most, _)| ranks <= *most).map_or(0, |(_, bytes)| *bytes);
            Collective::Alltoall(if bytes <= short { Alltoall::Bruck } else { Alltoall::Scattered(CRAY_WINDOW) })
        }
        _ => mpich(operation, ranks, bytes, per_node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_units::Named;

    fn chosen(text: &str, ranks: u64, bytes: u64, per_node: u64) -> String {
        text.parse::<Collective>().unwrap().chosen(ranks, bytes, per_node).to_string()
    }

    /// Rows of the tables in the libraries' sources.
    #[test]
    fn libraries_choose_as_their_sources_say() {
        for (collective, ranks, bytes, per_node, algorithm) in [
            ("allreduce:openmpi", 64, 262_143, 1, "allreduce:recursive-doubling"),
            ("allreduce:openmpi", 64, 262_144, 1, "allreduce:rabenseifner"),
            ("allreduce:openmpi", 1_024, 8, 1, "allreduce:tree"),
            ("allreduce:openmpi", 1_024, 8, 16, "allreduce:node-recursive-doubling"),
            ("alltoall:openmpi", 1_024, 8, 16, "alltoall:bruck"),
            ("allreduce:openmpi", 1_024, 2_048, 1, "allreduce:recursive-doubling"),
            ("allreduce:openmpi", 4_096, 2_048, 1, "allreduce:ring"),
            ("alltoall:openmpi", 1_024, 511, 1, "alltoall:bruck"),
            ("alltoall:openmpi", 1_024, 512, 1, "alltoall:linear"),
            ("alltoall:openmpi", 100, 262_144, 1, "alltoall:pairwise"),
            ("barrier:openmpi", 32, 1, 1, "barrier:recursive-doubling"),
            ("barrier:openmpi", 100, 1, 1, "barrier:dissemination"),
            ("barrier:openmpi", 300, 1, 1, "barrier:binomial"),
            ("allgather:openmpi", 4_096, 4_096, 1, "allgather:neighbor"),
            ("allgather:openmpi", 63, 65_536, 1, "allgather:ring"),
            ("bcast:openmpi", 2_048, 262_144, 1, "bcast:scatter-doubling"),
            ("reduce:openmpi", 2_048, 262_144, 1, "reduce:binomial"),
            ("reduce-scatter:openmpi", 16, 1 << 20, 1, "reduce-scatter:reduce-first"),
            ("barrier:mpich", 64, 1, 1, "barrier:dissemination"),
            ("barrier:mpich", 64, 1, 8, "barrier:node-dissemination"),
            ("barrier:mpich", 64, 1, 64, "barrier:dissemination"),
            ("allreduce:mpich", 1_000, 8, 1, "allreduce:recursive-doubling"),
            ("allreduce:mpich", 1_000, 4_095, 1, "allreduce:recursive-doubling"),
            ("allreduce:mpich", 1_000, 4_096, 1, "allreduce:rabenseifner"),
            ("allreduce:mpich", 1_024, 4_096, 16, "allreduce:node-rabenseifner"),
            ("bcast:mpich", 64, 12_288, 1, "bcast:binomial"),
            ("bcast:mpich", 64, 12_289, 1, "bcast:scatter-doubling"),
            ("bcast:mpich", 65, 12_289, 1, "bcast:scatter-ring"),
            ("bcast:mpich", 64, 524_287, 4, "bcast:node-scatter-doubling"),
            ("bcast:mpich", 64, 524_289, 4, "bcast:scatter-ring"),
            ("reduce:mpich", 64, 2_049, 1, "reduce:rabenseifner"),
            ("allgather:mpich", 64, 8_191, 1, "allgather:recursive-doubling"),
            ("allgather:mpich", 64, 8_192, 1, "allgather:ring"),
            ("allgather:mpich", 65, 1_260, 1, "allgather:bruck"),
            ("reduce-scatter:mpich", 64, 8_192, 1, "reduce-scatter:pairwise"),
            ("alltoall:mpich", 8, 256, 1, "alltoall:bruck"),
            ("alltoall:mpich", 7, 256, 1, "alltoall:scattered"),
            ("alltoall:mpich", 8, 32_769, 1, "alltoall:pairwise"),
            ("alltoall:cray", 8_192, 64, 1, "alltoall:bruck"),
            ("alltoall:cray", 8_192, 65, 1, "alltoall:scattered=24"),
            ("allreduce:cray", 1_024, 262_145, 64, "allreduce:rabenseifner"),
            ("allreduce:cray", 1_024, 262_144, 64, "allreduce:node-rabenseifner"),
            ("bcast:cray", 1_024, 1 << 20, 64, "bcast:node-knomial"),
        ] {
            let found = chosen(collective, ranks, bytes, per_node);
            assert_eq!(found, algorithm, "{collective} of {bytes} bytes, {ranks} ranks, {per_node} a node");
        }
    }

    /// Every choice is an algorithm of the operation, and not another choice.
    #[test]
    fn every_choice_is_an_algorithm() {
        for library in Library::ALL {
            for &operation in Operation::ALL {
                for ranks in [1, 2, 3, 5, 8, 15, 48, 100, 128, 300, 1_000, 2_048, 4_096, 1 << 20] {
                    for bytes in [0, 1, 8, 100, 5_000, 100_000, 1 << 30] {
                        for per_node in [1, 2, 4] {
                            let chosen = library.choose(operation, ranks, bytes, per_node);
                            assert_eq!(chosen.operation(), Some(operation));
                            assert!(!matches!(chosen, Collective::Chosen(..)));
                            assert!(!chosen.to_string().is_empty());
                        }
                    }
                }
            }
        }
    }
}
