//! What a user can do about an error, in the words of this command line. The libraries state the facts, as other front ends
//! have other options.

use std::error::Error;
use std::io;

use becalm_analyze::cost::tick::CampaignError;
use becalm_analyze::work::{Incomparable, WorkError};
use becalm_answer::hints;
use becalm_bundle::BundleError;
use becalm_inject::InjectError;
use becalm_inject::program::ProgramError;
use becalm_measure::cost::CostError;
use becalm_measure::cost::tick::TickError;
use becalm_measure::{CpuError, RecordError};
use becalm_tune::{PlanError, TuneError};

/// What is to be said behind the text of the error; empty where nothing helps.
pub fn after(error: &anyhow::Error) -> &'static str {
    error.chain().map(hint).find(|hint| !hint.is_empty()).unwrap_or_default()
}

fn hint(cause: &(dyn Error + 'static)) -> &'static str {
    fn hint_for<E: Error + 'static>(cause: &(dyn Error + 'static), hint: fn(&E) -> &'static str) -> &'static str {
        cause.downcast_ref::<E>().map_or("", hint)
    }
    let hints = [
        hints::of(cause),
        hint_for(cause, work),
        hint_for(cause, |_: &Incomparable| OTHER_WORK),
        hint_for(
            cause,
            |error: &CampaignError| if matches!(error, CampaignError::NoRound { .. }) { " (--resume)" } else { "" },
        ),
        hint_for(cause, cpu),
        hint_for(cause, plan),
        hint_for(cause, tune),
        hint_for(cause, |error: &CostError| if let CostError::Cpu(error) = error { cpu(error) } else { "" }),
        hint_for(cause, |error: &TickError| match error {
            TickError::Cpu(error) => cpu(error),
            TickError::Store(error) => error.downcast_ref::<BundleError>().map_or("", hints::bundle),
            _ => "",
        }),
        hint_for(cause, |error: &RecordError<BundleError>| match error {
            RecordError::Cpus(error) => cpu(error),
            RecordError::Sink(error) => hints::bundle(error),
            _ => "",
        }),
        hint_for(cause, inject),
        hint_for(cause, program),
        hint_for(
            cause,
            |error: &RecordError<io::Error>| if let RecordError::Cpus(error) = error { cpu(error) } else { "" },
        ),
    ];
    hints.into_iter().find(|hint| !hint.is_empty()).unwrap_or_default()
}

const OTHER_WORK: &str = "; record it with the same --body, --fixed and about the same --grain";

const fn cpu(error: &CpuError) -> &'static str {
    match error {
        CpuError::Empty => ", like --cpus 1",
        _ => "",
    }
}

const fn inject(error: &InjectError) -> &'static str {
    match error {
        InjectError::NoLibrary => "; leave out --signal",
        InjectError::MostlyShort { .. } | InjectError::MostlyShortSignal { .. } => "; to inject the rest, add --partly",
        InjectError::Program(error) => program(error),
        _ => "",
    }
}

const fn program(error: &ProgramError) -> &'static str {
    match error {
        ProgramError::Static { .. } => "; noise by pre-emption, without --signal, reaches every program",
        _ => "",
    }
}

fn work(error: &WorkError) -> &'static str {
    match error {
        WorkError::Bundle(error) => hints::bundle(error),
        WorkError::NotWork { .. } => "; see it with becalm report",
        WorkError::Baseline(_) => OTHER_WORK,
        WorkError::Nothing { .. } => "",
    }
}

fn plan(error: &PlanError) -> &'static str {
    match error {
        PlanError::AllIdle { .. } => " (--leave-idle)",
        PlanError::NoHousekeeping { siblings, .. } if !siblings.is_empty() => "; --skip smt leaves those online",
        _ => "",
    }
}

const fn tune(error: &TuneError) -> &'static str {
    match error {
        TuneError::AlreadyTuned { .. } => "; undo them first with becalm tune restore, or add to them with --extend",
        TuneError::InUse { .. } => ". --force restores them now",
        TuneError::Damaged { .. } => ": becalm tune restore",
        TuneError::Journal(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use becalm_analyze::compare::CompareError;
    use becalm_analyze::summary::SummaryError;

    use super::*;

    #[test]
    fn an_option_is_named_once_also_where_the_error_is_within_another() {
        let several = || BundleError::SeveralNodes { bundle: "x".into(), nodes: "a, b".into() };
        let errors = [
            anyhow::Error::from(several()),
            anyhow::Error::from(SummaryError::Bundle(several())).context("x"),
            CompareError::Run { path: "x".into(), cause: SummaryError::Bundle(several()) }.into(),
        ];
        for error in errors {
            assert_eq!(after(&error), "; choose one with --node", "{error:#}");
        }
        assert_eq!(after(&CpuError::Empty.into()), ", like --cpus 1");
        assert_eq!(after(&RecordError::<BundleError>::from(CpuError::Empty).into()), ", like --cpus 1");
        let linked = || ProgramError::Static { path: "/bin/x".into() };
        for error in [anyhow::Error::from(linked()), InjectError::Program(linked()).into()] {
            assert_eq!(after(&error), "; noise by pre-emption, without --signal, reaches every program");
        }
        let none_left = |siblings: &str| PlanError::NoHousekeeping {
            online: "0-3".parse().unwrap(),
            cpus: "0-3".parse().unwrap(),
            siblings: siblings.parse().unwrap(),
        };
        assert_eq!(after(&none_left("2-3").into()), "; --skip smt leaves those online");
        assert_eq!(after(&none_left("").into()), "");
        assert_eq!(after(&anyhow::anyhow!("something else")), "");
    }
}
