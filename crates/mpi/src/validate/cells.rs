//! Running the job, with and without injected noise, without keeping single phases.

use std::hint::black_box;
use std::path::Path;

use becalm_inject::{Fit, Grounds, Injection, KnownTolls, PreemptPlan, Together};
use becalm_linux::clock::{Counter, Source};
use becalm_linux::sched::{self, Policy};
use becalm_measure::work::Work;
use becalm_scale::spec::NoiseSpec;
use becalm_stats::median_mid;
use becalm_units::fault::Result;
use becalm_units::{Nanos, Ticks};
use mpi::traits::CommunicatorCollectives;

use super::grid::GridCell;
use super::predict::Quiet;
use crate::calls::Call;
use crate::job::{Job, texts};
use crate::node::Seat;

/// How long a batch of phases should take without noise, at least: after each the ranks agree whether to go on.
const BATCH: Nanos = Nanos::from_millis(20);
/// The number of phases of the first batch, which tells how long a phase takes.
const FIRST: u64 = 64;

/// How long the runs without noise take, beside each one with it.
const BESIDE: Nanos = Nanos::from_millis(100);
/// How much the times of these runs may differ, as a part of their mean.
const STEADY: f64 = 0.1;
/// How often a run is made, if need be.
const ATTEMPTS: usize = 2;

/// The job, ready to run phases.
pub struct PhaseBench<'a> {
    job: &'a Job,
    seat: &'a Seat,
    work: Work,
    iterations: u64,
    call: Call<'a>,
    counter: Source,
    /// The class of the ranks, and that of the noise.
    own_policy: Policy,
    policy: Policy,
    /// How long a phase takes, roughly.
    phase_ns: f64,
    quietest_ns: f64,
    /// How long the compute phase of the quietest batch without collectives took.
    computing_ns: f64,
    /// What a detour costs on this rank's CPU, for noises that are as frequent.
    tolls: KnownTolls,
}

/// What one run of a cell showed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CellRun {
    /// The mean phase under noise, of the median batch.
    pub mean_ns: f64,
    /// The mean phase without injected noise, right before and right after.
    pub quiet_ns: f64,
    /// Whether those two were much the same.
    pub steady: bool,
    /// The share of time that was injected, as the mean over the CPUs.
    pub delivered: f64,
}

impl<'a> PhaseBench<'a> {
    /// Makes the job ready. The last argument holds the classes of the ranks and of the noise.
    pub fn new(
        job: &'a Job,
        seat: &'a Seat,
        work: Work,
        iterations: u64,
        call: Call<'a>,
        counter: Source,
        (own_policy, policy): (Policy, Policy),
    ) -> Self {
        Self {
            job,
            seat,
            work,
            iterations,
            call,
            counter,
            own_policy,
            policy,
            phase_ns: 1e3,
            quietest_ns: f64::INFINITY,
            computing_ns: f64::INFINITY,
            tolls: KnownTolls::default(),
        }
    }

    /// Lets what a detour costs be measured once more.
    pub fn forget_tolls(&mut self) {
        self.tolls = KnownTolls::default();
    }

    /// Finds out how long a phase takes.
    pub fn warm_up<C: Counter>(&mut self) {
        let mut phases = FIRST;
        for _ in 0..4 {
            self.phase_ns = self.batch::<C>(phases).max(1) as f64 / phases as f64;
            phases = self.phases_in(BATCH);
        }
        self.quietest_ns = f64::INFINITY;
    }

    fn phases_in(&self, time: Nanos) -> u64 {
        ((time.get() as f64 / self.phase_ns).round() as u64).clamp(4, 1 << 28)
    }

    /// The mean phase of the quietest batch, and the mean compute phase of the quietest batch of these alone: what both take
    /// without noise.
    pub fn quiet(&self) -> Quiet {
        Quiet { phase_ns: self.quietest_ns, compute_ns: self.computing_ns }
    }

    /// A batch of compute phases without collectives: on the node that took longest, from its first rank's start to its last one's
    /// end. Ranks that share a CPU take turns, and the second one may only start when the first has ended.
    fn compute<C: Counter>(&mut self) {
        if self.iterations == 0 {
            self.computing_ns = 0.0;
            return;
        }
        let phases = self.phases_in(BATCH);
        self.job.world.barrier();
        let before = self.seat.now::<C>();
        for _ in 0..phases {
            black_box(self.work.run::<C>(self.iterations));
        }
        let took = self.job.longest_span(before, self.seat.now::<C>());
        self.computing_ns = self.computing_ns.min(took as f64 / phases as f64);
    }

    /// A batch of phases: how long it took on the rank that took longest.
    fn batch<C: Counter>(&mut self, phases: u64) -> i64 {
        self.job.world.barrier();
        let before = C::read();
        for _ in 0..phases {
            if self.iterations > 0 {
                black_box(self.work.run::<C>(self.iterations));
            }
            self.call.run();
        }
        let ticks = C::read().wrapping_sub(before);
        self.job.most(self.seat.axis.duration(Ticks::new(ticks)).get())
    }

    /// Runs for at least this time, as all ranks agree, in batches: the mean phase of the median batch, in nanoseconds. What
    /// comes in trains or seldom, as another program, spoils a batch and not the result; periodic noise is alike in all batches
    /// if they are of whole intervals.
    fn run_for<C: Counter>(&mut self, time: Nanos, batch: Nanos) -> f64 {
        let phases = self.phases_in(batch);
        let (mut means, mut took) = (Vec::new(), 0);
        while means.is_empty() || took < time.get() {
            let batch = self.batch::<C>(phases);
            means.push(batch as f64 / phases as f64);
            took += batch;
        }
        self.quietest_ns = means.iter().copied().fold(self.quietest_ns, f64::min);
        median_mid(&mut means).expect("there is a batch")
    }

    /// Runs under noise, between two runs without. Where those differ, the job changed its pace meanwhile (a hypervisor moved a
    /// CPU, another program came), and the run is made again, as it is where noise could not be made; a few times. Says why if
    /// noise cannot be made.
    pub fn under<C: Counter>(&mut self, cell: &GridCell, time: Nanos, seed: u64) -> Result<Result<CellRun, String>> {
        let beside = Nanos::new(time.get().min(BESIDE.get()));
        let mut last = Err(String::new());
        for _ in 0..ATTEMPTS {
            self.compute::<C>();
            let before = self.run_for::<C>(beside, BATCH);
            let run = self.injected::<C>(cell, time, seed)?;
            let after = self.run_for::<C>(beside, BATCH);
            last = match run {
                Ok((mean_ns, delivered)) => {
                    let quiet_ns = (before + after) / 2.0;
                    let steady = (before - after).abs() <= STEADY * quiet_ns;
                    Ok(CellRun { mean_ns, quiet_ns, steady, delivered })
                }
                Err(why) => Err(why),
            };
            // The times are those of all ranks together, so that all decide alike.
            if matches!(last, Ok(CellRun { steady: true, .. })) {
                break;
            }
        }
        Ok(last)
    }

    fn injected<C: Counter>(&mut self, cell: &GridCell, time: Nanos, seed: u64) -> Result<Result<(f64, f64), String>> {
        let GridCell { interval, detour, synchronized, .. } = *cell;
        let injection = self.inject(NoiseSpec::periodic(interval, detour, Nanos::ZERO), synchronized, seed);
        let why = injection.as_ref().err().map_or("", String::as_str);
        if let Some(why) = texts(&self.job.world, why).into_iter().find(|why| !why.is_empty()) {
            return Ok(Err(why));
        }
        let mean_ns = self.run_for::<C>(time, cell.lasts_once(BATCH));
        let delivered = injection.ok().flatten().map_or(Ok(Vec::new()), Injection::stop);
        let delivered = self.job.agree(delivered.map_err(Into::into))?;
        let ratio =
            |on: &becalm_inject::CpuDelivery| on.tally.delivered.total() as f64 / on.observed.get().max(1) as f64;
        let (ratios, cpus) = (delivered.iter().map(ratio).sum::<f64>(), delivered.len() as f64);
        Ok(Ok((mean_ns, self.job.sum(ratios) / self.job.sum(cpus).max(1.0))))
    }

    /// One rank of each CPU injects there.
    ///
    /// Threads inherit the class of who starts them, and those of the injection give themselves another once they run: under
    /// a real-time thread of the same priority they never would. So the rank leaves its class while it starts them.
    fn inject(&mut self, noise: NoiseSpec, synchronized: bool, seed: u64) -> Result<Option<Injection>, String> {
        if !self.seat.first_on_cpu {
            return Ok(None);
        }
        let class = |policy| sched::set_policy(policy).map_err(|error| error.to_string());
        class(Policy::Other)?;
        let started = self.start(noise, synchronized, seed);
        class(self.own_policy)?;
        started.map(Some)
    }

    fn start(&mut self, noise: NoiseSpec, synchronized: bool, seed: u64) -> Result<Injection, String> {
        let plan = PreemptPlan {
            cpus: vec![(self.seat.cpu, noise.trace(seed).map_err(|error| error.to_string())?)],
            together: if synchronized { Together::All } else { Together::Apart },
            seed,
            // Every rank has another number, so that they start at different places.
            node: self.job.rank() as u64,
            policy: self.policy,
            fit: Fit::Exact,
            packets: false,
            log: 0,
        };
        let grounds = Grounds::read(Path::new("/"), [self.seat.cpu]);
        Injection::start_again(&plan, self.counter, &grounds, &mut self.tolls).map_err(|error| error.to_string())
    }
}
