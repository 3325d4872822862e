//! `becalm cost placement`: what an interrupt costs work on the interrupted hardware thread, its sibling, another core.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use becalm_analyze::tick::{PlacementCost, QuietAndRaised};
use becalm_linux::sched::{self, Policy};
use becalm_linux::signals::StopSignals;
use becalm_measure::tick::placement::{Place, PlacementPlan, PlacementRound, Places, measure};
use becalm_measure::work::Body;
use becalm_report::{PlacementReport, PlacementRow};
use becalm_units::{CpuId, Nanos};
use clap::Args;

use super::tick::{explained, progress_bar};
use super::{chosen_cpu, cpu_id};
use crate::exit::{Exit, UsageError};

/// Measure what a timer interrupt costs work on the same hardware thread, on its sibling, on another core (Radojkovic 2008)
///
/// One CPU takes a raised rate of timer interrupts, caused by a perf event (needs root or CAP_PERFMON). The same work is
/// timed with and without them in each place, kind of instruction by kind of instruction.
#[derive(Args, Debug)]
pub struct PlacementArgs {
    /// The CPU that is interrupted [default: an isolated one, else the one with the fewest interrupts since boot]
    #[arg(long, value_name = "CPU", value_parser = cpu_id, allow_hyphen_values = true)]
    cpu: Option<CpuId>,

    /// Kinds of work, as of becalm work
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "add,mul,div", value_parser = body)]
    bodies: Vec<Body>,

    /// Interrupts a second to add to the CPU's own
    #[arg(long, value_name = "HZ", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,

    /// How often everything is measured; from two on there are intervals
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,

    /// How long one measurement takes, like 1s
    #[arg(long, value_name = "TIME", default_value = "250ms", allow_hyphen_values = true)]
    cell: Nanos,

    /// The scheduling class of the work: rr:PRIORITY keeps what else runs here off the CPU, other does not
    #[arg(long, value_name = "CLASS", default_value = "rr:1")]
    sched: Policy,

    /// The seed of the order
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Print one JSON document (becalm.cost-placement/1)
    #[arg(long)]
    json: bool,
}

fn body(text: &str) -> Result<Body, String> {
    text.parse().map_err(|error: becalm_measure::work::ParseBodyError| error.to_string())
}

/// Measures and prints.
///
/// # Errors
/// If the machine does not allow the measurement, or `out` cannot be written.
pub fn run(args: &PlacementArgs, out: &mut dyn Write) -> Result<Exit> {
    if args.cell < Nanos::from_millis(10) || args.cell > Nanos::from_secs(3_600) {
        return Err(UsageError("--cell lies from 10ms to 1h".to_owned()).into());
    }
    let root = Path::new("/");
    let signals = StopSignals::block().context("cannot block signals")?;
    let cpu = chosen_cpu(root, args.cpu)?;
    let places = Places::find(root, cpu, &sched::allowed_cpus()?)?;
    let plan = PlacementPlan {
        places,
        bodies: args.bodies.clone(),
        policy: args.sched,
        added_hz: args.rate,
        cell: args.cell,
        rounds: args.rounds,
        seed: args.seed,
    };
    let bar = progress_bar();
    let mut complete = true;
    let rounds = measure(root, &plan, &mut |share| {
        bar.set_position((share * 100.0) as u64);
        bar.tick();
        complete = signals.take().is_none();
        complete
    });
    bar.finish_and_clear();
    let rounds = rounds.map_err(explained)?;
    let report = PlacementReport {
        interrupted: cpu.get(),
        added_hz: args.rate,
        seed: args.seed,
        rows: rows(&plan, &rounds),
        missing: missing(&places),
    };
    let mut out = BufWriter::new(out);
    if args.json {
        out.write_all(becalm_report::placement_json(&report).as_bytes())?;
    } else {
        becalm_report::render_placement(&report, &mut out)?;
    }
    out.flush()?;
    Ok(if complete { Exit::Done } else { Exit::Failed })
}

fn rows(plan: &PlacementPlan, rounds: &[PlacementRound]) -> Vec<PlacementRow> {
    let row = |place: Place, cpu: CpuId, body: Body| {
        let of = rounds.iter().filter(|round| round.place == place && round.body == body);
        let costs: Vec<QuietAndRaised> = of
            .map(|round| QuietAndRaised {
                quiet_ns: round.quiet.elapsed.get() as f64,
                quiet_hz: round.quiet.rate_hz(),
                raised_ns: round.raised.elapsed.get() as f64,
                raised_hz: round.raised.rate_hz(),
            })
            .collect();
        let place = match place {
            Place::Same => "same",
            Place::Sibling => "sibling",
            Place::Other => "other",
        };
        PlacementRow { place, cpu: cpu.get(), body: body.to_string(), cost: PlacementCost::of(&costs) }
    };
    plan.places.iter().flat_map(|(place, cpu)| plan.bodies.iter().map(move |body| row(place, cpu, *body))).collect()
}

/// What cannot be measured here, and why.
fn missing(places: &Places) -> Vec<String> {
    let mut missing = Vec::new();
    if places.sibling.is_none() {
        missing.push(if places.topology_known {
            format!("CPU {} has no sibling that can be used: its core runs one hardware thread", places.same)
        } else {
            "the kernel does not tell which CPUs share a core, so that no sibling is known".to_owned()
        });
    }
    if places.other.is_none() {
        missing.push("there is no CPU of another core that can be used".to_owned());
    }
    missing
}
