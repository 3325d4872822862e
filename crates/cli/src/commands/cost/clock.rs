//! `becalm cost clock`: each way to read the time.

use std::io::{BufWriter, Write};

use anyhow::Result;
use becalm_measure::cost::{ClockRow, Counting, clocks};
use becalm_report::{ClockCost, ClockReport};
use clap::Args;

use super::{Meter, Place, failure, header, measured};
use crate::exit::Exit;

/// Measure each way to read the time: what it costs, how fine it is, whether it runs backwards
///
/// The processor's own instructions, every clock of clock_gettime that this kernel has, gettimeofday and time; through the
/// C library and by a raw system call. As root, the kernel counts whether a reading enters it; else its time tells.
#[derive(Args, Debug)]
pub struct ClockArgs {
    #[command(flatten)]
    place: Place,

    /// Print one JSON document (becalm.cost-clock/1)
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
///
/// # Errors
/// If the CPU cannot be used, or `out` cannot be written.
pub fn run(args: &ClockArgs, out: &mut dyn Write) -> Result<Exit> {
    let place = args.place.choose()?;
    let meter = Meter::new();
    let probed = clocks(place, &mut |done, of, name| meter.show(done, of, name)).map_err(failure)?;
    drop(meter);
    let report = ClockReport {
        header: header(&probed.place, probed.instrument),
        rows: probed.result.rows.iter().map(row).collect(),
        not_counted: match probed.result.counting {
            Counting::Counted => None,
            Counting::Timed(why) => Some(why),
        },
    };
    let mut out = BufWriter::new(out);
    if args.json {
        out.write_all(becalm_report::clock_json(&report).as_bytes())?;
    } else {
        becalm_report::render_clock(&report, &mut out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn row(row: &ClockRow) -> ClockCost {
    ClockCost {
        name: row.name.clone(),
        path: row.path.name().to_owned(),
        cost: measured(&row.cost),
        raw: row.raw.as_ref().and_then(measured),
        stated_ns: row.stated_ns,
        smallest_step_ps: row.steps.smallest_ps,
        median_step_ps: row.steps.median_ps,
        readings: row.steps.readings,
        backwards: row.steps.backwards,
        compared: row.cross.map(|cross| cross.compared),
        cross_backwards: row.cross.map(|cross| cross.backwards),
        cross_largest_ps: row.cross.map(|cross| cross.largest_ps),
    }
}
