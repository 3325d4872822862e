//! What a user can do about an error, in the words of the command line. The libraries below state the facts.

use std::error::Error;

use becalm_analyze::compare::CompareError;
use becalm_analyze::noise::NoiseError;
use becalm_analyze::summary::SummaryError;
use becalm_analyze::together::TogetherError;
use becalm_bundle::{BundleError, Contents};

use crate::AnswerError;

/// What is to be said behind the text of the error; empty where nothing helps, or where its own causes tell.
#[must_use]
pub fn of(cause: &(dyn Error + 'static)) -> &'static str {
    fn hint_for<E: Error + 'static>(cause: &(dyn Error + 'static), hint: fn(&E) -> &'static str) -> &'static str {
        cause.downcast_ref::<E>().map_or("", hint)
    }
    let hints = [
        hint_for(cause, answer),
        hint_for(cause, bundle),
        hint_for(cause, summary),
        hint_for(cause, noise),
        hint_for(cause, together),
        hint_for(cause, compare),
    ];
    hints.into_iter().find(|hint| !hint.is_empty()).unwrap_or_default()
}

fn answer(error: &AnswerError) -> &'static str {
    match error {
        AnswerError::Noise(error) => noise(error),
        AnswerError::Summary(error) => summary(error),
        AnswerError::Together(error) => together(error),
        AnswerError::Compare(error) => compare(error),
        AnswerError::Bundle(error) => bundle(error),
        AnswerError::Usage(_)
        | AnswerError::Empty(_)
        | AnswerError::Scale(_)
        | AnswerError::PhaseSources(_)
        | AnswerError::Shown(_) => "",
    }
}

/// What helps against an error of a bundle.
#[must_use]
pub const fn bundle(error: &BundleError) -> &'static str {
    match error {
        BundleError::Contents { found: Contents::Summary, .. } => "; record without --summary for this command",
        BundleError::Contents { found: Contents::Distribution, .. } => {
            "; it has no single events, which this needs: see what it has with becalm report"
        }
        BundleError::Contents { .. } => "; see it with becalm report",
        BundleError::SeveralNodes { .. } => "; choose one with --node",
        _ => "",
    }
}

const fn summary(error: &SummaryError) -> &'static str {
    match error {
        SummaryError::Bundle(error) => bundle(error),
        SummaryError::Work { .. } => {
            ": becalm report shows them, becalm work --baseline holds them against others, and becalm record records detours"
        }
        _ => "",
    }
}

const fn noise(error: &NoiseError) -> &'static str {
    match error {
        NoiseError::Selection(error) => summary(error),
        NoiseError::Bundle(error) => bundle(error),
        _ => "",
    }
}

const fn together(error: &TogetherError) -> &'static str {
    match error {
        TogetherError::Noise(error) => noise(error),
        TogetherError::SeveralNodes => " (name one by --node)",
        TogetherError::OneCpu(_) => "",
    }
}

const fn compare(error: &CompareError) -> &'static str {
    match error {
        CompareError::Run { cause, .. } => summary(cause),
        CompareError::NoCommonCpu { .. } => " (--cpus-a, --cpus-b)",
        CompareError::NoCommonNode { .. } => " (--node-a, --node-b)",
        _ => "",
    }
}
