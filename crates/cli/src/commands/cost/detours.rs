//! `becalm cost detours`: the catalogue of detours of Beckman et al. (2007), measured here.

use std::io::{BufWriter, Write};

use anyhow::Result;
use becalm_measure::cost::detours;
use becalm_report::{CostKind, CostReport};
use clap::Args;

use super::{Meter, Place, failure, header, recording, row};
use crate::exit::Exit;

/// Measure each kind of detour, from a cache miss to a pre-emption (the catalogue of Beckman 2007)
///
/// What a thread can bring about itself is brought about. The tick and the interrupts of devices are found by a recording
/// of two seconds, which needs root to tell them apart. What this machine does not have is said with the reason.
#[derive(Args, Debug)]
pub struct DetoursArgs {
    #[command(flatten)]
    place: Place,

    /// Print one JSON document (becalm.cost-detours/1)
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
///
/// # Errors
/// If the CPU cannot be used, a signal ends the recording, or `out` cannot be written.
pub fn run(args: &DetoursArgs, out: &mut dyn Write) -> Result<Exit> {
    let place = args.place.choose()?;
    let recorded = recording::rows(&place)?;
    let meter = Meter::new();
    let probed = detours(place, &mut |done, of, name| meter.show(done, of, name)).map_err(failure)?;
    drop(meter);
    let report = CostReport {
        kind: CostKind::Detours,
        header: header(&probed.place, probed.instrument),
        rows: probed.result.into_iter().map(row).chain(recorded).collect(),
    };
    let mut out = BufWriter::new(out);
    if args.json {
        out.write_all(becalm_report::cost_json(&report).as_bytes())?;
    } else {
        becalm_report::render_cost(&report, &mut out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
