//! `becalm explain`: explains the slow spans of a program by a recording of `becalm observe`.

use std::io::Write;
use std::path::PathBuf;

use becalm_bundle::{Contents, ObservedTables, node_document};
use becalm_command::Exit;
use becalm_command::arguments::FormArgs;
use becalm_command::output::{PROGRAM, emit};
use becalm_command::reading_task;
use becalm_model::{Label, Labels};
use becalm_observe::document::ObservedDoc;
use becalm_units::fault::{self, UsageError};
use becalm_units::{Named, Nanos, Share, counted};
use clap::Args;

use crate::clocks::{self, ClockMap, SpanClock};
use crate::document::{ExplainedDoc, SCHEMA};
use crate::excess::FEWEST;
use crate::joined::{self, PlacedSpan, SpanCauses, threads_of};
use crate::lives::Lives;
use crate::report::ExplainedReport;
use crate::spans::{self, SpanRequest};
use crate::summing::Explained;

/// Readings of the clocks are never more certain than this.
const LEAST_ERROR: Nanos = Nanos::from_micros(50);

/// Explain why the slow spans of a program were slow
///
/// Spans are intervals of threads, such as requests, training steps or repetitions. Divides each of them by what its thread did and who had its CPU, in
/// a recording of becalm observe, and tells what the slowest spans have more than ordinary ones: the system's doing, or the program's.
///
/// Spans are read from CSV or Parquet tables (tid,start,end,name; times in nanoseconds, or start_us, ...), from traces of Chrome, PyTorch and
/// Perfetto, and from JSON of OpenTelemetry and the NCCL Inspector.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Recording of becalm observe
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// File with the spans
    #[arg(long, value_name = "FILE")]
    spans: PathBuf,

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

reading_task!(ExplainArgs);

/// Reads the recording and the spans, and prints the explanation.
fn run(args: &ExplainArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let output = args.form.output(args.all)?;
    let doc = explain(args)?;
    emit(&ExplainedReport { doc: &doc }, output, out)?;
    Ok(Exit::Done)
}

fn explain(args: &ExplainArgs) -> fault::Result<ExplainedDoc> {
    let contents = Contents::read(&args.run)?;
    if contents != Contents::Observed {
        return Err(UsageError::new(format!(
            "{} holds {}; spans are explained by a recording of becalm observe",
            args.run.display(),
            contents.words()
        ))
        .into());
    }
    let stored = node_document::load::<ObservedDoc>(&args.run, args.node.as_deref())?;
    let observed = stored.doc;
    if observed.ended.is_none() || observed.tracing.is_none() {
        return Err(UsageError::new(format!(
            "{} has no lives of single threads: becalm observe was killed, or ran without root",
            args.run.display()
        ))
        .into());
    }
    let request = SpanRequest { name: args.name.clone(), by: args.by.clone(), tid: args.tid };
    let read = spans::read(&args.spans, &request)?;
    let (map, clock_found) = clocks::choose(args.clock, &read, &observed)?;

    let tables = ObservedTables::new(&stored.bundle, &observed.node, observed.rows);
    let mut labels = Labels::new();
    let threads = tables.threads(&mut labels)?;
    let (placed, left_out) = joined::place(&read.all, &map, &threads, clocks::span_of(&observed));
    left_out.refuse_many(read.all.len(), map.clock())?;
    fault::ensure!(
        placed.len() >= FEWEST,
        "{} can be explained, and at least {FEWEST} are needed to tell slow ones from ordinary ones",
        counted(placed.len() as u64, "span", "spans")
    );
    let lives = Lives::read(&tables, &threads, &threads_of(&placed), &mut labels)?;
    let found = SpanCauses::new(&placed, &lives);
    let explained = Explained {
        spans: &placed,
        found: &found,
        lives: &lives,
        threads: &threads,
        names: &read.labels,
        slowest: args.slowest.ratio(),
    };
    let everything: Vec<usize> = (0..placed.len()).collect();
    let mut notes = Vec::new();
    refuse_uncertain(&map, &placed, &mut notes)?;
    let all = explained.explain(&everything);
    let all = all.ok_or_else(|| fault::Error::new("there are too few spans"))?;
    if read.of_main_threads {
        notes.push("the file names processes and no threads: each span was taken as one of the main thread".to_owned());
    }
    let names = placed.iter().map(|span| span.name).collect::<std::collections::BTreeSet<_>>().len();
    if names > 1 && args.by.is_none() {
        notes.push(format!("the spans have {names} names; --by name explains each, --name NAME only one"));
    }
    if read.is_cut {
        notes.push("the file of spans ends in the middle of one, and was read up to there".to_owned());
    }
    let joined = read.all.iter().filter(|span| span.id != Label::EMPTY).count();
    let kept = read.all.len() as u64 - left_out.outside - left_out.unknown_threads;
    if joined == 0 && kept > placed.len() as u64 {
        let lost = counted(kept - placed.len() as u64, "span", "spans");
        notes.push(format!("{lost} without time of their own were left out: others with the same name fill them"));
    }
    if lives.unplaced > 0 {
        notes.push(format!(
            "{} of the recording match no part of a thread's life: it is damaged, or lacks switches",
            counted(lives.unplaced, "interruption", "interruptions")
        ));
    }
    if observed.lost_events > 0 {
        notes.push(format!("the recording lacks {}", counted(observed.lost_events, "dropped event", "dropped events")));
    }
    Ok(ExplainedDoc {
        schema: SCHEMA.to_owned(),
        node: observed.node.clone(),
        program: PROGRAM.to_owned(),
        clock: map.clock(),
        clock_found,
        clock_error_ns: map.error(),
        outside: left_out.outside,
        unknown_threads: left_out.unknown_threads,
        slowest: args.slowest.ratio(),
        all,
        by: if args.by.is_some() { explained.by_group() } else { Vec::new() },
        worst: explained.worst(),
        notes,
    })
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
