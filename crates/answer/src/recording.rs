//! The report of a recording, be it a full one or in summary form.

use becalm_analyze::summary::{RANKS, Selection, summarize, summarize_digests};
use becalm_bundle::{Bundle, SummaryBundle};
use becalm_report::RunReport;
use becalm_units::fault;

use crate::Asker;

/// Reports a recording. Causes are ranked by what a program of so many ranks gains without them, [`RANKS`] where none
/// are named. Fails if it cannot be read, does not hold what was selected, or the report cannot be shown.
pub fn report(bundle: &Bundle, selection: &Selection, ranks: Option<u64>, asker: &mut impl Asker) -> fault::Result<()> {
    let reading = asker.reading(bundle, 1);
    let mut summary = summarize(bundle, selection)?;
    drop(reading);
    summary.ask_for_ranks(ranks.unwrap_or(RANKS));
    asker.show(&RunReport { summary: &summary, drawn: None })
}

/// Reports a recording in summary form. Fails if it does not hold what was selected, or the report cannot be shown.
pub fn report_summary(bundle: &SummaryBundle, selection: &Selection, asker: &mut impl Asker) -> fault::Result<()> {
    let summary = summarize_digests(bundle, selection)?;
    asker.show(&RunReport { summary: &summary, drawn: None })
}
