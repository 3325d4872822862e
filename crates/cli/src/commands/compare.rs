//! `becalm compare`: compares runs, before and after.

mod record;

use std::io::Write;
use std::path::PathBuf;

use becalm_analyze::compare::Metric;
use becalm_analyze::summary::Selection;
use becalm_answer::compare::{self, CompareQuestion};
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

/// Compare runs: what changed, by how much, how sure that is, and whether anything is shown at all
///
/// A is before, B after. Record three runs of each side: becalm compare --record 3 --output before, then the change, then becalm compare
/// --record 3 before-?.becalm. Several runs a side, as in A1 A2 A3 -- B1 B2 B3, show whether B is worse or better, by how the runs of
/// each side differ from each other. One run a side shows only a difference that recordings of an unchanged machine do not have by
/// themselves. The noise ratio, the rate and the lengths of detours, and every source's share of time and rate
/// stand against each other with the change, its 95 % interval and a verdict, or that no difference is shown. The
/// CPUs that all runs measured are compared, with the highest threshold applied to all, and rates instead of
/// sums; what cannot be compared is refused with the reason. Of runs of several nodes each node stands against itself. Where any run is in
/// summary form, all are compared in that form.
///
/// A distribution that was imported stands beside another one, or beside a recording, figure by figure. Where both measured the same, it is
/// said whether they differ, or how large a difference can be at most.
///
/// Jobs of becalm-mpi, as many as there are, are held against the first of them: the average and the worst 1 % of their phases.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// The run before the change and the one after it; or all runs before it, where -- and those after it follow
    #[arg(value_name = "RUN", required_unless_present = "record", num_args = 1..)]
    runs: Vec<PathBuf>,

    /// The runs after the change, where there are several before it or after it
    #[arg(value_name = "RUN_B", last = true)]
    after: Vec<PathBuf>,

    /// Record this many runs now, one after the other, and compare the given runs with them; without a RUN, only record
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99), conflicts_with = "after")]
    record: Option<u8>,

    /// Name of the runs of --record, stored as NAME-1.becalm and so on [default: that of the first RUN with -after]
    #[arg(short, long, value_name = "NAME", requires = "record")]
    output: Option<PathBuf>,

    /// Length of each run of --record, like 10s [default: that of the first RUN, or 10s]
    #[arg(short, long, value_name = "TIME", requires = "record")]
    duration: Option<Nanos>,

    /// Compare only these CPUs of all runs, like 0-3,8 [default: those that all measured]
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus, conflicts_with_all = ["cpus_a", "cpus_b"])]
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

    /// Compare only lengths of at least this, like 50us; of distributions alone [default: the highest threshold of all]
    #[arg(long, value_name = "TIME")]
    min_length: Option<Nanos>,

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
    full: bool,

    #[command(flatten)]
    form: FormArgs,

    /// Count the time that becalm's own threads took as noise of the machine
    #[arg(long)]
    with_self: bool,
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

/// The runs before and after. Without `--` one each.
fn sides(args: &CompareArgs) -> Result<(&[PathBuf], &[PathBuf]), UsageError> {
    if let Some(option) = args.after.iter().find(|path| path.to_string_lossy().starts_with("--") && !path.exists()) {
        return Err(UsageError::new(format!(
            "{} stands behind --, where only runs do; put it before them",
            option.display()
        )));
    }
    if !args.after.is_empty() {
        return Ok((&args.runs, &args.after));
    }
    match args.runs.as_slice() {
        [_, _] => Ok(args.runs.split_at(1)),
        [_] => Err(UsageError::new(
            "a second run is missing: becalm compare RUN_A RUN_B, or record it now with becalm compare --record 3 RUN_A",
        )),
        runs => Err(UsageError::new(format!(
            "of {} runs it is not known which are before and which after the change; put -- between them: becalm compare A1 A2 \
             A3 -- B1 B2 B3",
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

    /// Refuses options that do not apply to jobs.
    fn refuse_of_jobs(&self) -> Result<(), UsageError> {
        let unused = [
            ("--", !self.after.is_empty()),
            ("--min-length", self.min_length.is_some()),
            ("--cpus", self.cpus.is_some()),
            ("--cpus-a", self.cpus_a.is_some()),
            ("--cpus-b", self.cpus_b.is_some()),
            ("--node-a", self.node_a.is_some()),
            ("--node-b", self.node_b.is_some()),
            ("--fail-if-worse", self.fail_if_worse.is_some()),
            ("--with-self", self.with_self),
        ];
        match unused.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(UsageError::new(format!(
                "{option} is for recordings of detours: each job is held against the first one; leave it out"
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
