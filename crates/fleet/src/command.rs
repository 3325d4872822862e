//! `becalm fleet`: which of many nodes is noisy, why, and the cost for the site's jobs.

use std::io::Write;
use std::path::PathBuf;

use becalm_bundle::StoredNodes;
use becalm_command::Exit;
use becalm_command::arguments::FormArgs;
use becalm_command::messages::say;
use becalm_command::output::emit;
use becalm_command::reading_task;
use becalm_linux::file::read_regular_text;
use becalm_units::fault::{self, Context, UsageError};
use becalm_units::{Count, Nanos, counted};
use clap::{Args, Subcommand};

use crate::jobs::fleet_cost;
use crate::report::FleetReport;
use crate::report::jobs::{FleetCostReport, FleetSweepReport};
use crate::sacct::{self, Unreadable};
use crate::survey::{Fleet, survey};

/// The largest accounting file that is read, in bytes.
const ACCOUNTING_LIMIT: u64 = 1 << 30;

/// Rank the nodes of a cluster, name outliers
///
/// Nodes that cannot be read are reported and skipped. Next to the ranking, it shows when the noise came, and which
/// sources hit several nodes at the same time.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct FleetArgs {
    #[command(subcommand)]
    command: Option<FleetCommand>,

    /// Recordings of `becalm record`, each of one or several nodes, full or made with --summary
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// Show all nodes, not only the 20 noisiest
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    form: FormArgs,
}

#[derive(Subcommand, Debug)]
enum FleetCommand {
    Predict(FleetPredictArgs),
}

/// Predict what noise costs jobs, and what to fix first
///
/// Each rank (process) of a job gets a random CPU of the nodes, so large jobs almost always get a bad node. Delays come
/// from the summary form of each node. The losses to each source, and to the excess noise of a node over its peers, are
/// ranked: fix the first line first.
#[derive(Args, Debug)]
pub struct FleetPredictArgs {
    /// Recordings, as for `becalm fleet`
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// Numbers of ranks, one per CPU
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64,1Ki,16Ki", allow_hyphen_values = true)]
    ranks: Vec<Count>,

    /// Compute time between synchronizations, or a list such as 1ms,10ms
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1ms", allow_hyphen_values = true)]
    grain: Vec<Nanos>,

    /// File with sizes and node-hours of jobs, the output of sacct --allocations --parsable2
    /// --format=JobID,NNodes,NCPUS,ElapsedRaw,Start,End
    #[arg(long, value_name = "FILE", conflicts_with = "ranks")]
    sacct: Option<PathBuf>,

    /// Show all fixes, not only the first 10
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    form: FormArgs,
}

reading_task!(FleetArgs);

/// Reads the nodes and prints the result. Fails if a recording cannot be opened, no node can be read, or the output cannot be written.
fn run(args: &FleetArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    if let Some(FleetCommand::Predict(args)) = &args.command {
        return predict(args, out);
    }
    let (_, fleet) = read(&args.runs)?;
    emit(&FleetReport { fleet: &fleet }, args.form.output(args.full)?, out)?;
    Ok(Exit::Done)
}

fn read(runs: &[PathBuf]) -> fault::Result<(Vec<StoredNodes>, Fleet)> {
    let bundles = runs.iter().map(|path| StoredNodes::open(path)).collect::<Result<Vec<_>, _>>()?;
    let fleet = survey(&bundles)?;
    Ok((bundles, fleet))
}

fn predict(args: &FleetPredictArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    if let Some(grain) = args.grain.iter().find(|grain| **grain < Nanos::from_micros(1)) {
        return Err(UsageError::new(format!("--grain {grain} is too short: a phase has at least 1us of work")).into());
    }
    let mut grains: Vec<Nanos> = Vec::new();
    for grain in &args.grain {
        if !grains.contains(grain) {
            grains.push(*grain);
        }
    }
    let ranks: Vec<u64> = args.ranks.iter().map(|ranks| ranks.get()).collect();
    if ranks.contains(&0) {
        return Err(UsageError::new("--ranks has 0, and a job has at least one rank").into());
    }
    let text = args.sacct.as_ref().map(|path| {
        let read = read_regular_text(path, ACCOUNTING_LIMIT);
        read.with_context(|| format!("cannot read {}", path.display()))
    });
    let text = text.transpose()?;
    let (bundles, fleet) = read(&args.runs)?;
    let accounting = match (&text, &args.sacct) {
        (Some(text), Some(path)) => {
            let cpus = fleet.nodes.iter().map(|node| node.cpus as u64).max().unwrap_or(1);
            let accounting = sacct::parse(text, cpus);
            let accounting = accounting.map_err(|why| {
                fault::Error::new(format!("cannot read {} as the accounting of Slurm: {why}", path.display()))
            })?;
            if let Some(Unreadable { lines, first }) = &accounting.unreadable {
                let lines = counted(*lines, "line", "lines");
                say(format_args!("{lines} of {} cannot be read and are left out: {first}", path.display()));
            }
            Some(accounting)
        }
        _ => None,
    };
    let cost = |grain: &Nanos| fleet_cost(&bundles, &fleet, *grain, &ranks, accounting.as_ref());
    let costs = grains.iter().map(cost).collect::<Result<Vec<_>, _>>()?;
    let (output, accounting) = (args.form.output(args.full)?, accounting.as_ref());
    match &costs[..] {
        [cost] => emit(&FleetCostReport { cost, accounting }, output, out)?,
        costs => emit(&FleetSweepReport { costs, accounting }, output, out)?,
    }
    Ok(Exit::Done)
}
