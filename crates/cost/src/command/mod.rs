//! `becalm cost`: measures interruptions, traps and clock readings on this machine. One file per subcommand.

mod placement;
mod probe;
mod process;
mod recording;
mod scheduler;
mod stored;
mod storing;
mod tick;

use std::io::Write;
use std::path::Path;

use becalm_command::Exit;
use becalm_command::Task;
use becalm_command::arguments::cpu_id;
use becalm_command::pager::Paging;
use becalm_command::progress::{Bar, Tail};
use becalm_command::rights::RightsKept;
use becalm_linux::perf::PerfEvent;
use becalm_linux::sched::Policy;
use becalm_units::fault;
use becalm_units::{CpuId, Named};
use clap::{Args, Subcommand};

use crate::measure::Site;

pub use stored::report_stored;

use probe::ProbeCommand;
use storing::OutputArgs;

/// Measure the cost of clocks, traps and interrupts
#[derive(Args, Debug)]
pub struct CostArgs {
    #[command(subcommand)]
    command: CostCommand,
}

#[derive(Subcommand, Debug)]
enum CostCommand {
    /// Measure the cost and resolution of each way to read time
    ///
    /// Covers the processor's instructions, every clock of clock_gettime, gettimeofday and time, through the C library
    /// and by raw system call. Shows whether a clock runs backwards and whether reading it enters the kernel; only root
    /// gets the latter from kernel counts, others from its time. The samples are stored; `becalm report` shows them
    /// again. --json prints becalm.cost-clock/1.
    Clock(probe::ProbeArgs),
    /// Measure the cost of entering the kernel
    ///
    /// Covers calls, faults, signals, switches, wake-ups and interrupts of another CPU. The first row is the trap of
    /// Tsafrir (2007), the raw system call getpid. The samples are stored; `becalm report` shows them again. --json
    /// prints becalm.cost-trap/1.
    Trap(probe::ProbeArgs),
    /// Measure each kind of interruption (Beckman 2007)
    ///
    /// Causes each kind of interruption (detour) that a thread can cause, from a cache miss to a preemption. The tick
    /// and device interrupts come from a recording of half a second per process, which needs root to tell them apart.
    /// Kinds that cannot be measured are listed with the reason. The samples are stored; `becalm report` shows them
    /// again. --json prints becalm.cost-detours/1.
    Detours(probe::ProbeArgs),
    Tick(Box<tick::TickArgs>),
    Scheduler(scheduler::SchedulerArgs),
    Placement(placement::PlacementArgs),
}

/// The site and the spread of the probes.
#[derive(Args, Debug)]
struct SiteArgs {
    /// CPU to measure on [default: an isolated one, else the one with the fewest interrupts since boot]
    #[arg(long, value_name = "CPU", value_parser = cpu_id, allow_hyphen_values = true)]
    cpu: Option<CpuId>,

    /// Scheduling class of the measuring thread: other, batch, fifo:PRIORITY, rr:PRIORITY
    #[arg(long, value_name = "CLASS", default_value = "other")]
    sched: Policy,
}

impl Task for CostArgs {
    fn rights(&self) -> RightsKept {
        match &self.command {
            CostCommand::Tick(args) if args.reads() => RightsKept::to_read(args.writes_page()),
            _ => RightsKept::All,
        }
    }

    fn paging(&self) -> Paging {
        match &self.command {
            CostCommand::Tick(args) if args.reads() => Paging::Long,
            _ => Paging::Asked,
        }
    }

    fn run(self: Box<Self>, out: &mut dyn Write) -> fault::Result<Exit> {
        match &self.command {
            CostCommand::Clock(args) => probe::run(ProbeCommand::Clock, args, out),
            CostCommand::Trap(args) => probe::run(ProbeCommand::Trap, args, out),
            CostCommand::Detours(args) => probe::run(ProbeCommand::Detours, args, out),
            CostCommand::Tick(args) => tick::run(args, out),
            CostCommand::Scheduler(args) => scheduler::run(args, out),
            CostCommand::Placement(args) => placement::run(args, out),
        }
    }
}

/// The CPU to measure on: the requested one, if usable, else the quietest.
fn chosen_site(root: &Path, asked: Option<CpuId>) -> fault::Result<Site> {
    Ok(Site::choose(root, asked, Policy::Other)?)
}

impl SiteArgs {
    /// The requested CPU, if usable, else the quietest.
    fn choose(&self) -> fault::Result<Site> {
        Ok(Site::choose(Path::new("/"), self.cpu, self.sched)?)
    }
}

/// The events that the user wants to count.
fn wanted(no_counters: bool) -> Vec<String> {
    let wanted = if no_counters { &[][..] } else { &PerfEvent::OF_PROCESSOR };
    wanted.iter().map(|event| event.name().to_owned()).collect()
}

/// The events that the processor counts, and why it does not count the others.
fn counted(no_counters: bool) -> (Vec<String>, Vec<String>) {
    crate::measure::tick::events::counted(&wanted(no_counters))
}

/// The progress of a measurement in percent, drawn only between two of its parts, so it causes no noise.
fn progress_bar() -> Bar {
    Bar::new("measuring", 100, Tail::Percent)
}
