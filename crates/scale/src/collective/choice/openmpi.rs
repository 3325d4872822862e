//! The choices of Open MPI 5.0.10: rows with an upper limit of ranks, each with upper limits of bytes and the algorithm, by its number in the
//! parameter `coll_tuned_*_algorithm`. Bytes are those that one rank passes to one call.

use super::super::{Allgather, Allreduce, Alltoall, Barrier, Bcast, Collective, Operation, Reduce, ReduceScatter};

/// An upper limit of ranks (exclusive), and the algorithms with upper limits of bytes (exclusive).
type Row = (u64, &'static [(u64, u8)]);

const ANY: u64 = u64::MAX;

const ALLREDUCE: &[Row] = &[
    (4, &[(8, 4), (4_096, 3), (8_192, 4), (16_384, 3), (65_536, 4), (262_144, 5), (ANY, 6)]),
    (8, &[(16, 4), (8_192, 3), (ANY, 6)]),
    (16, &[(8_192, 3), (ANY, 6)]),
    (32, &[(64, 5), (4_096, 3), (ANY, 6)]),
    (64, &[(128, 5), (ANY, 6)]),
    (128, &[(262_144, 3), (ANY, 6)]),
    (256, &[(131_072, 2), (262_144, 3), (ANY, 6)]),
    (512, &[(4_096, 2), (ANY, 6)]),
    (2_048, &[(2_048, 2), (16_384, 3), (ANY, 6)]),
    (4_096, &[(2_048, 2), (4_096, 5), (16_384, 3), (ANY, 6)]),
    (ANY, &[(2_048, 2), (16_384, 5), (32_768, 3), (ANY, 6)]),
];

const ALLTOALL: &[Row] = &[
    (3, &[(2, 2), (4, 5), (16, 2), (64, 5), (256, 2), (4_096, 5), (32_768, 2), (262_144, 4), (1_048_576, 5), (ANY, 2)]),
    (8, &[(8_192, 4), (16_384, 1), (65_536, 4), (524_288, 1), (1_048_576, 2), (ANY, 1)]),
    (16, &[(262_144, 4), (ANY, 1)]),
    (32, &[(4, 4), (512, 3), (8_192, 4), (32_768, 1), (262_144, 4), (524_288, 1), (ANY, 4)]),
    (64, &[(512, 3), (524_288, 1), (ANY, 4)]),
    (128, &[(1_024, 3), (2_048, 1), (4_096, 4), (262_144, 1), (ANY, 2)]),
    (256, &[(1_024, 3), (2_048, 4), (262_144, 1), (ANY, 2)]),
    (512, &[(1_024, 3), (8_192, 4), (32_768, 1), (ANY, 2)]),
    (1_024, &[(512, 3), (8_192, 4), (16_384, 1), (131_072, 4), (262_144, 1), (ANY, 2)]),
    (2_048, &[(512, 3), (1_024, 4), (2_048, 1), (16_384, 4), (262_144, 1), (ANY, 4)]),
    (4_096, &[(1_024, 3), (4_096, 4), (8_192, 1), (131_072, 4), (ANY, 1)]),
    (ANY, &[(2_048, 3), (8_192, 4), (16_384, 1), (32_768, 4), (65_536, 1), (ANY, 4)]),
];

const BARRIER: &[Row] = &[
    (4, &[(ANY, 3)]),
    (8, &[(ANY, 1)]),
    (64, &[(ANY, 3)]),
    (256, &[(ANY, 4)]),
    (512, &[(ANY, 6)]),
    (1_024, &[(ANY, 4)]),
    (4_096, &[(ANY, 6)]),
    (ANY, &[(ANY, 4)]),
];

const BCAST: &[Row] = &[
    (
        4,
        &[
            (32, 3),
            (256, 5),
            (512, 3),
            (1_024, 7),
            (32_768, 1),
            (131_072, 5),
            (262_144, 2),
            (524_288, 1),
            (1_048_576, 6),
            (ANY, 5),
        ],
    ),
    (8, &[(64, 5), (128, 6), (2_048, 5), (8_192, 6), (1_048_576, 1), (ANY, 2)]),
    (16, &[(8, 7), (64, 5), (4_096, 7), (16_384, 5), (32_768, 6), (ANY, 1)]),
    (32, &[(4_096, 7), (1_048_576, 6), (ANY, 8)]),
    (64, &[(2_048, 6), (ANY, 7)]),
    (128, &[(ANY, 7)]),
    (256, &[(2, 6), (16_384, 5), (32_768, 1), (65_536, 5), (ANY, 7)]),
    (1_024, &[(16_384, 7), (32_768, 4), (ANY, 7)]),
    (2_048, &[(524_288, 7), (ANY, 8)]),
    (4_096, &[(262_144, 7), (ANY, 8)]),
    (ANY, &[(8_192, 7), (16_384, 5), (262_144, 7), (ANY, 8)]),
];

const REDUCE: &[Row] = &[
    (4, &[(8, 7), (16, 4), (32, 3), (262_144, 1), (524_288, 3), (1_048_576, 2), (ANY, 3)]),
    (8, &[(4_096, 4), (65_536, 2), (262_144, 5), (524_288, 1), (1_048_576, 5), (ANY, 1)]),
    (16, &[(8_192, 4), (ANY, 5)]),
    (32, &[(4_096, 4), (ANY, 5)]),
    (256, &[(ANY, 5)]),
    (512, &[(8_192, 5), (16_384, 6), (ANY, 5)]),
    (2_048, &[(ANY, 5)]),
    (4_096, &[(512, 5), (1_024, 6), (8_192, 5), (16_384, 6), (ANY, 5)]),
    (ANY, &[(16, 5), (32, 6), (1_024, 5), (2_048, 6), (8_192, 5), (16_384, 6), (ANY, 5)]),
];

const REDUCE_SCATTER: &[Row] = &[
    (4, &[(4, 2), (8, 4), (16, 3), (128, 4), (256, 3), (4_096, 4), (8_192, 3), (131_072, 4), (ANY, 1)]),
    (8, &[(8, 3), (32, 2), (256, 4), (8_192, 3), (16_384, 4), (1_048_576, 3), (ANY, 1)]),
    (16, &[(4, 1), (32, 3), (128, 4), (524_288, 3), (4_194_304, 1), (ANY, 4)]),
    (32, &[(32, 1), (524_288, 3), (2_097_152, 1), (4_194_304, 3), (ANY, 4)]),
    (ANY, &[(4, 3), (16, 1), (65_536, 4), (262_144, 1), (ANY, 4)]),
];

const ALLGATHER: &[Row] = &[
    (3, &[(ANY, 6)]),
    (32, &[(ANY, 3)]),
    (64, &[(1_024, 3), (65_536, 5), (ANY, 4)]),
    (128, &[(512, 3), (65_536, 5), (ANY, 4)]),
    (256, &[(512, 3), (131_072, 5), (524_288, 4), (1_048_576, 5), (ANY, 4)]),
    (512, &[(32, 3), (128, 2), (1_024, 3), (131_072, 5), (524_288, 4), (1_048_576, 5), (ANY, 4)]),
    (1_024, &[(64, 3), (256, 2), (2_048, 3), (ANY, 5)]),
    (2_048, &[(4, 3), (8, 2), (16, 3), (32, 2), (256, 3), (512, 2), (4_096, 3), (ANY, 5)]),
    (4_096, &[(32, 2), (128, 3), (512, 2), (4_096, 3), (ANY, 5)]),
    (ANY, &[(2, 3), (8, 2), (16, 3), (512, 2), (4_096, 3), (ANY, 5)]),
];

fn number(table: &[Row], ranks: u64, bytes: u64) -> u8 {
    let rows = table.iter().find(|(below, _)| ranks < *below || *below == ANY).map_or(&[][..], |(_, row)| row);
    rows.iter().find(|(below, _)| bytes < *below || *below == ANY).map_or(0, |(_, number)| *number)
}

/// The algorithm for this number of ranks and bytes. Segments are not modeled: segmented messages are sent whole.
pub(super) fn choose(operation: Operation, ranks: u64, bytes: u64) -> Collective {
    let number = |table: &[Row]| number(table, ranks, bytes);
    match operation {
        // A linear barrier (1, for 4 to 7 ranks) and a tree barrier (6) are modeled by a binomial tree.
        Operation::Barrier => Collective::Barrier(match number(BARRIER) {
            3 => Barrier::RecursiveDoubling,
            4 => Barrier::Dissemination,
            _ => Barrier::Binomial,
        }),
        // Linear, chain, pipeline and binary trees (1 to 5, most of them for fewer than 16 ranks) are modeled by a binomial tree.
        Operation::Bcast => Collective::Bcast(match number(BCAST) {
            7 => Bcast::Knomial,
            8 => Bcast::ScatterDoubling,
            9 => Bcast::ScatterRing,
            _ => Bcast::Binomial,
        }),
        // The same, plus its in-order binary tree (6).
        Operation::Reduce => Collective::Reduce(match number(REDUCE) {
            7 => Reduce::Rabenseifner,
            _ => Reduce::Binomial,
        }),
        // A reduction followed by a broadcast (2) is modeled by binomial trees.
        Operation::Allreduce => Collective::Allreduce(match number(ALLREDUCE) {
            3 => Allreduce::RecursiveDoubling,
            4 | 5 => Allreduce::Ring,
            6 => Allreduce::Rabenseifner,
            _ => Allreduce::Tree,
        }),
        // Two ranks (6) exchange their data, like recursive doubling.
        Operation::Allgather => Collective::Allgather(match number(ALLGATHER) {
            2 => Allgather::Bruck,
            4 => Allgather::Ring,
            5 => Allgather::Neighbor,
            _ => Allgather::RecursiveDoubling,
        }),
        // A butterfly (4) is recursive halving for any number of ranks, and recursive doubling (2) is for at most 7 ranks.
        Operation::ReduceScatter => Collective::ReduceScatter(match number(REDUCE_SCATTER) {
            1 => ReduceScatter::ReduceFirst,
            _ => ReduceScatter::RecursiveHalving,
        }),
        // Linear with synchronization (4) has no limit of messages by default, and is linear (1).
        Operation::Alltoall => Collective::Alltoall(match number(ALLTOALL) {
            2 | 5 => Alltoall::Pairwise,
            3 => Alltoall::Bruck,
            _ => Alltoall::Linear,
        }),
    }
}
