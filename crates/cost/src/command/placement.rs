//! `becalm cost placement`: the cost of an interrupt for work on the interrupted hardware thread, its sibling, another core.

use std::io::Write;
use std::path::Path;

use becalm_command::Exit;
use becalm_command::arguments::cpu_id;
use becalm_linux::sched::{self, Policy};
use becalm_linux::signals::StopSignals;
use becalm_measure::work::Body;
use becalm_model::node::Ended;
use becalm_units::fault::{Context, Result, UsageError};
use becalm_units::{CpuId, Nanos};
use clap::Args;

use super::{OutputArgs, chosen_site, counted, progress_bar};
use crate::documents::{CostSamples, Costs, PlacementCosts, PlacementDoc};
use crate::measure::placement::{PlacementPlan, WorkPlaces, measure};

/// Measure the cost of interrupts by place (Radojkovic 2008)
///
/// Adds timer interrupts to one CPU with a perf event (needs root or CAP_PERFMON). Times the same work with and without
/// them on the same hardware thread, its sibling and another core. The times are stored; `becalm report` shows them
/// again. --json prints becalm.cost-placement/1.
#[derive(Args, Debug)]
pub struct PlacementArgs {
    /// CPU to interrupt [default: an isolated one, else the one with the fewest interrupts since boot]
    #[arg(long, value_name = "CPU", value_parser = cpu_id, allow_hyphen_values = true)]
    cpu: Option<CpuId>,

    /// Kinds of work to time, named as in becalm work --body
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "add,mul,div", value_parser = body)]
    bodies: Vec<Body>,

    /// Also time work bound to no CPU, started on the interrupted one, to see whether the scheduler moves it
    #[arg(long)]
    unbound: bool,

    /// Interrupts per second to add to the CPU's own
    #[arg(long, value_name = "HZ", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,

    /// Number of rounds; confidence intervals need at least 2
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,

    /// Length of one measurement, such as 1s; from 10ms to 1h
    #[arg(long, value_name = "TIME", default_value = "250ms", allow_hyphen_values = true)]
    cell: Nanos,

    /// Scheduling class of the work: rr:PRIORITY keeps other programs off the CPU, other does not
    #[arg(long, value_name = "CLASS", default_value = "rr:1")]
    sched: Policy,

    /// Seed of the random order of the measurements
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Do not count cycles, instructions and cache misses, which take separate measurements
    #[arg(long)]
    no_counters: bool,

    #[command(flatten)]
    output: OutputArgs,
}

fn body(text: &str) -> Result<Body, String> {
    text.parse().map_err(|error: becalm_measure::work::ParseBodyError| error.to_string())
}

/// Measures, stores and prints. Fails if the machine does not support the measurement, or the bundle or `out` cannot be written.
pub fn run(args: &PlacementArgs, out: &mut dyn Write) -> Result<Exit> {
    if args.cell < Nanos::from_millis(10) || args.cell > Nanos::from_secs(3_600) {
        return Err(UsageError::new("--cell must be at least 10ms and at most 1h").into());
    }
    let root = Path::new("/");
    let signals = StopSignals::block().context("cannot block signals")?;
    let site = chosen_site(root, args.cpu)?;
    let usable = sched::allowed_cpus()?;
    let places = WorkPlaces::find(root, site.cpu, &usable)?;
    let (events, not_counted) = counted(args.no_counters);
    let plan = PlacementPlan {
        places,
        unbound: args.unbound.then_some(usable),
        bodies: args.bodies.clone(),
        policy: args.sched,
        added_hz: args.rate,
        cell: args.cell,
        rounds: args.rounds,
        seed: args.seed,
        events,
    };
    let mut costs = PlacementCosts {
        added_hz: plan.added_hz,
        cell_ns: plan.cell.get(),
        rounds: plan.rounds,
        seed: plan.seed,
        bodies: plan.bodies.iter().map(ToString::to_string).collect(),
        places: plan.all_places().collect(),
        missing: missing(&places),
        not_counted,
        results: Vec::new(),
    };
    let document = site.document(plan.policy, Costs::Placement(costs.clone()));
    let mut storing = args.output.begin(document)?;
    let bar = progress_bar();
    let mut ended = Ended::Duration;
    let mut progress = |share: f64| {
        bar.reach((share * 100.0) as u64);
        if signals.take().is_some() {
            ended = Ended::Signal;
        }
        ended == Ended::Duration
    };
    let mut store = |pair: PlacementDoc| {
        costs.results.push(pair);
        // The completed part stays stored, even after an error.
        Ok(storing.write(Costs::Placement(costs.clone()), CostSamples::new(), None)?)
    };
    let measured = measure(root, &plan, &mut progress, &mut store);
    drop(bar);
    measured?;
    storing.finish(Costs::Placement(costs), CostSamples::new(), ended, out)
}

/// The places that cannot be measured, with the reasons.
fn missing(places: &WorkPlaces) -> Vec<String> {
    let mut missing = Vec::new();
    if places.sibling.is_none() {
        missing.push(if places.topology_known {
            format!("CPU {} has no usable sibling: its core runs one hardware thread", places.same)
        } else {
            "the kernel does not report which CPUs share a core, so no sibling is known".to_owned()
        });
    }
    if places.other.is_none() {
        missing.push("there is no CPU of another core that can be used".to_owned());
    }
    missing
}
