//! `becalm explain`: explains the slow spans of a program by a recording of its threads or its CPUs.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use becalm_bundle::node_document::{self, NodeDocument};
use becalm_bundle::{Contents, ObservedTables, PhaseRun};
use becalm_command::Exit;
use becalm_command::arguments::FormArgs;
use becalm_command::output::{PROGRAM, emit};
use becalm_command::reading_task;
use becalm_model::node::ClockDoc;
use becalm_model::observed::ThreadId;
use becalm_model::{Label, Labels};
use becalm_observe::document::ObservedDoc;
use becalm_units::fault::{self, UsageError, Wording};
use becalm_units::{CpuId, CpuList, Named, Nanos, Share, counted, cpus};
use clap::Args;

use crate::clocks::{self, ClockMap, SpanClock};
use crate::document::{ExplainedDoc, SCHEMA};
use crate::excess::FEWEST;
use crate::joined::{self, LeftOutSpans, Piece, PlacedSpan, SpanCauses, threads_of};
use crate::lives::{Lives, OwnThreads};
use crate::measured::{Measured, lost_note};
use crate::phases::{self, Phases};
use crate::report::ExplainedReport;
use crate::spans::{self, SpanRequest, Spans, is_like};
use crate::subjects::Subjects;
use crate::summing::Explained;

/// Readings of the clocks are never more certain than this.
const LEAST_ERROR: Nanos = Nanos::from_micros(50);

/// Explain why the slow spans of a program were slow
///
/// Spans are intervals of threads, such as requests, training steps or repetitions. Divides each of them by what its thread did and who had its CPU, in
/// a recording of becalm observe, and tells what the slowest spans have more than ordinary ones: the system's doing, or the program's. A recording of
/// becalm record only shows what interrupted their CPU.
///
/// Spans are read from CSV or Parquet tables (tid,start,end,name; times in nanoseconds, or start_us, ...), from traces of Chrome, PyTorch and
/// Perfetto, and from JSON of OpenTelemetry and the NCCL Inspector. A job of becalm-mpi has its phases as spans.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Recording of becalm observe or becalm record
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// File with the spans, or job of becalm-mpi
    #[arg(long, value_name = "FILE", required_unless_present = "lives")]
    spans: Option<PathBuf>,

    /// Instead of a file: each observed thread with this name is a span, from its start to its end; * matches any characters
    #[arg(long, value_name = "NAME", conflicts_with_all = ["spans", "clock", "by", "name", "tid", "cpu"])]
    lives: Option<String>,

    /// Clock of the spans [default: from the file, else the one that puts them into the recording]
    #[arg(long, value_name = "NAME")]
    clock: Option<SpanClock>,

    /// Share of spans that counts as slow
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = slowest)]
    slowest: Share,

    /// Also explain the spans of each name, or of each value of another column
    #[arg(long, value_name = "COLUMN")]
    by: Option<String>,

    /// Only spans with this name; * matches any characters
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Thread of spans whose file does not name one
    #[arg(long, value_name = "TID", value_parser = clap::value_parser!(i32).range(1..))]
    tid: Option<i32>,

    /// CPU of spans whose file does not name one, on a recording of CPUs
    #[arg(long, value_name = "N", value_parser = cpu)]
    cpu: Option<CpuId>,

    /// Node of a recording of several
    #[arg(long, value_name = "NODE")]
    node: Option<String>,

    /// Show all causes
    #[arg(long, visible_alias = "full")]
    all: bool,

    #[command(flatten)]
    form: FormArgs,
}

/// The largest share of slow spans: none of the middle half are among them.
fn slowest(text: &str) -> Result<Share, String> {
    let share: Share = text.parse().map_err(|error: becalm_units::ParseShareError| error.to_string())?;
    if share.ratio() > 0.0 && share.ratio() <= 0.25 {
        Ok(share)
    } else {
        Err(format!("{share} is not above 0 and at most 25%"))
    }
}

fn cpu(text: &str) -> Result<CpuId, String> {
    let number = text.parse().ok().filter(|number| *number < CpuId::LIMIT);
    number.map(CpuId::new).ok_or_else(|| format!("'{text}' is not the number of a CPU"))
}

reading_task!(ExplainArgs);

/// Reads the recording and the spans, and prints the explanation.
fn run(args: &ExplainArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let output = args.form.output(args.all)?;
    let doc = explain(args)?;
    emit(&ExplainedReport { doc: &doc }, output, out)?;
    Ok(Exit::Done)
}

/// Spans in a recording, with all that is known of them.
struct Found {
    node: String,
    clock: (SpanClock, bool),
    clock_error: Nanos,
    placed: Vec<PlacedSpan>,
    left_out: LeftOutSpans,
    names: Labels,
    subjects: Subjects,
    lives: Lives,
    notes: Vec<String>,
}

fn explain(args: &ExplainArgs) -> fault::Result<ExplainedDoc> {
    let found = match (&args.lives, &args.spans) {
        (Some(name), _) => threads_in_observed(args, name)?,
        (None, Some(file)) => found(args, file)?,
        (None, None) => return Err(UsageError::new(Wording::new("there are no spans; give {spans} or {lives}")).into()),
    };
    let Found { node, clock, clock_error, placed, left_out, names, subjects, lives, mut notes } = found;
    let causes = SpanCauses::new(&placed, &lives);
    let slowest = args.slowest.ratio();
    let explained =
        Explained { spans: &placed, found: &causes, lives: &lives, subjects: &subjects, names: &names, slowest };
    let everything: Vec<usize> = (0..placed.len()).collect();
    let all = explained.explain(&everything).ok_or_else(|| fault::Error::new("there are too few spans"))?;
    let different = placed.iter().map(|span| span.name).collect::<BTreeSet<_>>().len();
    if different > 1 && args.by.is_none() {
        notes.push(format!("the spans have {different} names; --by name explains each, --name NAME only one"));
    }
    if lives.unplaced > 0 {
        notes.push(format!(
            "{} of the recording match no part of a thread's life: it is damaged, or lacks switches",
            counted(lives.unplaced, "interruption", "interruptions")
        ));
    }
    Ok(ExplainedDoc {
        schema: SCHEMA.to_owned(),
        node,
        program: PROGRAM.to_owned(),
        clock: clock.0,
        clock_found: clock.1,
        clock_error_ns: clock_error,
        outside: left_out.outside,
        strangers: left_out.strangers,
        slowest,
        all,
        by: if args.by.is_some() { explained.by_group() } else { Vec::new() },
        worst: explained.worst(),
        notes,
    })
}

/// The spans of a file, or of a job, in a recording.
fn found(args: &ExplainArgs, file: &Path) -> fault::Result<Found> {
    let contents = Contents::read(&args.run)?;
    let job = match Contents::read(file) {
        _ if file.is_file() => None,
        Ok(Contents::Phases) => Some(PhaseRun::open(file)?),
        Ok(other) => {
            let (path, words) = (file.display(), other.words());
            let text = Wording::new("{} holds {}; {spans} takes a file with spans, or a job of becalm-mpi");
            return Err(UsageError::new(text.with(path).with(words)).into());
        }
        // Reading it as a file tells what is wrong.
        Err(_) => None,
    };
    match (contents, job) {
        (Contents::Observed, None) => in_observed(args, file),
        (Contents::Recording, None) => in_measured(args, file),
        (Contents::Recording, Some(job)) => phases_in_measured(args, &job),
        _ => {
            let needed = "spans are explained by a recording of becalm observe or becalm record, and the phases of a job by one \
                          of becalm record";
            let text = format!("{} holds {}; {needed}", args.run.display(), contents.words());
            Err(UsageError::new(text).into())
        }
    }
}

/// The spans of a file, placed in a recording.
struct FromFile {
    read: Spans,
    map: ClockMap,
    clock_found: bool,
    placed: Vec<PlacedSpan>,
    left_out: LeftOutSpans,
    notes: Vec<String>,
}

/// Places the spans of a file in a recording with this clock and these subjects, which is between `books`.
fn from_file(
    args: &ExplainArgs,
    read: Spans,
    clock: &ClockDoc,
    books: (i64, i64),
    subjects: &Subjects,
) -> fault::Result<FromFile> {
    let (map, clock_found) = clocks::choose(args.clock, &read, clock, books)?;
    let (placed, left_out) = joined::place(&read.all, &map, subjects);
    left_out.refuse_many(read.all.len(), map.clock(), subjects)?;
    refuse_few(placed.len())?;
    let mut notes = Vec::new();
    refuse_uncertain(&map, &placed, &mut notes)?;
    if read.of_main_threads && matches!(subjects, Subjects::Threads(_)) {
        notes.push("the file names processes and no threads: each span was taken as one of the main thread".to_owned());
    }
    if read.is_cut {
        notes.push("the file of spans ends in the middle of one, and was read up to there".to_owned());
    }
    let joined = read.all.iter().filter(|span| span.id != Label::EMPTY).count();
    let kept = read.all.len() as u64 - left_out.outside - left_out.strangers;
    if joined == 0 && kept > placed.len() as u64 {
        let lost = counted(kept - placed.len() as u64, "span", "spans");
        notes.push(format!("{lost} without time of their own were left out: others with the same name fill them"));
    }
    Ok(FromFile { read, map, clock_found, placed, left_out, notes })
}

impl FromFile {
    fn explained_by(self, node: String, subjects: Subjects, lives: Lives, more: Vec<String>) -> Found {
        let Self { read, map, clock_found, placed, left_out, mut notes } = self;
        notes.extend(more);
        Found {
            node,
            clock: (map.clock(), clock_found),
            clock_error: map.error(),
            placed,
            left_out,
            names: read.labels,
            subjects,
            lives,
            notes,
        }
    }
}

fn request(args: &ExplainArgs, of_cpus: bool) -> SpanRequest {
    SpanRequest { name: args.name.clone(), by: args.by.clone(), tid: args.tid, of_cpus }
}

/// A recording with the lives of single threads. Fails if it cannot be read, or has none.
fn observed(args: &ExplainArgs) -> fault::Result<NodeDocument<ObservedDoc>> {
    let stored = node_document::load::<ObservedDoc>(&args.run, args.node.as_deref())?;
    if stored.doc.ended.is_none() || stored.doc.tracing.is_none() {
        return Err(UsageError::new(format!(
            "{} has no lives of single threads: becalm observe was killed, or ran without root",
            args.run.display()
        ))
        .into());
    }
    Ok(stored)
}

/// Observed threads with a name as spans, if they started and ended during the recording.
fn threads_in_observed(args: &ExplainArgs, name: &str) -> fault::Result<Found> {
    let contents = Contents::read(&args.run)?;
    if contents != Contents::Observed {
        let text = Wording::new("{} holds {}; {lives} takes a recording of becalm observe");
        return Err(UsageError::new(text.with(args.run.display()).with(contents.words())).into());
    }
    let stored = observed(args)?;
    let observed = &stored.doc;
    let tables = ObservedTables::new(&stored.bundle, &observed.node, observed.rows);
    let mut labels = Labels::new();
    let threads = tables.threads(&mut labels)?;
    let (start, end) = clocks::span_of(observed);
    let (mut placed, mut incomplete) = (Vec::new(), 0);
    for row in threads.iter().filter(|row| row.chosen && is_like(labels.text(row.name), name)) {
        match u32::try_from(row.thread) {
            Ok(thread) if row.start_ns > start && row.end_ns < end => {
                let pieces = vec![Piece { thread: ThreadId(thread), start: row.start_ns, end: row.end_ns }];
                placed.push(PlacedSpan { name: row.name, group: row.name, pieces });
            }
            _ => incomplete += 1,
        }
    }
    if placed.is_empty() && incomplete == 0 {
        return Err(UsageError::new(format!("no observed thread is called '{name}'")).into());
    }
    refuse_few(placed.len())?;
    placed.sort_by_key(PlacedSpan::start);
    let lives = Lives::read(&tables, &threads, &threads_of(&placed), &mut labels)?;
    let mut notes: Vec<String> = lost_note(observed.lost_events).into_iter().collect();
    if incomplete > 0 {
        let threads = counted(incomplete, "thread", "threads");
        notes.push(format!(
            "{threads} with this name started before the recording or ended after it, and were left out"
        ));
    }
    Ok(Found {
        node: observed.node.clone(),
        clock: (SpanClock::Counter, false),
        clock_error: Nanos::ZERO,
        placed,
        left_out: LeftOutSpans::default(),
        names: labels,
        subjects: Subjects::threads(&threads, (start, end)),
        lives,
        notes,
    })
}

/// The spans of a file by the lives of observed threads.
fn in_observed(args: &ExplainArgs, file: &Path) -> fault::Result<Found> {
    if args.cpu.is_some() {
        let text = Wording::new("{} holds observed threads, which move between CPUs; leave {cpu} out");
        return Err(UsageError::new(text.with(args.run.display())).into());
    }
    let stored = observed(args)?;
    let read = spans::read(file, &request(args, false))?;
    let observed = &stored.doc;
    let tables = ObservedTables::new(&stored.bundle, &observed.node, observed.rows);
    let mut labels = Labels::new();
    let threads = tables.threads(&mut labels)?;
    let books = clocks::span_of(observed);
    let subjects = Subjects::threads(&threads, books);
    let file = from_file(args, read, &observed.clock, books, &subjects)?;
    let lives = Lives::read(&tables, &threads, &threads_of(&file.placed), &mut labels)?;
    let notes = lost_note(observed.lost_events).into_iter().collect();
    Ok(file.explained_by(observed.node.clone(), subjects, lives, notes))
}

/// The spans of a file by what interrupted their CPUs.
fn in_measured(args: &ExplainArgs, file: &Path) -> fault::Result<Found> {
    let recording = Measured::open(&args.run, args.node.as_deref())?;
    let doc = recording.only_node()?;
    let read = spans::read(file, &request(args, true))?;
    let subjects = recording.subjects(args.cpu)?;
    if recording.cpus().len() > 1 && args.cpu.is_none() && read.all.iter().any(|span| span.cpu.is_none()) {
        let list: CpuList = recording.cpus().iter().map(|cpu| cpu.doc.cpu).collect();
        let text = Wording::new(
            "{} does not name the CPU of each span, and the recording has {}; give it with {cpu}, or in a column cpu",
        );
        return Err(UsageError::new(text.with(file.display()).with(cpus(&list))).into());
    }
    let file = from_file(args, read, &doc.clock, recording.books(), &subjects)?;
    let tids = file.read.all.iter().filter_map(|span| span.tid).collect::<BTreeSet<_>>();
    let own = OwnThreads { tids: tids.iter().map(ToString::to_string).collect(), name: None };
    let (lives, notes) = recording.lives(&file.placed, &own)?;
    Ok(file.explained_by(doc.node.clone(), subjects, lives, notes))
}

/// The phases of a job by what interrupted the CPUs of its ranks.
fn phases_in_measured(args: &ExplainArgs, job: &PhaseRun) -> fault::Result<Found> {
    if args.clock.is_some() || args.cpu.is_some() || args.tid.is_some() {
        let text = Wording::new("a job has a clock and CPUs of its own; leave {clock}, {cpu} and {tid} out");
        return Err(UsageError::new(text).into());
    }
    if let Some(by) = args.by.as_ref().filter(|by| *by != "name") {
        let text = Wording::new("phases have no '{}'; the only value of {by} is name: the latest rank");
        return Err(UsageError::new(text.with(by)).into());
    }
    let recording = Measured::open(&args.run, args.node.as_deref())?;
    let Phases { placed, labels, left_out } = phases::place(job, &recording, args.name.as_deref())?;
    if placed.is_empty() {
        let is_there = left_out == LeftOutSpans::default();
        return Err(UsageError::new(match args.name.as_deref().filter(|_| is_there) {
            Some(name) => {
                format!("no phase was as long as that of '{name}'; phases have the names rank 0, rank 1, ...")
            }
            None => "the recording has none of the job's phases; start it before the job, and end it after".to_owned(),
        })
        .into());
    }
    refuse_few(placed.len())?;
    let (lives, notes) = recording.lives(&placed, &phases::threads())?;
    let nodes: BTreeSet<&str> = recording.cpus().iter().map(|cpu| cpu.node.as_str()).collect();
    Ok(Found {
        node: nodes.into_iter().collect::<Vec<_>>().join(", "),
        clock: (SpanClock::Counter, false),
        clock_error: Nanos::ZERO,
        subjects: recording.subjects(None)?,
        placed,
        left_out,
        names: labels,
        lives,
        notes,
    })
}

fn refuse_few(count: usize) -> fault::Result<()> {
    fault::ensure!(
        count >= FEWEST,
        "{} can be explained, and at least {FEWEST} are needed to tell slow ones from ordinary ones",
        counted(count as u64, "span", "spans")
    );
    Ok(())
}

/// Fails if the times of the spans are uncertain by more than half of an ordinary one.
fn refuse_uncertain(map: &ClockMap, spans: &[PlacedSpan], notes: &mut Vec<String>) -> fault::Result<()> {
    let mut lengths: Vec<i64> = spans.iter().map(PlacedSpan::length).collect();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
    let error = map.error();
    if error.get() > median / 2 && error >= LEAST_ERROR {
        return Err(UsageError::new(format!(
            "the clock {} was uncertain by {error} during the recording, and an ordinary span takes {}; \
             it may have been set: write spans with CLOCK_MONOTONIC",
            map.clock().name(),
            Nanos::new(median)
        ))
        .into());
    }
    if error.get() > median / 20 {
        notes
            .push(format!("the clock of the spans is uncertain by more than a twentieth of an ordinary span: {error}"));
    }
    Ok(())
}
