//! `becalm compare`: compares runs, before and after.

mod record;

use std::io::Write;
use std::path::PathBuf;

use becalm_analyze::compare::Metric;
use becalm_analyze::summary::Selection;
use becalm_answer::compare::{self, CompareQuestion};
#[cfg(not(feature = "observe"))]
use becalm_bundle::Contents;
use becalm_command::arguments::{FormArgs, some_cpus};
use becalm_command::messages;
use becalm_command::pager::Paging;
use becalm_command::reader::Reader;
use becalm_command::rights::RightsKept;
use becalm_command::{Exit, Task};
use becalm_units::fault::{self, UsageError};
use becalm_units::{CpuList, Nanos, Share};
use clap::{Args, ValueEnum};

use self::record::{RecordedEnd, RecordedSide};

/// What changed between recordings, and is it significant?
///
/// A is before the change, B after it. `becalm compare --record 3 --output before` records A. After the change, `becalm compare --record 3
/// before-?.becalm` records B and compares. One recording per side shows only large changes. Recordings of becalm observe, imported distributions and
/// becalm-mpi jobs can also be compared. With a recording of becalm observe, --record observes the same threads again.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// Recordings before and after the change; before -- only those before it
    #[arg(value_name = "RUN", required_unless_present = "record", num_args = 1..)]
    runs: Vec<PathBuf>,

    /// Recordings after the change, if a side has several
    #[arg(value_name = "RUN_B", last = true)]
    after: Vec<PathBuf>,

    /// Number of recordings to make now, and to compare RUN with, if given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99), conflicts_with = "after")]
    record: Option<u8>,

    /// Name of the new recordings: NAME-1.becalm, ... [default: RUN-after]
    #[arg(short, long, value_name = "NAME", requires = "record")]
    output: Option<PathBuf>,

    /// Length of each new recording, e.g. 10s [default: that of RUN, or 10s]
    #[arg(short, long, value_name = "TIME", requires = "record")]
    duration: Option<Nanos>,

    /// CPUs to compare, e.g. 0-3,8 [default: those that all recordings measured]
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus, conflicts_with_all = ["cpus_a", "cpus_b"])]
    cpus: Option<CpuList>,

    /// CPUs of A to use; if they are not those of B, all are compared together
    #[arg(long, value_name = "LIST", value_parser = some_cpus)]
    cpus_a: Option<CpuList>,

    /// CPUs of B to use
    #[arg(long, value_name = "LIST", value_parser = some_cpus)]
    cpus_b: Option<CpuList>,

    /// Node of A to use
    #[arg(long, value_name = "NODE")]
    node_a: Option<String>,

    /// Node of B to use
    #[arg(long, value_name = "NODE")]
    node_b: Option<String>,

    /// Shortest length of distributions, e.g. 50us [default: the highest threshold]
    #[arg(long, value_name = "TIME")]
    min_length: Option<Nanos>,

    /// Exit with code 3 if B is significantly worse than A by this share, e.g. 5%
    #[arg(long, value_name = "SHARE")]
    fail_if_worse: Option<Share>,

    /// Figures that --fail-if-worse checks
    #[arg(
        long,
        value_name = "FIGURE",
        value_delimiter = ',',
        default_value = "noise-ratio",
        requires = "fail_if_worse"
    )]
    metric: Vec<CheckedMetric>,

    /// Show all sources, nodes and CPUs instead of those that changed most
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    form: FormArgs,

    /// Count the CPU time of becalm's own threads as noise
    #[arg(long)]
    with_self: bool,
}

/// The figures that can be limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum CheckedMetric {
    /// Share of time lost to noise
    NoiseRatio,
    /// Interruptions (detours) per second
    Rate,
    /// Mean interruption
    Mean,
    /// Interruption that 1 in 100 exceeds
    P99,
    /// Interruption that 1 in 1,000 exceeds
    P999,
    /// Longest interruption in a stretch of time
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

/// The runs before and after. Without `--` one each.
fn sides(args: &CompareArgs) -> Result<(&[PathBuf], &[PathBuf]), UsageError> {
    if let Some(option) = args.after.iter().find(|path| path.to_string_lossy().starts_with("--") && !path.exists()) {
        return Err(UsageError::new(format!(
            "{} is behind --, and only recordings may be there; put it before --",
            option.display()
        )));
    }
    if !args.after.is_empty() {
        return Ok((&args.runs, &args.after));
    }
    match args.runs.as_slice() {
        [_, _] => Ok(args.runs.split_at(1)),
        [_] => Err(UsageError::new(
            "a second recording is missing: becalm compare RUN_A RUN_B, or record it now with becalm compare --record 3 RUN_A",
        )),
        runs => Err(UsageError::new(format!(
            "which of the {} recordings are after the change is not known; put -- before those: becalm compare A1 A2 A3 -- B1 \
             B2 B3",
            runs.len()
        ))),
    }
}

impl CompareArgs {
    /// The selected parts of the runs before and after.
    fn selections(&self) -> (Selection, Selection) {
        let selection = |node: &Option<String>, cpus: &Option<CpuList>| Selection {
            node: node.clone(),
            cpus: self.cpus.clone().or_else(|| cpus.clone()),
            with_self: self.with_self,
            ..Selection::default()
        };
        (selection(&self.node_a, &self.cpus_a), selection(&self.node_b, &self.cpus_b))
    }

    fn question(&self) -> Result<CompareQuestion, UsageError> {
        let (before, after) = sides(self)?;
        let (selection_before, selection_after) = self.selections();
        let metrics = || self.metric.iter().map(|checked| checked.metric()).collect();
        Ok(CompareQuestion {
            before: before.to_vec(),
            after: after.to_vec(),
            selection_before,
            selection_after,
            limit: self.fail_if_worse.map(|share| (share, metrics())),
        })
    }

    /// The given options that are for recordings of CPUs alone.
    const fn of_cpus(&self) -> [(&'static str, bool); 5] {
        [
            ("--min-length", self.min_length.is_some()),
            ("--cpus", self.cpus.is_some()),
            ("--cpus-a", self.cpus_a.is_some()),
            ("--cpus-b", self.cpus_b.is_some()),
            ("--with-self", self.with_self),
        ]
    }

    /// Refuses options that do not apply to observed threads.
    #[cfg(feature = "observe")]
    fn refuse_of_threads(&self) -> Result<(), UsageError> {
        let others = [("--metric", self.metric.as_slice() != [CheckedMetric::NoiseRatio])];
        match self.of_cpus().into_iter().chain(others).find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(becalm_observe::not_for_threads(option)),
            None => Ok(()),
        }
    }

    /// Refuses options that do not apply to jobs.
    fn refuse_of_jobs(&self) -> Result<(), UsageError> {
        let others = [
            ("--", !self.after.is_empty()),
            ("--node-a", self.node_a.is_some()),
            ("--node-b", self.node_b.is_some()),
            ("--fail-if-worse", self.fail_if_worse.is_some()),
        ];
        let mut unused = others.into_iter().chain(self.of_cpus());
        match unused.find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(UsageError::new(format!(
                "{option} is for recordings of interruptions, and jobs are compared with the first one; leave it out"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses options that need times, which distributions lack.
    fn refuse_of_distributions(&self) -> Result<(), UsageError> {
        let unused = [("--fail-if-worse", self.fail_if_worse.is_some()), ("--with-self", self.with_self)];
        match unused.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(UsageError::new(format!(
                "{option} is for recordings alone, and one of these is a distribution; leave it out"
            ))),
            None => Ok(()),
        }
    }
}

impl Task for CompareArgs {
    fn rights(&self) -> RightsKept {
        // The recording children need the rights; this process drops its own before it compares.
        if self.record.is_some() {
            return RightsKept::All;
        }
        RightsKept::to_read(self.form.writes_page())
    }

    fn paging(&self) -> Paging {
        Paging::Long
    }

    fn run(self: Box<Self>, out: &mut dyn Write) -> fault::Result<Exit> {
        run(*self, out)
    }
}

/// Reads all runs and prints the changes, or writes the page. Fails if a run cannot be read or lacks the requested part, the two have
/// nothing in common, or the output cannot be written.
fn run(args: CompareArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let Some(number) = args.record else { return compare_runs(&args, out) };
    // Before much time is spent.
    if are_observed(&args)? {
        args.refuse_of_threads()?;
    }
    let side = RecordedSide::plan(number.into(), &args.runs, args.output.as_deref(), args.duration)?;
    if let RecordedEnd::Stopped = side.record()? {
        return Ok(Exit::Failed);
    }
    if args.runs.is_empty() {
        let runs: Vec<String> = side.paths().iter().map(|path| path.display().to_string()).collect();
        messages::say(format_args!(
            "after the change, compare with becalm compare --record {number} {}",
            runs.join(" ")
        ));
        return Ok(Exit::Done);
    }
    RightsKept::to_read(args.form.writes_page()).keep()?;
    compare_runs(&CompareArgs { after: side.paths().to_vec(), ..args }, out)
}

/// Whether the runs are observed threads. Fails if only some are.
#[cfg(feature = "observe")]
fn are_observed(args: &CompareArgs) -> fault::Result<bool> {
    becalm_observe::are_observed(&[args.runs.as_slice(), &args.after].concat())
}

#[cfg(feature = "observe")]
fn compare_observed(args: &CompareArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    args.refuse_of_threads()?;
    let (before, after) = sides(args)?;
    let question = becalm_observe::CompareQuestion {
        sides: [before, after],
        nodes: [args.node_a.as_deref(), args.node_b.as_deref()],
        limit: args.fail_if_worse,
    };
    let exceeded = question.answer(&mut Reader::new(args.form.output(args.full)?, out))?;
    exceeded.iter().for_each(|text| messages::say(format_args!("{text}")));
    Ok(if exceeded.is_none() { Exit::Done } else { Exit::LimitExceeded })
}

/// Whether one of the runs is observed threads.
#[cfg(not(feature = "observe"))]
fn are_observed(args: &CompareArgs) -> fault::Result<bool> {
    let is_observed = |path: &PathBuf| matches!(Contents::read(path), Ok(Contents::Observed));
    Ok(args.runs.iter().chain(&args.after).any(is_observed))
}

#[cfg(not(feature = "observe"))]
impl CompareArgs {
    /// Refuses all observed threads.
    fn refuse_of_threads(&self) -> fault::Result<()> {
        Err(becalm_command::built_without("observe").into())
    }
}

#[cfg(not(feature = "observe"))]
fn compare_observed(_: &CompareArgs, _: &mut dyn Write) -> fault::Result<Exit> {
    Err(becalm_command::built_without("observe").into())
}

#[cfg(feature = "foreign")]
fn compare_distributions(args: &CompareArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    args.refuse_of_distributions()?;
    let ((before, after), (select_a, select_b)) = (sides(args)?, args.selections());
    let least = args.min_length.unwrap_or_default();
    let mut reader = Reader::new(args.form.output(args.full)?, out);
    becalm_foreign::distribution::compare([before, after], [&select_a, &select_b], least, &mut reader)?;
    Ok(Exit::Done)
}

#[cfg(not(feature = "foreign"))]
fn compare_distributions(_: &CompareArgs, _: &mut dyn Write) -> fault::Result<Exit> {
    Err(becalm_command::built_without("foreign").into())
}

fn compare_runs(args: &CompareArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    if are_observed(args)? {
        return compare_observed(args, out);
    }
    let runs = [args.runs.as_slice(), &args.after].concat();
    if compare::are_jobs(&runs)? {
        args.refuse_of_jobs()?;
        compare::jobs(&runs, &mut Reader::new(args.form.output(args.full)?, out))?;
        return Ok(Exit::Done);
    }
    if compare::are_distributions(&runs) {
        return compare_distributions(args, out);
    }
    if args.min_length.is_some() {
        let text = "--min-length is for distributions: recordings are compared from the highest of their thresholds on; leave it out";
        return Err(UsageError::new(text.to_owned()).into());
    }
    let mut reader = Reader::new(args.form.output(args.full)?, out);
    let exceeded = args.question()?.answer(&mut reader)?;
    for text in &exceeded {
        messages::say(format_args!("{text}"));
    }
    Ok(if exceeded.is_empty() { Exit::Done } else { Exit::LimitExceeded })
}
