//! `becalm-mpi validate`: known noise is injected under a real job, and what the crate `scale` predicts is held against what
//! was measured (Beckman et al. 2007, sections 4 and 5).

mod cells;
mod grid;
mod own_noise;
mod predict;
mod superpose;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use becalm_bundle::Draft;
use becalm_linux::clock::{self, Counter, MonotonicRaw, Native, Source};
use becalm_linux::memory;
use becalm_linux::sched::{self, Policy};
use becalm_measure::work::{Body, Work};
use becalm_model::validation::{ValidationCell, ValidationDoc};
use becalm_report::{Form, validate_figure};
use becalm_scale::estimate::from_replicas;
use becalm_units::{Nanos, Share};
use clap::Args;

use self::cells::{CellRun, PhaseBench};
use self::grid::{GridCell, NoiseGrid};
use self::own_noise::OwnNoise;
use self::predict::Model;
use crate::bench::compute_phase;
use crate::calls::{Call, CollectiveCall};
use crate::job::{Job, bring_to_leader, library};
use crate::node::Seat;
use crate::outcome::UsageError;
use crate::round_trips::{MessageCost, message_cost};

/// Hold predictions against a real job under injected noise
///
/// Measures the noise of the CPUs that the ranks run on and what messages cost; runs the job without injected noise and with
/// a grid of it; predicts every cell from what was measured before, and prints both. As root, or with CAP_SYS_NICE, since
/// noise is made by real-time threads.
#[derive(Args, Debug)]
pub struct ValidateArgs {
    /// What the job does in every phase
    #[arg(long, value_name = "NAME", value_enum, default_value_t = CollectiveCall::Barrier)]
    collective: CollectiveCall,

    /// Useful CPU time of a phase, shorter than the detours; 0s is collectives back to back, whose own time must then be
    /// steady
    #[arg(long, value_name = "TIME", default_value = "10us", allow_hyphen_values = true)]
    grain: Nanos,

    /// The intervals from one detour to the next
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1ms,10ms,100ms")]
    intervals: Vec<Nanos>,

    /// How long detours last
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16us,50us,100us,200us")]
    detours: Vec<Nanos>,

    /// Shares of the time that detours take, like 0.1%: each detour is also made at the interval that gives each share; write
    /// none for no such cells
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0.015%,0.08%,0.15%,1%", value_parser = share)]
    ratios: Vec<Option<Share>>,

    /// How long a cell runs, at least; a cell with long intervals runs for two of them
    #[arg(long, value_name = "TIME", default_value = "400ms")]
    time: Nanos,

    /// How often a cell runs, each time with its noise at other places
    #[arg(long, value_name = "COUNT", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=1000))]
    repetitions: u32,

    /// How often a cell is predicted, each time with its noise at other places
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    replicas: u64,

    /// How long the noise of the CPUs is measured first
    #[arg(long, value_name = "TIME", default_value = "2s")]
    noise_time: Nanos,

    /// The scheduling class of the ranks
    #[arg(long, value_name = "CLASS", default_value = "other")]
    sched: Policy,

    /// The scheduling class of the noise, above that of the ranks
    #[arg(long, value_name = "CLASS", default_value = "fifo:51")]
    inject_sched: Policy,

    /// The seed from which random places are drawn
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Draw predicted against measured into this file, an SVG; one that is there already is replaced
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,

    /// Treat this many ranks of a node as a node of their own, to try out what several nodes do
    #[arg(long, value_name = "COUNT", hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks_per_node: Option<u32>,

    /// Print the result as one JSON document (becalm.mpi-validate/1)
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<Option<Share>, String> {
    match text {
        "none" => Ok(None),
        text => text.parse().map(Some).map_err(|error: becalm_units::ParseShareError| error.to_string()),
    }
}

/// Measures and predicts, and on rank 0 prints.
///
/// # Errors
/// If any rank cannot be placed, noise cannot be made at all, or a prediction cannot be had.
pub fn run(args: &ValidateArgs, job: &Job, out: &mut dyn Write) -> Result<()> {
    job.agree(args.check(job))?;
    match clock::choose(Path::new("/")).source {
        Source::Native => run_with::<Native>(args, job, Source::Native, out),
        Source::MonotonicRaw => run_with::<MonotonicRaw>(args, job, Source::MonotonicRaw, out),
    }
}

impl ValidateArgs {
    fn check(&self, job: &Job) -> Result<()> {
        let usage = |text: String| Err(UsageError(text).into());
        if job.ranks() < 2 {
            return usage(
                "one rank waits for nobody: start at least two, as in mpirun -n 2 becalm-mpi validate".to_owned(),
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
        for (name, time, least) in [
            ("--time", self.time, Nanos::from_millis(10)),
            ("--noise-time", self.noise_time, Nanos::from_millis(100)),
            ("--grain", self.grain, Nanos::ZERO),
        ] {
            if !(least..=Nanos::from_secs(60)).contains(&time) {
                return usage(format!("{name} {time} is outside of {least} to 60s"));
            }
        }
        self.grid().check().map_err(|why| UsageError(why).into())
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
    let measured = measure::<C>(args, job, &seat, source, &grid)?;
    let mut heard = Vec::new();
    // All ranks of a large job are more than a prediction needs.
    let told = if job.rank() < predict::RANKS_HEARD { measured.own.numbers() } else { Vec::new() };
    bring_to_leader(&job.world, told, |numbers| heard.push(numbers));
    let (_, nodes) = job.nodes();
    if !job.is_first() {
        job.wait_for_first();
        return Ok(());
    }
    // What follows takes time and no care: it may use all CPUs.
    sched::set_affinity(&seat.allowed)?;
    sched::set_policy(Policy::Other)?;
    let heard = heard.iter().filter(|numbers| !numbers.is_empty());
    let own: Vec<OwnNoise> = heard.map(|numbers| OwnNoise::from_numbers(numbers)).collect();
    let report = predicted(args, job, &grid, &measured, &own)?;
    let report = ValidationDoc { nodes: nodes as u32, warnings: seat.warnings(), ..report };
    becalm_report::print(&report, args.json, Form::default(), out)?;
    if let Some(file) = &args.figure {
        let mut draft = Draft::replace(file)?;
        let written = draft.write_all(validate_figure(&report).as_bytes());
        written.with_context(|| format!("cannot write {}", file.display()))?;
        draft.finish()?;
        if !args.json {
            writeln!(out, "\n  drawn in {}", file.display())?;
        }
    }
    job.release();
    Ok(())
}

/// Says on standard error how long the cells will take.
fn announce(args: &ValidateArgs, grid: &[GridCell]) -> io::Result<()> {
    let least: Nanos = grid.iter().fold(Nanos::ZERO, |sum, cell| sum + cell.lasts(args.time));
    // Measuring what a detour costs takes about 300 ms each time, and the runs without noise 200 ms.
    let whole = (least.as_secs_f64() + 0.5 * grid.len() as f64) * f64::from(args.repetitions);
    writeln!(io::stderr(), "becalm-mpi: {} cells, about {:.0} s", grid.len(), whole + 10.0)
}

/// What a rank has measured.
struct RankMeasured {
    /// The noise of its CPU.
    own: OwnNoise,
    /// What messages cost; `None` on all ranks but the first.
    cost: Option<MessageCost>,
    /// For each cell its runs, or why there is none.
    runs: Vec<Vec<Result<CellRun, String>>>,
    /// How long a phase of the quietest batch took, in nanoseconds.
    quietest_ns: f64,
}

/// Measures the noise of the CPUs, what messages cost, and all cells. All ranks call it.
fn measure<C: Counter>(
    args: &ValidateArgs,
    job: &Job,
    seat: &Seat,
    source: Source,
    grid: &[GridCell],
) -> Result<RankMeasured> {
    let own = job.agree(own_noise::measure::<C>(seat, args.noise_time, job))?;
    let cost = message_cost(&job.world, || seat.now::<C>());
    let mut work = Work::new(Body::Lcg, Path::new("/"), seat.cpu).expect("the generator runs everywhere");
    let iterations = compute_phase::<C>(&mut work, args.grain, seat.rate, job).iterations;
    memory::lock_current_pages();
    let call = Call::new(&job.world, args.collective, PAYLOAD);
    let mut bench = PhaseBench::new(job, seat, work, iterations, call, source, (args.sched, args.inject_sched));
    bench.warm_up::<C>();
    let mut runs = vec![Vec::new(); grid.len()];
    // The repetitions one after the other, so that what changes slowly hits all cells alike.
    for repetition in 0..u64::from(args.repetitions) {
        for (number, cell) in (0..).zip(grid) {
            let seed = args.seed.wrapping_add(repetition * grid.len() as u64 + number);
            runs[number as usize].push(bench.under::<C>(cell, cell.lasts(args.time), seed)?);
        }
    }
    Ok(RankMeasured { own, cost, runs, quietest_ns: bench.quietest_ns() })
}

/// Predicts every cell from the noise of the ranks' own CPUs and what messages cost, beside what was measured.
fn predicted(
    args: &ValidateArgs,
    job: &Job,
    grid: &[GridCell],
    measured: &RankMeasured,
    own: &[OwnNoise],
) -> Result<ValidationDoc> {
    let RankMeasured { cost, runs, quietest_ns, .. } = measured;
    let cost = cost.context("messages cost nothing")?;
    let ask = predict::Ask {
        ranks: job.ranks() as u64,
        grain: args.grain,
        collective: args.collective,
        bytes: PAYLOAD,
        seed: args.seed,
        replicas: args.replicas,
    };
    let model = Model::new(ask, own, cost, *quietest_ns)?;
    let cells: Result<Vec<ValidationCell>> =
        grid.iter().zip(runs).map(|(cell, runs)| outcome(cell, runs, &model)).collect();
    let done = || runs.iter().flatten().flatten();
    Ok(ValidationDoc {
        library: library(),
        ranks: job.ranks() as u32,
        nodes: 1,
        collective: model.collective().to_string(),
        grain_ns: args.grain,
        sched: args.sched.to_string(),
        quiet_phase_ns: *quietest_ns,
        quiet: done().map(|run| run.quiet_ns).collect(),
        unsteady: done().filter(|run| !run.steady).count(),
        own_noise_ratio: own.iter().map(OwnNoise::ratio).collect(),
        network: model.network().to_string(),
        one_way_ns: cost.one_way_ns,
        repetitions: args.repetitions,
        replicas: args.replicas,
        seed: args.seed,
        cells: cells?,
        warnings: Vec::new(),
    })
}

/// Bytes of the collective: one double.
const PAYLOAD: u64 = 8;

/// The slowdowns of a cell's runs, beside its prediction.
fn outcome(cell: &GridCell, runs: &[Result<CellRun, String>], model: &Model) -> Result<ValidationCell> {
    let done: Vec<&CellRun> = runs.iter().flatten().collect();
    // An interval takes two.
    let why_not = if done.len() < 2 { runs.iter().find_map(|run| run.as_ref().err()).cloned() } else { None };
    let slowdowns: Vec<f64> = done.iter().map(|run| run.mean_ns / run.quiet_ns).collect();
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
