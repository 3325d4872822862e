//! `becalm sources`: who took the time, over all CPUs, on each, or in single detours.

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use becalm_analyze::phase_sources::phase_sources;
use becalm_analyze::summary::{DetourId, Selection, longest, summarize, summarize_digests, timelines};
use becalm_analyze::together::together;
use becalm_bundle::{Bundle, Contents, PhaseRun};
use becalm_report::{DetoursReport, PhaseSourcesReport, SourcesReport, TogetherReport};
use becalm_units::{CpuId, Nanos};
use clap::Args;

use crate::arguments::RunArgs;
use crate::exit::{Exit, UsageError};
use crate::output::{Output, emit};
use crate::progress::ReadingProgress;

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
    detour: Option<DetourArg>,

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
    all: bool,

    /// Print one JSON document (becalm.sources/1, of single detours becalm.detours/1, of what comes at once becalm.together/1, of a job becalm.phase-sources/1), which always holds everything
    #[arg(long)]
    json: bool,
}

/// A detour by its number, `CPU:N`, or `N` if only one CPU was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DetourArg {
    cpu: Option<CpuId>,
    number: u64,
}

impl FromStr for DetourArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("'{text}' is not the number of a detour"));
        let Some((cpu, of_cpu)) = text.split_once(':') else {
            return Ok(Self { cpu: None, number: number(text)? });
        };
        let cpu = match cpu.parse::<u32>() {
            Ok(cpu) if cpu < CpuId::LIMIT => CpuId::new(cpu),
            _ => return Err(format!("'{cpu}' is not the number of a CPU")),
        };
        Ok(Self { cpu: Some(cpu), number: number(of_cpu)? })
    }
}

/// Reads the run and prints what was asked for.
///
/// # Errors
/// If the run cannot be read, does not hold what was asked for, or `out` cannot be written.
pub fn run(args: &SourcesArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let selection = args.run.selection();
    let output = Output::new(args.json, args.all);
    if Contents::read(&args.run.path)? == Contents::Summary {
        if args.phases.is_some() || args.together || args.detour.is_some() || args.longest.is_some() {
            let text = format!(
                "{} holds a recording in summary form, which does not say what each detour consists of; leave --phases, --together, --detour and \
                 --longest out",
                args.run.path.display()
            );
            return Err(UsageError(text).into());
        }
        let summary = summarize_digests(&args.run.open_summary()?, &selection)?;
        emit(&SourcesReport { summary: &summary, per_cpu: args.per_cpu }, output, out)?;
        return Ok(Exit::Done);
    }
    let bundle = args.run.open()?;
    if let Some(job) = &args.phases {
        let reading = ReadingProgress::begin(&bundle, 1);
        let found = phase_sources(&PhaseRun::open(job)?, &bundle)?;
        drop(reading);
        emit(&PhaseSourcesReport { found: &found }, output, out)?;
        return Ok(Exit::Done);
    }
    if args.together {
        let reading = ReadingProgress::begin(&bundle, 1);
        let together = together(&bundle, &selection, args.within)?;
        drop(reading);
        emit(&TogetherReport { together: &together }, output, out)?;
        return Ok(Exit::Done);
    }
    // Which are the longest is known when all have been read once.
    let reading = ReadingProgress::begin(&bundle, if args.longest.is_some() { 2 } else { 1 });
    let detours = match (args.detour, args.longest) {
        (Some(detour), _) => Some(vec![find(&bundle, &selection, detour)?]),
        (None, Some(count)) => Some(longest(&bundle, &selection, count as usize)?),
        (None, None) => None,
    };
    if let Some(detours) = detours {
        let timelines = timelines(&bundle, &detours)?;
        drop(reading);
        emit(&DetoursReport { timelines: &timelines }, output, out)?;
    } else {
        let summary = summarize(&bundle, &selection)?;
        drop(reading);
        emit(&SourcesReport { summary: &summary, per_cpu: args.per_cpu }, output, out)?;
    }
    Ok(Exit::Done)
}

/// The detour that was meant.
fn find(bundle: &Bundle, selection: &Selection, detour: DetourArg) -> anyhow::Result<DetourId> {
    let cpus = selection.cpus.clone().or_else(|| detour.cpu.map(|cpu| [cpu].into_iter().collect()));
    let docs = Selection { node: selection.node.clone(), cpus, with_self: selection.with_self }.documents(bundle)?;
    let places = docs.iter().flat_map(|doc| doc.cpus.iter().map(|cpu| (doc.node.clone(), cpu.cpu)));
    let places: Vec<(String, CpuId)> = places.filter(|(_, cpu)| detour.cpu.is_none_or(|of| of == *cpu)).collect();
    let number = detour.number;
    match places.as_slice() {
        [(node, cpu)] => Ok(DetourId { node: node.clone(), cpu: *cpu, number }),
        [] => Err(UsageError(format!("--detour {}:{number} is not among the CPUs of --cpus", text(detour.cpu))).into()),
        [(_, first), ..] if detour.cpu.is_none() && docs.len() == 1 => {
            Err(UsageError(format!("the run has several CPUs; name the detour's, as in --detour {first}:{number}"))
                .into())
        }
        [(node, _), ..] => Err(UsageError(format!("the run has several nodes; name one, as in --node {node}")).into()),
    }
}

fn text(cpu: Option<CpuId>) -> String {
    cpu.map(|cpu| cpu.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detours_are_named_by_cpu_and_number() {
        assert_eq!("1:20".parse(), Ok(DetourArg { cpu: Some(CpuId::new(1)), number: 20 }));
        assert_eq!("20".parse(), Ok(DetourArg { cpu: None, number: 20 }));
        for (text, why) in [
            ("", "number of a detour"),
            ("1:", "number of a detour"),
            ("x:1", "number of a CPU"),
            ("9999999:1", "number of a CPU"),
            ("-1", "number of a detour"),
            ("1:2:3", "number of a detour"),
        ] {
            let error = text.parse::<DetourArg>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
