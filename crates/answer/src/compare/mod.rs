//! Compares runs, before and after; and jobs with the first of them.

mod jobs;
mod nodes;

use std::path::{Path, PathBuf};

use becalm_analyze::compare::{Comparison, Limit, Metric, compare_sides, exceeds};
use becalm_analyze::summary::Selection;
use becalm_bundle::{Bundle, Contents, StoredNodes};
use becalm_model::node::NodeDoc;
use becalm_model::warning::Bearing;
use becalm_report::{CompareReport, LimitCheck};
use becalm_units::Share;
use becalm_units::fault::{self, UsageError, Wording};

pub use self::jobs::are_jobs;
use crate::Asker;

/// A comparison of two sides, each with one run or several.
#[derive(Clone, PartialEq, Debug)]
pub struct CompareQuestion {
    /// The runs before the change.
    pub before: Vec<PathBuf>,
    /// The runs after it.
    pub after: Vec<PathBuf>,
    /// The selected parts of the runs before.
    pub selection_before: Selection,
    /// The selected parts of the runs after.
    pub selection_after: Selection,
    /// The share that these figures may worsen by, if limited.
    pub limit: Option<(Share, Vec<Metric>)>,
}

impl CompareQuestion {
    /// Reads all runs, shows the changes, and returns the exceeded limits as texts. Fails if a run cannot be read or lacks the selected
    /// part, the two have nothing in common, or the answer cannot be shown.
    pub fn answer(&self, asker: &mut impl Asker) -> fault::Result<Vec<String>> {
        let comparison = self.comparison(asker)?;
        let is_doubtful = comparison.notes.iter().any(|note| note.bearing() == Bearing::NotEnough);
        let check = |share: Share, metric: &Metric| {
            let row = comparison.total(*metric).filter(|_| !is_doubtful);
            let outcome = row.map_or(Limit::Unknown, |row| exceeds(row, share.ratio()));
            LimitCheck { metric: *metric, share: share.ratio(), outcome }
        };
        let limits = self.limit.iter();
        let checks: Vec<LimitCheck> =
            limits.flat_map(|(share, metrics)| metrics.iter().map(|metric| check(*share, metric))).collect();
        asker.show(&CompareReport { comparison: &comparison, checks: &checks })?;
        let exceeded = checks.iter().filter(|check| check.outcome == Limit::Exceeded);
        Ok(exceeded.map(|check| becalm_report::check_text(&comparison, check)).collect())
    }

    /// Reads the runs of both sides.
    fn comparison(&self, asker: &impl Asker) -> fault::Result<Comparison> {
        let (select_a, select_b) = (&self.selection_before, &self.selection_after);
        let Some((bundles_a, bundles_b)) = full_recordings(&self.before, &self.after)? else {
            return nodes::compare((&self.before, select_a), (&self.after, select_b));
        };
        let selected_a: Vec<_> = bundles_a.iter().map(|bundle| (bundle, select_a)).collect();
        let selected_b: Vec<_> = bundles_b.iter().map(|bundle| (bundle, select_b)).collect();
        refuse_repeated(&[selected_a.as_slice(), &selected_b].concat())?;
        let _reading = asker.comparing(bundles_a.iter().chain(&bundles_b));
        Ok(compare_sides(&selected_a, &selected_b)?)
    }
}

/// Whether one of these is an imported distribution, which the crate `foreign` compares. Unreadable runs are refused later, with the
/// reason.
pub fn are_distributions(paths: &[PathBuf]) -> bool {
    paths.iter().any(|path| matches!(Contents::read(path), Ok(Contents::Distribution)))
}

/// Compares jobs. Fails if a job cannot be read or differs in its phases from the first, or the answer cannot be shown.
pub fn jobs(paths: &[PathBuf], asker: &mut impl Asker) -> fault::Result<()> {
    jobs::answer(paths, asker)
}

/// Refuses a recording that is on both sides, because it shows nothing, or twice on one, because that makes runs look too much alike. A
/// copy is the same recording; other nodes or CPUs of it are not.
fn refuse_repeated(runs: &[(&Bundle, &Selection)]) -> fault::Result<()> {
    let documents: Vec<Vec<NodeDoc>> =
        // Unreadable runs are refused later with the reason.
        runs.iter().map(|(bundle, selection)| selection.documents(bundle).unwrap_or_default()).collect();
    let original = |run: usize, node: &str| runs[run].0.nodes().iter().find(|doc| doc.node == node);
    for (b, of_b) in documents.iter().enumerate() {
        for (a, of_a) in documents.iter().enumerate().take(b) {
            let is_same = |doc: &&NodeDoc| {
                let shares =
                    |other: &NodeDoc| doc.cpus.iter().any(|cpu| other.cpus.iter().any(|its| its.cpu == cpu.cpu));
                let same_node = of_b.iter().find(|other| other.node == doc.node);
                same_node.is_some_and(shares) && original(a, &doc.node) == original(b, &doc.node)
            };
            let Some(doc) = of_a.iter().find(is_same) else { continue };
            let [a, b] = [a, b].map(|run| runs[run].0.path());
            return Err(repeated(a, b, doc).into());
        }
    }
    Ok(())
}

/// The error for two runs that contain the same recording of a node.
fn repeated(a: &Path, b: &Path, doc: &NodeDoc) -> UsageError {
    let text = Wording::new(
        "{} and {} hold the same recording, of node {}{}: against itself it shows nothing, and twice on a side it makes the runs look \
         more alike than they are; give another, or other CPUs of it by {cpus_before} and {cpus_after}",
    );
    let since = doc.origin.map(|origin| format!(" from {}", origin.strftime("%Y-%m-%d %H:%M:%S UTC")));
    UsageError::new(text.with(a.display()).with(b.display()).with(&doc.node).with(since.unwrap_or_default()))
}

/// The bundles of the runs before and of those after.
type BothSides = (Vec<Bundle>, Vec<Bundle>);

/// The bundles of both sides, if they are readable full recordings. `None` if some nodes are in summary form, or some of several are
/// unreadable: such runs are compared node by node.
fn full_recordings(a: &[PathBuf], b: &[PathBuf]) -> fault::Result<Option<BothSides>> {
    let open = |path: &PathBuf| -> fault::Result<Option<Bundle>> {
        let nodes = StoredNodes::open(path)?;
        if nodes.has_summaries()? {
            return Ok(None);
        }
        match Bundle::open(path) {
            Ok(bundle) => Ok(Some(bundle)),
            Err(_) if nodes.names().len() > 1 => Ok(None),
            Err(error) => Err(error.into()),
        }
    };
    let all = |paths: &[PathBuf]| paths.iter().map(open).collect::<fault::Result<Option<Vec<Bundle>>>>();
    Ok(all(a)?.zip(all(b)?))
}
