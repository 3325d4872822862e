//! The tail of a CPU's detours in words: a verdict for scripts, and a sentence if there is no return level.

use becalm_analyze::summary::LongTail;
use becalm_stats::NoTail;
use becalm_stats::tail::{CAUSE_EVENTS_MIN, CLUSTERS_MIN, EXTRAPOLATION, LONG_MIN};

use crate::form::value::{three_digits, time};

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
            "not enough data: of the {CLUSTERS_MIN} independent clusters of long detours that a tail needs there are \
             {clusters}; record longer"
        ),
        Err(NoTail::BadFit { misfit: None, .. }) => {
            "the long detours are all alike: their maximum is no matter of chance".to_owned()
        }
        Err(NoTail::BadFit { misfit: Some(misfit), limit }) => format!(
            "the long detours follow no single law (Anderson-Darling {}, limit {}): several causes with lengths of their \
             own; look at the sources",
            three_digits(*misfit),
            three_digits(*limit)
        ),
        Err(NoTail::ShapeDrifts { shape, higher }) => format!(
            "the longer the detours, the more the tail changes (shape {}, and {} above): no law to go by",
            three_digits(*shape),
            three_digits(*higher)
        ),
        Err(NoTail::FewLong { clusters }) => format!(
            "the longest detours are exceptions: {clusters} of the {LONG_MIN} that it takes lie in the upper half of the lengths; \
             record longer"
        ),
        Err(NoTail::RareCause { events }) => format!(
            "the source of the longest detour came {events} times, and its lengths are known from {CAUSE_EVENTS_MIN} on; record \
             longer"
        ),
        Err(NoTail::BelowPart { part_ns }) => format!(
            "the fit of all CPUs together lies below that of one of them, {}; see the CPUs, or record longer",
            time(*part_ns)
        ),
        Err(NoTail::Unbounded) => "the tail is so heavy that nothing bounds it; record longer".to_owned(),
        Err(NoTail::TooFar { needed_ns }) => format!(
            "the run is too short: nothing is said of times over {EXTRAPOLATION} times its length; record at least {}",
            time(*needed_ns)
        ),
        Err(NoTail::TooNear) => "the run has too few long detours for its length; record longer".to_owned(),
    })
}
