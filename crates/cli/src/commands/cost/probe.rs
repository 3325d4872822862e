//! `becalm cost clock`, `trap` and `detours`: probes that are timed one after the other on one CPU.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use becalm_measure::cost::clock::clocks;
use becalm_measure::cost::probe::{detours, traps};
use becalm_model::cost::{ClockCosts, Costs, ProbeCosts};
use becalm_model::node::Ended;
use becalm_record::Session;
use clap::Args;

use super::{Meter, OutputArgs, SiteArgs, recording};
use crate::exit::Exit;

/// Which of the three commands measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeCommand {
    /// The readings of clocks: `becalm cost clock`.
    Clock,
    /// The calls into the kernel: `becalm cost trap`.
    Trap,
    /// The sources of detours: `becalm cost detours`.
    Detours,
}

// The commands' help stands at the variants of `CostCommand`; a doc comment here would take its place.
#[derive(Args, Debug)]
#[allow(missing_docs)]
pub struct ProbeArgs {
    #[command(flatten)]
    site: SiteArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Measures, stores and prints.
///
/// # Errors
/// If the CPU cannot be used, a signal ends the recording, the bundle cannot be written, or `out` cannot.
pub fn run(probes: ProbeCommand, args: &ProbeArgs, out: &mut dyn Write) -> Result<Exit> {
    // While the process has one thread; afterwards it would be refused.
    let session = Session::begin(Path::new("/"), probes == ProbeCommand::Detours).context("cannot block signals")?;
    let site = args.site.choose()?;
    let nothing_yet = match probes {
        ProbeCommand::Clock => Costs::Clock(ClockCosts::default()),
        ProbeCommand::Trap => Costs::Trap(ProbeCosts::default()),
        ProbeCommand::Detours => Costs::Detours(ProbeCosts::default()),
    };
    let storing = args.output.begin(site.document(site.policy, nothing_yet))?;
    let recorded = match probes {
        ProbeCommand::Detours => recording::probes(&site, &session)?,
        ProbeCommand::Clock | ProbeCommand::Trap => Vec::new(),
    };
    let meter = Meter::new();
    let mut ended = Ended::Duration;
    let mut progress = |done: usize, all: usize, name: &str| {
        meter.show(done, all, name);
        if session.signals().take().is_some() {
            ended = Ended::Signal;
        }
        ended == Ended::Duration
    };
    let measured = match probes {
        ProbeCommand::Clock => clocks(&site, &mut progress).map(|(costs, samples)| (Costs::Clock(costs), samples)),
        ProbeCommand::Trap => traps(&site, &mut progress).map(|(costs, samples)| (Costs::Trap(costs), samples)),
        ProbeCommand::Detours => detours(&site, &mut progress).map(|(mut costs, mut samples)| {
            costs.add(recorded, &mut samples);
            (Costs::Detours(costs), samples)
        }),
    };
    drop(meter);
    let (measured, samples) = measured?;
    storing.finish(measured, samples, ended, out)
}
