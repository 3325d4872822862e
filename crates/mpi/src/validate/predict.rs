//! The predictions: the CPUs' own noise and the injected one, replayed by the crate `scale` with messages that cost what they
//! were measured to cost.

use anyhow::{Context, Result};
use becalm_model::Estimate;
use becalm_scale::collective::{Allreduce, Alltoall, Barrier, Collective as Algorithm};
use becalm_scale::network::Network;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::{NodeNoise, Noise, NoiseTrace};
use becalm_units::Nanos;

use super::grid::GridCell;
use super::own_noise::OwnNoise;
use super::superpose::superpose;
use crate::calls::CollectiveCall;
use crate::round_trips::MessageCost;

/// The number of ranks that tell their own noise.
pub const RANKS_HEARD: i32 = 64;

/// A replay covers at least this time, and at least this many intervals.
const HORIZON_NS: i64 = 200_000_000;
const INTERVALS: i64 = 4;
/// A replay has at most this many phases.
const PHASES_MAX: f64 = 4e6;

/// The question that every cell's prediction answers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ask {
    /// The number of ranks of the job.
    pub ranks: u64,
    /// Useful CPU time of a phase.
    pub grain: Nanos,
    /// The collective that ends a phase.
    pub collective: CollectiveCall,
    /// The payload of the collective, in bytes.
    pub bytes: u64,
    /// The seed from which the ranks' places on their noise are drawn.
    pub seed: u64,
    /// How often the job is replayed, each time with other places.
    pub replicas: u64,
}

/// All that the predictions of a job have in common.
#[derive(Clone, Debug)]
pub struct Model {
    ask: Ask,
    own: Vec<NoiseTrace>,
    network: Network,
    quiet_ns: f64,
}

impl Model {
    /// Makes a model from the CPUs' own noise, what messages cost, and how long a phase takes without noise.
    ///
    /// # Errors
    /// If a CPU was lost for the whole time, or the costs are not those of a network.
    pub fn new(ask: Ask, own: &[OwnNoise], cost: MessageCost, quiet_ns: f64) -> Result<Self> {
        let own: Result<Vec<NoiseTrace>, _> = own.iter().map(OwnNoise::trace).collect();
        let own = own.context("the own noise of a CPU leaves no time")?;
        let mut model = Self { ask, own, network: network(cost, 1.0)?, quiet_ns };
        model.network = model.fitted(cost)?;
        Ok(model)
    }

    /// The algorithm that the MPI library is assumed to use.
    pub fn collective(&self) -> Algorithm {
        match self.ask.collective {
            CollectiveCall::None => Algorithm::Ideal,
            CollectiveCall::Barrier => Algorithm::Barrier(Barrier::Dissemination),
            CollectiveCall::Allreduce => Algorithm::Allreduce(Allreduce::RecursiveDoubling),
            CollectiveCall::Alltoall => Algorithm::Alltoall(Alltoall::Pairwise),
        }
    }

    /// The network that makes a phase without noise as long as it was measured.
    pub fn network(&self) -> Network {
        self.network
    }

    fn question(&self, network: Network, phases: u64, synchronized: bool) -> Question {
        Question {
            grain: self.ask.grain,
            phases,
            collective: self.collective(),
            network,
            bytes: self.ask.bytes,
            per_node: 1,
            synchronized,
            seed: self.ask.seed,
            replicas: self.ask.replicas,
        }
    }

    /// The costs in proportion to those of single messages: libraries send the small messages of their collectives in
    /// cheaper ways.
    fn fitted(&self, cost: MessageCost) -> Result<Network> {
        let silence = Noise::apart("silence", NoiseTrace::silent(Nanos::from_secs(1))?);
        let quiet = |factor: f64| -> Result<f64> {
            let question = Question { replicas: 1, ..self.question(network(cost, factor)?, 100, false) };
            Ok(Prediction::new(&silence, question)?.row(self.ask.ranks)?.quiet_phase_ns)
        };
        // It rises with the factor; below the smallest and above the largest nothing fits, and the end is taken.
        let (mut low, mut high) = (1.0 / 64.0, 64.0_f64);
        for _ in 0..40 {
            let middle = (low * high).sqrt();
            if quiet(middle)? < self.quiet_ns { low = middle } else { high = middle }
        }
        network(cost, (low * high).sqrt())
    }

    /// How many times as long phases take under a noise as under the CPUs' own alone.
    ///
    /// # Errors
    /// If both together leave no time, or times do not fit.
    pub fn slowdown(&self, cell: &GridCell) -> Result<Estimate> {
        let horizon = HORIZON_NS.max(INTERVALS * cell.interval.get());
        let phases = (horizon as f64 / self.quiet_ns).clamp(16.0, PHASES_MAX) as u64;
        let question = self.question(self.network, phases, cell.synchronized);
        let both: Result<Vec<NoiseTrace>, _> =
            self.own.iter().map(|own| superpose(own, cell.interval, cell.detour)).collect();
        let both = both.context("the injected noise and the CPU's own leave no time")?;
        let slowdown = |traces: Vec<NoiseTrace>| -> Result<Estimate> {
            let row = Prediction::new(&noise(traces)?, question)?.row(self.ask.ranks)?;
            row.slowdown.context("there are replicas")
        };
        let (with, without) = (slowdown(both)?, slowdown(self.own.clone())?);
        let over = |value: f64| value / without.mean;
        Ok(Estimate { mean: over(with.mean), low: over(with.low), high: over(with.high) })
    }
}

/// The noise of ranks with a CPU each.
fn noise(traces: Vec<NoiseTrace>) -> Result<Noise> {
    let node = |(rank, trace): (usize, NoiseTrace)| NodeNoise::new(format!("rank {rank}"), vec![trace]);
    let nodes: Result<Vec<NodeNoise>, _> = traces.into_iter().enumerate().map(node).collect();
    Ok(Noise::recorded(nodes?)?)
}

/// LogGP's parameters from what messages cost: what a send keeps its rank is o, a message is on its way for L + 2 o.
fn network(cost: MessageCost, factor: f64) -> Result<Network> {
    let nanos = |ns: f64| Nanos::new((ns * factor).round().max(0.0) as i64);
    // A send is no more than a third of a message's way.
    let overhead = cost.send_ns.min(cost.one_way_ns / 3.0);
    let latency = nanos((cost.one_way_ns - 2.0 * overhead).max(0.0));
    let byte_gap_ps = (cost.byte_ns * 1e3).round() as i64;
    Ok(Network::new(latency, nanos(overhead).max(Nanos::new(1)), Nanos::ZERO, byte_gap_ps)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(grain: Nanos) -> Model {
        let ask = Ask { ranks: 2, grain, collective: CollectiveCall::Barrier, bytes: 8, seed: 1, replicas: 32 };
        // Nobody loses anything of their own.
        let own = vec![OwnNoise::from_numbers(&[1_000_000_000]), OwnNoise::from_numbers(&[1_000_000_000])];
        let cost = MessageCost { one_way_ns: 300.0, send_ns: 60.0, byte_ns: 0.1 };
        Model::new(ask, &own, cost, 500.0 + grain.get() as f64).unwrap()
    }

    #[test]
    fn a_phase_without_noise_is_as_long_as_measured() {
        let model = model(Nanos::ZERO);
        let silence = Noise::apart("silence", NoiseTrace::silent(Nanos::from_secs(1)).unwrap());
        let question = model.question(model.network, 100, false);
        let quiet = Prediction::new(&silence, question).unwrap().row(2).unwrap().quiet_phase_ns;
        assert!((quiet - 500.0).abs() < 10.0, "{quiet}");
    }

    /// Back to back, the job stands still while either rank is away: with random places that is 1 - (1 - r)^2 of the time,
    /// and r of it where both are away together.
    #[test]
    fn two_ranks_lose_what_either_loses() {
        let cell = |synchronized| GridCell {
            interval: Nanos::from_millis(1),
            detour: Nanos::from_micros(200),
            synchronized,
            ratio: None,
        };
        let together = model(Nanos::ZERO).slowdown(&cell(true)).unwrap().mean;
        assert!((together - 1.0 / 0.8).abs() < 0.01, "{together}");
        let apart = model(Nanos::ZERO).slowdown(&cell(false)).unwrap();
        assert!(apart.mean > 1.4 && apart.mean < 1.0 / 0.6 + 0.01, "{apart:?}");
    }
}
