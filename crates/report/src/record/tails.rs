//! The tail of a CPU's detours in words: a verdict for scripts, and a sentence if there is no return level.

use becalm_analyze::summary::LongTail;
use becalm_stats::NoTail;
use becalm_stats::tail::{CAUSE_EVENTS_MIN, CLUSTERS_MIN, EXTRAPOLATION, LONG_MIN};

use crate::form::value::{three_digits, time};
use becalm_units::counted;

/// `fits`, or why there is no return level.
pub(crate) const fn verdict(tail: &Result<LongTail, NoTail>) -> &'static str {
    match tail {
        Ok(_) => "fits",
        Err(NoTail::FewClusters { .. }) => "few_clusters",
        Err(NoTail::BadFit { .. }) => "bad_fit",
        Err(NoTail::ShapeDrifts { .. }) => "shape_drifts",
        Err(NoTail::FewLong { .. }) => "few_long",
        Err(NoTail::RareCause { .. }) => "rare_cause",
        Err(NoTail::BelowPart { .. }) => "below_part",
        Err(NoTail::Unbounded) => "unbounded",
        Err(NoTail::TooFar { .. } | NoTail::TooNear) => "too_short",
    }
}

/// Why there is no return level.
pub(crate) fn note(tail: &Result<LongTail, NoTail>) -> Option<String> {
    Some(match tail {
        Ok(_) => return None,
        Err(NoTail::FewClusters { clusters }) => format!(
            "not enough data: {}, and an estimate needs {CLUSTERS_MIN}; record longer",
            counted(*clusters as u64, "separate long interruption", "separate long interruptions")
        ),
        Err(NoTail::BadFit { misfit: None, .. }) => {
            "no estimate: all long interruptions have the same length".to_owned()
        }
        Err(NoTail::BadFit { misfit: Some(misfit), limit }) => format!(
            "no estimate: the long interruptions have several sources of different lengths, so no single distribution fits \
             (Anderson-Darling {}, limit {})",
            three_digits(*misfit),
            three_digits(*limit)
        ),
        Err(NoTail::ShapeDrifts { shape, higher }) => format!(
            "no estimate: the distribution changes with the length of interruptions (shape {}, {} for longer ones)",
            three_digits(*shape),
            three_digits(*higher)
        ),
        Err(NoTail::FewLong { clusters }) => format!(
            "not enough data: {}, and an estimate needs {LONG_MIN}; record longer",
            counted(*clusters as u64, "exceptionally long interruption", "exceptionally long interruptions")
        ),
        Err(NoTail::RareCause { events }) => format!(
            "not enough data: the source of the longest interruption occurred {}, and an estimate needs {CAUSE_EVENTS_MIN}; \
             record longer",
            counted(*events, "time", "times")
        ),
        Err(NoTail::BelowPart { part_ns }) => format!(
            "no estimate: the one for all CPUs would be below that of a single CPU, {}; see the CPUs, or record longer",
            time(*part_ns)
        ),
        Err(NoTail::Unbounded) => "no estimate: these data give no upper bound; record longer".to_owned(),
        Err(NoTail::TooFar { needed_ns }) => format!(
            "not enough data: an estimate reaches at most {EXTRAPOLATION} times the length of the recording; record at least {}",
            time(*needed_ns)
        ),
        Err(NoTail::TooNear) => "not enough data: too few long interruptions; record longer".to_owned(),
    })
}
