//! `becalm report`: the report of a run as text, as JSON, or as a page.

mod page;
mod work;

use std::io::Write;
use std::path::PathBuf;

use becalm_analyze::job::JobPhases;
use becalm_answer::recording;
use becalm_answer::sources::{SourcesQuestion, SourcesWanted};
use becalm_bundle::{Bundle, Contents, PhaseRun};
use becalm_command::Exit;
use becalm_command::arguments::{FormArgs, RanksArgs, RunArgs};
#[cfg(not(all(feature = "cost", feature = "foreign", feature = "observe", feature = "research")))]
use becalm_command::built_without;
use becalm_command::output::emit;
use becalm_command::reader::Reader;
use becalm_command::reading_task;
use becalm_units::fault::{self, UsageError};
use clap::Args;

use super::detours;

/// Show a recording; --html writes a page
///
/// Prints how much time each CPU lost, to what, and how to remove it. Needs no privileges, and runs on any machine.
#[derive(Args, Debug)]
pub struct ReportArgs {
    #[command(flatten)]
    run: RunArgs,

    /// More recordings, for one table of all next to five platforms of Beckman et al. 2007
    #[arg(value_name = "RUN", conflicts_with_all = ["baseline", "ranks", "full"])]
    more: Vec<PathBuf>,

    /// Print that table for one recording
    #[arg(long, conflicts_with_all = ["baseline", "ranks", "full"])]
    platforms: bool,

    #[command(flatten)]
    ranks: RanksArgs,

    /// Show everything: intervals, periods, loops, all CPUs and sources
    #[arg(long)]
    full: bool,

    /// Only rank the sources of noise
    #[arg(long, conflicts_with_all = ["more", "platforms", "ranks", "baseline"])]
    sources: bool,

    /// With --sources: rank them per CPU, with shares of that CPU's noise
    #[arg(long, requires = "sources")]
    per_cpu: bool,

    #[command(flatten)]
    form: FormArgs,

    /// Recording of the same work on a quieter CPU, kernel or machine, to compare with
    #[arg(long, value_name = "RUN")]
    baseline: Option<PathBuf>,
}

/// Whether a bundle holds samples of work.
fn is_work(bundle: &Bundle) -> bool {
    bundle.nodes().iter().any(|doc| doc.settings.work.is_some())
}

/// Prints measurements of `becalm cost` or `becalm-mpi`, or writes their page.
fn measured(args: &ReportArgs, contents: Contents, out: &mut dyn Write) -> fault::Result<Exit> {
    let RunArgs { path, cpus, node, with_self: _ } = &args.run;
    let holds = contents.words();
    if args.baseline.is_some() {
        return Err(UsageError::new(format!(
            "{} holds {holds}, and --baseline is for samples of work",
            path.display()
        ))
        .into());
    }
    if args.ranks.is_given() {
        return Err(UsageError::new(format!("{} holds {holds}, and --ranks is for recordings", path.display())).into());
    }
    if contents == Contents::Phases {
        if cpus.is_some() || node.is_some() {
            let text = format!("{} holds {holds}, of all ranks together; leave --cpus and --node out", path.display());
            return Err(UsageError::new(text).into());
        }
        let run = PhaseRun::open(path)?;
        fault::ensure!(
            run.nodes.iter().any(|doc| doc.complete),
            "{} holds nothing: the job ended before its last phase; measure again",
            path.display()
        );
        emit(&JobPhases::from_run(&run)?, args.form.output(args.full)?, out)?;
        return Ok(Exit::Done);
    }
    if cpus.is_some() {
        return Err(UsageError::new(format!("{} holds {holds} on one CPU; leave --cpus out", path.display())).into());
    }
    #[cfg(feature = "cost")]
    return becalm_cost::report_stored(path, node.as_deref(), contents, args.form.output(args.full)?, out);
    #[cfg(not(feature = "cost"))]
    Err(built_without("cost").into())
}

/// Prints the report of an imported distribution.
#[cfg(feature = "foreign")]
fn imported(args: &ReportArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let RunArgs { path, cpus, node, with_self: _ } = &args.run;
    let options =
        [("--baseline", args.baseline.is_some()), ("--ranks", args.ranks.is_given()), ("--cpus", cpus.is_some())];
    if let Some((option, _)) = options.into_iter().find(|(_, given)| *given) {
        let (path, holds) = (path.display(), Contents::Distribution.words());
        return Err(UsageError::new(format!("{path} holds {holds}, without single events; leave {option} out")).into());
    }
    let docs = becalm_bundle::load_documents(path, node.as_deref())?;
    let report = becalm_foreign::distribution::DistributionReport { docs: &docs };
    emit(&report, args.form.output(args.full)?, out)?;
    Ok(Exit::Done)
}

#[cfg(not(feature = "foreign"))]
fn imported(_: &ReportArgs, _: &mut dyn Write) -> fault::Result<Exit> {
    Err(built_without("foreign").into())
}

/// Prints the report of observed threads.
#[cfg(feature = "observe")]
fn observed(args: &ReportArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let RunArgs { path, cpus, node, with_self: _ } = &args.run;
    let options =
        [("--baseline", args.baseline.is_some()), ("--ranks", args.ranks.is_given()), ("--cpus", cpus.is_some())];
    if let Some((option, _)) = options.into_iter().find(|(_, given)| *given) {
        let (path, holds) = (path.display(), Contents::Observed.words());
        return Err(UsageError::new(format!("{path} holds {holds}; leave {option} out")).into());
    }
    becalm_observe::report_stored(path, node.as_deref(), args.form.output(args.full)?, out)
}

#[cfg(not(feature = "observe"))]
fn observed(_: &ReportArgs, _: &mut dyn Write) -> fault::Result<Exit> {
    Err(built_without("observe").into())
}

/// Prints the report of a recording in summary form.
fn summary_form(args: &ReportArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let path = args.run.path.display();
    if args.baseline.is_some() {
        let text = format!("{path} holds a recording in summary form, and --baseline is for samples of work");
        return Err(UsageError::new(text).into());
    }
    let mut reader = Reader::new(args.form.output(args.full)?, out);
    let (summary, selection) = (args.run.open_summary()?, args.run.selection());
    recording::report_summary(&summary, &selection, args.ranks.number(), &mut reader)?;
    Ok(Exit::Done)
}

reading_task!(ReportArgs);

/// Reads the run and prints its report, or writes its page. Fails if the run cannot be read or lacks the requested part, or the output
/// cannot be written.
fn run(args: &ReportArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    if args.platforms || !args.more.is_empty() {
        #[cfg(feature = "research")]
        return becalm_research::platforms::run(
            std::iter::once(&args.run.path).chain(&args.more),
            &args.run.selection(),
            args.form.output(false)?,
            out,
        );
        #[cfg(not(feature = "research"))]
        return Err(built_without("research").into());
    }
    if args.sources {
        let wanted = SourcesWanted::Ranked { per_cpu: args.per_cpu };
        let question = SourcesQuestion { run: args.run.path.clone(), selection: args.run.selection(), wanted };
        detours::answer(&question, &mut Reader::new(args.form.output(args.full)?, out))?;
        return Ok(Exit::Done);
    }
    match Contents::read(&args.run.path)? {
        Contents::Recording => {}
        Contents::Summary => return summary_form(args, out),
        Contents::Distribution => return imported(args, out),
        Contents::Observed => return observed(args, out),
        contents => return measured(args, contents, out),
    }
    let bundle = args.run.open()?;
    if is_work(&bundle) {
        if args.ranks.is_given() {
            let text = format!("{} holds samples of work, and --ranks is for recordings", args.run.path.display());
            return Err(UsageError::new(text).into());
        }
        return work::run(args, &bundle, out);
    }
    if args.baseline.is_some() {
        let text = format!(
            "--baseline is for samples of work, and {} is a recording of detours; becalm compare holds two of those against \
             each other",
            args.run.path.display()
        );
        return Err(UsageError::new(text).into());
    }
    let output = args.form.output(args.full)?;
    if args.form.writes_page() {
        return page::run(&args.run, args.ranks, output, out);
    }
    let mut reader = Reader::new(output, out);
    recording::report(&bundle, &args.run.selection(), args.ranks.number(), &mut reader)?;
    Ok(Exit::Done)
}
