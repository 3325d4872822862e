//! Reports of `becalm tune`: findings, plans, and the outcome of changes.

pub(crate) mod check;
pub(crate) mod done;
mod knob;
pub(crate) mod plan;

use becalm_report::form::section::Block;
use becalm_report::form::table::Table;

pub use check::TuneAuditReport;
pub use done::{TuneDoing, TuneDoneReport};
pub(crate) use knob::refusal;
pub use plan::TunePlanReport;

/// A table for a page, and its rows as wrapped entries for a terminal, which shortens neither paths nor sentences.
fn listed(table: Table, entries: Vec<Block>) -> [Block; 2] {
    [Block::OnPage(vec![Block::Table(table)]), Block::OnTerminal(entries)]
}
