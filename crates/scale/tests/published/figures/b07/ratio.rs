//! One share of time in detours of different lengths.

use super::super::{Figure, Published, Reading, periodic};
use super::allreduce::HARDWARE;
use super::{Asked, MOST, line};

/// A share of time that detours take. The intervals are those at which a detour of 16 us and one of 200 us take it; then the processes
/// of which ten at least are in a long detour at any time, and the two lines' names.
struct NoiseRatio {
    short: &'static str,
    long: &'static str,
    processes: u64,
    rare: &'static str,
    level: &'static str,
    bands: [(f64, f64); 2],
    notes: [&'static str; 2],
}

const RATIOS: [NoiseRatio; 4] = [
    NoiseRatio {
        short: "106666667ns",
        long: "1333333333ns",
        processes: 65_536,
        rare: "0.015 % of noise, 200 us against 16 us",
        level: "0.015 %, 131,072 processes against 65,536",
        bands: [(5.0, 5.6), (1.03, 1.08)],
        notes: [
            "of either length, five are in progress at any time in the whole machine. Many collectives run in the moments without any, and \
             the longer these moments are, the more",
            "twice and four times the paper's machine, because fewer than ten were in progress on that",
        ],
    },
    NoiseRatio {
        short: "20ms",
        long: "250ms",
        processes: 16_384,
        rare: "0.08 % of noise, 200 us against 16 us",
        level: "0.08 %, 32,768 processes against 16,384",
        bands: [(11.8, 12.7), (1.02, 1.07)],
        notes: [""; 2],
    },
    NoiseRatio {
        short: "10666667ns",
        long: "133333333ns",
        processes: 8_192,
        rare: "0.15 % of noise, 200 us against 16 us",
        level: "0.15 %, 16,384 processes against 8,192",
        bands: [(11.9, 12.8), (1.03, 1.07)],
        notes: [""; 2],
    },
    NoiseRatio {
        short: "1600us",
        long: "20ms",
        processes: 1_024,
        rare: "1 % of noise, 200 us against 16 us",
        level: "1 %, 2,048 processes against 1,024",
        bands: [(11.6, 12.4), (1.05, 1.11)],
        notes: [""; 2],
    },
];

pub fn figures() -> Vec<Figure> {
    let figures = |NoiseRatio { short, long, processes, rare, level, bands, notes }| {
        let asked = |interval, detour, ranks| Asked::new(HARDWARE, periodic(interval, detour), ranks, 400);
        let against_short = [asked(long, "200us", MOST), asked(short, "16us", MOST)];
        let against_fewer = [asked(long, "200us", 2 * processes), asked(long, "200us", processes)];
        [
            line(
                ("Fig. 8: long rare ones cost more", rare),
                Published::AtLeast(1.0),
                (Reading::AddedRatio, against_short),
                bands[0],
                notes[0],
            ),
            line(
                ("Fig. 8: levels off when one is always in progress", level),
                Published::AtMost(1.25),
                (Reading::AddedRatio, against_fewer),
                bands[1],
                notes[1],
            ),
        ]
    };
    RATIOS.into_iter().flat_map(figures).collect()
}
