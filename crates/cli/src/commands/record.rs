//! `becalm record`: measures CPUs with busy threads and stores their interruptions.

use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process;

use becalm_analyze::limits::{Answer, Limit, Shortage, check};
use becalm_analyze::summary::{RANKS, Summary};
use becalm_command::arguments::{FolderArgs, FormArgs, LimitArgs, RanksArgs, refuse_existing, refuse_missing};
use becalm_command::measuring::MeasuringArgs;
use becalm_command::messages::say;
use becalm_command::output::emit;
use becalm_command::recording;
use becalm_command::rights::{CommandUserArgs, left_as, refuse_place_of_root};
use becalm_command::{Exit, Task};
use becalm_measure::{AfterSetUp, PlannedCommand, RecordPlan};
use becalm_model::check_node_name;
use becalm_model::node::{Ended, NodeDoc};
use becalm_model::warning;
use becalm_record::{DetourStore, Recorded, RecordingStore, Session, SummaryStore};
use becalm_report::RunReport;
use becalm_units::fault::{self, Context, Result, UsageError};
use becalm_units::{Count, Nanos};
use clap::Args;
use jiff::Timestamp;

/// Record what interrupts CPUs, and print a report
///
/// A busy thread on each CPU catches every interruption (detour), and the kernel's trace shows what took the time. Exit code 3 means that a limit
/// (--max-detour, --max-noise) was exceeded.
#[derive(Args, Debug)]
pub struct RecordArgs {
    /// Where to store the recording [default: HOST-TIME.becalm]
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,

    #[command(flatten)]
    folder: FolderArgs,

    #[command(flatten)]
    measuring: MeasuringArgs,

    /// Time to measure, e.g. 1h [default: 10s, or the end of COMMAND or --detours]
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    duration: Option<Nanos>,

    /// Number of interruptions after which a CPU stops, e.g. 1M
    #[arg(long, value_name = "N", value_parser = number_of_detours)]
    detours: Option<NonZeroU64>,

    /// Measure until Ctrl-C
    #[arg(long, conflicts_with_all = ["duration", "detours"])]
    until_stopped: bool,

    /// Time to start, e.g. 2026-01-31T12:00:00Z or @1769860800, for several nodes
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: Option<Timestamp>,

    /// Name of this node, e.g. "$SLURMD_NODENAME" [default: the host name]
    #[arg(long, value_name = "NAME", value_parser = name_of_node)]
    node: Option<String>,

    #[command(flatten)]
    limits: LimitArgs,

    /// Time between writes to disk [default: 10s, or 60s for all CPUs]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    segment: Option<Nanos>,

    /// Keep only histograms, noise over time and the longest interruptions
    #[arg(long)]
    summary: bool,

    /// Record who requests interrupts and work, for becalm why
    #[arg(long, conflicts_with_all = ["summary", "no_sources"])]
    causes: bool,

    #[command(flatten)]
    ranks: RanksArgs,

    /// Store the name of COMMAND without its arguments, which may contain secrets
    #[arg(long)]
    no_argv: bool,

    #[command(flatten)]
    form: FormArgs,

    /// Print no progress and no report
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    command_user: CommandUserArgs,

    /// Command to record until it ends, run as the user who called sudo, if any
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Task for RecordArgs {
    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        run(*self, out)
    }
}

/// Records a run, stores it and prints its report.
fn run(args: RecordArgs, out: &mut dyn Write) -> Result<Exit> {
    let root = Path::new("/");
    let mut plan = plan(&args, root)?;
    let path = args.folder.place(args.output.as_ref(), args.node.as_deref(), root)?;
    refuse_place_of_root(&path, args.command_user.user().as_ref())?;
    // Fail before the measurement, not after.
    refuse_existing(&path)?;
    plan.causes = args.causes.then(|| directory_of(&path));
    if let Some(program) = args.command.first() {
        refuse_missing(program)?;
    }
    if let Some(at) = args.at {
        wait_until_set_up(at)?;
    }
    let output = args.form.output_after_set_up()?;
    // Must run while the process has one thread.
    let session = Session::begin(root, !args.measuring.no_sources).context("cannot block signals")?;
    let mut recorded = recording::record(&session, plan, store(&args, &path), &path, args.quiet)?;
    if let Some(at) = args.at {
        note_start(at, &mut recorded.node);
    }
    recorded.complete().with_context(|| format!("cannot complete the recording {}", path.display()))?;
    let Recorded { node, mut command, store, .. } = recorded;

    if !args.quiet {
        say(format_args!("stored in {}", path.display()));
    }
    let printed = args.form.is_given() || !args.quiet;
    let mut summary = None;
    if let Some(held) = store.held()
        && (printed || args.limits.are_given())
    {
        let detail = output.detail().max(args.ranks.detail());
        let summary = summary.insert(recording::read_again(args.summary, held, &node, detail)?);
        summary.ask_for_ranks(args.ranks.number().unwrap_or(RANKS));
        if printed {
            emit(&RunReport { summary, drawn: None, at_scale: args.ranks.number().is_some() }, output, out)?;
        }
    }
    // A signal is meant for both, but a recording that ends by itself must not kill the user's job.
    let stopped = node.ended == Some(Ended::Signal);
    if command.is_running() && !stopped {
        say(format_args!("the recording is complete; waiting for '{}' to end", args.command.join(" ")));
        drop(session);
    }
    let status = if stopped { command.end() } else { command.wait() };
    refuse_early_end(&args, &node, &path)?;
    if let Some(status) = status
        && !stopped
        && !status.success()
    {
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown status".to_owned(),
        };
        fault::bail!("the command '{}' ended with {how}; the recording is complete", args.command.join(" "));
    }
    Ok(limits(&args, summary.as_ref()))
}

/// The directory that contains this path.
fn directory_of(path: &Path) -> PathBuf {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// The time before a given start at which the setup starts.
const LEAD: Nanos = Nanos::from_secs(5);

/// Larger clock errors are reported if several nodes start at once.
const WALL_ERROR_MOST: Nanos = Nanos::from_millis(10);

/// Parses the number of detours to catch.
fn number_of_detours(text: &str) -> Result<NonZeroU64, String> {
    let count = text.parse::<Count>().ok().and_then(|count| NonZeroU64::new(count.get()));
    count.ok_or_else(|| {
        format!("'{text}' is not a number of interruptions: write a whole number from 1 on, like 1000000 or 1M")
    })
}

/// Parses the name of a node, which is also part of a file name.
fn name_of_node(text: &str) -> Result<String, String> {
    match check_node_name(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(why) => Err(format!("'{text}' is not a name of a node: {why}")),
    }
}

/// Parses an instant.
fn instant(text: &str) -> Result<Timestamp, String> {
    let seconds = text.strip_prefix('@').and_then(|text| text.parse().ok());
    let at = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).or_else(|| text.parse().ok());
    at.ok_or_else(|| {
        format!("'{text}' is not a time: write one like 2026-01-31T12:00:00Z, or @ and seconds since 1970")
    })
}

/// Sleeps until it is time to set up for `at`. Ctrl-C simply ends the process, because nothing was set up yet.
fn wait_until_set_up(at: Timestamp) -> Result<()> {
    let left = at.as_nanosecond() - Timestamp::now().as_nanosecond();
    if left < 0 {
        return Err(UsageError::new(format!("--at {at} is in the past; give a time in the future")).into());
    }
    let early = i64::try_from(left).unwrap_or(i64::MAX).saturating_sub(LEAD.get());
    if early > 0 {
        say(format_args!("waiting until {at}"));
        std::thread::sleep(Nanos::new(early).to_std());
    }
    Ok(())
}

/// Warns if the loops did not start at the given time, or if that is unknown.
fn note_start(at: Timestamp, node: &mut NodeDoc) {
    let began = node.cpus.iter().map(|cpu| cpu.start_ns.get()).min().unwrap_or(0);
    let late = node.origin_ns() + i128::from(began) - at.as_nanosecond();
    let late = Nanos::new(i64::try_from(late).unwrap_or(i64::MAX));
    if late > Nanos::from_millis(1) {
        node.warnings.push(warning::late_start(late));
    }
    match (node.clock.wall_synchronized, node.clock.wall_error_ns) {
        (Some(true), Some(error)) if error <= WALL_ERROR_MOST => {}
        (Some(true), Some(error)) => node.warnings.push(warning::wall_clock_off(Some(error))),
        _ => node.warnings.push(warning::wall_clock_off(None)),
    }
}

/// The destination of the recording.
fn store(args: &RecordArgs, path: &Path) -> RecordingStore {
    if args.summary {
        RecordingStore::Summary(Box::new(SummaryStore::new(path)))
    } else {
        RecordingStore::Full(Box::new(DetourStore::new(path)))
    }
}

/// Fails if the recording ended early.
fn refuse_early_end(args: &RecordArgs, node: &NodeDoc, path: &Path) -> Result<()> {
    let after = node.cpus.iter().map(|cpu| cpu.duration_ns).max().unwrap_or_default();
    match node.ended {
        Some(Ended::BufferFull) => fault::bail!(
            "a buffer was full after {after:.3}, so the recording ended early; what was recorded is in {}; \
             give --buffer more than {} KiB, or a higher --threshold",
            path.display(),
            args.measuring.buffer
        ),
        Some(Ended::CpusGone) => fault::bail!(
            "the recording ended early, after {after:.3}: every measured CPU went offline or left the cpuset; \
             what was recorded is in {}",
            path.display()
        ),
        Some(Ended::Unattended) => fault::bail!(
            "the recording ended early, after {after:.3}: its real-time loops had every CPU, and nothing was collected from them \
             for too long; what was recorded is in {}; leave one CPU out of --cpus, or take a lower priority",
            path.display()
        ),
        _ => Ok(()),
    }
}

fn plan(args: &RecordArgs, root: &Path) -> Result<RecordPlan> {
    let usage = |text: &str| UsageError::new(text.to_owned());
    if args.duration.is_some_and(|duration| duration < Nanos::from_millis(1)) {
        return Err(usage("--duration is below 1ms, the shortest useful time").into());
    }
    if args.segment.is_some_and(|segment| segment < Nanos::from_millis(100)) {
        return Err(usage("--segment is below 100ms, the shortest useful time").into());
    }
    let mut plan = args.measuring.plan(root);
    plan.duration = match args.duration {
        Some(duration) => Some(duration),
        None if args.until_stopped || args.detours.is_some() || !args.command.is_empty() => None,
        None => plan.duration,
    };
    plan.detours = args.detours;
    plan.node.clone_from(&args.node);
    plan.segment = args.segment;
    plan.at_ns = args.at.map(|at| i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX));
    let user = args.command_user.user();
    plan.rights = AfterSetUp::GiveUp(left_as(user.clone(), !args.command.is_empty()));
    plan.command = args.command.split_first().map(|(program, arguments)| {
        let mut command = process::Command::new(program);
        command.args(arguments);
        if let Some(user) = &user {
            // It runs as the user that the recorder has become by then.
            user.equip(&mut command);
        }
        if args.form.takes_output() {
            // Standard output is for a single document.
            command.stdout(io::stderr());
        }
        let stored = if args.no_argv { vec![program.clone()] } else { args.command.clone() };
        PlannedCommand { command, written: stored }
    });
    Ok(plan)
}

/// Compares the recording with the user's limits.
fn limits(args: &RecordArgs, summary: Option<&Summary>) -> Exit {
    let mut exit = Exit::Done;
    let checked = summary.map(|summary| check(summary, &args.limits.limits())).unwrap_or_default();
    for row in &checked {
        if let Answer::NotEnoughData(Shortage::Doubtful(code)) = row.answer {
            let limit = match row.limit {
                Limit::Detour(limit) => format!("--max-detour {limit}"),
                Limit::Noise(limit) => format!("--max-noise {limit}"),
            };
            say(format_args!("CPU {}: not enough data to say that {limit} holds (warning {code})", row.cpu));
        }
    }
    for row in checked.iter().filter(|row| row.answer == Answer::Exceeded) {
        let (cpu, lost) = (row.cpu, row.noise_ratio.unwrap_or(0.0) * 100.0);
        match row.limit {
            Limit::Detour(limit) => {
                say(format_args!("CPU {cpu} lost {:.1} in one detour, more than --max-detour {limit}", row.longest));
            }
            Limit::Noise(limit) => {
                let why = row.cause.as_ref().and_then(|cause| {
                    Some(format!("; {:.0} % of that is {} {}", cause.share? * 100.0, cause.kind, cause.source))
                });
                let why = why.unwrap_or_default();
                say(format_args!("CPU {cpu} lost {lost:.4} % of its time, more than --max-noise {limit}{why}"));
            }
        }
        exit = Exit::LimitExceeded;
    }
    exit
}
