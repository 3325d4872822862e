//! Why a question has no answer.

use std::error::Error;

use becalm_analyze::compare::CompareError;
use becalm_analyze::distribution::BesideError;
use becalm_analyze::noise::NoiseError;
use becalm_analyze::phase_sources::PhaseSourcesError;
use becalm_analyze::summary::SummaryError;
use becalm_analyze::together::TogetherError;
use becalm_bundle::BundleError;
use becalm_scale::ScaleError;

use crate::hints;

/// A question that has no answer. Its text is whole, as that of each error below it.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// It cannot be meant. The text names options as the command line has them.
    #[error("{0}")]
    Usage(String),
    /// What was measured is not there.
    #[error("{0}")]
    Empty(String),
    /// The noise, the job or the network of a prediction or of the law.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// The noise of a run.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// The figures of a run.
    #[error(transparent)]
    Summary(#[from] SummaryError),
    /// What comes at once on several CPUs.
    #[error(transparent)]
    Together(#[from] TogetherError),
    /// What lies within the phases of a job.
    #[error(transparent)]
    PhaseSources(#[from] PhaseSourcesError),
    /// Runs against each other.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A stored run.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The answer is there, and could not be shown.
    #[error(transparent)]
    Shown(#[from] Box<dyn Error + Send + Sync>),
}

impl From<BesideError> for AnswerError {
    fn from(error: BesideError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl AnswerError {
    /// Whether what was asked is at fault.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Usage(_) => true,
            Self::Scale(error) => error.is_usage(),
            Self::Together(error) => error.is_usage(),
            Self::PhaseSources(error) => error.is_usage(),
            Self::Empty(_)
            | Self::Noise(_)
            | Self::Summary(_)
            | Self::Compare(_)
            | Self::Bundle(_)
            | Self::Shown(_) => false,
        }
    }

    /// The error with its causes as far as they do not stand in its text, and what to do about it, in the words of the command line.
    #[must_use]
    pub fn message(&self) -> String {
        let (mut text, mut hint) = (self.to_string(), hints::of(self));
        let mut cause = self.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            hint = if hint.is_empty() { hints::of(error) } else { hint };
            cause = error.source();
        }
        format!("{text}{hint}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_each_cause_once_and_a_hint() {
        let several = BundleError::SeveralNodes { bundle: "x".into(), nodes: "a, b".into() };
        let error = AnswerError::from(SummaryError::Bundle(several));
        assert_eq!(error.message(), "x holds the nodes a, b; choose one with --node");
        assert!(!error.is_usage());
        assert!(AnswerError::from(ScaleError::NoRanks).is_usage());
        let shown: Box<dyn Error + Send + Sync> = "the disk is full".into();
        assert_eq!(AnswerError::from(shown).message(), "the disk is full");
    }
}
