//! `becalm compare`: runs against each other, before and after.

mod distributions;
mod jobs;
mod nodes;

use std::io::Write;
use std::path::{Path, PathBuf};

use becalm_analyze::compare::{Comparison, Limit, Metric, compare_sides, exceeds};
use becalm_analyze::summary::Selection;
use becalm_bundle::{Bundle, StoredNodes};
use becalm_model::node::NodeDoc;
use becalm_report::{CompareReport, LimitCheck};
use becalm_units::{CpuList, Share};
use clap::{Args, ValueEnum};

use crate::arguments::some_cpus;
use crate::exit::{Exit, UsageError};
use crate::messages;
use crate::output::{Output, emit};
use crate::progress::ReadingProgress;

/// Compare runs: what changed, by how much, how sure that is, and whether anything is shown at all
///
/// A is before, B after. Of one run each it is said whether these two recordings differ. Of several, as in A1 A2 A3 -- B1 B2 B3, it
/// is said whether B is worse or better, by how the runs of each side differ from each other. The noise ratio, the rate and the lengths of detours, and every source's share of time and rate
/// stand against each other with the change, its 95 % interval and a verdict, or that no difference is shown. The
/// CPUs that all runs measured are compared, with the highest threshold applied to all, and rates instead of
/// sums; what cannot be compared is refused with the reason. Of runs of several nodes each node stands against itself. Where any run is in
/// summary form, all are compared in that form.
///
/// A distribution that was imported stands beside another one, or beside a recording, figure by figure and without a verdict.
///
/// Jobs of becalm-mpi, as many as there are, are held against the first of them: the average and the worst 1 % of their phases.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// The run before the change and the one after it; or all runs before it, where -- and those after it follow
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    runs: Vec<PathBuf>,

    /// The runs after the change, where there are several before it or after it
    #[arg(value_name = "RUN_B", last = true)]
    after: Vec<PathBuf>,

    /// Compare only these CPUs of all runs, like 0-3,8 [default: those that all measured]
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

    /// Show all sources, nodes and CPUs, not only those that changed most
    #[arg(long)]
    all: bool,

    /// Print one JSON document (becalm.compare/1, of jobs becalm.compare-jobs/1, of distributions becalm.compare-distributions/1), which always holds everything
    #[arg(long)]
    json: bool,

    /// Write a page for a browser instead: one file with charts, which opens offline; one that is there already is replaced
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "all"])]
    html: Option<PathBuf>,

    /// Count the time that becalm's own threads took as noise of the machine
    #[arg(long)]
    with_self: bool,
}

impl CompareArgs {
    /// Whether it writes a file.
    pub const fn writes(&self) -> bool {
        self.html.is_some()
    }
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

/// The runs before and after. Without `--` they are one each.
fn sides(args: &CompareArgs) -> Result<(&[PathBuf], &[PathBuf]), UsageError> {
    if let Some(option) = args.after.iter().find(|path| path.to_string_lossy().starts_with("--") && !path.exists()) {
        return Err(UsageError(format!(
            "{} stands behind --, where only runs do; put it before them",
            option.display()
        )));
    }
    if !args.after.is_empty() {
        return Ok((&args.runs, &args.after));
    }
    match args.runs.as_slice() {
        [_, _] => Ok(args.runs.split_at(1)),
        [_] => Err(UsageError("a second run is missing: becalm compare RUN_A RUN_B".to_owned())),
        runs => Err(UsageError(format!(
            "of {} runs it is not known which are before and which after the change; put -- between them: becalm compare A1 A2 \
             A3 -- B1 B2 B3",
            runs.len()
        ))),
    }
}

/// Refuses a recording that would stand against itself, where it can show nothing, or count twice on a side, where it would make the
/// runs look more alike than they are. A copy is the same recording; other nodes or CPUs of it are not.
fn refuse_repeated(runs: &[(&Bundle, &Selection)]) -> Result<(), UsageError> {
    let documents: Vec<Vec<NodeDoc>> =
        // What cannot be read is refused with its reason later.
        runs.iter().map(|(bundle, selection)| selection.documents(bundle).unwrap_or_default()).collect();
    let original = |run: usize, node: &str| runs[run].0.nodes().iter().find(|doc| doc.node == node);
    for (b, of_b) in documents.iter().enumerate() {
        for (a, of_a) in documents.iter().enumerate().take(b) {
            let is_same = |doc: &&NodeDoc| {
                let shares =
                    |other: &NodeDoc| doc.cpus.iter().any(|cpu| other.cpus.iter().any(|its| its.cpu == cpu.cpu));
                let same_node = of_b.iter().find(|other| other.node == doc.node);
                same_node.is_some_and(shares) && original(a, &doc.node) == original(b, &doc.node)
            };
            let Some(doc) = of_a.iter().find(is_same) else { continue };
            let [a, b] = [a, b].map(|run| runs[run].0.path());
            return Err(repeated(a, b, doc));
        }
    }
    Ok(())
}

/// That two runs hold the same recording of a node.
fn repeated(a: &Path, b: &Path, doc: &NodeDoc) -> UsageError {
    UsageError(format!(
        "{} and {} hold the same recording, of node {} from {}: against itself it shows nothing, and twice on a side it makes the runs look \
         more alike than they are; give another, or other CPUs of it by --cpus-a and --cpus-b",
        a.display(),
        b.display(),
        doc.node,
        doc.origin.strftime("%Y-%m-%d %H:%M:%S UTC")
    ))
}

/// Reads the runs of both sides.
fn comparison(args: &CompareArgs) -> anyhow::Result<Comparison> {
    let (paths_a, paths_b) = sides(args)?;
    let selection = |node: &Option<String>, cpus: &Option<CpuList>| Selection {
        node: node.clone(),
        cpus: args.cpus.clone().or_else(|| cpus.clone()),
        with_self: args.with_self,
    };
    let (select_a, select_b) = (selection(&args.node_a, &args.cpus_a), selection(&args.node_b, &args.cpus_b));
    let Some((bundles_a, bundles_b)) = full_recordings(paths_a, paths_b)? else {
        return nodes::compare((paths_a, &select_a), (paths_b, &select_b));
    };
    let selected_a: Vec<_> = bundles_a.iter().map(|bundle| (bundle, &select_a)).collect();
    let selected_b: Vec<_> = bundles_b.iter().map(|bundle| (bundle, &select_b)).collect();
    refuse_repeated(&[selected_a.as_slice(), &selected_b].concat())?;
    let _reading = ReadingProgress::to_compare(bundles_a.iter().chain(&bundles_b));
    Ok(compare_sides(&selected_a, &selected_b)?)
}

/// The bundles of both sides, if they are full recordings that can be read. `None` where some nodes are in summary form, or some of several
/// cannot be read: such runs are compared node by node.
fn full_recordings(a: &[PathBuf], b: &[PathBuf]) -> anyhow::Result<Option<(Vec<Bundle>, Vec<Bundle>)>> {
    let open = |path: &PathBuf| -> anyhow::Result<Option<Bundle>> {
        let nodes = StoredNodes::open(path)?;
        if nodes.has_summaries()? {
            return Ok(None);
        }
        match Bundle::open(path) {
            Ok(bundle) => Ok(Some(bundle)),
            Err(_) if nodes.names().len() > 1 => Ok(None),
            Err(error) => Err(error.into()),
        }
    };
    let all = |paths: &[PathBuf]| paths.iter().map(open).collect::<anyhow::Result<Option<Vec<Bundle>>>>();
    Ok(all(a)?.zip(all(b)?))
}

/// Reads all runs and prints what changed, or writes its page.
///
/// # Errors
/// If a run cannot be read or does not hold what was asked for, the two have nothing in common, or the output cannot be
/// written.
pub fn run(args: &CompareArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if jobs::are_jobs(&[args.runs.as_slice(), &args.after].concat())? {
        return jobs::run(args, out);
    }
    if distributions::is_any(&[args.runs.as_slice(), &args.after].concat()) {
        return distributions::run(args, out);
    }
    let output = match &args.html {
        Some(file) => Output::page(file)?,
        None => Output::new(args.json, args.all),
    };
    let comparison = comparison(args)?;
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
