//! `becalm cost trap`: what it costs to enter the kernel and come back.

use std::io::Write;

use anyhow::{Context, Result};
use becalm_linux::signals::StopSignals;
use becalm_measure::cost::{stored, traps};
use becalm_model::cost::{Measured, ProbeCosts};
use becalm_model::node::Ended;
use clap::Args;

use super::{Meter, OutputArgs, Place, failure};
use crate::exit::Exit;

/// Measure what it costs to enter the kernel: calls, faults, signals, switches, wake-ups, interrupts of another CPU
///
/// The first row is the trap of Tsafrir (2007): the raw system call getpid. The samples are stored; becalm report shows
/// them again. With --json, becalm.cost-trap/1 is printed.
#[derive(Args, Debug)]
pub struct TrapArgs {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    output: OutputArgs,
}

/// Measures, stores and prints.
///
/// # Errors
/// If the CPU cannot be used, the bundle cannot be written, or `out` cannot.
pub fn run(args: &TrapArgs, out: &mut dyn Write) -> Result<Exit> {
    // While the process has one thread.
    let signals = StopSignals::block().context("cannot block signals")?;
    let place = args.place.choose()?;
    let nothing_yet = Measured::Trap(ProbeCosts::default());
    let mut storing = args.output.begin(stored::document(&place, place.policy, nothing_yet))?;
    let meter = Meter::new();
    let mut ended = Ended::Duration;
    let probed = traps(place, &mut |done, of, name| {
        meter.show(done, of, name);
        if signals.take().is_some() {
            ended = Ended::Signal;
        }
        ended == Ended::Duration
    });
    drop(meter);
    let probed = probed.map_err(failure)?;
    let (costs, samples) = stored::probes(probed);
    storing.store(Measured::Trap(costs), samples, Some(ended))?;
    storing.show(out)?;
    Ok(if ended == Ended::Duration { Exit::Done } else { Exit::Failed })
}
