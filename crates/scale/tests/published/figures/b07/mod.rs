//! P. Beckman, K. Iskra, K. Yoshii, S. Coghlan, A. Nataraj, *Benchmarking the effects of operating system interference on
//! extreme-scale parallel machines*, 2007: noise injected into Blue Gene/L, collectives back to back.
//!
//! Two processes a node are its virtual node mode, one is coprocessor mode.

mod allreduce;
mod alltoall;
mod barrier;
mod ratio;

use becalm_scale::law::Law;
use becalm_scale::predict::Question;
use becalm_units::Nanos;

use super::{Figure, Input, Ours, Published, Reading, Source, Unit, blue_gene};

const PAPER: &str = "Beckman et al. 2007: noise injected into Blue Gene/L";

const MOST: u64 = 32_768;
const VIRTUAL_NODE: u64 = 2;
const COPROCESSOR: u64 = 1;

const TEXT: &str = "section 4";

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

/// The same, of a row that takes so long that only the benchmark and the writing of the page compute it.
fn long(line: Figure) -> Figure {
    Figure { long: true, ..line }
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
    Figure { paper: PAPER, place, what, published, ours: Ours::Replayed(reading, inputs), band, note, long: false }
}

/// The probability that section 6 quotes from D. Tsafrir, Y. Etsion, D. G. Feitelson, S. Kirkpatrick, ICS 2005.
fn tolerable() -> Figure {
    Figure {
        paper: PAPER,
        place: "section 6, after Tsafrir et al. 2005",
        what: "p of a rank with which a tenth of the phases of 100,000 ranks is delayed, in millionths",
        published: Published::About(1.0),
        ours: Ours::Law(Unit::Number, 1e6 * Law::tolerable_probability(100_000, 0.1)),
        band: (1.05, 1.06),
        note: "",
        long: false,
    }
}

pub fn figures() -> Vec<Figure> {
    let late = vec![alltoall::synchronized(), tolerable()];
    [barrier::figures(), allreduce::figures(), alltoall::figures(), ratio::figures(), late].concat()
}
