//! The predictions: replays by the crate `scale` of the CPUs' own noise and the injected one, with measured costs of messages.

use becalm_model::Estimate;
use becalm_model::phases::CollectiveCall;
use becalm_scale::collective::{Allreduce, Alltoall, Barrier, Collective as Algorithm};
use becalm_scale::estimate::{from_replicas, not_below};
use becalm_scale::network::Network;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::random::{Purpose, Stream};
use becalm_scale::{NodeNoise, Noise, NoiseTrace};
use becalm_units::Nanos;
use becalm_units::fault::{Context, Result};

use super::grid::GridCell;
use super::own_noise::OwnNoise;
use super::superpose::{Regular, circle, on_circle, superpose};
use crate::round_trips::MessageCost;

/// The number of ranks that send their own noise; further ranks of a larger job reuse it.
pub const RANKS_HEARD: i32 = 1024;

/// The minimum length of a replay, in time and in intervals.
const HORIZON_NS: i64 = 200_000_000;
const INTERVALS: i64 = 4;
/// The maximum number of phases in a replay.
const PHASES_MAX: f64 = 4e6;

/// The common parameters of all cells' predictions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ask {
    /// The number of ranks with a CPU of their own; of those that share one only the first counts.
    pub ranks: u64,
    /// The collective that ends a phase.
    pub collective: CollectiveCall,
    /// The payload of the collective, in bytes.
    pub bytes: u64,
    /// The seed for the ranks' places on their noise.
    pub seed: u64,
    /// The number of replays, each with other places.
    pub replicas: u64,
}

/// A phase without noise, in nanoseconds: the quietest batches.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quiet {
    /// Compute phases and collectives.
    pub phase_ns: f64,
    /// Compute phases alone; for ranks that share a CPU, of all of them together.
    pub compute_ns: f64,
}

/// How the costs of messages were fitted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fit {
    /// The factor on L and o of single messages.
    pub factor: f64,
    /// Whether the fit reached a bound, so a predicted phase without noise differs from the measured one.
    pub at_bound: bool,
}

/// The bounds of the factor; a fit within a ratio of `NEAR` of one counts as at the bound.
const FACTORS: (f64, f64) = (1.0 / 64.0, 64.0);
const NEAR: f64 = 1.01;
/// The maximum relative difference between the predicted and the measured phase.
const FITS: f64 = 0.05;

/// The data common to all predictions of a job.
#[derive(Clone, Debug)]
pub struct Model {
    ask: Ask,
    /// The noise of each rank's CPU, all over the same time.
    own: Vec<NoiseTrace>,
    network: Network,
    quiet: Quiet,
    fit: Fit,
}

impl Model {
    /// Creates a model from the noise of each rank's CPU, recorded at the same time, the cost of messages, and the phase without noise.
    /// Fails if a CPU was lost for the whole time, or the costs are invalid for a network.
    pub fn new(ask: Ask, own: &[OwnNoise], cost: MessageCost, quiet: Quiet) -> Result<Self> {
        let own: Result<Vec<NoiseTrace>, _> = own.iter().map(OwnNoise::trace).collect();
        let own = own.context("the own noise of a CPU leaves no time")?;
        let fit = Fit { factor: 1.0, at_bound: false };
        let mut model = Self { ask, own, network: network(cost, 1.0)?, quiet, fit };
        (model.network, model.fit) = model.fitted(cost)?;
        Ok(model)
    }

    /// The assumed algorithm of the MPI library.
    pub fn collective(&self) -> Algorithm {
        match self.ask.collective {
            CollectiveCall::None => Algorithm::Ideal,
            CollectiveCall::Barrier => Algorithm::Barrier(Barrier::Dissemination),
            CollectiveCall::Allreduce => Algorithm::Allreduce(Allreduce::RecursiveDoubling),
            CollectiveCall::Alltoall => Algorithm::Alltoall(Alltoall::Pairwise),
        }
    }

    /// The network that reproduces the measured phase without noise.
    pub fn network(&self) -> Network {
        self.network
    }

    /// The quality of that fit.
    pub fn fit(&self) -> Fit {
        self.fit
    }

    /// The useful CPU time of a phase: the measured compute phase, which differs slightly from its calibration.
    fn grain(&self) -> Nanos {
        Nanos::new(self.quiet.compute_ns.min(self.quiet.phase_ns).round() as i64)
    }

    /// Ranks as recorded on their CPUs: all belong to one node, so they share one random place on their periodic traces.
    fn question(&self, network: Network, phases: u64, seed: u64) -> Question {
        Question {
            grain: self.grain(),
            phases,
            collective: self.collective(),
            network,
            bytes: self.ask.bytes,
            per_node: self.ask.ranks,
            synchronized: false,
            seed,
            replicas: 1,
        }
    }

    /// Scales the costs of single messages to fit: libraries send the small messages of collectives in cheaper ways. The measured time of
    /// the collective is that of a phase less its compute phase.
    fn fitted(&self, cost: MessageCost) -> Result<(Network, Fit)> {
        let silence = vec![NoiseTrace::silent(Nanos::from_secs(1))?];
        let silence = as_recorded(&silence, self.ask.ranks)?;
        let quiet = |factor: f64| -> Result<f64> {
            let question = self.question(network(cost, factor)?, 100, 0);
            Ok(Prediction::new(&silence, question)?.row(self.ask.ranks)?.quiet_phase_ns)
        };
        // It rises with the factor; if no factor within the bounds fits, use the bound.
        let (mut low, mut high) = FACTORS;
        for _ in 0..40 {
            let middle = (low * high).sqrt();
            if quiet(middle)? < self.quiet.phase_ns { low = middle } else { high = middle }
        }
        let factor = (low * high).sqrt();
        let near_end = factor < FACTORS.0 * NEAR || factor > FACTORS.1 / NEAR;
        let misses = (quiet(factor)? / self.quiet.phase_ns - 1.0).abs() > FITS;
        Ok((network(cost, factor)?, Fit { factor, at_bound: near_end || misses }))
    }

    /// The slowdown of phases by a noise, relative to the CPUs' own noise alone: repeated pairs of replays, with and without the noise,
    /// from the same place of the recording over the same time. The interval is that of their ratios. Fails if both together leave no time,
    /// or times are out of range.
    pub fn slowdown(&self, cell: &GridCell) -> Result<Estimate> {
        let ratios: Result<Vec<f64>> = (0..self.ask.replicas).map(|replica| self.ratio(cell, replica)).collect();
        let estimate = from_replicas(&ratios?).context("there are replicas")?;
        // Noise never speeds up a job.
        Ok(not_below(estimate, 1.0))
    }

    /// The ratio of one pair of replays.
    fn ratio(&self, cell: &GridCell, replica: u64) -> Result<f64> {
        let horizon = HORIZON_NS.max(INTERVALS * cell.interval.get()) as f64;
        let phases_in = |ns: f64, phase_ns: f64| (ns / phase_ns).clamp(16.0, PHASES_MAX) as u64;
        let shortest = self.own.iter().map(NoiseTrace::length).min().context("some rank was heard")?;
        let length = circle(shortest, cell.interval);
        let seed = self.ask.seed.wrapping_add(replica);
        let mut places = Stream::new(self.ask.seed, Purpose::Detours, replica);
        let mut place = || Nanos::new(places.below(cell.interval.get() as u64) as i64);
        let common = place();
        let own = self.own.iter().cycle().take(self.ask.ranks as usize);
        let both: Result<Vec<NoiseTrace>, _> = own
            .map(|own| {
                let place = if cell.synchronized { common } else { place() };
                superpose(own, Regular { interval: cell.interval, detour: cell.detour, place }, length)
            })
            .collect();
        let both = both.context("the injected noise and the CPU's own leave no time")?;
        let alone: Result<Vec<NoiseTrace>, _> = self.own.iter().map(|own| on_circle(own, length)).collect();
        let alone = alone.context("the own noise of a CPU leaves no time")?;
        let mean = |traces: &[NoiseTrace], phases: u64| -> Result<f64> {
            let noise = as_recorded(traces, self.ask.ranks)?;
            let row = Prediction::new(&noise, self.question(self.network, phases, seed))?.row(self.ask.ranks)?;
            row.mean_phase_ns.context("there is a replica")
        };
        let phases = phases_in(horizon, self.quiet.phase_ns);
        let with_ns = mean(&both, phases)?;
        // Replay as many phases without noise as fit the same time, so both include the same part of the CPUs' own noise.
        let took = with_ns * phases as f64;
        let about_ns = mean(&alone, phases)?;
        Ok(with_ns / mean(&alone, phases_in(took, about_ns))?)
    }
}

/// The noise of ranks on one node with a CPU each; additional ranks reuse it from the first.
fn as_recorded(traces: &[NoiseTrace], ranks: u64) -> Result<Noise> {
    let traces: Vec<NoiseTrace> = traces.iter().cycle().take(ranks as usize).cloned().collect();
    Ok(Noise::recorded(vec![NodeNoise::new("job", traces)?])?)
}

/// LogGP's parameters from the cost of messages: o is the time of a send on its rank, and a message takes L + 2 o.
fn network(cost: MessageCost, factor: f64) -> Result<Network> {
    let nanos = |ns: f64| Nanos::new((ns * factor).round().max(0.0) as i64);
    // A send takes at most a third of a message's time.
    let overhead = cost.send_ns.min(cost.one_way_ns / 3.0);
    let latency = nanos((cost.one_way_ns - 2.0 * overhead).max(0.0));
    let byte_gap_ps = (cost.byte_ns * 1e3).round() as i64;
    Ok(Network::new(latency, nanos(overhead).max(Nanos::new(1)), Nanos::ZERO, byte_gap_ps)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: MessageCost = MessageCost { one_way_ns: 300.0, send_ns: 60.0, byte_ns: 0.1 };

    fn ask(ranks: u64) -> Ask {
        Ask { ranks, collective: CollectiveCall::Barrier, bytes: 8, seed: 1, replicas: 16 }
    }

    /// Ranks whose CPUs lose nothing of their own.
    fn model(compute_ns: f64) -> Model {
        let own = vec![OwnNoise::from_numbers(&[1_000_000_000]), OwnNoise::from_numbers(&[1_000_000_000])];
        Model::new(ask(2), &own, COST, Quiet { phase_ns: 500.0 + compute_ns, compute_ns }).unwrap()
    }

    fn cell(synchronized: bool, interval: Nanos, detour: Nanos) -> GridCell {
        GridCell { interval, detour, synchronized, ratio: None }
    }

    fn quiet_phase_ns(model: &Model) -> f64 {
        let silence = as_recorded(&[NoiseTrace::silent(Nanos::from_secs(1)).unwrap()], 2).unwrap();
        Prediction::new(&silence, model.question(model.network, 100, 1)).unwrap().row(2).unwrap().quiet_phase_ns
    }

    #[test]
    fn a_phase_without_noise_is_as_long_as_measured() {
        for compute_ns in [0.0, 9_400.0] {
            let model = model(compute_ns);
            let quiet = quiet_phase_ns(&model);
            assert!((quiet - 500.0 - compute_ns).abs() < 10.0, "{quiet}");
            assert!(!model.fit().at_bound && (0.1..10.0).contains(&model.fit().factor), "{:?}", model.fit());
        }
    }

    /// The grain that was asked for was 10 us, and the compute phase took 9.4: messages that cost nothing were the answer.
    #[test]
    fn a_fit_that_ends_at_its_bounds_says_so() {
        let own = vec![OwnNoise::from_numbers(&[1_000_000_000]); 2];
        let fit = |phase_ns, compute_ns| Model::new(ask(2), &own, COST, Quiet { phase_ns, compute_ns }).unwrap().fit();
        assert!(fit(9_700.0, 10_000.0).at_bound);
        assert!(fit(1e6, 10_000.0).at_bound);
        assert!(!fit(9_700.0, 9_400.0).at_bound);
    }

    /// Back to back, the job stands still while either rank is away: with random places that is 1 - (1 - r)^2 of the time,
    /// and r of it where both are away together.
    #[test]
    fn two_ranks_lose_what_either_loses() {
        let cell = |synchronized| cell(synchronized, Nanos::from_millis(1), Nanos::from_micros(200));
        // Replays of half a million phases each.
        let mut model = model(0.0);
        model.ask.replicas = 4;
        let together = model.slowdown(&cell(true)).unwrap().mean;
        assert!((together - 1.0 / 0.8).abs() < 0.01, "{together}");
        let apart = model.slowdown(&cell(false)).unwrap();
        assert!(apart.mean > 1.4 && apart.mean < 1.0 / 0.6 + 0.01, "{apart:?}");
    }

    /// CPUs whose own noise comes and goes: a recording of a second that is quiet but for trains of long detours.
    fn restless() -> Vec<OwnNoise> {
        let shifted = |shift: i64| {
            let train = |turn: i64| (0..40).flat_map(move |at| [turn * 250_000_000 + shift + at * 1_000_000, 400_000]);
            let numbers: Vec<i64> = std::iter::once(1_000_000_000).chain((0..4).flat_map(train)).collect();
            OwnNoise::from_numbers(&numbers)
        };
        vec![shifted(0), shifted(90_000_000)]
    }

    /// An effect of a hundredth under own noise of several, which comes in trains: unpaired its interval went from 0.97 to 1.05. Noise
    /// that speeds a job up there is not.
    #[test]
    fn the_interval_is_that_of_pairs() {
        let quiet = Quiet { phase_ns: 10_500.0, compute_ns: 10_000.0 };
        let model = Model::new(ask(2), &restless(), COST, quiet).unwrap();
        let predicted = model.slowdown(&cell(true, Nanos::from_millis(20), Nanos::from_micros(200))).unwrap();
        let added = predicted.mean - 1.0;
        assert!((0.008..0.013).contains(&added), "{predicted:?}");
        assert!(predicted.high - predicted.low < 0.5 * added && predicted.low > 1.0, "{predicted:?}");
    }

    /// CPUs that lose the same instants lose them once, and CPUs that take turns lose both: as it was recorded, not as drawn.
    #[test]
    fn ranks_replay_their_own_cpus_at_the_same_time() {
        let detours = |shift: i64| -> OwnNoise {
            let all = (0..100).flat_map(|turn| [turn * 10_000_000 + shift, 2_000_000]);
            OwnNoise::from_numbers(&std::iter::once(1_000_000_000).chain(all).collect::<Vec<i64>>())
        };
        let slowdown = |own: Vec<OwnNoise>| {
            let quiet = Quiet { phase_ns: 10_500.0, compute_ns: 10_000.0 };
            let model = Model::new(ask(2), &own, COST, quiet).unwrap();
            let noise = as_recorded(&model.own, 2).unwrap();
            let row = Prediction::new(&noise, model.question(model.network, 50_000, 7)).unwrap().row(2).unwrap();
            row.slowdown.unwrap().mean
        };
        let (together, by_turns) =
            (slowdown(vec![detours(0), detours(0)]), slowdown(vec![detours(0), detours(5_000_000)]));
        assert!((together - 1.0 / 0.8).abs() < 0.01, "{together}");
        assert!((by_turns - 1.0 / 0.6).abs() < 0.02, "{by_turns}");
    }
}
