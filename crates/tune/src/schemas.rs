//! The documents of `becalm tune` and `becalm bench`.

use crate::bench::report::BenchDocument;
use crate::report::{check::CheckDocument, done::DoneDocument, plan::PlanDocument};

becalm_report::documents! {
    "bench": BenchDocument, "becalm bench", "repetitions of a command, and what touched them";
    "tune-audit": CheckDocument, "becalm tune audit", "settings that let noise onto CPUs";
    "tune-plan": PlanDocument, "becalm tune plan", "what would be changed";
    "tune-apply": DoneDocument, "becalm tune apply", "what was changed";
    "tune-restore": DoneDocument, "becalm tune restore", "what was brought back";
    "tune-status": DoneDocument, "becalm tune status", "what is changed now";
}
