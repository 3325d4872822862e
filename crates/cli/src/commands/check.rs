//! `becalm check`: checks CPUs against limits, for CI jobs.

use std::io::Write;
use std::path::{Path, PathBuf};

use becalm_analyze::limits;
use becalm_analyze::summary::{Detail, Selection, Summary, summarize, summarize_digests};
use becalm_bundle::{Bundle, Contents, Draft, SummaryBundle};
use becalm_command::arguments::run::{open, open_summary};
use becalm_command::arguments::{FolderArgs, FormArgs, LimitArgs, refuse_existing, some_cpus};
use becalm_command::messages::say;
use becalm_command::output::{PROGRAM, emit};
use becalm_command::pager::Paging;
use becalm_command::progress::ReadingProgress;
use becalm_command::recording;
use becalm_command::rights::{RightsKept, give_up_after_set_up, refuse_file_of_root, refuse_place_of_root};
use becalm_command::{Exit, Task};
use becalm_measure::RecordPlan;
use becalm_model::node::Ended;
use becalm_record::{DetourStore, RecordingStore, Session};
use becalm_report::CheckReport;
use becalm_units::fault::{self, Context, Result, UsageError};
use becalm_units::{CpuList, Nanos};
use clap::Args;

/// Fail (exit 3) if noise exceeds a limit, for CI
///
/// Records CPUs, or reads a recording, and reports per CPU and limit whether it holds, with the 95 % CI and the main source. A limit holds if the
/// whole CI is within it, and is exceeded if the value is above it. Otherwise there is not enough data. Give --max-noise, --max-detour or both.
///
/// Exit codes: 0 no limit is exceeded, 1 failed, 2 wrong usage, 3 a limit is exceeded.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Recording to check, instead of a new one
    #[arg(value_name = "RUN", conflicts_with_all = ["duration", "output", "folder"])]
    run: Option<PathBuf>,

    #[command(flatten)]
    limits: LimitArgs,

    /// CPUs to check, e.g. 0-3,8 [default: all online, or all that were recorded]
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus, allow_hyphen_values = true)]
    cpus: Option<CpuList>,

    /// Time to record [default: 10s]
    #[arg(
        short,
        long,
        value_name = "TIME",
        default_value = "10s",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    duration: Nanos,

    /// Where to store the recording [default: HOST-TIME.becalm]
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,

    #[command(flatten)]
    folder: FolderArgs,

    /// Check only this node of a recording of several
    #[arg(long, value_name = "NODE", requires = "run")]
    node: Option<String>,

    /// JUnit XML to write, with a test case per limit and CPU, for GitLab or Jenkins
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// SARIF 2.1.0 to write, with exceeded limits, for GitHub code scanning
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,

    #[command(flatten)]
    form: FormArgs,
}

/// A file to write at the end, and its content.
type Wanted<'a> = (Draft, &'a Path, fn(&CheckReport<'_>) -> String);

impl Task for CheckArgs {
    fn rights(&self) -> RightsKept {
        if self.run.is_none() {
            return RightsKept::All;
        }
        RightsKept::to_read(self.junit.is_some() || self.sarif.is_some() || self.form.writes_page())
    }

    fn paging(&self) -> Paging {
        if self.run.is_some() { Paging::Long } else { Paging::Asked }
    }

    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        if !self.limits.are_given() {
            let text = "a limit is missing: becalm check --max-noise 0.1% --max-detour 100us, or one of the two";
            return Err(UsageError::new(text.to_owned()).into());
        }
        let as_junit: fn(&CheckReport<'_>) -> String = |report| report.junit();
        let as_sarif: fn(&CheckReport<'_>) -> String = |report| report.sarif(PROGRAM);
        let mut wanted: Vec<Wanted<'_>> = Vec::new();
        for (file, form) in [(&self.junit, as_junit), (&self.sarif, as_sarif)] {
            let Some(file) = file else { continue };
            refuse_file_of_root(file)?;
            // Fails early if the file cannot be written.
            wanted.push((Draft::replace(file)?, file, form));
        }
        let output = self.form.output_after_set_up()?;
        let summary = match &self.run {
            Some(path) => read(&self, path)?,
            None => record(&self)?,
        };
        let rows = limits::check(&summary, &self.limits.limits());
        fault::ensure!(!rows.is_empty(), "{}: nothing was recorded of these CPUs", summary.path.display());
        let report = CheckReport { summary: &summary, rows: &rows };
        for (mut draft, file, form) in wanted {
            draft.write_all(form(&report).as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
            draft.finish()?;
        }
        emit(&report, output, out)?;
        Ok(if report.is_exceeded() { Exit::LimitExceeded } else { Exit::Done })
    }
}

/// The summary of a stored run.
fn read(args: &CheckArgs, path: &Path) -> Result<Summary> {
    let selection = Selection { node: args.node.clone(), cpus: args.cpus.clone(), ..Selection::default() };
    // Without a damaged node the answer would cover only the others, so the user must name them.
    let others_may_lack = args.node.is_some();
    if Contents::read(path)? == Contents::Summary {
        let bundle = if others_may_lack { open_summary(path)? } else { SummaryBundle::open(path)? };
        return Ok(summarize_digests(&bundle, &selection)?);
    }
    let bundle = if others_may_lack { open(path)? } else { Bundle::open(path)? };
    let _reading = ReadingProgress::begin(&bundle, 1);
    Ok(summarize(&bundle, &selection)?)
}

/// The summary of a new recording, which is stored.
fn record(args: &CheckArgs) -> Result<Summary> {
    if args.duration < Nanos::from_millis(1) {
        return Err(UsageError::new("--duration is below 1ms, the shortest useful time").into());
    }
    let root = Path::new("/");
    let path = args.folder.place(args.output.as_ref(), None, root)?;
    refuse_place_of_root(&path, becalm_linux::rights::User::from_sudo().as_ref())?;
    refuse_existing(&path)?;
    let mut plan = RecordPlan::new();
    plan.cpus.clone_from(&args.cpus);
    plan.duration = Some(args.duration);
    plan.limit_trace_buffers();
    plan.root = root.to_owned();
    plan.rights = give_up_after_set_up();
    // Must run while the process has one thread.
    let session = Session::begin(root, true).context("cannot block signals")?;
    let store = RecordingStore::Full(Box::new(DetourStore::new(&path)));
    let mut recorded = recording::record(&session, plan, store, &path, args.form.takes_output())?;
    recorded.complete().with_context(|| format!("cannot complete the recording {}", path.display()))?;
    let node = &recorded.node;
    // A recording that is complete or ended by Ctrl-C is checked; one that the machine cut short is not.
    fault::ensure!(
        matches!(node.ended, Some(Ended::Duration | Ended::Signal)),
        "the recording ended early; what was recorded is in {}",
        path.display()
    );
    let held = recorded.store.held().context("nothing was stored")?;
    let summary = recording::read_again(false, held, node, Detail::Figures)?;
    say(format_args!("stored in {}", path.display()));
    Ok(summary)
}
