//! `becalm work`: loops that do something, again and again, and what interrupts them.

mod arguments;
mod campaign;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use becalm_analyze::summary::Selection;
use becalm_analyze::work::{WorkError, summarize_work};
use becalm_bundle::{Bundle, HeldFolder};
use becalm_model::node::{Ended, NodeDoc};
use becalm_record::{Failure, SampleStore, Session};
use becalm_report::WorkReport;

pub use self::arguments::WorkArgs;
use self::campaign::CampaignPart;
use crate::exit::Exit;
use crate::messages::say;
use crate::output::{Output, emit};

/// Works, stores, reports; once for each number of copies.
///
/// # Errors
/// If the arguments cannot be meant, or a run fails.
pub fn run(args: &WorkArgs, out: &mut dyn Write) -> Result<Exit> {
    let root = Path::new("/");
    let resumed = args.resume.as_deref().map(campaign::Resumed::open).transpose()?;
    let mut parts = campaign::parts(args, resumed.as_ref(), root)?;
    // Found out before anything is measured, not after.
    let baseline = args.baseline.as_deref().map(Bundle::open).transpose()?;
    if let Some(baseline) = &baseline {
        campaign::check_baseline(baseline, &parts)?;
    }
    campaign::leave_rights(&mut parts, baseline.is_some())?;
    let session = Session::begin(root, !args.no_sources).context("cannot block signals")?;
    let mut stored = Vec::new();
    let mut interrupted = false;
    for part in parts {
        let path = part.path.clone();
        let (node, held) = measure(args, part, resumed.as_ref(), &session)?;
        if !args.quiet {
            say(format_args!("stored in {}", path.display()));
        }
        interrupted = node.ended == Some(Ended::Signal);
        let ended = node.ended;
        stored.push((path.clone(), held, node.node));
        match ended {
            Some(Ended::BufferFull) => anyhow::bail!(
                "a buffer was full, so the run ended early; what was recorded is in {}; give --buffer more than {} KiB, \
                 or a longer --grain",
                path.display(),
                args.buffer
            ),
            Some(Ended::Unattended) => anyhow::bail!(
                "the run ended early: its real-time loops had every CPU, and nothing was collected from them for too long; what \
                 was recorded is in {}; leave one CPU out of --cpus, or take a lower priority",
                path.display()
            ),
            Some(Ended::CpusGone) => anyhow::bail!(
                "the run ended early: every CPU went offline or left the cpuset; what was recorded is in {}",
                path.display()
            ),
            _ => {}
        }
        if interrupted {
            break;
        }
    }
    if args.json || !args.quiet {
        let mut summaries = Vec::new();
        for (path, held, node) in &stored {
            let selection = Selection { node: Some(node.clone()), cpus: None, with_self: false };
            match summarize_work(&Bundle::open_held(Arc::clone(held))?, &selection, baseline.as_ref()) {
                Ok(summary) => summaries.push(summary),
                Err(WorkError::Nothing { .. }) if interrupted => {
                    say(format_args!("{} holds no sample: it was interrupted before the first", path.display()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        emit(&WorkReport { runs: &summaries }, Output::new(args.json, false), out)?;
    }
    if interrupted && !args.quiet {
        let last = stored.last().map_or_else(|| PathBuf::from("RUN"), |(path, ..)| path.clone());
        say(format_args!("interrupted; becalm work --resume {} goes on", last.display()));
    }
    Ok(Exit::Done)
}

/// One run, from the start to its bundle.
fn measure(
    args: &WorkArgs,
    part: CampaignPart,
    resumed: Option<&campaign::Resumed>,
    session: &Session,
) -> Result<(NodeDoc, Arc<HeldFolder>)> {
    let bar = campaign::progress_bar(args, part.work());
    let CampaignPart { path, plan } = part;
    let store = match resumed {
        Some(run) => SampleStore::resume(&path, run.doc.clone()),
        None => SampleStore::new(&path),
    };
    let recorded = session.record(plan, store, &mut |progress| campaign::show(&bar, progress));
    bar.finish_and_clear();
    let mut recorded = match recorded {
        Ok(recorded) => recorded,
        Err(Failure { error, .. }) if error.is_usage() => return Err(error.into()),
        Err(Failure { error, mut store }) => {
            let stored = store.fail(&error.to_string());
            return Err(error).with_context(|| match stored {
                true => format!("the run failed; what was stored until then is in {}", path.display()),
                false => "nothing was recorded".to_owned(),
            });
        }
    };
    recorded.complete().with_context(|| format!("cannot complete the run {}", path.display()))?;
    let held = recorded.store.held().context("a complete run was stored nowhere")?;
    Ok((recorded.node, held))
}
