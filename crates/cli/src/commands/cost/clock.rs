//! `becalm cost clock`: each way to read the time.

use std::io::Write;

use anyhow::{Context, Result};
use becalm_linux::signals::StopSignals;
use becalm_measure::cost::{clocks, stored};
use becalm_model::cost::{ClockCosts, Measured};
use becalm_model::node::Ended;
use clap::Args;

use super::{Meter, OutputArgs, Place, failure};
use crate::exit::Exit;

/// Measure each way to read the time: what it costs, how fine it is, whether it runs backwards
///
/// The processor's own instructions, every clock of clock_gettime that this kernel has, gettimeofday and time; through the
/// C library and by a raw system call. As root, the kernel counts whether a reading enters it; else its time tells. The
/// samples are stored; becalm report shows them again. With --json, becalm.cost-clock/1 is printed.
#[derive(Args, Debug)]
pub struct ClockArgs {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    output: OutputArgs,
}

/// Measures, stores and prints.
///
/// # Errors
/// If the CPU cannot be used, the bundle cannot be written, or `out` cannot.
pub fn run(args: &ClockArgs, out: &mut dyn Write) -> Result<Exit> {
    // While the process has one thread.
    let signals = StopSignals::block().context("cannot block signals")?;
    let place = args.place.choose()?;
    let nothing_yet = Measured::Clock(ClockCosts::default());
    let mut storing = args.output.begin(stored::document(&place, place.policy, nothing_yet))?;
    let meter = Meter::new();
    let mut ended = Ended::Duration;
    let probed = clocks(place, &mut |done, of, name| {
        meter.show(done, of, name);
        if signals.take().is_some() {
            ended = Ended::Signal;
        }
        ended == Ended::Duration
    });
    drop(meter);
    let probed = probed.map_err(failure)?;
    let (costs, samples) = stored::clocks(probed);
    storing.store(Measured::Clock(costs), samples, Some(ended))?;
    storing.show(out)?;
    Ok(if ended == Ended::Duration { Exit::Done } else { Exit::Failed })
}
