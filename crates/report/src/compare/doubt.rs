//! What is said where two runs do not hold enough to compare them.

use becalm_analyze::compare::Doubt;

use crate::form::value::{grouped, three_digits, time};

/// Why there is not enough data, and what to do.
pub(crate) fn reason(doubt: Doubt) -> String {
    match doubt {
        Doubt::NoDetour => "there is no detour to compare".to_owned(),
        Doubt::FewTrains { trains } => format!(
            "both runs together rest on about {} stretches of time, fewer than 10; record longer",
            three_digits(trains)
        ),
        Doubt::LongTrains { block_ns } => format!(
            "a run drifts over stretches of about {}, of which fewer than 20 fit into it; record longer",
            time(block_ns)
        ),
        Doubt::ShortRun => "a run is too short to be cut into 20 parts".to_owned(),
        Doubt::FewDetours { needed } => format!("it takes about {} detours in each run", grouped(needed)),
        Doubt::FewStretches { stretches, width_ns } => {
            format!("the shorter run has {stretches} stretches of {}, and it takes 12; record longer", time(width_ns))
        }
        Doubt::CpusDiffer => "the longest detours of more CPUs are longer; compare as many".to_owned(),
        Doubt::OneValue => {
            "one detour of each run shows nothing; see the longest detours of stretches of time".to_owned()
        }
    }
}
