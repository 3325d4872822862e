//! `becalm sources`: the sources of noise, over all CPUs, per CPU, or in single detours.

use std::io::Write;
use std::path::PathBuf;

use becalm_answer::sources::{DetourName, SourcesQuestion, SourcesWanted};
use becalm_command::arguments::{FormArgs, RunArgs};
use becalm_command::reader::Reader;
use becalm_command::{Exit, reading_task};
use becalm_units::{Nanos, fault};
use clap::Args;

/// Show who took the time: the sources of a run, ranked, or single detours activity by activity
///
/// Each source with how often it ran inside of detours, its shortest, longest and mean time, their standard deviation,
/// its total, and its share of all noise. A source's time does not hold that of what interrupted it. Beside the sources
/// stand three rests: `edge`, the time of a detour around the kernel's work (entry, exit, cold caches); `unseen`,
/// detours in which the kernel did nothing (hypervisor, firmware, hardware); `self`, becalm's own work.
#[derive(Args, Debug)]
pub struct SourcesArgs {
    #[command(flatten)]
    run: RunArgs,

    /// Rank the sources of each CPU apart; shares are then those of the CPU's noise
    #[arg(long, conflicts_with_all = ["detour", "longest"])]
    per_cpu: bool,

    /// Show one detour as a timeline: number N of a CPU, counted from 0; the CPU may be left out if there is only one
    #[arg(long, value_name = "CPU:N", conflicts_with = "longest")]
    detour: Option<DetourName>,

    /// Show the K longest detours as timelines
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    longest: Option<u32>,

    /// Show what comes at once on several CPUs of a node: for how long how many of them are within a detour, and how many detours of
    /// each source meet one of another CPU, each beside what chance would give
    #[arg(long, conflicts_with_all = ["detour", "longest", "per_cpu"])]
    together: bool,

    /// Detours meet, too, if less than this lies between them, like 10us
    #[arg(long, value_name = "TIME", default_value = "0ns", requires = "together")]
    within: Nanos,

    /// Show what lies within the worst phases of a job of becalm-mpi, which ran while its nodes were recorded: on the CPU of the rank that the
    /// others waited for, while it computed
    #[arg(long, value_name = "JOB", conflicts_with_all = ["detour", "longest", "per_cpu", "together", "cpus", "node"])]
    phases: Option<PathBuf>,

    /// Show all sources, not only the 20 that took most
    #[arg(long, conflicts_with_all = ["detour", "longest"])]
    full: bool,

    #[command(flatten)]
    form: FormArgs,
}

reading_task!(SourcesArgs);

/// Reads the run and prints the requested view.
fn run(args: &SourcesArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let wanted = match (&args.phases, args.together, args.detour, args.longest) {
        (Some(job), ..) => SourcesWanted::Phases { job: job.clone() },
        (_, true, ..) => SourcesWanted::Together { within: args.within },
        (_, _, Some(detour), _) => SourcesWanted::Detour(detour),
        (.., Some(count)) => SourcesWanted::Longest(count),
        _ => SourcesWanted::Ranked { per_cpu: args.per_cpu },
    };
    let question = SourcesQuestion { run: args.run.path.clone(), selection: args.run.selection(), wanted };
    question.answer(&mut Reader::new(args.form.output(args.full)?, out))?;
    Ok(Exit::Done)
}
