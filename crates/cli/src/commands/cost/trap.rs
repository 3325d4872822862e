//! `becalm cost trap`: what it costs to enter the kernel and come back.

use std::io::{BufWriter, Write};

use anyhow::Result;
use becalm_measure::cost::traps;
use becalm_report::{CostKind, CostReport};
use clap::Args;

use super::{Meter, Place, failure, header, row};
use crate::exit::Exit;

/// Measure what it costs to enter the kernel: calls, faults, signals, switches, wake-ups, interrupts of another CPU
///
/// The first row is the trap of Tsafrir (2007): the raw system call getpid.
#[derive(Args, Debug)]
pub struct TrapArgs {
    #[command(flatten)]
    place: Place,

    /// Print one JSON document (becalm.cost-trap/1)
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
///
/// # Errors
/// If the CPU cannot be used, or `out` cannot be written.
pub fn run(args: &TrapArgs, out: &mut dyn Write) -> Result<Exit> {
    let place = args.place.choose()?;
    let meter = Meter::new();
    let probed = traps(place, &mut |done, of, name| meter.show(done, of, name)).map_err(failure)?;
    drop(meter);
    let report = CostReport {
        kind: CostKind::Trap,
        header: header(&probed.place, probed.instrument),
        rows: probed.result.into_iter().map(row).collect(),
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
