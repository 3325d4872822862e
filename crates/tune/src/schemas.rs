//! The documents of `becalm tune` and `becalm run-quiet`.

use crate::report::{check::CheckDocument, done::DoneDocument, plan::PlanDocument};
use crate::run_quiet::report::RunQuietDocument;

becalm_report::documents! {
    "run-quiet": RunQuietDocument, "becalm run-quiet", "repetitions of a command, and what touched them";
    "tune-check": CheckDocument, "becalm tune check", "what keeps CPUs from being quiet";
    "tune-plan": PlanDocument, "becalm tune plan", "what would be changed";
    "tune-apply": DoneDocument, "becalm tune apply", "what was changed";
    "tune-restore": DoneDocument, "becalm tune restore", "what was brought back";
    "tune-status": DoneDocument, "becalm tune status", "what is changed now";
}
