//! The cost of an added interrupt for work at a place, from pairs of a quiet and a raised measurement.

use becalm_analyze::events::{EventRate, per_interrupt};
use becalm_stats::mean_with_half_width;
use becalm_units::CpuId;

use super::tick::RoundsInterval;
use crate::documents::{CountedPairDoc, PlacementCosts, PlacementDoc, WorkPlace};

/// The same work without and with added interrupts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QuietAndRaised {
    /// Time of the work without added interrupts, in nanoseconds.
    pub quiet_ns: f64,
    /// Interrupts per second meanwhile.
    pub quiet_hz: f64,
    /// Time of the work with added interrupts, in nanoseconds.
    pub raised_ns: f64,
    /// Interrupts per second meanwhile.
    pub raised_hz: f64,
}

impl QuietAndRaised {
    /// The cost of one added interrupt in nanoseconds: (b - a) / ((h2 - h1) b), as for a [`RatePair`](super::tick::RatePair). `None` if the
    /// rate did not rise.
    pub fn cost_ns(&self) -> Option<f64> {
        let extra = (self.raised_hz - self.quiet_hz) * self.raised_ns / 1e9;
        (extra > 0.0).then(|| (self.raised_ns - self.quiet_ns) / extra)
    }
}

/// The cost over some rounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PlacementCost {
    /// The mean over the rounds, in nanoseconds per interrupt. About zero, of either sign, if interrupts do not affect the work.
    pub mean_ns: f64,
    /// Its 95 % interval (Student's); `None` with one round.
    pub bounds: Option<RoundsInterval>,
    /// Number of rounds behind the cost.
    pub rounds: usize,
}

impl PlacementCost {
    /// The cost over these rounds; `None` if the rate rose in none.
    pub fn new(rounds: &[QuietAndRaised]) -> Option<Self> {
        let costs: Vec<f64> = rounds.iter().filter_map(QuietAndRaised::cost_ns).collect();
        let (mean_ns, half_width) = mean_with_half_width(&costs)?;
        let bounds = half_width.map(|half| RoundsInterval { low: mean_ns - half, high: mean_ns + half });
        Some(Self { mean_ns, bounds, rounds: costs.len() })
    }
}

/// The cost at a place of a kind of work.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacedCost {
    /// The place of the work, relative to the interrupts.
    pub place: WorkPlace,
    /// The CPU at that place.
    pub cpu: CpuId,
    /// The kind of work, by its name.
    pub body: String,
    /// `None` if the interrupt rate did not rise, or there are no measurements yet.
    pub cost: Option<PlacementCost>,
    /// Processor events that one more interrupt of the measured CPU adds, over all rounds; empty if the rate did not rise, or nothing was
    /// counted.
    pub events: Vec<EventRate>,
    /// For work that is not bound to a CPU: the share of its pieces that started on the interrupted CPU while that took more interrupts,
    /// and its migrations per second meanwhile.
    pub roamed: Option<(f64, f64)>,
}

/// The places of unbound work over all rounds; `None` for bound work.
fn roamed<'a>(results: impl Iterator<Item = &'a PlacementDoc>) -> Option<(f64, f64)> {
    let (mut pieces, mut there, mut moves, mut seconds) = (0, 0, 0, 0.0);
    for result in results {
        let Some(roamed) = result.roamed else { continue };
        pieces += roamed.pieces;
        there += roamed.there;
        moves += roamed.moves;
        seconds += result.raised.elapsed_ns as f64 / 1e9;
    }
    (pieces > 0).then(|| (there as f64 / pieces as f64, moves as f64 / seconds))
}

impl PlacedCost {
    /// The costs of a measurement, place by place and kind by kind.
    pub fn all(costs: &PlacementCosts) -> Vec<Self> {
        let cost = |place, body: &str| {
            let here = costs.results.iter().filter(|result| result.place == place && result.body == body);
            let rounds: Vec<QuietAndRaised> = here
                .map(|result| QuietAndRaised {
                    quiet_ns: result.quiet.elapsed_ns as f64,
                    quiet_hz: result.quiet.rate_hz(),
                    raised_ns: result.raised.elapsed_ns as f64,
                    raised_hz: result.raised.rate_hz(),
                })
                .collect();
            PlacementCost::new(&rounds)
        };
        let events = |place, body: &str| {
            let here = costs.results.iter().filter(|result| result.place == place && result.body == body);
            let pairs: Vec<&CountedPairDoc> = here.filter_map(|result| result.counted.as_ref()).collect();
            let quiet: Vec<_> = pairs.iter().flat_map(|pair| pair.quiet.counts.clone()).collect();
            let raised: Vec<_> = pairs.iter().flat_map(|pair| pair.raised.counts.clone()).collect();
            let interrupts = |count: fn(&CountedPairDoc) -> u64| {
                pairs.iter().fold(0, |all: u64, pair| all.saturating_add(count(pair)))
            };
            let more =
                interrupts(|pair| pair.raised.interrupts).saturating_sub(interrupts(|pair| pair.quiet.interrupts));
            per_interrupt(&quiet, &raised, more)
        };
        let row = |at: &crate::documents::PlaceDoc, body: &String| Self {
            place: at.place,
            cpu: at.cpu,
            body: body.clone(),
            cost: cost(at.place, body),
            events: events(at.place, body),
            roamed: roamed(costs.results.iter().filter(|one| one.place == at.place && one.body == *body)),
        };
        costs.places.iter().flat_map(|at| costs.bodies.iter().map(move |body| row(at, body))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_cost_is_found_again() {
        // 26 us an interrupt, at 10,000 more a second: a quarter of the CPU.
        let raised_ns = 1e9 / (1.0 - 0.26);
        let round = QuietAndRaised { quiet_ns: 1e9, quiet_hz: 0.0, raised_ns, raised_hz: 10_000.0 };
        assert!((round.cost_ns().unwrap() - 26_000.0).abs() < 1e-6);
        let cost = PlacementCost::new(&[round, round]).unwrap();
        assert!((cost.mean_ns - 26_000.0).abs() < 1e-6 && cost.rounds == 2);
        assert_eq!(PlacementCost::new(&[round]).unwrap().bounds, None);
        let flat = QuietAndRaised { raised_hz: 0.0, ..round };
        assert_eq!((flat.cost_ns(), PlacementCost::new(&[flat])), (None, None));
    }
}
