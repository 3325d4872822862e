//! `becalm cost`: what an interruption, a trap or a reading of the clock costs on this machine. A file a subcommand.

mod clock;
mod placement;
mod scheduler;
mod tick;

use std::io::Write;
use std::path::Path;

use becalm_linux::sched::{self, Policy};
use becalm_linux::sysfs::cpu::CpuSets;
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
    Tick(Box<tick::TickArgs>),
    Scheduler(scheduler::SchedulerArgs),
    Placement(placement::PlacementArgs),
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

/// The CPU to measure on where none is named: the first isolated one that can be used, else the last that can, since the
/// first takes most of a machine's interrupts.
fn default_cpu(root: &Path) -> anyhow::Result<CpuId> {
    let sets = CpuSets::read(root).unwrap_or_default();
    let allowed = sched::allowed_cpus()?;
    let isolated = sets.isolated.intersection(&sets.online);
    let chosen = isolated.iter().next().or_else(|| allowed.iter().last());
    chosen.ok_or_else(|| anyhow::anyhow!("this process may run on no CPU"))
}

/// Runs the subcommand.
///
/// # Errors
/// As the subcommand says.
pub fn run(args: &CostArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.command {
        CostCommand::Clock(args) => clock::run(args, out),
        CostCommand::Tick(args) => tick::run(args, out),
        CostCommand::Scheduler(args) => scheduler::run(args, out),
        CostCommand::Placement(args) => placement::run(args, out),
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
