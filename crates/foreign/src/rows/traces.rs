//! The noise of each CPU as a trace: detours that neither overlap nor touch, within the time that all CPUs of the node were measured.

use becalm_analyze::noise::Window;
use becalm_bundle::{Bundle, BundleError};
use becalm_model::node::{NodeDoc, Warning};
use becalm_units::{CpuId, Nanos};

use super::attributed_detours;

/// Why detours are no trace.
#[derive(Debug, thiserror::Error)]
#[error("detour {number} of CPU {cpu} of node '{node}' starts at {start}, before the end of the previous one at {end}")]
pub struct Overlap {
    /// The node on which they were recorded.
    pub node: String,
    /// The CPU on which they were recorded.
    pub cpu: CpuId,
    /// The number of the second one.
    pub number: u64,
    /// The start of the second one, since the start of the trace.
    pub start: Nanos,
    /// The end of the first one.
    pub end: Nanos,
}

becalm_units::fault::faultless!(Overlap);

/// The time that a node's traces cover.
#[derive(Clone, Debug)]
pub struct TraceTime {
    /// The length of each trace.
    pub length: Nanos,
    /// Limits of that time: a recording that did not end, CPUs that were measured for a shorter time than others.
    pub warnings: Vec<Warning>,
    begin: Nanos,
}

impl TraceTime {
    /// The time that all CPUs of the document were measured. For a run that did not end, the detours are read to find it.
    pub fn for_node(bundle: &Bundle, doc: &NodeDoc) -> Result<Self, BundleError> {
        let mut last = None;
        if doc.ended.is_none() {
            for batch in bundle.detours(&doc.node)? {
                let batch = batch?;
                let ends = batch.starts().iter().zip(batch.durations()).map(|(start, duration)| start + duration);
                last = last.max(ends.max().map(Nanos::new));
            }
        }
        let mut warnings = Vec::new();
        let Window { begin, length } = Window::common_to_all_cpus(doc, last, &mut warnings);
        Ok(Self { length, warnings, begin })
    }
}

/// Gives the noise of the document's CPUs, without becalm's own time: for each detour the position of its CPU in the document, its start
/// since the start of the trace, and its duration. Those of a CPU come in order of time; those that touch are one.
pub fn traces<E: From<BundleError> + From<Overlap>>(
    bundle: &Bundle,
    doc: &NodeDoc,
    time: &TraceTime,
    give: &mut dyn FnMut(usize, Nanos, Nanos) -> Result<(), E>,
) -> Result<(), E> {
    // Start and end of the detour of each CPU that may go on.
    let mut open: Vec<Option<(Nanos, Nanos)>> = vec![None; doc.cpus.len()];
    attributed_detours::<E>(bundle, doc, &mut |shown| {
        let cpu = shown.detour.cpu;
        let Ok(place) = doc.cpus.binary_search_by_key(&cpu, |listed| listed.cpu) else { return Ok(()) };
        // Everything outside of the trace is cut off.
        let since =
            |instant: Nanos| instant.checked_sub(time.begin).unwrap_or(Nanos::ZERO).clamp(Nanos::ZERO, time.length);
        let (start, end) = (since(shown.detour.start), since(shown.detour.start + shown.noise().unwrap_or_default()));
        if end <= start {
            return Ok(());
        }
        match &mut open[place] {
            Some((_, before)) if start < *before => {
                let (node, number, end) = (doc.node.clone(), shown.number, *before);
                Err(Overlap { node, cpu, number, start, end }.into())
            }
            Some((_, before)) if start == *before => {
                *before = end;
                Ok(())
            }
            now => match now.replace((start, end)) {
                Some((start, end)) => give(place, start, end - start),
                None => Ok(()),
            },
        }
    })?;
    for (place, (start, end)) in open.into_iter().enumerate().filter_map(|(place, last)| Some((place, last?))) {
        give(place, start, end - start)?;
    }
    Ok(())
}
