//! Alltoalls of 8 bytes between all processes.

use super::super::{Figure, Published, Reading, periodic};
use super::{Asked, MOST, TEXT, line};

const SCATTERED: &str = "alltoall:scattered";

fn alltoall(detour: &str, ranks: u64) -> Asked {
    Asked::new(SCATTERED, periodic("1ms", detour), ranks, (8_192 / ranks).max(1))
}

pub fn figures() -> Vec<Figure> {
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
