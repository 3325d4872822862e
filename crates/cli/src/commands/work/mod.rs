//! `becalm work`: loops of repeated work, and their interruptions.

mod arguments;
mod campaign;
mod interrupts;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use becalm_analyze::summary::Selection;
use becalm_analyze::work::{WorkError, summarize_work};
use becalm_bundle::{Bundle, HeldFolder};
use becalm_command::messages::say;
use becalm_command::output::emit;
use becalm_command::pager::Paging;
use becalm_command::{Exit, Task};
use becalm_measure::LoopTask;
use becalm_model::node::{Ended, NodeDoc, WorkDoc};
use becalm_record::{Failure, SampleStore, Session};
use becalm_report::WorkReport;
use becalm_units::fault::{self, Context, Fault, Result};

pub use self::arguments::WorkArgs;
use self::campaign::CampaignPart;
use self::interrupts::AddedInterrupts;

impl Task for WorkArgs {
    fn paging(&self) -> Paging {
        Paging::Asked
    }

    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        let root = Path::new("/");
        let resumed = self.resume.as_deref().map(campaign::Resumed::open).transpose()?;
        let mut parts = campaign::parts(&self, resumed.as_ref(), root)?;
        // Fail before the measurement, not after.
        let baseline = self.baseline.as_deref().map(Bundle::open).transpose()?;
        if let Some(baseline) = &baseline {
            campaign::check_baseline(baseline, &parts)?;
        }
        let output = self.form.output_after_set_up()?;
        campaign::leave_rights(&mut parts, baseline.is_some())?;
        let session = Session::begin(root, !self.no_sources).context("cannot block signals")?;
        interrupts::check_rates(root, &self.rates)?;
        let mut stored = Vec::new();
        let mut done = DoneParts::default();
        let mut interrupted = false;
        for mut part in parts {
            let path = part.path.clone();
            done.calibrate(&mut part);
            let (node, held) = measure(&self, part, resumed.as_ref(), &session)?;
            done.remember(&node);
            if !self.quiet {
                say(format_args!("stored in {}", path.display()));
            }
            interrupted = node.ended == Some(Ended::Signal);
            let ended = node.ended;
            stored.push((path.clone(), held, node.node));
            match ended {
                Some(Ended::BufferFull) => fault::bail!(
                    "a buffer was full, so the run ended early; what was recorded is in {}; give --buffer more than {} KiB, \
                     or a longer --grain",
                    path.display(),
                    self.buffer
                ),
                Some(Ended::Unattended) => fault::bail!(
                    "the run ended early: its real-time loops had every CPU, and nothing was collected from them for too long; what \
                     was recorded is in {}; leave one CPU out of --cpus, or take a lower priority",
                    path.display()
                ),
                Some(Ended::CpusGone) => fault::bail!(
                    "the run ended early: every CPU went offline or left the cpuset; what was recorded is in {}",
                    path.display()
                ),
                _ => {}
            }
            if interrupted {
                break;
            }
        }
        if self.form.is_given() || !self.quiet {
            let mut summaries = Vec::new();
            for (path, held, node) in &stored {
                let selection = Selection { node: Some(node.clone()), ..Selection::default() };
                match summarize_work(&Bundle::open_held(Arc::clone(held))?, &selection, baseline.as_ref()) {
                    Ok(summary) => summaries.push(summary),
                    Err(WorkError::Nothing { .. }) if interrupted => {
                        say(format_args!("{} holds no sample: it was interrupted before the first", path.display()));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            emit(&WorkReport { runs: &summaries }, output, out)?;
        }
        if interrupted && !self.quiet {
            let last = stored.last().map_or_else(|| PathBuf::from("RUN"), |(path, ..)| path.clone());
            say(format_args!("interrupted; becalm work --resume {} goes on", last.display()));
        }
        Ok(Exit::Done)
    }
}

/// The work of completed runs: runs at other interrupt rates do the same.
#[derive(Default)]
struct DoneParts(Vec<WorkDoc>);

impl DoneParts {
    /// Uses the iterations per sample of an earlier run that differs only in its rate, so samples are comparable.
    fn calibrate(&self, part: &mut CampaignPart) {
        let LoopTask::Work(work) = &mut part.plan.task else { return };
        let same =
            |doc: &&WorkDoc| (&doc.body, doc.grain_ns, doc.copies) == (&work.body_name(), work.grain, work.copies);
        if let Some(doc) = self.0.iter().find(same) {
            work.iterations = doc.loops.iter().map(|span| (span.cpu, span.iterations)).collect();
        }
    }

    fn remember(&mut self, node: &NodeDoc) {
        self.0.extend(node.settings.work.clone());
    }
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
    let root = plan.root.clone();
    let added_hz = campaign::work_of(&plan).map_or(0, |work| work.added_hz);
    let added = AddedInterrupts::begin(&root, plan.cpus.as_ref(), added_hz)?;
    let recorded = session.record(plan, store, &mut |progress| campaign::show(&bar, progress));
    if let Some(added) = added {
        added.end(&root);
    }
    drop(bar);
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
