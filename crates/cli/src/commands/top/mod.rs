//! `becalm top`: what interrupts the CPUs, live. It measures exactly as `becalm record` does, into a hidden recording that
//! becomes a run when the user saves it.
//!
//! Two threads: the main one records (`feed`), another one shows (`watch`); between them lies the `session`. What is known
//! (`live`), what the user has chosen (`view`) and how both become cells of a terminal (`draw`) know nothing of either.

mod columns;
mod draw;
mod feed;
mod help;
mod history;
mod keep;
mod keys;
mod live;
mod page;
mod plain;
mod screen;
mod session;
mod spark;
mod tables;
mod theme;
mod view;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use becalm_linux::signals;
use becalm_model::node::Ended;
use becalm_record::{Detours, Failure, Recorded, Session as Recording};
use becalm_units::{Count, Nanos};
use clap::Args;

use crate::arguments::default_path;
use crate::exit::{Exit, UsageError};
use crate::measuring::MeasuringArgs;
use crate::messages::say;
use feed::Feed;
use keep::{Keep, RunNames};
use session::{Request, Session};
use watch::{Front, Showing, Watcher};

/// Watch what interrupts the CPUs, live
///
/// Measures exactly as `becalm record` does, until you quit, and shows the noise of each CPU as it comes, the sources
/// that took most, and the longest detours so far; press ? for the keys. Drawing goes on where nothing is measured; if
/// every CPU is measured, it counts as kind `self`, and the last lines say what it costs.
///
/// The recording behind it can be saved at any time with s, and read with `becalm report`; what is not saved goes when
/// you quit.
#[derive(Args, Debug)]
pub struct TopArgs {
    #[command(flatten)]
    measuring: MeasuringArgs,

    /// How often the picture is drawn anew
    #[arg(long, value_name = "TIME", default_value = "1s", allow_hyphen_values = true)]
    interval: Nanos,

    /// The name under which s saves; later saves get a number [default: HOST-TIME.becalm]
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,

    /// Begin the recording behind the view anew when it has this many bytes, so that the disk does not fill
    #[arg(long, value_name = "BYTES", default_value = "1G")]
    keep: Count,

    /// Print as text this many times, then end; needs no terminal
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,

    /// Print all of --iterations as one JSON document (becalm.top/1)
    #[arg(long, requires = "iterations")]
    json: bool,
}

/// Measures and shows.
///
/// # Errors
/// Where there is no terminal, and where `becalm record` would fail.
pub fn run(args: &TopArgs) -> Result<Exit> {
    if args.interval < Nanos::from_millis(100) {
        return Err(UsageError("--interval is shorter than 100ms, which nobody can read".to_owned()).into());
    }
    if args.output.as_ref().is_some_and(|path| path.file_name().is_none()) {
        return Err(UsageError("--output names no file; give a name, like -o quiet.becalm".to_owned()).into());
    }
    let front = match args.iterations {
        Some(iterations) => Front::Text { iterations, json: args.json },
        None => {
            if let Some(why) = screen::obstacle() {
                return Err(UsageError(format!(
                    "{why}; use becalm record and becalm report, or --iterations N to print the view as text"
                ))
                .into());
            }
            Front::Terminal
        }
    };
    let root = Path::new("/");
    // While the process has one thread.
    let recording = Recording::begin(root, !args.measuring.no_sources).context("cannot block signals")?;
    let session = Arc::new(Session::new());
    let showing =
        Showing { front, interval: args.interval.to_std(), policy: args.measuring.sched, root: root.to_owned() };
    let mut watcher = Watcher::new(showing);
    let measured = measure(args, root, &recording, &session, &mut watcher);
    session.end();
    let shown = watcher.join();
    // Said when the terminal can be read again.
    let saved = measured?;
    shown.context("cannot show the view")?;
    for path in saved {
        say(format_args!("stored in {}", path.display()));
    }
    Ok(Exit::Done)
}

/// Records, one recording after the other, until somebody wants to quit; gives those that were saved.
fn measure(
    args: &TopArgs,
    root: &Path,
    recording: &Recording,
    session: &Arc<Session>,
    watcher: &mut Watcher,
) -> Result<Vec<PathBuf>> {
    let names = RunNames::new(&args.output.clone().unwrap_or_else(|| default_path(root)));
    let mut saved = Vec::new();
    loop {
        let mut plan = args.measuring.plan(root);
        plan.duration = None;
        // Where every CPU is measured, this is how often the detours are looked at.
        plan.segment = args.interval;
        // Text for a pipe is not saved.
        let keep = args.iterations.is_none().then(|| Keep::new(&names));
        let detours = keep.as_ref().map_or_else(Detours::unstored, |keep| Detours::new(keep.path()));
        let feed = Feed::new(detours, session, watcher, args.keep.get());
        let recorded = recording.record(plan, feed, &mut |_| {});
        session.pause();
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(Failure { error, .. }) if error.is_usage() => return Err(error.into()),
            Err(Failure { error, .. }) => return Err(error).context("measuring failed"),
        };
        match recorded.node.ended {
            Some(Ended::BufferFull) => anyhow::bail!(
                "a buffer was full; give --buffer more than {} KiB, or a higher --threshold",
                args.measuring.buffer
            ),
            Some(Ended::CpusGone) => anyhow::bail!("every measured CPU went offline or left the cpuset"),
            _ => {}
        }
        match session.take_request() {
            Some(Request::Save) => {
                let path = keep.map(|keep| save(recorded, keep, &names));
                session.say(path.map(|path| match path {
                    Ok(path) => {
                        let message = format!("saved: becalm report {}", path.display());
                        saved.push(path);
                        message
                    }
                    Err(error) => crate::messages::of_error(&error),
                }));
            }
            Some(Request::Renew) => {
                session.say(Some(format!("the recording had {} bytes (--keep) and began anew", args.keep)));
            }
            Some(Request::Suspend) => {
                drop(keep);
                signals::suspend().context("cannot stop")?;
            }
            Some(Request::Quit) | None => return Ok(saved),
        }
    }
}

/// Completes a recording and gives it its name.
fn save(mut recorded: Recorded<Feed<'_>>, keep: Keep, names: &RunNames) -> Result<PathBuf> {
    recorded.node.ended = Some(Ended::User);
    recorded.complete().context("cannot complete the recording")?;
    drop(recorded);
    keep.save(names).context("cannot save")
}
