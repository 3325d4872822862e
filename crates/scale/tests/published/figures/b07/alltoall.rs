//! Alltoalls of 8 bytes between all processes.

use super::super::{Figure, Published, Reading, periodic};
use super::{Asked, MOST, TEXT, line, long};

const SCATTERED: &str = "alltoall:scattered";

fn alltoall(detour: &str, ranks: u64) -> Asked {
    Asked::new(SCATTERED, periodic("1ms", detour), ranks, (8_192 / ranks).max(1))
}

pub fn figures() -> Vec<Figure> {
    let large = || [alltoall("200us", MOST)];
    let window = "the algorithm is not in the paper. These are windows of 32 messages, those of MPICH, the base \
                  of that machine's MPI; with 24 it would be 205 %";
    vec![
        line(
            ("Fig. 6", "alltoall, 200 us every 1 ms, 1,024 processes"),
            Published::Is(173.0),
            (Reading::Added, [alltoall("200us", 1_024)]),
            (138.0, 153.0),
            window,
        ),
        line(
            ("section 4: between the two", "alltoall, 200 us every 1 ms, 4,096 processes"),
            Published::Between(34.0, 173.0),
            (Reading::Added, [alltoall("200us", 4_096)]),
            (139.0, 155.0),
            "",
        ),
        long(line(
            ("Fig. 6", "alltoall, 200 us every 1 ms, 32,768 processes"),
            Published::Is(34.0),
            (Reading::Added, large()),
            (64.0, 72.0),
            "it falls from 8,192 processes on, because the links that two processes share then take longer than the CPU of each",
        )),
        long(line(
            (TEXT, "alltoall, time that 200 us every 1 ms add, 32,768 processes"),
            Published::Is(53.0),
            (Reading::AddedMillis, large()),
            (98.0, 109.0),
            "from the share",
        )),
        long(line(
            ("section 4: 53 ms are 34 %", "alltoall, time without noise, 32,768 processes"),
            Published::Is(156.0),
            (Reading::QuietMillis, large()),
            (149.0, 154.0),
            "a message of 8 bytes with its header is assumed to take two packets of 32 bytes on the torus, whose links' speed is \
             published",
        )),
        line(
            ("section 4: linear in the processes", "alltoall, time without noise, 4,096 processes against 1,024"),
            Published::Is(4.0),
            (Reading::QuietRatio, [alltoall("200us", 4_096), alltoall("200us", 1_024)]),
            (3.95, 4.1),
            "up to 8,192 processes, the CPU of each takes longer than its links",
        ),
        line(
            ("section 4: superlinear", "alltoall, time that 200 us every 1 ms add, against 100 us, 1,024 processes"),
            Published::AtLeast(2.0),
            (Reading::AddedRatio, [alltoall("200us", 1_024), alltoall("100us", 1_024)]),
            (3.1, 3.45),
            "",
        ),
        line(
            ("section 4: similar in either mode", "alltoall in coprocessor mode, 200 us every 1 ms, 1,024 processes"),
            Published::About(173.0),
            (Reading::Added, [alltoall("200us", 1_024).coprocessor()]),
            (138.0, 153.0),
            "",
        ),
    ]
}

/// All processes have their detours together.
pub fn synchronized() -> Figure {
    line(
        ("section 4: less than the share of the CPU", "alltoall, 200 us every 1 ms, synchronized, 1,024 processes"),
        Published::AtMost(20.0),
        (Reading::Added, [alltoall("200us", 1_024).together()]),
        (25.0, 27.0),
        "the model leaves links idle while noise has all CPUs. The machine's links were saturated, and its processes had time to spare",
    )
}
