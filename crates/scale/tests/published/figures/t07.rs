//! D. Tsafrir, *The context-switch overhead inflicted by hardware interrupts (and the enigma of do-nothing loops)*, ExpCS 2007:
//! section 3, the noise law. Its table of what a tick costs is held by the tests of `becalm-analyze`.

use becalm_scale::law::Law;
use becalm_units::Nanos;

use super::{Figure, Input, Ours, Published, Reading, Unit, ideal, periodic};

const PAPER: &str = "Tsafrir 2007: the noise law";

/// A delay of 1 ms once every 10 s.
const RATE_HZ: f64 = 0.1;
const DELAY: Nanos = Nanos::from_millis(1);

fn law(grain: Nanos) -> Law {
    Law::from_rate(grain, DELAY, RATE_HZ).expect("a rate that fits the grain")
}

/// The law with many ranks, or a replay of what it describes: ranks with a detour of 1 ms every 10 s, each at a time of its own.
fn replayed(grain_ms: i64, ranks: u64, phases: u64) -> Input {
    ideal(periodic("10s", "1ms"), Nanos::from_millis(grain_ms), ranks, phases, 3)
}

fn limits() -> Vec<Figure> {
    let line = |what, value: f64, ours, half: f64| Figure {
        paper: PAPER,
        place: "section 3.2, Fig. 9",
        what,
        published: Published::Is(value),
        ours,
        band: (value - half, value + half),
        note: "",
        long: false,
    };
    let asked = |grain_ms| law(Nanos::from_millis(grain_ms)).at(1 << 40).expect("some ranks").slowdown_ratio;
    vec![
        line(
            "limit of the slowdown, 1 ms once every 10 s, grain 10 ms: by the law",
            1.1,
            Ours::Law(Unit::Times, asked(10)),
            1e-9,
        ),
        line(
            "limit of the slowdown, 1 ms once every 10 s, grain 10 ms: replayed, 262,144 ranks",
            1.1,
            Ours::Replayed(Reading::Slowdown, vec![replayed(10, 1 << 18, 100)]),
            1e-9,
        ),
        line(
            "limit of the slowdown, 1 ms once every 10 s, grain 1 ms: by the law",
            2.0,
            Ours::Law(Unit::Times, asked(1)),
            1e-9,
        ),
        line(
            "limit of the slowdown, 1 ms once every 10 s, grain 1 ms: replayed, 262,144 ranks",
            2.0,
            Ours::Replayed(Reading::Slowdown, vec![replayed(1, 1 << 18, 100)]),
            1e-9,
        ),
    ]
}

pub fn figures() -> Vec<Figure> {
    let linear = Figure {
        paper: PAPER,
        place: "section 3.2",
        what: "what 100 ranks lose, 1 + n HZ D, grain 1 ms: by the linear law",
        published: Published::Is(1.0),
        ours: Ours::Law(
            Unit::Percent,
            100.0 * (law(Nanos::from_millis(1)).at(100).expect("some ranks").linear_ratio - 1.0),
        ),
        band: (0.9999, 1.0001),
        note: "",
        long: false,
    };
    let replayed = Figure {
        what: "what 100 ranks lose, grain 1 ms: replayed",
        ours: Ours::Replayed(Reading::Added, vec![replayed(1, 100, 300_000)]),
        band: (0.97, 1.03),
        ..linear.clone()
    };
    let tenth = Law::new(DELAY, DELAY, 1e-6).expect("a probability").at(100_000).expect("some ranks");
    let bound = Figure {
        place: "section 3.1",
        what: "error of the linear law at p = 1 / (10 n), 100,000 ranks",
        published: Published::AtMost(5.0),
        ours: Ours::Law(Unit::Percent, 100.0 * (1.0 - tenth.delay_probability / (100_000.0 * 1e-6))),
        // 1 - (1 - exp(-np)) / np at np = 0.1.
        band: (4.83, 4.85),
        ..linear.clone()
    };
    [limits(), vec![linear, replayed, bound]].concat()
}
