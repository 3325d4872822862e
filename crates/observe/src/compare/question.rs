//! The question, and the recordings that it is about.

use std::path::{Path, PathBuf};

use becalm_analyze::compare::{Limit, exceeds};
use becalm_answer::Asker;
use becalm_bundle::Contents;
use becalm_report::compare::limit_text;
use becalm_units::Share;
use becalm_units::fault::{self, UsageError};

use super::report::{CompareObservedReport, LimitedLoss};
use super::sides::{ReadRun, Sides};

/// A comparison of two sides, each with one recording of observed threads or several.
#[derive(Clone, PartialEq, Debug)]
pub struct CompareQuestion<'a> {
    /// The recordings before the change, and those after it.
    pub sides: [&'a [PathBuf]; 2],
    /// The nodes to use, if a recording has several.
    pub nodes: [Option<&'a str>; 2],
    /// The most that the time lost to others may grow, relative to A.
    pub limit: Option<Share>,
}

/// Whether these are recordings of observed threads. Unreadable ones are refused later, with the reason. Fails if only some of them are.
pub fn are_observed(paths: &[PathBuf]) -> fault::Result<bool> {
    let contents = |path: &PathBuf| Contents::read(path).ok();
    let Some(observed) = paths.iter().find(|path| contents(path) == Some(Contents::Observed)) else {
        return Ok(false);
    };
    let other = |path: &PathBuf| contents(path).filter(|contents| *contents != Contents::Observed);
    if let Some((path, other)) = paths.iter().find_map(|path| Some((path, other(path)?))) {
        fault::bail!(
            "{} holds {}, and {} holds {}: they have no figures in common; compare two recordings of becalm observe, or two \
             of becalm record",
            observed.display(),
            Contents::Observed.words(),
            path.display(),
            other.words()
        );
    }
    Ok(true)
}

/// The error for an option or argument that is only for recordings of CPUs.
pub fn not_for_threads(option: &str) -> UsageError {
    UsageError::new(format!(
        "{option} is for recordings of becalm record, and these hold observed threads; leave it out"
    ))
}

impl CompareQuestion<'_> {
    /// Reads the recordings, shows the comparison, and returns the exceeded limit as a text. Fails if a recording cannot be read or is given
    /// twice, the sides have no thread name in common, or the answer cannot be shown.
    pub fn answer(&self, asker: &mut impl Asker) -> fault::Result<Option<String>> {
        let read = |side: usize| -> fault::Result<Vec<ReadRun>> {
            self.sides[side].iter().map(|path| ReadRun::read(path, self.nodes[side])).collect()
        };
        let sides = [read(0)?, read(1)?];
        refuse_repeated(&sides)?;
        let compared = Sides::new(sides)?.compared()?;
        let limited = self.limit.map(|share| {
            let outcome = exceeds(&compared.lives.total, share.ratio());
            let text = limit_text("time lost to others", Some(&compared.lives.total), share.ratio(), outcome);
            LimitedLoss { share: share.ratio(), outcome, text }
        });
        asker.show(&CompareObservedReport { compared: &compared, limited: limited.as_ref() })?;
        Ok(limited.filter(|limited| limited.outcome == Limit::Exceeded).map(|limited| limited.text))
    }
}

/// Refuses a recording that is given twice: on both sides it shows nothing, on one it makes recordings look too much alike. A copy is the same.
pub(super) fn refuse_repeated(sides: &[Vec<ReadRun>; 2]) -> fault::Result<()> {
    let runs: Vec<&ReadRun> = sides.iter().flatten().collect();
    for (number, run) in runs.iter().enumerate() {
        if let Some(same) = runs[..number].iter().find(|other| other.doc == run.doc) {
            let [one, other]: [&Path; 2] = [&same.path, &run.path];
            let text = format!(
                "{} and {} hold the same recording, which shows nothing against itself; give another",
                one.display(),
                other.display()
            );
            return Err(UsageError::new(text).into());
        }
    }
    Ok(())
}
