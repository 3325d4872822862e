//! Barriers of Blue Gene/L's global interrupt network, after those of each node's processes.

use super::super::{Figure, Published, Reading, periodic};
use super::{Asked, MOST, TEXT, line};

const HARDWARE_BARRIER: &str = "barrier:hardware";

fn barrier(interval: &str, detour: &str) -> Asked {
    Asked::new(HARDWARE_BARRIER, periodic(interval, detour), MOST, 120)
}

/// What the paper gives a factor or a share of.
fn factors() -> Vec<Figure> {
    // All are in step, so that two take as long as all, and a long run needs no more.
    let in_step = |interval, detour| Asked::new(HARDWARE_BARRIER, periodic(interval, detour), 2, 1_000_000).together();
    vec![
        line(
            ("Fig. 6", "barrier, 200 us every 1 ms"),
            Published::ByConstruction(268.0),
            (Reading::Slowdown, [barrier("1ms", "200us")]),
            (259.0, 267.0),
            "by construction: the paper does not print the time without noise, and the 1.5 us of the model are what a factor of 268 at \
             two detours implies. The result is B4",
        ),
        line(
            (TEXT, "barrier, 200 us every 1 ms, synchronized"),
            Published::AtMost(26.0),
            (Reading::Added, [in_step("1ms", "200us")]),
            (24.0, 26.0),
            "",
        ),
        line(
            ("section 4: almost identical to none", "barrier, 16 us every 100 ms, synchronized"),
            Published::Unknown,
            (Reading::Added, [in_step("100ms", "16us")]),
            (0.0, 0.1),
            "",
        ),
    ]
}

/// Detours every 1 ms, of which two are added.
fn every_millisecond() -> Vec<Figure> {
    vec![
        line(
            ("Fig. 6", "barrier, time that 200 us every 1 ms add"),
            Published::Is(2.0),
            (Reading::Detours(200.0), [barrier("1ms", "200us")]),
            (1.93, 2.0),
            "",
        ),
        line(
            ("section 4: linear in the detour", "barrier, time that 100 us every 1 ms add"),
            Published::Is(2.0),
            (Reading::Detours(100.0), [barrier("1ms", "100us")]),
            (1.88, 1.96),
            "",
        ),
        line(
            ("section 4: linear in the detour", "barrier, time that 50 us every 1 ms add"),
            Published::Is(2.0),
            (Reading::Detours(50.0), [barrier("1ms", "50us")]),
            (1.74, 1.85),
            "a second detour must start about when the first ends, and among 16,384 nodes the nearest such pair misses two whole ones by \
             9.8 us on average, whatever their length; with 16 times the nodes it is 1.97 detours",
        ),
        line(
            ("section 4: linear in the detour", "barrier, time that 16 us every 1 ms add"),
            Published::Is(2.0),
            (Reading::Detours(16.0), [barrier("1ms", "16us")]),
            (1.36, 1.44),
            "as before: the same 9.8 us, of two detours that take 32",
        ),
    ]
}

/// Rarer detours, of which one is added, and coprocessor mode.
fn rarer() -> Vec<Figure> {
    vec![
        line(
            ("section 4: between the two other intervals", "barrier, time that 200 us every 10 ms add"),
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
            ("section 4: linear in the detour", "barrier, time that 100 us every 100 ms add"),
            Published::Is(1.0),
            (Reading::Detours(100.0), [barrier("100ms", "100us")]),
            (0.94, 1.0),
            "",
        ),
        line(
            ("section 4: linear in the detour", "barrier, time that 50 us every 100 ms add"),
            Published::Is(1.0),
            (Reading::Detours(50.0), [barrier("100ms", "50us")]),
            (0.91, 0.98),
            "",
        ),
        line(
            ("section 7: hardly distinguishable from none, no interval given", "barrier, 16 us every 100 ms"),
            Published::Unknown,
            (Reading::Added, [barrier("100ms", "16us")]),
            (820.0, 870.0),
            "12.7 us more for a barrier of 1.5 us: 32,768 processes with a detour of 16 us every 100 ms have five in progress at any time. On \
             an axis that reaches the 400 us of longer detours, 12.7 us are hard to see",
        ),
        line(
            (
                "section 4: similar in either mode",
                "barrier in coprocessor mode, 16,384 processes, time that 200 us every 1 ms add",
            ),
            Published::About(2.0),
            (
                Reading::Detours(200.0),
                [Asked::new(HARDWARE_BARRIER, periodic("1ms", "200us"), 16_384, 120).coprocessor()],
            ),
            (0.98, 1.03),
            "in the model a node with one process has no second process to wait for before it signals the network. The paper gives no \
             number for this mode. It offloads some services of message passing to the second CPU, and says that the main CPU still does \
             most of the communication",
        ),
    ]
}

pub fn figures() -> Vec<Figure> {
    [factors(), every_millisecond(), rarer()].concat()
}
