//! Named networks, with the sources of their figures. Figures without a source are called assumed.

use becalm_units::Nanos;

use super::{Links, MessageCosts, Network};

/// Name, source, parameters.
pub(super) const PRESETS: [(&str, &str, Network); 6] = [
    (
        "bgl",
        "Blue Gene/L: torus links of 175 MB/s, packets in steps of 32 bytes (Adiga et al., IBM J. R&D 49, 2005), so G = 5.7 ns; \
         of these a message of a few bytes is assumed to take two, with its header; hardware barrier of \
         1.5 us in all for two processes a node (which the factor of 268 of Beckman et al. 2007 implies); each of three CPU steps in it is assumed to take \
         200 ns; L = 2.5 us and o = 1.5 us are assumed: they are LogGOPSim's defaults; no gap g is assumed, since what limits a rank's \
         messages is its CPU, and a node's are limited by its links; messages within a node cost the same",
        Network { links: Links::Torus, packet: 64, ..from_nanos(2_500, 1_500, 0, 5_700, 900, 200) },
    ),
    (
        "infiniband",
        "InfiniBand HDR, ConnectX-6: 200 Gb/s, so G = 0.04 ns; 215 million messages a second, so g = 5 ns; latency below \
         600 ns (NVIDIA, ConnectX-6 user manual, introduction), taken as L = 0.6 us; o = 0.2 us is assumed, with which an MPI \
         message of a few bytes takes 1 us; within a node Open MPI's shared memory: 0.28 us for 8 bytes (ofiwg/libfabric, issue \
         6480), 14.3 million messages a second and 23.4 GB/s (pull request 8221), so ng = 70 ns and nG = 0.043 ns; that all of \
         ng is no is assumed",
        in_shared_memory(from_nanos(600, 200, 5, 40, 600, 200)),
    ),
    (
        "ndr",
        "InfiniBand NDR, ConnectX-7: 400 Gb/s (NVIDIA, ConnectX-7 user manual, introduction), so G = 0.02 ns; all else is assumed to \
         be as for HDR",
        in_shared_memory(from_nanos(600, 200, 5, 20, 600, 200)),
    ),
    (
        "slingshot",
        "Slingshot: 200 Gb/s, so G = 0.04 ns; switches of about 350 ns, at most three hops between them (De Sensi et al., An \
         In-Depth Analysis of the Slingshot Interconnect, SC20); a path through three switches and 250 ns of cables and \
         adapters is assumed, so L = 1.3 us; o = 0.3 us and g = 10 ns are assumed; within a node as for infiniband",
        in_shared_memory(from_nanos(1_300, 300, 10, 40, 1_300, 300)),
    ),
    (
        "slingshot11",
        "Slingshot 11 as measured on CSCS Alps: L = 3.7 us, o = 0.2 us, g = 5 ns, G = 0.04 ns (ATLAHS, SC25: \
         spcl/atlahs, scripts/run_case_studies.py at 7e180ed); messages above 16 KiB are asked for first (FI_CXI_RDZV_THRESHOLD as \
         Cray MPICH 8.1.17 shows it on Crusher); the hardware barrier is assumed; within a node as for infiniband",
        Network { eager_limit: Some(16_384), ..in_shared_memory(from_nanos(3_700, 200, 5, 40, 3_700, 200)) },
    ),
    (
        "ethernet",
        "25 Gb/s Ethernet (IEEE 802.3by), so G = 0.32 ns; all else is assumed, for TCP through the kernel without busy \
         polling: 15 us from program to program, as L = 5 us and o = 5 us; g = 1 us, a million small messages a second of one \
         thread; within a node as for infiniband",
        in_shared_memory(from_nanos(5_000, 5_000, 1_000, 320, 5_000, 5_000)),
    ),
];

const fn from_nanos(latency: i64, overhead: i64, gap: i64, byte_gap_ps: i64, wire: i64, step: i64) -> Network {
    let [latency, overhead, gap] = [Nanos::new(latency), Nanos::new(overhead), Nanos::new(gap)];
    let (barrier_wire, barrier_step) = (Nanos::new(wire), Nanos::new(step));
    Network { barrier_wire, barrier_step, ..Network::plain(latency, overhead, gap, byte_gap_ps) }
}

/// Adds the costs of messages in memory shared by a node's ranks: 0.28 us = L + 2 o for a small one.
const fn in_shared_memory(network: Network) -> Network {
    let within = MessageCosts {
        latency: Nanos::new(140),
        overhead: Nanos::new(70),
        gap: Nanos::new(70),
        byte_gap_ps: 43,
        byte_overhead_ps: 0,
    };
    Network { within: Some(within), ..network }
}
