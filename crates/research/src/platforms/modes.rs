//! The modes of a run's lengths: the share of detours of 1 us and more with about the same length, and their period.

use becalm_analyze::noise::{NoiseError, NoiseInput};
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_stats::median_low;
use becalm_stats::modes::{Mode, modes};
use becalm_units::Nanos;

/// Shorter detours are mostly the processor's own.
const SHORTEST: Nanos = Nanos::from_micros(1);

/// A mode of lengths.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct LengthMode {
    /// The lengths, in nanoseconds.
    pub(super) lengths: Mode,
    /// Their share of the detours of 1 us and more, above 0 to 1.
    pub(super) share: f64,
    /// The median time from the start of one to that of the next on its CPU, in nanoseconds. `None` if no CPU has two.
    pub(super) every_ns: Option<i64>,
}

/// The modes of the selected CPUs of a run, the shortest first; empty if it has no detour of 1 us or more.
pub(super) fn length_modes(bundle: &Bundle, selection: &Selection) -> Result<Vec<LengthMode>, NoiseError> {
    let noise = NoiseInput::from_run(bundle, selection, false)?.noise;
    let traces: Vec<Vec<(i64, i64)>> = noise
        .traces()
        .map(|trace| {
            let long = trace.detours().filter(|(_, duration)| *duration >= SHORTEST);
            long.map(|(start, duration)| (start.get(), duration.get())).collect()
        })
        .collect();
    let mut lengths: Vec<i64> = traces.iter().flatten().map(|(_, duration)| *duration).collect();
    lengths.sort_unstable();
    let all = lengths.len() as f64;
    let found = modes(&lengths);
    let every = |mode: &Mode| {
        let mut gaps = Vec::new();
        for trace in &traces {
            let of_mode = trace.iter().filter(|(_, duration)| (mode.shortest..=mode.longest).contains(duration));
            let starts: Vec<i64> = of_mode.map(|(start, _)| *start).collect();
            gaps.extend(starts.windows(2).map(|pair| pair[1] - pair[0]));
        }
        median_low(&mut gaps)
    };
    let row = |mode: Mode| LengthMode { lengths: mode, share: mode.count as f64 / all, every_ns: every(&mode) };
    Ok(found.into_iter().map(row).collect())
}
