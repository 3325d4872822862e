//! P. Beckman, K. Iskra, K. Yoshii, S. Coghlan, A. Nataraj, *Benchmarking the effects of operating system interference on
//! extreme-scale parallel machines*, 2007: noise injected into Blue Gene/L, collectives back to back.
//!
//! Two processes a node are its virtual node mode, one is coprocessor mode.

use becalm_scale::predict::Question;
use becalm_units::Nanos;

use super::{Figure, Input, Ours, Published, Reading, Source, blue_gene, periodic};

const MOST: u64 = 32_768;
const VIRTUAL_NODE: u64 = 2;
const COPROCESSOR: u64 = 1;

/// Of sections 4 and 5.
const TEXT: &str = "text";

const HARDWARE_BARRIER: &str = "barrier:hardware";
const DOUBLING: &str = "allreduce:recursive-doubling";
const HARDWARE: &str = "allreduce:hardware";
const SCATTERED: &str = "alltoall:scattered";

/// Collectives back to back.
#[derive(Clone)]
struct Asked {
    collective: &'static str,
    source: Source,
    ranks: u64,
    per_node: u64,
    phases: u64,
    synchronized: bool,
}

impl Asked {
    fn new(collective: &'static str, source: Source, ranks: u64, phases: u64) -> Self {
        Self { collective, source, ranks, per_node: VIRTUAL_NODE, phases, synchronized: false }
    }

    fn together(self) -> Self {
        Self { synchronized: true, ..self }
    }

    fn coprocessor(self) -> Self {
        Self { per_node: COPROCESSOR, ..self }
    }

    fn input(self) -> Input {
        let Self { collective, source, ranks, per_node, phases, synchronized } = self;
        let collective = collective.parse().expect("a collective");
        let (network, grain) = (blue_gene(), Nanos::ZERO);
        let question =
            Question { grain, phases, collective, network, bytes: 8, per_node, synchronized, seed: 7, replicas: 1 };
        Input { source, question, ranks }
    }
}

/// A line that is read off one or two inputs.
fn line<const N: usize>(
    (place, what): (&'static str, &'static str),
    published: Published,
    (reading, asked): (Reading, [Asked; N]),
    band: (f64, f64),
    note: &'static str,
) -> Figure {
    let inputs = asked.into_iter().map(Asked::input).collect();
    Figure {
        paper: "Beckman et al. 2007: noise injected into Blue Gene/L",
        place,
        what,
        published,
        ours: Ours::Replayed(reading, inputs),
        band,
        note,
        long: false,
    }
}

fn barrier(interval: &str, detour: &str) -> Asked {
    Asked::new(HARDWARE_BARRIER, periodic(interval, detour), MOST, 120)
}

fn barriers() -> Vec<Figure> {
    // All are in step, so that two take as long as all, and a long run needs no more.
    let in_step = |interval, detour| Asked::new(HARDWARE_BARRIER, periodic(interval, detour), 2, 1_000_000).together();
    vec![
        line(
            ("Fig. 6", "barrier, 200 us every 1 ms"),
            Published::Is(268.0),
            (Reading::Slowdown, [barrier("1ms", "200us")]),
            (259.0, 267.0),
            "the paper does not print the time without noise; that it is 1.5 us is what a factor of 268 at two detours implies. So \
             this line says no more than B4",
        ),
        line(
            (TEXT, "barrier, 200 us every 1 ms, synchronized"),
            Published::AtMost(26.0),
            (Reading::Added, [in_step("1ms", "200us")]),
            (24.0, 26.0),
            "",
        ),
        line(
            ("section 4: almost as without", "barrier, 16 us every 100 ms, synchronized"),
            Published::AtMost(1.0),
            (Reading::Added, [in_step("100ms", "16us")]),
            (0.0, 0.1),
            "",
        ),
        line(
            ("Fig. 6", "barrier, time that 200 us every 1 ms add"),
            Published::Is(2.0),
            (Reading::Detours(200.0), [barrier("1ms", "200us")]),
            (1.93, 2.0),
            "",
        ),
        line(
            ("text: linear in the detour", "the same with 100 us"),
            Published::Is(2.0),
            (Reading::Detours(100.0), [barrier("1ms", "100us")]),
            (1.88, 1.96),
            "",
        ),
        line(
            ("text: linear in the detour", "the same with 50 us"),
            Published::Is(2.0),
            (Reading::Detours(50.0), [barrier("1ms", "50us")]),
            (1.74, 1.85),
            "a second detour must begin about when the first ends, and among 16,384 nodes the nearest such pair misses two whole ones by \
             9.8 us on average, whatever their length; with 16 times the nodes it is 1.97 detours",
        ),
        line(
            ("text: linear in the detour", "the same with 16 us"),
            Published::Is(2.0),
            (Reading::Detours(16.0), [barrier("1ms", "16us")]),
            (1.36, 1.44),
            "as before: the same 9.8 us, of two detours that take 32",
        ),
        line(
            ("between the two intervals beside it", "barrier, time that 200 us every 10 ms add"),
            Published::Between(1.0, 2.0),
            (Reading::Detours(200.0), [barrier("10ms", "200us")]),
            (1.5, 1.6),
            "",
        ),
        line(
            ("Fig. 6", "barrier, time that 200 us every 100 ms add"),
            Published::Is(1.0),
            (Reading::Detours(200.0), [barrier("100ms", "200us")]),
            (0.97, 1.03),
            "",
        ),
        line(
            ("text: linear in the detour", "the same with 100 us"),
            Published::Is(1.0),
            (Reading::Detours(100.0), [barrier("100ms", "100us")]),
            (0.94, 1.0),
            "",
        ),
        line(
            ("text: linear in the detour", "the same with 50 us"),
            Published::Is(1.0),
            (Reading::Detours(50.0), [barrier("100ms", "50us")]),
            (0.91, 0.98),
            "",
        ),
        line(
            ("section 7: hardly to be told, no interval named", "barrier, 16 us every 100 ms"),
            Published::AtMost(10.0),
            (Reading::Added, [barrier("100ms", "16us")]),
            (820.0, 870.0),
            "12.7 us more for a barrier of 1.5 us. No machine could be without: 32,768 processes with a detour of 16 us every 100 ms have five \
             under way at any time. Beside the 400 us of longer detours it is hardly to be told",
        ),
        line(
            (TEXT, "barrier in coprocessor mode, 16,384 processes, time that 200 us every 1 ms add"),
            Published::Unknown,
            (
                Reading::Detours(200.0),
                [Asked::new(HARDWARE_BARRIER, periodic("1ms", "200us"), 16_384, 120).coprocessor()],
            ),
            (0.98, 1.03),
            "nobody of a node waits for a second process before it tells the network. Here the second CPU of a node does not take \
             over its messages, as it did there",
        ),
    ]
}

fn allreduces() -> Vec<Figure> {
    let heavy = |collective| Asked::new(collective, periodic("1ms", "200us"), MOST, 60);
    let short = |collective, ranks| Asked::new(collective, periodic("1ms", "16us"), ranks, 60);
    let in_step = |detour| Asked::new(DOUBLING, periodic("1ms", detour), 1_024, 5_000).together();
    let fig7 = "Fig. 7, at every size";
    vec![
        line(
            ("Fig. 6", "allreduce, 200 us every 1 ms"),
            Published::AtMost(18.0),
            (Reading::Slowdown, [heavy(DOUBLING)]),
            (13.4, 14.3),
            "",
        ),
        line(
            ("Fig. 6", "allreduce, time that 200 us every 1 ms add"),
            Published::AtLeast(1_000.0),
            (Reading::AddedMicros, [heavy(DOUBLING)]),
            (1_035.0, 1_100.0),
            "",
        ),
        line(
            ("Fig. 6", "the same, by the network's own reduction"),
            Published::AtLeast(1_000.0),
            (Reading::AddedMicros, [heavy(HARDWARE)]),
            (383.0, 407.0),
            "the network's own reduction waits for a detour before it, and for another behind it, and no further one: so the \
             allreduce of this figure went by messages",
        ),
        line(
            ("text: about as without", "allreduce, 200 us every 1 ms, synchronized, 1,024 processes"),
            Published::AtMost(10.0),
            (Reading::Added, [in_step("200us")]),
            (24.0, 26.0),
            "a fifth of the time of all processes is taken, so that none can lose less than a quarter; beside a factor of 18 it is \
             hardly to be told, and by the same measure the paper gives 26 % for the barrier",
        ),
        line(
            (fig7, "allreduce, time that 16 us every 1 ms add, 1,024 processes"),
            Published::About(35.0),
            (Reading::AddedMicros, [short(DOUBLING, 1_024)]),
            (21.0, 23.5),
            "it grows with the rounds, which are the logarithm of the processes",
        ),
        line(
            (fig7, "the same, 4,096 processes"),
            Published::About(35.0),
            (Reading::AddedMicros, [short(DOUBLING, 4_096)]),
            (26.5, 29.0),
            "",
        ),
        line(
            (fig7, "the same, 32,768 processes"),
            Published::About(35.0),
            (Reading::AddedMicros, [short(DOUBLING, MOST)]),
            (36.0, 39.0),
            "",
        ),
        line(
            (fig7, "the same by the network's own reduction, 1,024 processes"),
            Published::About(35.0),
            (Reading::AddedMicros, [short(HARDWARE, 1_024)]),
            (15.9, 17.0),
            "a detour of 16 us before it, and seldom one behind it: by messages it is nearer",
        ),
        line(
            (fig7, "the same by the network's own reduction, 32,768 processes"),
            Published::About(35.0),
            (Reading::AddedMicros, [short(HARDWARE, MOST)]),
            (21.5, 23.2),
            "as before, and the second one more often",
        ),
        line(
            ("Fig. 7: none", "allreduce, 16 us every 1 ms, synchronized, 1,024 processes"),
            Published::AtMost(10.0),
            (Reading::Added, [in_step("16us")]),
            (1.2, 1.6),
            "",
        ),
        line(
            (TEXT, "allreduce in coprocessor mode, 16,384 processes, 200 us every 1 ms"),
            Published::Unknown,
            (Reading::Slowdown, [Asked::new(DOUBLING, periodic("1ms", "200us"), 16_384, 60).coprocessor()]),
            (13.4, 14.3),
            "",
        ),
    ]
}

fn alltoall(detour: &str, ranks: u64) -> Asked {
    Asked::new(SCATTERED, periodic("1ms", detour), ranks, (8_192 / ranks).max(1))
}

fn alltoalls() -> Vec<Figure> {
    let large = || [alltoall("200us", MOST)];
    let long = |line: Figure| Figure { long: true, ..line };
    let window = "the algorithm is not in the paper. These are windows of 32 messages, MPICH's, of which \
                  that machine's MPI was made; with 24 it would be 173 %, but 67 % with 32,768 processes";
    vec![
        line(
            ("Fig. 6", "alltoall, 200 us every 1 ms, 1,024 processes"),
            Published::Is(173.0),
            (Reading::Added, [alltoall("200us", 1_024)]),
            (116.0, 128.0),
            window,
        ),
        line(
            ("text: between the two", "the same, 8,192 processes"),
            Published::Between(34.0, 173.0),
            (Reading::Added, [alltoall("200us", 8_192)]),
            (68.0, 76.0),
            "",
        ),
        long(line(
            ("Fig. 6", "the same, 32,768 processes"),
            Published::Is(34.0),
            (Reading::Added, large()),
            (38.0, 41.0),
            "with windows of 24 messages it would be 67 %, where 1,024 processes come to the published 173 %",
        )),
        long(line(
            (TEXT, "the time that it adds there"),
            Published::Is(53.0),
            (Reading::AddedMillis, large()),
            (81.0, 88.0),
            "from the time without noise, which is too long, and from the share",
        )),
        long(line(
            ("text: 53 ms are 34 %", "its time without noise"),
            Published::Is(156.0),
            (Reading::QuietMillis, large()),
            (213.0, 217.0),
            "a message of 8 bytes with its header is assumed to take two packets of 32 bytes on the torus, whose links' speed is \
             published: 6.6 us a message and process, where 4.8 follow from the paper",
        )),
        line(
            ("text: linear in the processes", "its time without noise, 8,192 processes against 1,024"),
            Published::Is(8.0),
            (Reading::QuietRatio, [alltoall("200us", 8_192), alltoall("200us", 1_024)]),
            (11.1, 11.5),
            "a torus of twice the edge has half as much of its middle links for each process, so that its time grows as the processes \
             to the power of 4/3 once these are full",
        ),
        line(
            ("text: superlinear", "time that 200 us every 1 ms add, against 100 us, 1,024 processes"),
            Published::AtLeast(2.0),
            (Reading::AddedRatio, [alltoall("200us", 1_024), alltoall("100us", 1_024)]),
            (3.4, 3.9),
            "",
        ),
        line(
            (TEXT, "alltoall in coprocessor mode, 200 us every 1 ms, 1,024 processes"),
            Published::Unknown,
            (Reading::Added, [alltoall("200us", 1_024).coprocessor()]),
            (138.0, 153.0),
            "",
        ),
    ]
}

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
            "five are under way at any time in the whole machine, of either length; in the moments without any many collectives come to \
             pass, the more of them the longer these moments are",
            "twice and four times the paper's machine, as on that not ten were under way",
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

fn ratios() -> Vec<Figure> {
    let of_ratio = |NoiseRatio { short, long, processes, rare, level, bands, notes }| {
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
                ("Fig. 8: levels off where one is always under way", level),
                Published::AtMost(1.25),
                (Reading::AddedRatio, against_fewer),
                bands[1],
                notes[1],
            ),
        ]
    };
    RATIOS.into_iter().flat_map(of_ratio).collect()
}

pub fn figures() -> Vec<Figure> {
    [barriers(), allreduces(), alltoalls(), ratios()].concat()
}
