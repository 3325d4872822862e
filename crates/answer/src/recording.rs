//! The report of a recording, full or in summary form.

use becalm_analyze::summary::{Detail, RANKS, Selection, summarize, summarize_digests};
use becalm_bundle::{Bundle, SummaryBundle};
use becalm_report::RunReport;
use becalm_units::fault;

use crate::Asker;

/// Reports a recording. `ranks` selects the cost for a program of that many ranks; a full report uses [`RANKS`] by default. Fails if the
/// recording cannot be read, lacks the selected part, or the report cannot be shown.
pub fn report(bundle: &Bundle, selection: &Selection, ranks: Option<u64>, asker: &mut impl Asker) -> fault::Result<()> {
    let reading = asker.reading(bundle, 1);
    let mut summary = summarize(bundle, &selection.with_detail(detail(ranks, asker)))?;
    drop(reading);
    summary.ask_for_ranks(ranks.unwrap_or(RANKS));
    asker.show(&RunReport { summary: &summary, drawn: None, at_scale: ranks.is_some() })
}

/// Reports a recording in summary form, likewise. Fails if it lacks the selected part, or the report cannot be shown.
pub fn report_summary(
    bundle: &SummaryBundle,
    selection: &Selection,
    ranks: Option<u64>,
    asker: &mut impl Asker,
) -> fault::Result<()> {
    let mut summary = summarize_digests(bundle, &selection.with_detail(detail(ranks, asker)))?;
    summary.ask_for_ranks(ranks.unwrap_or(RANKS));
    asker.show(&RunReport { summary: &summary, drawn: None, at_scale: ranks.is_some() })
}

fn detail(ranks: Option<u64>, asker: &impl Asker) -> Detail {
    asker.detail().max(if ranks.is_some() { Detail::Scale } else { Detail::Figures })
}
