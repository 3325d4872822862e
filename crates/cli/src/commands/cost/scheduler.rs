//! `becalm cost scheduler`: ticks and thread switches by the number of runnable threads.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use becalm_linux::janitor::Janitor;
use becalm_linux::signals::StopSignals;
use becalm_measure::tick::TickError;
use becalm_measure::tick::scheduler::{SchedulerCost, Tracing, measure};
use becalm_report::{SchedulerReport, SchedulerRow};
use becalm_units::{CpuId, Nanos};
use clap::Args;

use super::tick::{explained, progress_bar};
use super::{chosen_cpu, cpu_id};
use crate::exit::{Exit, UsageError};
use crate::messages::say;

/// Measure ticks and thread switches as the number of runnable threads on a CPU grows
///
/// The time of a tick is that of the kernel's own record of its timer handler (needs root). The time of a switch is taken
/// without any tracing, of threads that hand the CPU round (sched_yield).
#[derive(Args, Debug)]
pub struct SchedulerArgs {
    /// The CPU to measure on [default: an isolated one, else the one with the fewest interrupts since boot]
    #[arg(long, value_name = "CPU", value_parser = cpu_id, allow_hyphen_values = true)]
    cpu: Option<CpuId>,

    /// Numbers of runnable threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4,8,16,32,64", value_parser = clap::value_parser!(u32).range(1..=1024))]
    runnable: Vec<u32>,

    /// How long each of the two measurements of a number takes, like 2s
    #[arg(long, value_name = "TIME", default_value = "2s", allow_hyphen_values = true)]
    window: Nanos,

    /// Print one JSON document (becalm.cost-scheduler/1)
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
///
/// # Errors
/// If the CPU cannot be used, or `out` cannot be written.
pub fn run(args: &SchedulerArgs, out: &mut dyn Write) -> Result<Exit> {
    if args.window < Nanos::from_millis(10) || args.window > Nanos::from_secs(10) {
        return Err(UsageError("--window lies from 10ms to 10s, of which the trace fits its buffer".to_owned()).into());
    }
    let root = Path::new("/");
    // While the process has one thread.
    let mut tracing = Tracing::On(Janitor::spawn(&root.join("proc")).ok().map(Arc::new));
    let signals = StopSignals::block().context("cannot block signals")?;
    let cpu = chosen_cpu(root, args.cpu)?;
    let mut numbers = args.runnable.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let mut report = SchedulerReport { cpu: cpu.get(), rows: Vec::new(), no_trace: None };
    let bar = progress_bar();
    for (at, runnable) in numbers.iter().copied().enumerate() {
        bar.set_position((at * 100 / numbers.len()) as u64);
        bar.set_message(format!("{runnable} runnable threads"));
        if signals.take().is_some() {
            say(format_args!("interrupted before {runnable} runnable threads"));
            break;
        }
        let measured = match measure(root, cpu, runnable, args.window, &tracing) {
            Err(TickError::Tracefs(error)) => {
                report.no_trace = Some(error.to_string());
                tracing = Tracing::Off;
                measure(root, cpu, runnable, args.window, &tracing)
            }
            measured => measured,
        };
        report.rows.push(row(&measured.map_err(explained)?));
    }
    bar.finish_and_clear();
    let mut out = BufWriter::new(out);
    if args.json {
        out.write_all(becalm_report::scheduler_json(&report).as_bytes())?;
    } else {
        becalm_report::render_scheduler(&report, &mut out)?;
    }
    out.flush()?;
    Ok(if report.rows.len() == numbers.len() { Exit::Done } else { Exit::Failed })
}

fn row(cost: &SchedulerCost) -> SchedulerRow {
    let each = |total: f64, count: u64| (count > 0).then(|| total / count as f64);
    let ticks = cost.ticks.filter(|ticks| ticks.window > Nanos::ZERO);
    let elapsed = cost.elapsed.get() as f64;
    SchedulerRow {
        runnable: cost.runnable,
        ticks_hz: ticks.map(|ticks| ticks.interrupts as f64 / ticks.window.as_secs_f64()),
        tick_mean_ns: ticks.and_then(|ticks| each(ticks.handler.get() as f64, ticks.interrupts)),
        tick_max_ns: ticks.filter(|ticks| ticks.interrupts > 0).map(|ticks| ticks.handler_max.get()),
        preemptions_hz: ticks.map(|ticks| ticks.switches as f64 / ticks.window.as_secs_f64()),
        // Of one thread, the few switches are to others that nobody has started here.
        switch_ns: each(elapsed, cost.switches).filter(|_| cost.runnable > 1),
        switched_ratio: each(cost.switches as f64, cost.yields),
        yield_ns: each(elapsed, cost.yields),
    }
}
