//! `becalm cost clock`, `trap` and `detours`: probes timed one after another on one CPU, by several processes.

use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use becalm_command::Exit;
use becalm_command::progress::{Bar, Tail};
use becalm_linux::signals::{StopSignals, wait_readable};
use becalm_model::node::Ended;
use becalm_units::Nanos;
use becalm_units::fault::{self, Context, Result, UsageError};
use clap::Args;

use super::process::{have_measured, measure};
use super::{OutputArgs, SiteArgs};
use crate::documents::{ClockCosts, Costs, MOST_PROCESSES, PROCESSES, ProbeCosts, ProcessDoc, SpreadDoc};
use crate::measure::JoinedCosts;

/// The longest time over which processes can be spread.
const LONGEST: Nanos = Nanos::from_secs(12 * 3_600);

/// The command that measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeCommand {
    /// The readings of clocks: `becalm cost clock`.
    Clock,
    /// The calls into the kernel: `becalm cost trap`.
    Trap,
    /// The sources of detours: `becalm cost detours`.
    Detours,
}

impl ProbeCommand {
    /// Its name behind `becalm cost`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Trap => "trap",
            Self::Detours => "detours",
        }
    }

    /// The document before the measurement.
    fn nothing(self) -> Costs {
        match self {
            Self::Clock => Costs::Clock(ClockCosts::default()),
            Self::Trap => Costs::Trap(ProbeCosts::default()),
            Self::Detours => Costs::Detours(ProbeCosts::default()),
        }
    }
}

// The help of the commands is at the variants of `CostCommand`; a doc comment here would replace it.
#[derive(Args, Debug)]
#[allow(missing_docs)]
pub struct ProbeArgs {
    #[command(flatten)]
    site: SiteArgs,

    /// Number of processes that measure, one after another; confidence intervals need at least 6
    #[arg(long, value_name = "N", default_value_t = PROCESSES, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_PROCESSES)))]
    processes: u32,

    /// Time over which the starts of the processes are spread, such as 10m; at most 12h
    #[arg(long, value_name = "TIME", default_value = "20s", allow_hyphen_values = true)]
    over: Nanos,

    /// Measure in this process alone and hand the samples to the one that started it
    #[arg(long, hide = true)]
    one_process: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// Measures, stores and prints. Fails if the CPU cannot be used, a measuring process fails, or the bundle or `out` cannot be written.
pub fn run(probes: ProbeCommand, args: &ProbeArgs, out: &mut dyn Write) -> Result<Exit> {
    if args.one_process {
        return measure(probes, &args.site, out);
    }
    if args.over < Nanos::ZERO || args.over > LONGEST {
        return Err(UsageError::new(format!("--over must be between 0s and {LONGEST}")).into());
    }
    // Must run while the process has one thread; it is refused afterwards.
    let signals = StopSignals::block().context("cannot block signals")?;
    let site = args.site.choose()?;
    let mut storing = args.output.begin(site.document(site.policy, probes.nothing()))?;
    let bar = Bar::new(format!("measuring {} in processes", probes.name()), args.processes.into(), Tail::Steps);
    let planned = args.processes;
    let mut joined = JoinedCosts::new(probes.nothing());
    let mut spread = SpreadDoc { planned, over_ns: args.over.get(), processes: Vec::new() };
    storing.spread_over(spread.clone());
    let (mut ended, first) = (Ended::Duration, Instant::now());
    for at in 0..planned {
        bar.reach(at.into());
        if !wait_until(first + args.over.to_std() * at / planned, &signals)? {
            ended = Ended::Signal;
            break;
        }
        let begun_ns = since(first);
        let handed = have_measured(probes, &site, &signals).and_then(|handed| {
            let Some(handed) = handed else { return Ok(None) };
            joined.add(handed.measured, handed.samples).map_err(fault::Error::new)?;
            Ok(Some(handed.is_whole))
        });
        let handed = handed.with_context(|| storing.failed(at + 1, planned))?;
        if handed.is_some() {
            spread.processes.push(ProcessDoc { begun_ns, ended_ns: since(first) });
            storing.spread_over(spread.clone());
        }
        if handed != Some(true) {
            ended = Ended::Signal;
            break;
        }
        if at + 1 < planned {
            let (measured, samples) = joined.get();
            storing.store(measured, samples, None)?;
        }
    }
    drop(bar);
    let (measured, samples) = joined.into_parts();
    storing.finish(measured, samples, ended, out)
}

/// Nanoseconds since an instant.
fn since(start: Instant) -> i64 {
    i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX)
}

/// Sleeps until an instant; `false` after a signal.
fn wait_until(end: Instant, signals: &StopSignals) -> Result<bool> {
    loop {
        if signals.take().is_some() {
            return Ok(false);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return Ok(true);
        }
        wait_readable([Some(signals.as_fd())], left).context("cannot wait for the next process")?;
    }
}
