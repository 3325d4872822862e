//! P. De, V. Mann, U. Mittal, *Handling OS jitter on multicore multithreaded systems*, IPDPS 2009: the trace-driven simulation.

use becalm_units::Nanos;

use super::sources::{Collected, Jitter};
use super::{Figure, Ours, Published, Reading, Source, ideal};

const TASKS: u64 = 16_384;
/// As many as the paper simulated.
const PHASES: u64 = 300_000;

const ASSUMED: &str = "the table, and the 450 events of 100 to 1,000 us that section 4.1.2 names beside it, over as many seconds as its own watchdog \
     came. Not in the paper: that the 450 are in every trace, and how the durations lie between their published limits";
const TABLE_ALONE: &str =
    "the table counts only what the kernel's instrumentation saw; the 450 events of section 4.1.2 are lacking";

fn line(what: &'static str, published: Published, jitter: Jitter, band: (f64, f64), note: &'static str) -> Figure {
    let input = ideal(Source::Jitter(jitter), Nanos::from_millis(1), TASKS, PHASES, 1);
    Figure {
        paper: "De, Mann, Mittal 2009: simulation of 16,384 tasks",
        place: "Fig. 4",
        what,
        published,
        ours: Ours::Replayed(Reading::Added, vec![input]),
        band,
        note,
        long: false,
    }
}

pub fn figures() -> Vec<Figure> {
    let [baseline, isolated] = [Published::Is(44.2), Published::Is(31.2)];
    let jitter = |configuration, unidentified, collected| Jitter { configuration, unidentified, collected };
    let (watchdog, ticks) = (Collected::Watchdog, Collected::Ticks { hz: 100 });
    vec![
        line("slowdown of the baseline", baseline, jitter("baseline", true, watchdog), (47.0, 48.5), ASSUMED),
        line("slowdown of isolated CPUs", isolated, jitter("isolated", true, watchdog), (32.0, 33.2), ASSUMED),
        line(
            "slowdown with real-time priority",
            Published::Unknown,
            jitter("priority", true, watchdog),
            (41.0, 43.0),
            "",
        ),
        line(
            "slowdown with lowered siblings",
            Published::Unknown,
            jitter("hardware-priority", true, watchdog),
            (44.0, 46.5),
            "",
        ),
        line(
            "the baseline, over as long as its ticks take at 100 Hz",
            baseline,
            jitter("baseline", true, ticks),
            (42.0, 43.5),
            "",
        ),
        line(
            "isolated CPUs, over as long as their ticks take at 100 Hz",
            isolated,
            jitter("isolated", true, ticks),
            (29.0, 30.5),
            "",
        ),
        line(
            "the baseline by its table alone",
            baseline,
            jitter("baseline", false, watchdog),
            (24.5, 26.0),
            TABLE_ALONE,
        ),
        line(
            "isolated CPUs by their table alone",
            isolated,
            jitter("isolated", false, watchdog),
            (4.3, 4.7),
            TABLE_ALONE,
        ),
    ]
}
