//! `becalm cost clock`: each way to read the time.

use std::io::Write;

use anyhow::Result;
use becalm_measure::cost::{clocks, stored};
use becalm_trace::cost::{ClockCosts, Measured};
use becalm_trace::node::Ended;
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
    let place = args.place.choose()?;
    let nothing_yet = Measured::Clock(ClockCosts::default());
    let mut storing = args.output.begin(stored::document(&place, place.policy, nothing_yet))?;
    let meter = Meter::new();
    let probed = clocks(place, &mut |done, of, name| meter.show(done, of, name)).map_err(failure)?;
    drop(meter);
    let (costs, samples) = stored::clocks(probed);
    storing.store(Measured::Clock(costs), samples, Some(Ended::Duration))?;
    storing.show(out)?;
    Ok(Exit::Done)
}
