//! Runs a recording for commands: progress, error messages, and its contents once stored.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use becalm_analyze::summary::{Detail, Selection, Summary, summarize, summarize_digests};
use becalm_bundle::{Bundle, HeldFolder, SummaryBundle};
use becalm_measure::{Progress, RecordPlan};
use becalm_model::node::NodeDoc;
use becalm_record::{Failure, Recorded, RecordingStore, Session};
use becalm_units::fault::{Context, Fault, Result};

use crate::progress::{Bar, ReadingProgress, Tail};

/// Records as planned into a store at this path, with progress unless `quiet`. The returned document is not complete yet.
pub fn record(
    session: &Session,
    plan: RecordPlan,
    store: RecordingStore,
    path: &Path,
    quiet: bool,
) -> Result<Recorded<RecordingStore>> {
    // No steady tick: a thread of its own would be noise. Drawn when the collector polls.
    let bar = if quiet { Bar::hidden() } else { Bar::new("recording", 100, Tail::Percent) };
    let most = plan.detours;
    let recorded = session.record(plan, store, &mut |progress| show(&bar, progress, most));
    drop(bar);
    match recorded {
        Ok(recorded) => Ok(recorded),
        Err(Failure { error, .. }) if error.is_usage() => Err(error.into()),
        Err(Failure { error, mut store }) => {
            let stored = store.fail(&error.to_string());
            Err(error).with_context(|| match stored {
                true => format!("the recording failed; what was stored until then is in {}", path.display()),
                false => "nothing was recorded".to_owned(),
            })
        }
    }
}

/// Reads this node's stored recording, from a bundle that may contain others.
pub fn read_again(in_summary_form: bool, held: Arc<HeldFolder>, node: &NodeDoc, detail: Detail) -> Result<Summary> {
    let selection = Selection { node: Some(node.node.clone()), detail, ..Selection::default() };
    if in_summary_form {
        return Ok(summarize_digests(&SummaryBundle::open_held(held)?, &selection)?);
    }
    let bundle = Bundle::open_held(held)?;
    // The loops have ended.
    let _reading = ReadingProgress::begin(&bundle, 1);
    Ok(summarize(&bundle, &selection)?)
}

fn show(bar: &Bar, progress: Progress, most: Option<NonZeroU64>) {
    if bar.is_hidden() {
        return;
    }
    let seconds = progress.elapsed.as_secs_f64();
    let most = most.map_or_else(String::new, |most| format!(" of {most} a CPU"));
    match progress.duration {
        Some(duration) => {
            let left = (duration.as_secs_f64() - seconds).max(0.0);
            bar.say(format!(
                "recording {seconds:.1}s of {duration}, {left:.0}s left, {} detours{most}",
                progress.detours
            ));
            bar.reach((seconds / duration.as_secs_f64() * 100.0).clamp(0.0, 100.0) as u64);
        }
        None => bar.say(format!("recording {seconds:.1}s, {} detours{most}, Ctrl-C ends it", progress.detours)),
    }
}
