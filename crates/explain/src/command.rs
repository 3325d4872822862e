//! `becalm explain`: explains the slow spans of a program by a recording of `becalm observe`.

use std::io::Write;
use std::path::PathBuf;

use becalm_bundle::{Contents, ObservedTables, node_document};
use becalm_command::Exit;
use becalm_command::arguments::FormArgs;
use becalm_command::output::{PROGRAM, emit};
use becalm_command::reading_task;
use becalm_model::Labels;
use becalm_observe::document::ObservedDoc;
use becalm_units::fault::{self, UsageError};
use becalm_units::{Named, Share, counted};
use clap::Args;

use crate::clocks::{self, LEAST_COVERED, SpanClock};
use crate::document::{ExplainedDoc, SCHEMA};
use crate::excess::FEWEST;
use crate::joined::{self, LeftOutSpans, SpanCauses, threads_of};
use crate::lives::Lives;
use crate::report::ExplainedReport;
use crate::spans::{self, SpanRequest};
use crate::summing::Explained;

/// Explain why the slow spans of a program were slow
///
/// Spans are intervals of threads, such as requests, training steps or repetitions. Divides each of them by what its thread did and who had its CPU, in
/// a recording of becalm observe, and tells what the slowest spans have more than ordinary ones: the system's doing, or the program's.
///
/// Spans are read from CSV or Parquet tables (tid,start,end,name; times in nanoseconds, or start_us, ...), from traces of Chrome and PyTorch, and from
/// JSON of OpenTelemetry and the NCCL Inspector.
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

    /// Only spans with this name; * stands for any characters
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
            "{} has no books of threads: becalm observe was killed, or ran without root",
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
    refuse_strangers(&left_out, read.all.len(), map.clock())?;
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
    let all = explained.explain(&everything);
    let all = all.ok_or_else(|| fault::Error::new("there are too few spans"))?;
    let mut notes = Vec::new();
    if read.of_main_threads {
        notes.push("the file names processes and no threads: each span was taken as one of the main thread".to_owned());
    }
    let names = placed.iter().map(|span| span.name).collect::<std::collections::BTreeSet<_>>().len();
    if names > 1 && args.by.is_none() {
        notes.push(format!("the spans have {names} names; --by name explains each, --name NAME only one"));
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

/// Fails if more than one span in a hundred is outside of the recording or of an unknown thread.
fn refuse_strangers(left_out: &LeftOutSpans, count: usize, clock: SpanClock) -> fault::Result<()> {
    let LeftOutSpans { outside, first_outside, unknown_threads, tids } = left_out;
    if (outside + unknown_threads) as f64 <= (1.0 - LEAST_COVERED) * count as f64 {
        return Ok(());
    }
    let text = if outside >= unknown_threads {
        let first = first_outside.map_or_else(String::new, |first| format!(", the first {}", clocks::relative(first)));
        format!(
            "{outside} of {count} spans are outside of the recording by the clock {}{first}; \
             give their clock with --clock, or spans of this recording",
            clock.name()
        )
    } else {
        let tids: Vec<String> = tids.iter().map(ToString::to_string).collect();
        format!(
            "{unknown_threads} of {count} spans are of threads that were not observed, such as {}; \
             becalm report RUN --full lists the observed ones",
            tids.join(", ")
        )
    };
    Err(UsageError::new(text).into())
}
