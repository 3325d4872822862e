//! Runs the job, with and without injected noise, without keeping single phases.

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

/// The minimum length of a batch of phases without noise; after each batch the ranks agree whether to continue.
const BATCH: Nanos = Nanos::from_millis(20);
/// The number of phases in the first batch, which determines the length of a phase.
const FIRST: u64 = 64;

/// The length of the runs without noise, before and after each run with noise.
const BESIDE: Nanos = Nanos::from_millis(100);
/// The maximum difference of the times of these runs, relative to their mean.
const STEADY: f64 = 0.1;
/// The maximum number of attempts.
const ATTEMPTS: usize = 2;

/// The job, ready to run phases.
pub struct PhaseBench<'a> {
    job: &'a Job,
    seat: &'a Seat,
    work: Work,
    iterations: u64,
    call: Call<'a>,
    counter: Source,
    /// The classes of the ranks and of the noise.
    own_policy: Policy,
    policy: Policy,
    /// The approximate length of a phase.
    phase_ns: f64,
    quietest_ns: f64,
    /// The compute phase in the quietest batch without collectives.
    computing_ns: f64,
    /// The costs of detours on this rank's CPU, by frequency of the noise.
    tolls: KnownTolls,
}

/// The result of one run of a cell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CellRun {
    /// The mean phase under noise, of the median batch.
    pub mean_ns: f64,
    /// The mean phase without injected noise, right before and after.
    pub quiet_ns: f64,
    /// Whether these two agree.
    pub steady: bool,
    /// The delivered share of injected time, averaged over the CPUs.
    pub delivered: f64,
}

impl<'a> PhaseBench<'a> {
    /// Prepares the job. The last argument holds the classes of the ranks and of the noise.
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

    /// Discards the measured costs of detours.
    pub fn forget_tolls(&mut self) {
        self.tolls = KnownTolls::default();
    }

    /// Measures the length of a phase.
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

    /// The mean phase of the quietest batch, and the mean compute phase of the quietest batch without collectives: both without noise.
    pub fn quiet(&self) -> Quiet {
        Quiet { phase_ns: self.quietest_ns, compute_ns: self.computing_ns }
    }

    /// Runs a batch of compute phases without collectives. Its time is that of the slowest node, from its first rank's start to its last
    /// one's end: ranks that share a CPU alternate, and the second one may start only when the first has ended.
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

    /// Runs a batch of phases; returns its time on the slowest rank.
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

    /// Runs batches for at least this time, agreed by all ranks, and returns the mean phase of the median batch, in nanoseconds. Bursts and
    /// rare events, such as another program, affect a batch but not the result; periodic noise is the same in all batches if they are whole
    /// intervals.
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

    /// Runs under noise, between two runs without. If these differ, the job's pace has changed (a hypervisor moved a CPU, another program
    /// started), and the run is repeated; likewise if noise could not be injected; up to `ATTEMPTS` attempts. Returns the reason if noise
    /// cannot be injected.
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
            // The times are common to all ranks, so all ranks decide the same.
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

    /// One rank per CPU injects there.
    ///
    /// Threads inherit the class of their creator, and injecting threads change theirs once they run. Under a real-time thread of the same
    /// priority they would never run, so the rank leaves its class while it starts them.
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
            // Each rank has its own number, so they start at different places.
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
