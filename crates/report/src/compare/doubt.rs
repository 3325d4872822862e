//! Explanations if two recordings have too little data to be compared.

use becalm_analyze::compare::Doubt;
use becalm_stats::run_for_blocks;

use crate::form::value::{grouped, three_digits, time};

/// Why there is not enough data, and what to do.
pub fn reason(doubt: Doubt) -> String {
    match doubt {
        Doubt::NoDetour => "there are no interruptions to compare".to_owned(),
        Doubt::FewTrains { trains } => format!(
            "both recordings together have about {} independent stretches of time, and 10 are needed; record {} times as long",
            three_digits(trains),
            three_digits((15.0 / trains).ceil())
        ),
        Doubt::LongTrains { block_ns } => format!(
            "a recording drifts over stretches of about {}, and fewer than 20 of them fit into it; record about {}",
            time(block_ns),
            time(run_for_blocks(block_ns))
        ),
        Doubt::Drifting => "a recording drifts, see the noise of all CPUs".to_owned(),
        Doubt::ShortRun => "a recording is too short for 20 parts".to_owned(),
        Doubt::FewDetours { needed } => format!("each recording needs about {} interruptions", grouped(needed)),
        Doubt::FewStretches { stretches, width_ns } => {
            format!(
                "the shorter recording has {stretches} stretches of {}, and 12 are needed; record about {}",
                time(width_ns),
                time(18 * width_ns)
            )
        }
        Doubt::FewRuns => "it must occur in two recordings of one side and one of the other".to_owned(),
        Doubt::CpusDiffer => "more CPUs have a longer longest interruption; compare the same number of CPUs".to_owned(),
        Doubt::SummaryForm => {
            "the summary form has no scatter within a recording; compare several recordings per side, or full ones"
                .to_owned()
        }
        Doubt::OneValue => "one interruption per side is not enough; see the longest of stretches of time".to_owned(),
    }
}
