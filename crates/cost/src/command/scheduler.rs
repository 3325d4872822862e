//! `becalm cost scheduler`: ticks and switches by the number of runnable processes.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use becalm_command::Exit;
use becalm_command::arguments::cpu_id;
use becalm_command::messages::say;
use becalm_linux::janitor::Janitor;
use becalm_linux::sched::Policy;
use becalm_linux::signals::StopSignals;
use becalm_model::node::Ended;
use becalm_model::warning;
use becalm_units::fault::{Context, Result, UsageError};
use becalm_units::{CpuId, Nanos};
use clap::Args;

use super::{OutputArgs, chosen_site, counted, progress_bar};
use crate::documents::{CostSamples, Costs, SchedulerCosts};
use crate::measure::scheduler::{SchedulerPlan, TraceUse, measure};
use crate::measure::tick::TickError;

/// Measure ticks and switches by number of runnable processes
///
/// Tick times come from the kernel's own record of its timer handler (needs root). Switch times are measured without
/// tracing, on processes that pass the CPU along (sched_yield). Results are stored as soon as they are measured;
/// `becalm report` shows them again. --json prints becalm.cost-scheduler/1.
#[derive(Args, Debug)]
pub struct SchedulerArgs {
    /// CPU to measure on [default: an isolated one, else the one with the fewest interrupts since boot]
    #[arg(long, value_name = "CPU", value_parser = cpu_id, allow_hyphen_values = true)]
    cpu: Option<CpuId>,

    /// Numbers of runnable processes, each from 1 to 1024
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4,8,16,32,64", value_parser = clap::value_parser!(u32).range(1..=1024))]
    runnable: Vec<u32>,

    /// Use threads of one process, which share an address space, instead of processes
    #[arg(long)]
    threads: bool,

    /// Length of each of the two measurements per number, from 10ms to 10s
    #[arg(long, value_name = "TIME", default_value = "2s", allow_hyphen_values = true)]
    window: Nanos,

    /// Do not count cycles, instructions and cache misses, which take separate measurements
    #[arg(long)]
    no_counters: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// Measures, stores and prints. Fails if the CPU cannot be used, the bundle cannot be written, or `out` cannot.
pub fn run(args: &SchedulerArgs, out: &mut dyn Write) -> Result<Exit> {
    if args.window < Nanos::from_millis(10) || args.window > Nanos::from_secs(10) {
        return Err(UsageError::new(
            "--window must be at least 10ms and at most 10s: a longer trace does not fit its buffer",
        )
        .into());
    }
    let root = Path::new("/");
    // Must run while the process has one thread.
    let guard = Janitor::spawn(&root.join("proc")).map(Arc::new);
    let warnings = guard.as_ref().err().map(|error| warning::no_janitor(&error.to_string()));
    let mut tracing = TraceUse::On(guard.ok());
    let signals = StopSignals::block().context("cannot block signals")?;
    let site = chosen_site(root, args.cpu)?;
    let mut numbers = args.runnable.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let (events, not_counted) = counted(args.no_counters);
    let plan = SchedulerPlan { cpu: site.cpu, processes: !args.threads, window: args.window, events };
    let mut costs = SchedulerCosts {
        window_ns: args.window.get(),
        runnable: numbers.clone(),
        processes: !args.threads,
        not_counted,
        warnings: warnings.into_iter().collect(),
        ..SchedulerCosts::default()
    };
    let document = site.document(Policy::Other, Costs::Scheduler(costs.clone()));
    let mut storing = args.output.begin(document)?;
    let bar = progress_bar();
    let mut ended = Ended::Duration;
    let what = if args.threads { "threads" } else { "processes" };
    for (at, runnable) in numbers.iter().copied().enumerate() {
        bar.say(format!("measuring {runnable} runnable {what}"));
        bar.reach((at * 100 / numbers.len()) as u64);
        if signals.take().is_some() {
            say(format_args!("interrupted before {runnable} runnable {what}"));
            ended = Ended::Signal;
            break;
        }
        let measured = match measure(root, &plan, runnable, &tracing) {
            Err(TickError::Tracefs(error)) => {
                costs.no_trace = Some(error.to_string());
                tracing = TraceUse::Off;
                measure(root, &plan, runnable, &tracing)
            }
            measured => measured,
        };
        costs.rows.push(measured?);
        // The completed part stays stored, even after an error.
        storing.store(Costs::Scheduler(costs.clone()), CostSamples::new(), None)?;
    }
    drop(bar);
    storing.finish(Costs::Scheduler(costs), CostSamples::new(), ended, out)
}
