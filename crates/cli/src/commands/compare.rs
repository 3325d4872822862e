//! `becalm compare`: two runs against each other, before and after.

use std::io::Write;
use std::path::PathBuf;

use becalm_analyze::compare::{Limit, Metric, compare, exceeds};
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_report::{CompareReport, LimitCheck};
use becalm_units::{CpuList, Share};
use clap::{Args, ValueEnum};

use crate::arguments::some_cpus;
use crate::exit::Exit;
use crate::messages;
use crate::output::{Output, emit};
use crate::progress::ReadingProgress;

/// Compare two runs: what changed, by how much, how sure that is, and whether anything is shown at all
///
/// A is before, B after. The noise ratio, the rate and the lengths of detours, and every source's share of time and rate
/// stand against each other with the change, its 95 % interval and a verdict: worse, better, or no difference shown. The
/// CPUs that both runs measured are compared, with the higher threshold of the two applied to both, and rates instead of
/// sums; what cannot be compared is refused with the reason.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// The run before the change
    #[arg(value_name = "RUN_A")]
    a: PathBuf,

    /// The run after the change
    #[arg(value_name = "RUN_B")]
    b: PathBuf,

    /// Compare only these CPUs of both runs, like 0-3,8 [default: those that both measured]
    #[arg(long, value_name = "LIST", value_parser = some_cpus, conflicts_with_all = ["cpus_a", "cpus_b"])]
    cpus: Option<CpuList>,

    /// Take only these CPUs of A; where they differ from those of B, all CPUs of each side are compared together
    #[arg(long, value_name = "LIST", value_parser = some_cpus)]
    cpus_a: Option<CpuList>,

    /// Take only these CPUs of B
    #[arg(long, value_name = "LIST", value_parser = some_cpus)]
    cpus_b: Option<CpuList>,

    /// Take only this node of A
    #[arg(long, value_name = "NODE")]
    node_a: Option<String>,

    /// Take only this node of B
    #[arg(long, value_name = "NODE")]
    node_b: Option<String>,

    /// Exit with code 3 if B is worse than A by more than this, like 5%, beyond doubt: the lower end of the 95 % interval of
    /// B / A, over all CPUs together, lies above it
    #[arg(long, value_name = "SHARE")]
    fail_if_worse: Option<Share>,

    /// Which figures --fail-if-worse looks at
    #[arg(
        long,
        value_name = "FIGURE",
        value_delimiter = ',',
        default_value = "noise-ratio",
        requires = "fail_if_worse"
    )]
    metric: Vec<CheckedMetric>,

    /// Show all sources and CPUs, not only those that changed most
    #[arg(long)]
    all: bool,

    /// Print one JSON document (becalm.compare/1), which always holds everything
    #[arg(long)]
    json: bool,

    /// Write a page for a browser instead: one file with charts, which opens offline; one that is there already is replaced
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "all"])]
    html: Option<PathBuf>,
}

/// The figures that can be limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum CheckedMetric {
    /// Time lost over time observed
    NoiseRatio,
    /// Detours a second
    Rate,
    /// The mean detour
    Mean,
    /// The detour that 1 in 100 exceeds
    P99,
    /// The detour that 1 in 1,000 exceeds
    P999,
    /// The longest detour in a stretch of time
    StretchMax,
}

impl CheckedMetric {
    const fn metric(self) -> Metric {
        match self {
            Self::NoiseRatio => Metric::NoiseRatio,
            Self::Rate => Metric::Rate,
            Self::Mean => Metric::Mean,
            Self::P99 => Metric::P99,
            Self::P999 => Metric::P999,
            Self::StretchMax => Metric::StretchMax,
        }
    }
}

/// Reads both runs and prints what changed, or writes its page.
///
/// # Errors
/// If a run cannot be read or does not hold what was asked for, the two have nothing in common, or the output cannot be
/// written.
pub fn run(args: &CompareArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let output = match &args.html {
        Some(file) => Output::page(file)?,
        None => Output::new(args.json, args.all),
    };
    let (bundle_a, bundle_b) = (Bundle::open(&args.a)?, Bundle::open(&args.b)?);
    let selection = |node: &Option<String>, cpus: &Option<CpuList>| Selection {
        node: node.clone(),
        cpus: args.cpus.clone().or_else(|| cpus.clone()),
    };
    let (select_a, select_b) = (selection(&args.node_a, &args.cpus_a), selection(&args.node_b, &args.cpus_b));
    let reading = ReadingProgress::to_compare([&bundle_a, &bundle_b]);
    let comparison = compare((&bundle_a, &select_a), (&bundle_b, &select_b))?;
    drop(reading);
    let share = args.fail_if_worse.map(Share::ratio);
    let checks: Vec<LimitCheck> = share
        .into_iter()
        .flat_map(|share| args.metric.iter().map(move |checked| (share, checked.metric())))
        .map(|(share, metric)| {
            let outcome = comparison.total(metric).map_or(Limit::Unknown, |row| exceeds(row, share));
            LimitCheck { metric, share, outcome }
        })
        .collect();
    let report = CompareReport { comparison: &comparison, checks: &checks };
    emit(&report, output, out)?;
    let exceeded: Vec<&LimitCheck> = checks.iter().filter(|check| check.outcome == Limit::Exceeded).collect();
    for check in &exceeded {
        messages::say(format_args!("{}", becalm_report::check_text(&comparison, check)));
    }
    Ok(if exceeded.is_empty() { Exit::Done } else { Exit::LimitExceeded })
}
