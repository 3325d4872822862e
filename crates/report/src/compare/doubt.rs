//! Explanations if two recordings have too little data to be compared.

use becalm_analyze::compare::Doubt;
use becalm_stats::run_for_blocks;

use crate::form::value::{grouped, three_digits, time};

/// Why there is not enough data, and what to do.
pub fn reason(doubt: Doubt) -> String {
    match doubt {
        Doubt::NoDetour => "there is no detour to compare".to_owned(),
        Doubt::FewTrains { trains } => format!(
            "both runs together rest on about {} stretches of time, fewer than 10; record {} times as long",
            three_digits(trains),
            three_digits((15.0 / trains).ceil())
        ),
        Doubt::LongTrains { block_ns } => format!(
            "a run drifts over stretches of about {}, of which fewer than 20 fit into it; record about {}",
            time(block_ns),
            time(run_for_blocks(block_ns))
        ),
        Doubt::Drifting => "a run drifts, see the noise of all CPUs".to_owned(),
        Doubt::ShortRun => "a run is too short to be cut into 20 parts".to_owned(),
        Doubt::FewDetours { needed } => format!("it takes about {} detours in each run", grouped(needed)),
        Doubt::FewStretches { stretches, width_ns } => {
            format!(
                "the shorter run has {stretches} stretches of {}, and it takes 12; record about {}",
                time(width_ns),
                time(18 * width_ns)
            )
        }
        Doubt::FewRuns => "it takes two runs of one side and one of the other; too few have it".to_owned(),
        Doubt::CpusDiffer => "the longest detours of more CPUs are longer; compare as many".to_owned(),
        Doubt::SummaryForm => {
            "the summary form does not say how it scatters within a run; compare several runs a side, or full recordings".to_owned()
        }
        Doubt::OneValue => {
            "one detour of each side shows nothing; see the longest detours of stretches of time".to_owned()
        }
    }
}
