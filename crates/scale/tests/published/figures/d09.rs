//! P. De, V. Mann, U. Mittal, *Handling OS jitter on multicore multithreaded systems*, IPDPS 2009: the trace-driven simulation.

use becalm_units::Nanos;

use super::sources::{Collected, Jitter, Unidentified};
use super::{Figure, Ours, Published, Reading, Source, ideal};

const TASKS: u64 = 16_384;
/// As many as the paper simulated.
const PHASES: u64 = 300_000;

const ASSUMED: &str = "the table, and the 450 events of 100 to 1,000 us of section 4.1.2, over as many seconds as the table counts watchdogs, \
     which came once a second. Not in the paper: that the 450 are in every trace, and their distribution between these limits";
const MILLION: &str = "the same table over those seconds, but the 450 events in the 85 minutes of the million events that they are \
     part of (sections 4.1.1 and 4.1.2)";
const SLOW: &str = "table and 450 events in 85 minutes, which contradicts the table's watchdog";
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
    let (with_table, in_million) = (Unidentified::WithTable, Unidentified::OfMillion);
    let (watchdog, million) = (Collected::Watchdog, Collected::Million);
    vec![
        line("slowdown of the baseline", baseline, jitter("baseline", with_table, watchdog), (47.0, 48.5), ASSUMED),
        line("slowdown of isolated CPUs", isolated, jitter("isolated", with_table, watchdog), (32.0, 33.2), ASSUMED),
        line(
            "slowdown with real-time priority",
            Published::Unknown,
            jitter("priority", with_table, watchdog),
            (41.0, 43.0),
            "",
        ),
        line(
            "slowdown with lowered siblings",
            Published::Unknown,
            jitter("hardware-priority", with_table, watchdog),
            (44.0, 46.5),
            "",
        ),
        line(
            "the baseline, the 450 in 85 minutes",
            baseline,
            jitter("baseline", in_million, watchdog),
            (34.0, 38.0),
            MILLION,
        ),
        line(
            "isolated CPUs, the 450 in 85 minutes",
            isolated,
            jitter("isolated", in_million, watchdog),
            (16.5, 19.0),
            MILLION,
        ),
        line("the baseline, all in 85 minutes", baseline, jitter("baseline", with_table, million), (20.5, 24.0), SLOW),
        line("isolated CPUs, all in 85 minutes", isolated, jitter("isolated", with_table, million), (16.0, 18.5), SLOW),
        line(
            "the baseline by its table alone",
            baseline,
            jitter("baseline", Unidentified::None, watchdog),
            (24.5, 26.0),
            TABLE_ALONE,
        ),
        line(
            "isolated CPUs by their table alone",
            isolated,
            jitter("isolated", Unidentified::None, watchdog),
            (4.3, 4.7),
            TABLE_ALONE,
        ),
    ]
}
