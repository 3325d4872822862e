//! `becalm cost detours`: the catalogue of detours of Beckman et al. (2007), measured here.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use becalm_measure::cost::{detours, stored};
use becalm_model::cost::{Measured, ProbeCosts};
use becalm_model::node::Ended;
use becalm_record::Session;
use clap::Args;

use super::{Meter, OutputArgs, Place, failure, recording};
use crate::exit::Exit;

/// Measure each kind of detour, from a cache miss to a pre-emption (the catalogue of Beckman 2007)
///
/// What a thread can bring about itself is brought about. The tick and the interrupts of devices are found by a recording
/// of two seconds, which needs root to tell them apart. What this machine does not have is said with the reason. The
/// samples are stored; becalm report shows them again. With --json, becalm.cost-detours/1 is printed.
#[derive(Args, Debug)]
pub struct DetoursArgs {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    output: OutputArgs,
}

/// Measures, stores and prints.
///
/// # Errors
/// If the CPU cannot be used, a signal ends the recording, the bundle cannot be written, or `out` cannot.
pub fn run(args: &DetoursArgs, out: &mut dyn Write) -> Result<Exit> {
    // While the process has one thread; afterwards it would be refused.
    let session = Session::begin(Path::new("/"), true).context("cannot block signals")?;
    let place = args.place.choose()?;
    let nothing_yet = Measured::Detours(ProbeCosts::default());
    let mut storing = args.output.begin(stored::document(&place, place.policy, nothing_yet))?;
    let recorded = recording::probes(&place, &session)?;
    let meter = Meter::new();
    let mut ended = Ended::Duration;
    let probed = detours(place, &mut |done, of, name| {
        meter.show(done, of, name);
        if session.signals().take().is_some() {
            ended = Ended::Signal;
        }
        ended == Ended::Duration
    });
    drop(meter);
    let probed = probed.map_err(failure)?;
    let (mut costs, mut samples) = stored::probes(probed);
    for (probe, rounds) in recorded {
        samples.extend(probe.series.as_ref().map(|_| (probe.name.clone(), rounds)));
        costs.probes.push(probe);
    }
    storing.store(Measured::Detours(costs), samples, Some(ended))?;
    storing.show(out)?;
    Ok(if ended == Ended::Duration { Exit::Done } else { Exit::Failed })
}
