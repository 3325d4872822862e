//! Errors of `becalm cost` as the command line prints them.

use std::io;

use becalm_bundle::BundleError;
use becalm_command::messages::error_line;
use becalm_cost::analysis::tick::CampaignError;
use becalm_cost::measure::CostError;
use becalm_cost::measure::tick::TickError;
use becalm_linux::file::FileError;
use becalm_measure::CpuError;
use becalm_units::fault;

#[test]
fn a_cause_is_said_once() {
    let gone = FileError::Read { what: "the count", path: "x".into(), source: io::Error::other("it is gone") };
    let error = fault::Error::from(TickError::File(gone)).context("nothing was done");
    assert_eq!(error_line(&error), "nothing was done: cannot read the count from x: it is gone");
}

#[test]
fn an_option_is_named_once_also_where_the_error_is_within_another() {
    let several = BundleError::SeveralNodes { bundle: "x".into(), nodes: "a, b".into() };
    let error = error_line(&TickError::Store(several.into()).into());
    assert!(error.ends_with("x holds the nodes a, b; choose one with --node"), "{error}");
    let error = error_line(&CostError::Cpu(CpuError::Empty).into());
    assert!(error.ends_with(", like --cpus 1"), "{error}");
    let error = error_line(&CampaignError::NoRound { done: 1, planned: 2 }.into());
    assert!(error.ends_with(" (--resume)"), "{error}");
}
