//! The parallel benchmark (De et al. 2009): repeats a calibrated compute phase followed by a collective.

use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use becalm_analyze::job::{JobPhases, RankPhases};
use becalm_analyze::phases::{PhaseFigures, Slowest};
use becalm_bundle::{Phase, PhaseWriter, SUFFIX};
use becalm_linux::clock::{self, Counter, MonotonicRaw, Native, Source};
use becalm_linux::memory::{self, LockedWords};
use becalm_linux::sched::Policy;
use becalm_measure::describe_machine;
use becalm_measure::work::{Body, Work, WorkSize, calibrate};
use becalm_model::phases::{ClockRelationDoc, CollectiveCall, JobDoc, PhasesDoc, RankDoc, SCHEMA};
use becalm_report::{Form, JobGrainsReport};
use becalm_units::fault::{self, Context, Result, UsageError};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};
use clap::Args;
use mpi::traits::{Communicator, CommunicatorCollectives};

use crate::calls::{Call, payload};
use crate::clocks::{self, RoundTrip};
use crate::job::{Job, bring_to_leader, gather, largest, library, tell, texts};
use crate::node::Seat;
use crate::round_trips;

/// The number of uncounted phases at the start, which load code and pages and open connections.
const REHEARSAL: u64 = 16;
/// The longest grain and the most phases.
const GRAIN_MAX: Nanos = Nanos::from_secs(3_600);
const PHASES_MAX: u64 = 1 << 28;

/// The measurement if no command is given.
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Compute time per phase, such as 1ms, or a list with a recording for each; 0s runs collectives back to back
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1ms", allow_hyphen_values = true)]
    grain: Vec<Nanos>,

    /// Number of phases
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    phases: u64,

    /// Collective that ends a phase: none, barrier, allreduce, alltoall
    #[arg(long, value_name = "NAME", default_value_t = CollectiveCall::Barrier)]
    collective: CollectiveCall,

    /// Bytes of the collective; for alltoall, of each pair of ranks
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    bytes: u64,

    /// Scheduling class of the ranks: other, batch, fifo:PRIORITY, rr:PRIORITY
    #[arg(long, value_name = "CLASS", default_value = "other")]
    sched: Policy,

    /// Recording to write, ending in .becalm; several grains get one each, with the grain before it [default:
    /// mpi-TIME.becalm]
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,

    /// Treat this many ranks of a node as a node of their own, to try out what several nodes do
    #[arg(long, value_name = "COUNT", hide = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks_per_node: Option<u32>,

    /// Print one JSON document (becalm.mpi/1; becalm.mpi-sweep/1 for several grains)
    #[arg(long)]
    json: bool,
}

/// Measures, stores, and on rank 0 prints. Fails if any rank cannot be placed, or the run cannot be stored.
pub fn run(args: &BenchArgs, job: &Job, out: &mut dyn Write) -> Result<()> {
    job.agree(args.check())?;
    // Per node: its ranks read the same counter.
    match clock::choose(Path::new("/")).source {
        Source::Native => each_grain::<Native>(args, job, out),
        Source::MonotonicRaw => each_grain::<MonotonicRaw>(args, job, out),
    }
}

/// Runs the grains one after the other, and on rank 0 prints the results.
fn each_grain<C: Counter>(args: &BenchArgs, job: &Job, out: &mut dyn Write) -> Result<()> {
    let seat = Seat::take::<C>(job, args.sched)?;
    let path = output(args, job);
    let mut runs = Vec::new();
    for grain in &args.grain {
        let path = if args.grain.len() == 1 { path.clone() } else { grain_path(&path, *grain) };
        let phases = measure::<C>(args, *grain, &path, job, &seat)?;
        runs.extend(phases.map(|phases| (path.display().to_string(), phases)));
    }
    match runs.as_slice() {
        [] => return Ok(()),
        [(_, phases)] => becalm_report::print(phases, args.json, Form::default(), out)?,
        runs => becalm_report::print(&JobGrainsReport { runs }, args.json, Form::default(), out)?,
    }
    if !args.json {
        let paths: Vec<&str> = runs.iter().map(|(path, _)| path.as_str()).collect();
        writeln!(out, "\n  stored in {}", paths.join(", "))?;
    }
    Ok(())
}

/// The path of the run with that grain: `job-100us.becalm` for `job.becalm`.
fn grain_path(path: &Path, grain: Nanos) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(SUFFIX).unwrap_or(&name);
    path.with_file_name(format!("{stem}-{grain}{SUFFIX}"))
}

impl BenchArgs {
    fn check(&self) -> Result<()> {
        for (at, grain) in self.grain.iter().enumerate() {
            if !(Nanos::ZERO..=GRAIN_MAX).contains(grain) {
                return Err(UsageError::new(format!("--grain {grain} is outside of 0s to {GRAIN_MAX}")).into());
            }
            if self.grain[..at].contains(grain) {
                return Err(UsageError::new(format!("--grain holds {grain} twice")).into());
            }
        }
        if !(1..=PHASES_MAX).contains(&self.phases) {
            return Err(UsageError::new(format!("--phases {} is outside of 1 to {PHASES_MAX}", self.phases)).into());
        }
        if self.grain.contains(&Nanos::ZERO) && self.collective == CollectiveCall::None {
            return Err(UsageError::new("--grain 0s with --collective none leaves nothing to do").into());
        }
        Ok(())
    }
}

/// Measures and stores the phases of one grain. Returns them on rank 0.
fn measure<C: Counter>(
    args: &BenchArgs,
    grain: Nanos,
    path: &Path,
    job: &Job,
    seat: &Seat,
) -> Result<Option<JobPhases>> {
    let mut work = Work::new(Body::Lcg, Path::new("/"), seat.cpu).expect("the generator runs everywhere");
    let mut doc = document(args, grain, job, seat);
    let mut writer = None;
    if job.leaders.is_some() {
        doc.ranks.push(RankDoc { rank: job.rank() as u32, cpu: seat.cpu, iterations: 0, calibrated_ns: Nanos::ZERO });
        writer = Some(PhaseWriter::create(path, &doc).map_err(fault::Error::from));
    }
    let mut writer = job.agree(writer.transpose())?;
    let words = LockedWords::new(args.phases as usize * WORDS).context("cannot keep the phases in memory");
    let words = job.agree(words)?;

    let compute = compute_phase::<C>(&mut work, grain, seat.rate, job);
    let mut call = Call::new(&job.world, args.collective, args.bytes);
    memory::lock_current_pages();
    let before = round_trips(job, || seat.now::<C>());
    phases::<C>(&mut work, compute.iterations, &mut call, &words[..REHEARSAL.min(args.phases) as usize * WORDS]);
    job.world.barrier();
    let first = phases::<C>(&mut work, compute.iterations, &mut call, &words);
    job.world.barrier();
    let after = round_trips(job, || seat.now::<C>());

    let own = on_axis(first, &words, seat.axis);
    let mut slowest = Slowest::default();
    own.iter().enumerate().for_each(|(number, phase)| slowest.add(job.rank().unsigned_abs(), number, phase));
    for series in [&mut slowest.compute, &mut slowest.collective, &mut slowest.total] {
        largest(job, series);
    }
    slowest.latest = latest(job, &own, &slowest.compute);
    let by_rank = by_rank(job, seat, &own);
    doc.relation = relation(job, &before, &after);
    doc.ranks = rank_docs(job, seat, compute, seat.rate);
    doc.complete = true;
    let mut ranks: Vec<Vec<Phase>> = Vec::new();
    bring_to_leader(&job.node, numbers(&own), |numbers| ranks.push(phases_of(&numbers)));
    let stored = writer.as_mut().map_or(Ok(()), |writer| Ok(writer.store(&doc, &ranks)?));
    job.agree(stored)?;

    let nodes = job.leaders.as_ref().map(|leaders| {
        let text = serde_json::to_string(&doc).unwrap_or_default();
        texts(leaders, &text).iter().filter_map(|text| serde_json::from_str(text).ok()).collect::<Vec<PhasesDoc>>()
    });
    Ok(job.is_first().then(|| {
        let nodes = nodes.expect("rank 0 leads its node");
        let ranks = named(by_rank, &nodes);
        JobPhases { nodes, slowest, ranks }
    }))
}

/// The rank that computed longest in each phase; the lowest of equals.
fn latest(job: &Job, own: &[Phase], longest: &[i64]) -> Vec<u32> {
    // Negated, because the job can compute the largest value.
    let rank = |(phase, longest): (&Phase, &i64)| match phase.compute_ns == *longest {
        true => -i64::from(job.rank()),
        false => i64::MIN,
    };
    let mut ranks: Vec<i64> = own.iter().zip(longest).map(rank).collect();
    largest(job, &mut ranks);
    ranks.iter().map(|rank| u32::try_from(-rank).unwrap_or(0)).collect()
}

/// Words of memory per phase: the readings after its compute phase and after its collective.
const WORDS: usize = 2;

/// The loop itself. A phase starts with the final reading of the previous one, so the time for storing is part of the next phase and no
/// time is lost. Returns the first reading.
#[inline(never)]
fn phases<C: Counter>(
    work: &mut Work,
    iterations: u64,
    call: &mut Call<'_>,
    words: &[std::sync::atomic::AtomicU64],
) -> u64 {
    let first = C::read();
    for phase in words.chunks_exact(WORDS) {
        if iterations > 0 {
            black_box(work.run::<C>(iterations));
        }
        phase[0].store(C::read(), Ordering::Relaxed);
        call.run();
        phase[1].store(C::read(), Ordering::Relaxed);
    }
    first
}

/// The number of iterations for the grain on this rank's CPU, while all other ranks calibrate as well.
pub fn compute_phase<C: Counter>(work: &mut Work, grain: Nanos, rate: TickRate, job: &Job) -> WorkSize {
    job.world.barrier();
    match grain {
        Nanos::ZERO => WorkSize { iterations: 0, ticks: 0.0, trials: 0 },
        grain => calibrate::<C>(work, grain, rate),
    }
}

/// Converts the phases to the node's clock: whole nanoseconds that add up.
fn on_axis(first: u64, words: &[std::sync::atomic::AtomicU64], axis: TicksToNanos) -> Vec<Phase> {
    let instant = |ticks: u64| axis.instant(Ticks::new(ticks)).get();
    let mut start_ns = instant(first);
    let phase = |readings: &[std::sync::atomic::AtomicU64]| {
        let [computed, ended] = [0, 1].map(|at: usize| instant(readings[at].load(Ordering::Relaxed)));
        let phase =
            Phase { start_ns, compute_ns: (computed - start_ns).max(0), collective_ns: (ended - computed).max(0) };
        start_ns = ended;
        phase
    };
    words.chunks_exact(WORDS).map(phase).collect()
}

fn numbers(phases: &[Phase]) -> Vec<i64> {
    phases.iter().flat_map(|phase| [phase.start_ns, phase.compute_ns, phase.collective_ns]).collect()
}

fn phases_of(numbers: &[i64]) -> Vec<Phase> {
    let phase = |three: &[i64]| Phase { start_ns: three[0], compute_ns: three[1], collective_ns: three[2] };
    numbers.chunks_exact(3).map(phase).collect()
}

/// The run's directory: the requested one, or a name with the time, the same for all ranks.
fn output(args: &BenchArgs, job: &Job) -> PathBuf {
    let own = match &args.output {
        Some(path) => return path.clone(),
        None if job.is_first() => jiff::Timestamp::now().strftime("mpi-%Y%m%dT%H%M%SZ.becalm").to_string(),
        None => String::new(),
    };
    PathBuf::from(texts(&job.world, &own).swap_remove(0))
}

fn document(args: &BenchArgs, grain: Nanos, job: &Job, seat: &Seat) -> PhasesDoc {
    let (_, nodes) = job.nodes();
    PhasesDoc {
        schema: SCHEMA.to_owned(),
        node: seat.node.clone(),
        program: concat!("becalm-mpi ", env!("CARGO_PKG_VERSION")).to_owned(),
        origin: seat.origin,
        complete: false,
        machine: describe_machine(Path::new("/")),
        clock: seat.clock.clone(),
        relation: ClockRelationDoc::default(),
        job: JobDoc {
            // The same text on every node, even if library names differ.
            library: texts(&job.world, &if job.is_first() { library() } else { String::new() }).swap_remove(0),
            ranks: job.ranks() as u32,
            nodes: nodes as u32,
            grain_ns: grain,
            phases: args.phases,
            collective: args.collective,
            bytes: payload(args.collective, args.bytes),
            sched: args.sched.to_string(),
        },
        ranks: Vec::new(),
        warnings: seat.warnings(),
    }
}

fn round_trips(job: &Job, clock: impl Fn() -> i64) -> Vec<Vec<RoundTrip>> {
    job.leaders.as_ref().map_or_else(Vec::new, |leaders| round_trips::with_each(leaders, clock))
}

/// The relation of this node's clock to rank 0's, on the first rank of each node.
fn relation(job: &Job, before: &[Vec<RoundTrip>], after: &[Vec<RoundTrip>]) -> ClockRelationDoc {
    let Some(leaders) = &job.leaders else { return ClockRelationDoc::default() };
    let figures = |relation: ClockRelationDoc| {
        let ClockRelationDoc { offset_ns, drift_ratio, error_ns, round_trip_ns, round_trips } = relation;
        [offset_ns, drift_ratio, error_ns, round_trip_ns.get() as f64, round_trips as f64]
    };
    let relations = before.iter().zip(after).map(|(before, after)| clocks::relate(before, after).unwrap_or_default());
    let mut all: Vec<f64> = relations.flat_map(figures).collect();
    all.resize(leaders.size() as usize * 5, 0.0);
    tell(leaders, &mut all);
    let own = &all[leaders.rank() as usize * 5..][..5];
    ClockRelationDoc {
        offset_ns: own[0],
        drift_ratio: own[1],
        error_ns: own[2],
        round_trip_ns: Nanos::new(own[3] as i64),
        round_trips: own[4] as u64,
    }
}

/// The ranks of the node, on its first rank.
fn rank_docs(job: &Job, seat: &Seat, compute: WorkSize, rate: TickRate) -> Vec<RankDoc> {
    let own = [
        f64::from(job.rank()),
        f64::from(seat.cpu.get()),
        compute.iterations as f64,
        compute.duration(rate).get() as f64,
    ];
    let doc = |told: &[f64]| RankDoc {
        rank: told[0] as u32,
        cpu: CpuId::new(told[1] as u32),
        iterations: told[2] as u64,
        calibrated_ns: Nanos::new(told[3] as i64),
    };
    gather(&job.node, &own).chunks_exact(4).map(doc).collect()
}

/// The number of values that a rank sends to rank 0: its node, its CPU, and twice the five figures.
const TOLD: usize = 12;

fn by_rank(job: &Job, seat: &Seat, own: &[Phase]) -> Vec<f64> {
    let figures = |time: fn(&Phase) -> i64| {
        let series: Vec<i64> = own.iter().map(time).collect();
        let PhaseFigures { mean_ns, median_ns, worst_ns, min_ns, max_ns } =
            PhaseFigures::from_durations(&series).expect("there are phases");
        [mean_ns, median_ns as f64, worst_ns, min_ns as f64, max_ns as f64]
    };
    let (node, _) = job.nodes();
    let mut told = vec![f64::from(node), f64::from(seat.cpu.get())];
    told.extend(figures(|phase| phase.compute_ns));
    told.extend(figures(|phase| phase.collective_ns));
    gather(&job.world, &told)
}

fn named(told: Vec<f64>, nodes: &[PhasesDoc]) -> Vec<RankPhases> {
    let figures = |told: &[f64]| PhaseFigures {
        mean_ns: told[0],
        median_ns: told[1] as i64,
        worst_ns: told[2],
        min_ns: told[3] as i64,
        max_ns: told[4] as i64,
    };
    let rank = |(rank, told): (usize, &[f64])| RankPhases {
        rank: rank as u32,
        node: nodes.get(told[0] as usize).map_or_else(String::new, |doc| doc.node.clone()),
        cpu: CpuId::new(told[1] as u32),
        compute: figures(&told[2..7]),
        collective: figures(&told[7..12]),
    };
    told.chunks_exact(TOLD).enumerate().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn phases_lie_end_to_end_and_add_up() {
        // A counter of 3 GHz: readings do not fall on nanoseconds.
        let axis = TicksToNanos::new(Ticks::new(1_000), TickRate::from_hz(3e9));
        let readings: Vec<AtomicU64> = (0..200_u64).map(|at| AtomicU64::new(1_001 + at * 997)).collect();
        let phases = on_axis(1_000, &readings, axis);
        assert_eq!(phases.len(), 100);
        for pair in phases.windows(2) {
            assert_eq!(pair[0].start_ns + pair[0].compute_ns + pair[0].collective_ns, pair[1].start_ns);
        }
        assert_eq!(phases[0].start_ns, 0);
        assert_eq!(phases_of(&numbers(&phases)), phases);
    }
}
