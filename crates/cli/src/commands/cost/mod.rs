//! `becalm cost`: what an interruption, a trap or a reading of the clock costs on this machine. A file a subcommand.

mod clock;

use std::io::Write;

use becalm_linux::sched::Policy;
use becalm_units::CpuId;
use clap::{Args, Subcommand};

use crate::exit::Exit;

/// Measure what interruptions, traps and clocks cost on this machine
#[derive(Args, Debug)]
pub struct CostArgs {
    #[command(subcommand)]
    command: CostCommand,
}

#[derive(Subcommand, Debug)]
enum CostCommand {
    Clock(clock::ClockArgs),
}

/// Where and how the probes run.
#[derive(Args, Debug)]
struct Place {
    /// The CPU to measure on [default: an isolated one, else the one with the fewest interrupts since boot]
    #[arg(long, value_name = "CPU", value_parser = cpu_id, allow_hyphen_values = true)]
    cpu: Option<CpuId>,

    /// The scheduling class of the measuring thread: other, batch, fifo:PRIORITY, rr:PRIORITY
    #[arg(long, value_name = "CLASS", default_value = "other")]
    sched: Policy,
}

/// The number of one CPU.
fn cpu_id(text: &str) -> Result<CpuId, String> {
    let err = || format!("'{text}' is not a CPU: write its number, from 0 to {}", CpuId::LIMIT - 1);
    text.parse().ok().filter(|id| *id < CpuId::LIMIT).map(CpuId::new).ok_or_else(err)
}

/// Runs the subcommand.
///
/// # Errors
/// As the subcommand says.
pub fn run(args: &CostArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.command {
        CostCommand::Clock(args) => clock::run(args, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_a_number() {
        assert_eq!(cpu_id("4095"), Ok(CpuId::new(4095)));
        for text in ["", "-1", "0-3", "all", "4294967296", "1048576"] {
            assert!(cpu_id(text).unwrap_err().contains("is not a CPU"), "{text}");
        }
    }
}
