//! `becalm observe`: observes running threads, and prints where their time went.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

use becalm_bundle::ObservedWriter;
use becalm_bundle::node_document::{self, NodeDocument};
use becalm_command::arguments::{FolderArgs, FormArgs, refuse_existing, refuse_missing};
use becalm_command::messages::say;
use becalm_command::output::{Output, PROGRAM, emit};
use becalm_command::rights::{CommandUserArgs, left_as, refuse_place_of_root};
use becalm_command::{Exit, Task};
use becalm_measure::{Companion, PlannedCommand};
use becalm_model::node::Ended;
use becalm_record::Session;
use becalm_report::html::Chart;
use becalm_units::fault::{self, Context, UsageError};
use becalm_units::{Nanos, counted};
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::choice::{Choice, ChoiceArgs};
use crate::document::{ChoiceDoc, ObservedDoc};
use crate::recorder::{self, Observation, ObservePlan, Observed};
use crate::report::{ObservedReport, thread_name};
use crate::{lanes, replay, summing};

/// Observe where the time of running threads goes
///
/// Records the scheduler's events of all CPUs, and divides the whole life of each chosen thread: it ran, waited for a CPU, or slept. Names who had the
/// CPU while it waited. Threads that the chosen ones create are observed as well. Without root, becalm reads the kernel's own accounts, which do not
/// name anyone.
#[derive(Args, Debug)]
pub struct ObserveArgs {
    /// Where to store the recording [default: HOST-TIME.becalm]
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,

    #[command(flatten)]
    folder: FolderArgs,

    #[command(flatten)]
    choice: ChoiceArgs,

    /// Time to observe, such as 500ms or 1h [default: 10s, or until COMMAND ends]
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    duration: Option<Nanos>,

    /// Name the system calls and page faults that threads run and sleep in; slows every system call of the machine
    #[arg(long)]
    syscalls: bool,

    /// Show all threads and all who had the CPU
    #[arg(long, visible_alias = "full")]
    all: bool,

    /// Also show waits by the control groups of both sides
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["cgroup"]))]
    by: Option<String>,

    /// Record who requests interrupts and work, for becalm why
    #[arg(long)]
    causes: bool,

    /// Kernel trace buffer per CPU, in KiB [default: 32768, or less to use at most 1/8 of the memory]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    trace_buffer: Option<u32>,

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

    /// Command to run and observe; it runs with the rights of the user who called sudo, if any
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Task for ObserveArgs {
    fn run(self: Box<Self>, out: &mut dyn Write) -> fault::Result<Exit> {
        run(&self, out)
    }
}

/// Observes, stores the recording and prints its report.
fn run(args: &ObserveArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let root = Path::new("/");
    let choice = args.choice.choice(root)?;
    if choice.is_empty() && args.command.is_empty() {
        let text = "nothing to observe: give --pid, --comm, --cgroup, or a command after --";
        return Err(UsageError::new(text).into());
    }
    if args.duration.is_some_and(|duration| duration < Nanos::from_millis(1)) {
        return Err(UsageError::new("--duration is shorter than 1ms, too short to see anything").into());
    }
    let path = args.folder.place(args.output.as_ref(), None, root)?;
    refuse_place_of_root(&path, args.command_user.user().as_ref())?;
    refuse_existing(&path)?;
    if let Some(program) = args.command.first() {
        refuse_missing(program)?;
    }
    let output = args.form.output_after_set_up()?.with_all(args.all);
    let stored = if args.no_argv { args.command.iter().take(1).cloned().collect() } else { args.command.clone() };
    let doc_of_choice = choice.doc(&stored, args.syscalls);
    // Must run while the process has one thread.
    let session = Session::begin(root, true).context("cannot block signals")?;
    let observed = recorder::observe(plan(args, choice, stored, &path, root), &session, args.quiet)?;
    let (doc, mut command) = match observed {
        Observed::Traced(observation) => store(*observation, doc_of_choice, &path)?,
        Observed::Accounts(mut doc, command) => {
            doc.choice = doc_of_choice;
            refuse_nothing(&doc)?;
            node_document::create(&path, &*doc)?;
            (*doc, command)
        }
    };
    if !args.quiet {
        say(format_args!("stored in {}", path.display()));
    }
    if args.form.is_given() || !args.quiet {
        let lanes = lanes_of(&path, &doc, &output)?;
        emit(&ObservedReport { doc: &doc, by_group: args.by.is_some(), lanes: lanes.as_ref() }, output, out)?;
    }
    let stopped = doc.ended == Some(Ended::Signal);
    if command.is_running() && !stopped {
        say(format_args!("the observation is complete; waiting for '{}' to end", args.command.join(" ")));
        drop(session);
    }
    let status = if stopped { command.end() } else { command.wait() };
    if let Some(status) = status
        && !stopped
        && !status.success()
    {
        fault::bail!("the command '{}' ended with {status}; the observation is complete", args.command.join(" "));
    }
    Ok(Exit::Done)
}

fn plan(args: &ObserveArgs, choice: Choice, written: Vec<String>, path: &Path, root: &Path) -> ObservePlan {
    let user = args.command_user.user();
    let duration = args.duration.or_else(|| args.command.is_empty().then_some(Nanos::from_secs(10)));
    let command = args.command.split_first().map(|(program, arguments)| {
        let mut command = process::Command::new(program);
        command.args(arguments);
        if let Some(user) = &user {
            user.equip(&mut command);
        }
        if args.form.takes_output() {
            // Standard output is for a single document.
            command.stdout(io::stderr());
        }
        PlannedCommand { command, written }
    });
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    ObservePlan {
        choice,
        duration,
        calls: args.syscalls,
        causes: args.causes,
        buffer_bytes: args.trace_buffer.map_or_else(|| recorder::buffer_bytes(root), |kib| kib as usize * 1024),
        rights: left_as(user, command.is_some()),
        command,
        folder: parent.to_owned(),
        root: root.to_owned(),
    }
}

/// Works out an observation and stores it.
fn store(observation: Observation, choice: ChoiceDoc, path: &Path) -> fault::Result<(ObservedDoc, Companion)> {
    let mut doc = summing::begun(&observation, choice, PROGRAM);
    let mut writer = ObservedWriter::create(path, &doc)?;
    let replayed = replay::work_out(&observation, Some(&mut writer))?;
    summing::complete(&mut doc, &observation, &replayed);
    if replayed.broken_pages > 0 {
        say(format_args!("{} of the trace could not be decoded", counted(replayed.broken_pages, "page", "pages")));
    }
    // Dropping the writer removes what it has written.
    refuse_nothing(&doc)?;
    summing::finish(&mut doc, &replayed.worked, &mut writer)?;
    Ok((doc, observation.command))
}

/// Fails if no thread was observed.
fn refuse_nothing(doc: &ObservedDoc) -> fault::Result<()> {
    fault::ensure!(
        !doc.threads.is_empty(),
        "no chosen thread was alive during the observation, so nothing was stored; ps -eLo pid,tid,comm,cgroup lists all threads"
    );
    Ok(())
}

/// Reads the document of stored observed threads. Fails if it cannot be read, or has no books.
pub fn load(path: &Path, node: Option<&str>) -> fault::Result<NodeDocument<ObservedDoc>> {
    let stored = node_document::load::<ObservedDoc>(path, node)?;
    fault::ensure!(
        stored.doc.ended.is_some(),
        "{} holds no books: becalm observe was killed before it had worked them out; observe again",
        path.display()
    );
    Ok(stored)
}

/// Reports stored observed threads, for `becalm report`. Fails if they cannot be read, or `out` cannot be written.
pub fn report_stored(path: &Path, node: Option<&str>, output: Output, out: &mut dyn Write) -> fault::Result<Exit> {
    let NodeDocument { bundle, doc } = load(path, node)?;
    let lanes = lanes_of(&bundle, &doc, &output)?;
    emit(&ObservedReport { doc: &doc, by_group: doc.has_several_groups(), lanes: lanes.as_ref() }, output, out)?;
    Ok(Exit::Done)
}

/// The lives of the threads over time, if a page is written.
fn lanes_of(bundle: &Path, doc: &ObservedDoc, output: &Output) -> fault::Result<Option<Chart>> {
    match output {
        Output::Page { .. } => lanes::chart(bundle, doc, thread_name),
        _ => Ok(None),
    }
}
