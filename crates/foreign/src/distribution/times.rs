//! The times of the longer detours of a recording: their number in each of 256 equal parts of its time.

use becalm_analyze::summary::{Selection, SummaryError};
use becalm_bundle::Bundle;
use becalm_stats::TimeCells;
use becalm_units::CpuId;

/// Counts the detours of a CPU that are not shorter than `least_ns`, by the part of the time that they started in; `None` if the CPU was
/// not recorded. Fails if the node is not in the bundle, or cannot be read.
pub fn times_of(bundle: &Bundle, node: &str, cpu: CpuId, least_ns: i64) -> Result<Option<TimeCells>, SummaryError> {
    let selection = Selection { node: Some(node.to_owned()), ..Selection::default() };
    let doc = selection.documents(bundle)?.swap_remove(0);
    let Some(measured) = doc.cpus.iter().find(|listed| listed.cpu == cpu) else { return Ok(None) };
    let mut cells = TimeCells::new(measured.start_ns.get(), measured.duration_ns.get());
    let number = i32::try_from(cpu.get()).unwrap_or(-1);
    for batch in bundle.detours(node)? {
        let batch = batch?;
        for row in (0..batch.len()).filter(|row| batch.cpus()[*row] == number && batch.durations()[*row] >= least_ns) {
            // One for each detour, however long.
            cells.add(batch.starts()[row], 1);
        }
    }
    Ok(Some(cells))
}
