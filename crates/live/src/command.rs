//! `becalm top` and its arguments.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use becalm_command::Task;
use becalm_command::arguments::FolderArgs;
use becalm_command::exit::{self, Exit};
use becalm_command::looks;
use becalm_command::measuring::MeasuringArgs;
use becalm_command::messages::{say, terminal_is_dumb};
use becalm_command::rights;
use becalm_linux::rights::User;
use becalm_measure::RecordPlan;
use becalm_observe::{Choice, ChoiceArgs, LEAST_INTERVAL, LivePlan};
use becalm_record::Session;
use becalm_units::fault::{self, Context, Fault, Result, UsageError};
use becalm_units::{ByteCount, Nanos};
use clap::Args;

use crate::observed::{self, ObservedFront, ObservedSettings};
use crate::show::{LiveError, ViewSettings, show};
use crate::watch::Front;

/// Show live what interrupts the CPUs
///
/// Measures like `becalm record` until you quit, and shows the noise of each CPU, the top sources and the longest
/// interruptions (detours) so far. Press ? for the keys. If every CPU is measured, becalm keeps its own drawing out of
/// the figures, and the last lines show its cost.
///
/// Press s to save the recording for `becalm report`; unsaved data is deleted when you quit.
///
/// With --observe, becalm top shows where the time of the threads chosen by --pid, --comm and --cgroup goes, and who had
/// the CPU while they waited. It stores nothing.
#[derive(Args, Debug)]
pub struct TopArgs {
    #[command(flatten)]
    measuring: MeasuringArgs,

    /// Time between updates, at least 100ms, and 500ms with --observe
    #[arg(long, value_name = "TIME", default_value = "1s", allow_hyphen_values = true)]
    interval: Nanos,

    /// Recording to save with s; later saves get a number [default: HOST-TIME.becalm]
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,

    #[command(flatten)]
    folder: FolderArgs,

    /// Size at which the unsaved recording is discarded and a new one is started, to limit disk use
    #[arg(long, value_name = "BYTES", default_value = "1GiB")]
    keep: ByteCount,

    /// Print the view as text N times, then exit; needs no terminal
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,

    /// Print the view as text until a signal; needs no terminal
    #[arg(long)]
    plain: bool,

    /// Print JSON: one document of --iterations views; with --observe, a line per update
    #[arg(long)]
    json: bool,

    /// Show where the time of chosen threads goes, as becalm observe does
    #[arg(long, conflicts_with_all = ["MeasuringArgs", "output", "folder", "keep"])]
    observe: bool,

    #[command(flatten, next_help_heading = "Threads to observe, with --observe")]
    choice: ChoiceArgs,

    /// Also show threads that sleep all the time
    #[arg(long, requires = "observe")]
    all: bool,
}

impl Task for TopArgs {
    fn run(self: Box<Self>, _out: &mut dyn Write) -> Result<Exit> {
        run(&self)
    }
}

/// Measures and shows. Fails without a terminal, and whenever `becalm record` would fail.
fn run(args: &TopArgs) -> Result<Exit> {
    if looks::forbids_color() {
        // Otherwise the terminal library decides by itself.
        ratatui::crossterm::style::force_color_output(false);
    }
    let root = Path::new("/");
    let choice = args.choice.choice(root)?;
    if args.observe {
        return observe(args, choice, root);
    }
    if !choice.is_empty() {
        return Err(
            UsageError::new("--pid, --comm and --cgroup choose threads to observe: give --observe as well").into()
        );
    }
    if args.json && args.iterations.is_none() {
        let text = "--json prints one document after the last view; give the number of views with --iterations N";
        return Err(UsageError::new(text).into());
    }
    let settings = settings(args, root)?;
    // While the process has only one thread.
    let recording = Session::begin(root, !args.measuring.no_sources).context("cannot block signals")?;
    let rights = rights::lower_while_recording();
    let plan = || RecordPlan { rights: rights.clone(), ..args.measuring.plan(root) };
    let shown = show(&recording, &settings, plan).map_err(|error| match error {
        LiveError::Record(error) if error.is_usage() => fault::Error::from(error),
        LiveError::Record(error) => fault::Error::from(error).context("measuring failed"),
        LiveError::BufferFull => fault::Error::new(format!(
            "a buffer was full; give --buffer more than {} KiB, or a higher --threshold",
            args.measuring.buffer
        )),
        error => error.into(),
    });
    let saved = match shown {
        Err(error) if exit::is_broken_pipe(&error) => return Ok(Exit::Done),
        shown => shown?,
    };
    // Printed once the terminal is readable again.
    for path in saved {
        say(format_args!("stored in {}", path.display()));
    }
    Ok(Exit::Done)
}

/// Observes threads and shows them.
fn observe(args: &TopArgs, choice: Choice, root: &Path) -> Result<Exit> {
    if choice.is_empty() {
        return Err(UsageError::new("nothing to observe: give --pid, --comm or --cgroup").into());
    }
    if args.interval.to_std() < LEAST_INTERVAL {
        let text = "--interval is below 500ms: with --observe, more frequent updates would disturb the threads";
        return Err(UsageError::new(text).into());
    }
    let front = match (args.json, args.iterations) {
        (true, iterations) => ObservedFront::Lines(iterations.unwrap_or(u32::MAX)),
        (false, _) => updates(args)?.map_or(ObservedFront::Terminal, ObservedFront::Text),
    };
    let settings = ObservedSettings { front, interval: args.interval.to_std(), all: args.all };
    // While the process has only one thread.
    let session = Session::begin(root, true).context("cannot block signals")?;
    let rights = rights::left_as(User::from_sudo(), false);
    let plan = LivePlan { choice, rights, root: root.to_owned() };
    match observed::show(plan, &session, settings) {
        Err(error) if exit::is_broken_pipe(&error) => Ok(Exit::Done),
        shown => shown.map(|()| Exit::Done),
    }
}

/// The number of updates as text; `None` for a view on the terminal. Fails if there is no terminal for it.
fn updates(args: &TopArgs) -> Result<Option<u32>> {
    match (args.iterations, obstacle()) {
        (Some(iterations), _) => Ok(Some(iterations)),
        (None, _) if args.plain => Ok(Some(u32::MAX)),
        (None, None) => Ok(None),
        (None, Some(why)) => Err(UsageError::new(format!(
            "{why}; use becalm record and becalm report, or --iterations N to print the view as text"
        ))
        .into()),
    }
}

/// The validated settings.
fn settings(args: &TopArgs, root: &Path) -> Result<ViewSettings> {
    if args.interval < Nanos::from_millis(100) {
        return Err(UsageError::new("--interval is below 100ms, which is too fast to read").into());
    }
    if args.output.as_ref().is_some_and(|path| path.file_name().is_none()) {
        return Err(UsageError::new("--output names no file; give a name, like -o quiet.becalm").into());
    }
    let front = match updates(args)? {
        Some(iterations) => Front::Text { iterations, json: args.json },
        None => Front::Terminal,
    };
    Ok(ViewSettings {
        front,
        interval: args.interval,
        policy: args.measuring.sched,
        root: root.to_owned(),
        output: args.folder.place(args.output.as_ref(), None, root)?,
        keep: args.keep,
    })
}

/// Why a view on this terminal is impossible; `None` if it is possible.
fn obstacle() -> Option<&'static str> {
    if !io::stdout().is_terminal() {
        return Some("standard output is not a terminal");
    }
    if !io::stdin().is_terminal() {
        return Some("standard input is not a terminal");
    }
    terminal_is_dumb().then_some("the terminal cannot place the cursor (TERM is dumb, or not set)")
}
