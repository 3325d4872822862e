//! Allreduces of 8 bytes, by messages and by the network's own reduction.

use super::super::{Figure, Published, Reading, periodic};
use super::{Asked, MOST, line};

const DOUBLING: &str = "allreduce:recursive-doubling";
pub const HARDWARE: &str = "allreduce:hardware";

/// The place of what the figures of allreduces do not show.
const MESSAGES: &str = "section 4: Fig. 6 and 7 show the reduction by messages";

/// Each phase has a detour of every process in it or not, so that the most processes need the fewest phases for a mean.
const fn phases(ranks: u64) -> u64 {
    if ranks == MOST { 16 } else { 60 }
}

/// All processes have their detours together.
fn in_step(detour: &str) -> Asked {
    Asked::new(DOUBLING, periodic("1ms", detour), 1_024, 1_000).together()
}

/// Detours of 200 us every 1 ms.
fn long_detours() -> Vec<Figure> {
    let heavy = |collective| Asked::new(collective, periodic("1ms", "200us"), MOST, phases(MOST));
    let coprocessor = Asked::new(DOUBLING, periodic("1ms", "200us"), 16_384, 60).coprocessor();
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
            (MESSAGES, "allreduce by the network's own reduction, time that 200 us every 1 ms add"),
            Published::Unknown,
            (Reading::AddedMicros, [heavy(HARDWARE)]),
            (383.0, 407.0),
            "the network's own reduction waits for a detour before it and for another after it, and for no further one",
        ),
        line(
            ("section 4: similar to the barrier, B2", "allreduce, 200 us every 1 ms, synchronized, 1,024 processes"),
            Published::AtMost(26.0),
            (Reading::Added, [in_step("200us")]),
            (24.0, 26.0),
            "a fifth of the time of all processes is taken, which adds a quarter",
        ),
        line(
            ("section 4: similar in either mode", "allreduce in coprocessor mode, 16,384 processes, 200 us every 1 ms"),
            Published::AtMost(18.0),
            (Reading::Slowdown, [coprocessor]),
            (13.4, 14.3),
            "",
        ),
    ]
}

/// Detours of 16 us every 1 ms.
fn short_detours() -> Vec<Figure> {
    let short = |collective, ranks| Asked::new(collective, periodic("1ms", "16us"), ranks, phases(ranks));
    let fig7 = "Fig. 7, at every size";
    vec![
        line(
            (fig7, "allreduce, time that 16 us every 1 ms add, 1,024 processes"),
            Published::About(35.0),
            (Reading::AddedMicros, [short(DOUBLING, 1_024)]),
            (21.0, 23.5),
            "it grows with the rounds, which are the logarithm of the processes",
        ),
        line(
            (fig7, "allreduce, time that 16 us every 1 ms add, 4,096 processes"),
            Published::About(35.0),
            (Reading::AddedMicros, [short(DOUBLING, 4_096)]),
            (26.5, 29.0),
            "",
        ),
        line(
            (fig7, "allreduce, time that 16 us every 1 ms add, 32,768 processes"),
            Published::About(35.0),
            (Reading::AddedMicros, [short(DOUBLING, MOST)]),
            (36.0, 39.0),
            "",
        ),
        line(
            (MESSAGES, "allreduce by the network's own reduction, time that 16 us every 1 ms add, 1,024 processes"),
            Published::Unknown,
            (Reading::AddedMicros, [short(HARDWARE, 1_024)]),
            (15.9, 17.0),
            "a detour of 16 us before it, and seldom one after it",
        ),
        line(
            (MESSAGES, "allreduce by the network's own reduction, time that 16 us every 1 ms add, 32,768 processes"),
            Published::Unknown,
            (Reading::AddedMicros, [short(HARDWARE, MOST)]),
            (21.5, 23.2),
            "",
        ),
        line(
            ("Fig. 7: very little", "allreduce, 16 us every 1 ms, synchronized, 1,024 processes"),
            Published::Unknown,
            (Reading::Added, [in_step("16us")]),
            (1.2, 1.6),
            "",
        ),
    ]
}

pub fn figures() -> Vec<Figure> {
    [long_detours(), short_detours()].concat()
}
