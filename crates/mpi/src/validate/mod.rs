//! `becalm-mpi validate`: injects known noise under a real job, and compares the predictions of the crate `scale` with measurements
//! (Beckman et al. 2007, sections 4 and 5).

mod cells;
mod grid;
mod own_noise;
mod predict;
mod superpose;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use becalm_analyze::validation::stands_out;
use becalm_bundle::Draft;
use becalm_linux::clock::{self, Counter, MonotonicRaw, Native, Source};
use becalm_linux::memory;
use becalm_linux::sched::{self, Policy};
use becalm_measure::work::{Body, Work, calibrate};
use becalm_model::phases::CollectiveCall;
use becalm_model::validation::{ValidationCell, ValidationDoc};
use becalm_report::{Form, ValidationSweepReport, validate_figure};
use becalm_scale::estimate::from_replicas;
use becalm_units::fault::{Context, Result, UsageError};
use becalm_units::{Nanos, Share, counted};
use clap::Args;

use self::cells::{CellRun, PhaseBench};
use self::grid::{GridCell, NoiseGrid};
use self::own_noise::OwnNoise;
use self::predict::{Fit, Model, Quiet};
use crate::bench::compute_phase;
use crate::calls::Call;
use crate::job::{Job, bring_to_leader, library};
use crate::node::Seat;
use crate::round_trips::{MessageCost, message_cost};

/// Compare predictions with a real job under injected noise
///
/// Measures the noise of the CPUs that the ranks run on and the cost of messages, and runs the job without injected
/// noise and with a grid of it. Predicts every cell from these measurements, and prints both. Needs root or
/// CAP_SYS_NICE for its real-time threads.
#[derive(Args, Debug)]
pub struct ValidateArgs {
    /// Collective that ends a phase: barrier, allreduce, alltoall
    #[arg(long, value_name = "NAME", default_value_t = CollectiveCall::Barrier)]
    collective: CollectiveCall,

    /// Compute time per phase, shorter than the detours, or a list such as 10us,100us with a grid for each. 0s runs
    /// collectives back to back, whose own time must be steady
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "10us", allow_hyphen_values = true)]
    grain: Vec<Nanos>,

    /// Times between the starts of two detours (interruptions)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1ms,10ms,100ms")]
    intervals: Vec<Nanos>,

    /// Lengths of the detours
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16us,50us,100us,200us")]
    detours: Vec<Nanos>,

    /// Shares of time, such as 0.1%, that each detour is also injected with, or none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0.015%,0.08%,0.15%,1%", value_parser = share)]
    ratios: Vec<Option<Share>>,

    /// Minimum time of a cell; cells with long intervals run for two of them
    #[arg(long, value_name = "TIME", default_value = "400ms")]
    time: Nanos,

    /// Number of runs per cell, each with other random offsets; up to three times as many if noise of 0.5 % or more has
    /// an unclear effect
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=1000))]
    repetitions: u32,

    /// Number of predictions per cell, each with other random offsets
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    replicas: u64,

    /// Time to measure the noise of the CPUs first
    #[arg(long, value_name = "TIME", default_value = "2s")]
    noise_time: Nanos,

    /// Scheduling class of the ranks
    #[arg(long, value_name = "CLASS", default_value = "other")]
    sched: Policy,

    /// Scheduling class of the noise, above that of the ranks
    #[arg(long, value_name = "CLASS", default_value = "fifo:51")]
    inject_sched: Policy,

    /// Seed of the random offsets
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// SVG file to write or replace, with predicted and measured times; several grains get one file each, named after
    /// it
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,

    /// Treat this many ranks of a node as a node of their own, to try out what several nodes do
    #[arg(long, value_name = "COUNT", hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks_per_node: Option<u32>,

    /// Print one JSON document (becalm.mpi-validate/1; becalm.mpi-validate-sweep/1 for several grains)
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<Option<Share>, String> {
    match text {
        "none" => Ok(None),
        text => text.parse().map(Some).map_err(|error: becalm_units::ParseShareError| error.to_string()),
    }
}

/// Measures and predicts, and on rank 0 prints. Fails if any rank cannot be placed, noise cannot be injected at all, or a prediction fails.
pub fn run(args: &ValidateArgs, job: &Job, out: &mut dyn Write) -> Result<()> {
    job.agree(args.check(job))?;
    match clock::choose(Path::new("/")).source {
        Source::Native => run_with::<Native>(args, job, Source::Native, out),
        Source::MonotonicRaw => run_with::<MonotonicRaw>(args, job, Source::MonotonicRaw, out),
    }
}

impl ValidateArgs {
    fn check(&self, job: &Job) -> Result<()> {
        let usage = |text: String| Err(UsageError::new(text).into());
        if job.ranks() < 2 {
            return usage(
                "one rank has no other to wait for: start at least two, such as mpirun -n 2 becalm-mpi validate"
                    .to_owned(),
            );
        }
        if self.collective == CollectiveCall::None {
            return usage("--collective none: ranks that do not meet are not slowed down by each other".to_owned());
        }
        if !self.inject_sched.is_realtime() || self.inject_sched.priority() <= self.sched.priority() {
            let text =
                format!("--inject-sched {} would not take the CPU from ranks of {}", self.inject_sched, self.sched);
            return usage(text);
        }
        let grains = self.grain.iter().map(|grain| ("--grain", *grain, Nanos::ZERO));
        let times =
            [("--time", self.time, Nanos::from_millis(10)), ("--noise-time", self.noise_time, Nanos::from_millis(100))];
        for (name, time, least) in times.into_iter().chain(grains) {
            if !(least..=Nanos::from_secs(60)).contains(&time) {
                return usage(format!("{name} {time} is outside of {least} to 60s"));
            }
        }
        self.grid().check().map_err(|why| UsageError::new(why).into())
    }

    /// The grains, each once, in the given order.
    fn grains(&self) -> Vec<Nanos> {
        let mut grains = Vec::new();
        for grain in &self.grain {
            if !grains.contains(grain) {
                grains.push(*grain);
            }
        }
        grains
    }

    /// The file of a grain's figure, if requested: `FILE-10us.svg` for `FILE.svg` with several grains.
    fn figure_of(&self, grain: Nanos) -> Option<PathBuf> {
        let file = self.figure.as_ref()?;
        if self.grains().len() == 1 {
            return Some(file.clone());
        }
        let mut name = file.file_stem().unwrap_or_default().to_os_string();
        name.push(format!("-{grain}"));
        if let Some(ending) = file.extension() {
            name.push(".");
            name.push(ending);
        }
        Some(file.with_file_name(name))
    }

    fn grid(&self) -> NoiseGrid {
        NoiseGrid {
            intervals: self.intervals.clone(),
            detours: self.detours.clone(),
            ratios: self.ratios.iter().flatten().map(|share| share.ratio()).collect(),
        }
    }
}

fn run_with<C: Counter>(args: &ValidateArgs, job: &Job, source: Source, out: &mut dyn Write) -> Result<()> {
    let seat = Seat::take::<C>(job, args.sched)?;
    let grid = args.grid().cells();
    if job.is_first() {
        announce(args, &grid)?;
    }
    let mut all = Vec::new();
    for grain in args.grains() {
        let measured = measure::<C>(args, grain, job, &seat, source, &grid)?;
        let mut heard = Vec::new();
        // A prediction does not need all ranks of a large job.
        let heard_of = measured.own.as_ref().filter(|_| job.rank() < predict::RANKS_HEARD);
        let told = heard_of.map_or_else(Vec::new, OwnNoise::numbers);
        bring_to_leader(&job.world, told, |numbers| heard.push(numbers));
        let heard = heard.iter().filter(|numbers| !numbers.is_empty());
        let own: Vec<OwnNoise> = heard.map(|numbers| OwnNoise::from_numbers(numbers)).collect();
        all.push((grain, measured, own));
    }
    let (_, nodes) = job.nodes();
    if !job.is_first() {
        job.wait_for_first();
        return Ok(());
    }
    // The rest is not timing-critical: it may use all CPUs.
    sched::set_affinity(&seat.allowed)?;
    sched::set_policy(Policy::Other)?;
    let predicted = |(grain, measured, own): &(Nanos, RankMeasured, Vec<OwnNoise>)| -> Result<ValidationDoc> {
        let mut report = predicted(args, *grain, job, &grid, measured, own)?;
        report.nodes = nodes as u32;
        report.warnings.extend(seat.nameless.clone());
        Ok(report)
    };
    let reports = all.iter().map(predicted).collect::<Result<Vec<_>>>()?;
    match &reports[..] {
        [report] => becalm_report::print(report, args.json, Form::default(), out)?,
        grains => becalm_report::print(&ValidationSweepReport { grains }, args.json, Form::default(), out)?,
    }
    for report in &reports {
        let Some(file) = args.figure_of(report.grain_ns) else { continue };
        let mut draft = Draft::replace(&file)?;
        let written = draft.write_all(validate_figure(report).as_bytes());
        written.with_context(|| format!("cannot write {}", file.display()))?;
        draft.finish()?;
        if !args.json {
            writeln!(out, "\n  drawn in {}", file.display())?;
        }
    }
    job.release();
    Ok(())
}

/// Prints the expected measuring time on standard error. The predictions follow, and their time depends on the measurements.
fn announce(args: &ValidateArgs, grid: &[GridCell]) -> io::Result<()> {
    let (least, most) = measuring_seconds(args, grid);
    let cells = counted((grid.len() * args.grains().len()) as u64, "cell", "cells");
    writeln!(io::stderr(), "becalm-mpi: {cells}, measured in {least:.0} to {most:.0} s and predicted after that")
}

/// The measuring time if no cell's runs are repeated, and if all are, in seconds.
fn measuring_seconds(args: &ValidateArgs, grid: &[GridCell]) -> (f64, f64) {
    let least: Nanos = grid.iter().fold(Nanos::ZERO, |sum, cell| sum + cell.lasts(args.time));
    let intervals: BTreeSet<Nanos> = grid.iter().map(|cell| cell.interval).collect();
    let grains = args.grains().len() as f64;
    let repeated = f64::from(args.repetitions) * grains;
    // The runs without noise take 200 ms.
    let runs = (least.as_secs_f64() + 0.2 * grid.len() as f64) * repeated;
    // The cost of detours takes about 300 ms per interval to measure; the cost of messages and the grain, a second.
    let more = 0.3 * intervals.len() as f64 * repeated + (args.noise_time.as_secs_f64() + 1.0) * grains;
    (runs + more, runs * f64::from(TIMES_MORE) + more)
}

struct RankMeasured {
    /// The noise of its CPU; `None` if another rank of that CPU measured it.
    own: Option<OwnNoise>,
    /// The cost of messages; `None` on all ranks but the first.
    cost: Option<MessageCost>,
    /// The runs of each cell, or why there is none.
    runs: Vec<Vec<Result<CellRun, String>>>,
    /// The length of a phase and of its compute phase without noise.
    quiet: Quiet,
    /// The number of CPUs with ranks, and the largest number of ranks that share one.
    cpus: u64,
    crowd: u64,
}

/// Measures the noise of the CPUs, the cost of messages, and all cells. All ranks call it.
fn measure<C: Counter>(
    args: &ValidateArgs,
    grain: Nanos,
    job: &Job,
    seat: &Seat,
    source: Source,
    grid: &[GridCell],
) -> Result<RankMeasured> {
    let own = job.agree(own_noise::measure::<C>(seat, args.noise_time, job))?;
    let (cpus, crowd) = (job.sum(f64::from(u8::from(seat.first_on_cpu))) as u64, job.most(seat.crowd as i64) as u64);
    // Ranks that share a CPU would alternate to exchange messages.
    let last = job.most(if seat.first_on_cpu { job.rank().into() } else { 0 }) as i32;
    let last = if last == 0 { job.ranks() - 1 } else { last };
    let cost = message_cost(&job.world, last, || seat.now::<C>());
    job.meet_asleep();
    let mut work = Work::new(Body::Lcg, Path::new("/"), seat.cpu).expect("the generator runs everywhere");
    let iterations = iterations::<C>(grain, job, seat, &mut work, crowd);
    memory::lock_current_pages();
    let call = Call::new(&job.world, args.collective, PAYLOAD);
    let mut bench = PhaseBench::new(job, seat, work, iterations, call, source, (args.sched, args.inject_sched));
    bench.warm_up::<C>();
    let mut runs = vec![Vec::new(); grid.len()];
    // One repetition of all cells after another, so slow changes affect all cells alike.
    for repetition in 0..u64::from(args.repetitions * TIMES_MORE) {
        // Each requested repetition measures the cost of detours again, so no single moment decides. Additional ones, for effects that are
        // small compared with their error, only improve the mean.
        if repetition < args.repetitions.into() {
            bench.forget_tolls();
        }
        for (number, cell) in (0..).zip(grid) {
            let runs = &mut runs[number as usize];
            // All ranks have the same times, so all ranks decide the same.
            if repetition >= args.repetitions.into() && (!can_show(cell) || shows(&slowdowns(runs))) {
                continue;
            }
            let seed = args.seed.wrapping_add(repetition * grid.len() as u64 + number);
            runs.push(bench.under::<C>(cell, cell.lasts(args.time), seed)?);
        }
    }
    Ok(RankMeasured { own, cost, runs, quiet: bench.quiet(), cpus, crowd })
}

/// The number of iterations of a compute phase. If ranks share a CPU, the first one calibrates while the others sleep.
fn iterations<C: Counter>(grain: Nanos, job: &Job, seat: &Seat, work: &mut Work, crowd: u64) -> u64 {
    if crowd == 1 {
        return compute_phase::<C>(work, grain, seat.rate, job).iterations;
    }
    let own = match (seat.first_on_cpu, grain) {
        (true, grain) if grain > Nanos::ZERO => calibrate::<C>(work, grain, seat.rate).iterations,
        _ => 0,
    };
    job.meet_asleep();
    job.most(own as i64) as u64
}

/// The maximum factor on the requested runs of a cell.
const TIMES_MORE: u32 = 3;

/// Whether a cell has enough noise for its runs to show an effect.
fn can_show(cell: &GridCell) -> bool {
    cell.detour.get() as f64 >= 0.005 * cell.interval.get() as f64
}

fn slowdowns(runs: &[Result<CellRun, String>]) -> Vec<f64> {
    runs.iter().flatten().map(|run| run.mean_ns / run.quiet_ns).collect()
}

/// Whether the effect is large compared with its error. If all runs failed, more of them would not help.
fn shows(slowdowns: &[f64]) -> bool {
    from_replicas(slowdowns).is_none_or(|estimate| stands_out(&estimate))
}

/// Predicts every cell from the noise of the ranks' CPUs and the cost of messages; returns it with the measurements.
fn predicted(
    args: &ValidateArgs,
    grain: Nanos,
    job: &Job,
    grid: &[GridCell],
    measured: &RankMeasured,
    own: &[OwnNoise],
) -> Result<ValidationDoc> {
    let RankMeasured { cost, runs, quiet, cpus, crowd, .. } = measured;
    let cost = cost.context("messages cost nothing")?;
    let ask = predict::Ask {
        ranks: (*cpus).max(1),
        collective: args.collective,
        bytes: PAYLOAD,
        seed: args.seed,
        replicas: args.replicas,
    };
    let model = Model::new(ask, own, cost, *quiet)?;
    let cells: Result<Vec<ValidationCell>> =
        grid.iter().zip(runs).map(|(cell, runs)| outcome(cell, runs, &model)).collect();
    let done = || runs.iter().flatten().flatten();
    Ok(ValidationDoc {
        library: library(),
        ranks: job.ranks() as u32,
        nodes: 1,
        collective: model.collective().to_string(),
        grain_ns: grain,
        sched: args.sched.to_string(),
        quiet_phase_ns: quiet.phase_ns,
        quiet_compute_ns: quiet.compute_ns,
        cpus: *cpus as u32,
        quiet: done().map(|run| run.quiet_ns).collect(),
        unsteady: done().filter(|run| !run.steady).count(),
        own_noise_ratio: own.iter().map(OwnNoise::ratio).collect(),
        network: model.network().to_string(),
        one_way_ns: cost.one_way_ns,
        fit_factor: model.fit().factor,
        repetitions: args.repetitions,
        replicas: args.replicas,
        seed: args.seed,
        cells: cells?,
        warnings: warnings(model.fit(), *quiet, *crowd),
    })
}

/// Limitations of the numbers.
fn warnings(fit: Fit, quiet: Quiet, crowd: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    if fit.at_bound {
        warnings.push(format!(
            "no network makes a predicted phase as long as the {:.0} ns that one took without noise, of which {:.0} ns are its compute \
             phase: what the predictions say of messages is not tested; run it on a quieter machine, or with a longer --time",
            quiet.phase_ns, quiet.compute_ns
        ));
    }
    let turns = quiet.phase_ns / quiet.compute_ns.max(1.0);
    if crowd > 1 && turns > TURNS {
        warnings.push(format!(
            "up to {crowd} ranks share a CPU, and a phase takes {turns:.1} times as long as the compute phases of all of them: what is \
             measured is how they take turns; give them more to compute (--grain), or start no more ranks than there are CPUs"
        ));
    } else if crowd > 1 {
        warnings.push(format!(
            "up to {crowd} ranks share a CPU: they are predicted as one rank that computes for all of them, and the taking of turns is \
             in what messages cost"
        ));
    }
    warnings
}

/// Above this multiple of the compute phases of all ranks on a CPU, ranks measure each other.
const TURNS: f64 = 2.0;

/// Bytes of the collective: one double.
const PAYLOAD: u64 = 8;

/// The slowdowns of a cell's runs, with its prediction.
fn outcome(cell: &GridCell, runs: &[Result<CellRun, String>], model: &Model) -> Result<ValidationCell> {
    let done: Vec<&CellRun> = runs.iter().flatten().collect();
    // An interval needs two.
    let why_not = if done.len() < 2 { runs.iter().find_map(|run| run.as_ref().err()).cloned() } else { None };
    let slowdowns = slowdowns(runs);
    let predicted = match &why_not {
        None => Some(model.slowdown(cell)?),
        Some(_) => None,
    };
    let delivered = (!done.is_empty()).then(|| done.iter().map(|run| run.delivered).sum::<f64>() / done.len() as f64);
    Ok(ValidationCell {
        interval_ns: cell.interval,
        detour_ns: cell.detour,
        synchronized: cell.synchronized,
        constant_ratio: cell.ratio,
        requested_ratio: cell.detour.get() as f64 / cell.interval.get() as f64,
        delivered_ratio: delivered,
        measured: if why_not.is_none() { from_replicas(&slowdowns) } else { None },
        predicted,
        why_not,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_go_on_until_the_effect_is_large_against_its_error() {
        assert!(shows(&[1.20, 1.21, 1.19, 1.20]));
        assert!(!shows(&[1.20, 0.90, 1.10, 1.01]));
        assert!(shows(&[]));
        let cell = |detour| GridCell { interval: Nanos::from_millis(1), detour, synchronized: true, ratio: None };
        assert!(can_show(&cell(Nanos::from_micros(5))) && !can_show(&cell(Nanos::from_micros(4))));
    }

    #[test]
    fn ranks_that_share_cpus_are_warned_of_where_they_measure_each_other() {
        let fit = Fit { factor: 2.0, at_bound: false };
        let quiet = |phase_ns| Quiet { phase_ns, compute_ns: 20_000.0 };
        assert!(warnings(fit, quiet(21_000.0), 1).is_empty());
        assert!(warnings(fit, quiet(21_000.0), 2)[0].contains("predicted as one rank"));
        assert!(warnings(fit, quiet(90_000.0), 2)[0].contains("4.5 times"));
        assert!(warnings(Fit { at_bound: true, ..fit }, quiet(21_000.0), 1)[0].contains("not tested"));
    }
}
