//! Counts of attribution over a CPU's run: evidence of how reliable its result is.

use becalm_units::Nanos;

/// Totals of one CPU. With a complete trace and the same clock as the loop's, all `unmatched_` counts, `late_events` and `refused_steps`
/// are zero, except for a frame or two that were active when tracing started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Kernel events received, without the marks of lost ones.
    pub events: u64,
    /// Events that the kernel lost; a gap of unknown size counts as one.
    pub lost_events: u64,
    /// Gaps with lost events.
    pub lost_gaps: u64,
    /// Detours that overlap such a gap, or started before an instant that had been declared complete.
    pub incomplete: u64,
    /// Interrupts (also non-maskable ones) and softirqs outside detours, because they were shorter than the threshold.
    pub below_threshold_events: u64,
    /// The longest of them, from entry to exit with everything nested in it, without time switched away. Longer than the threshold only if
    /// trace and loop contradict each other.
    pub below_threshold_max: Nanos,
    /// Frames whose exit was not seen.
    pub unmatched_entries: u64,
    /// Exits whose entry was not seen.
    pub unmatched_exits: u64,
    /// Times at which another thread was on the CPU than the switches indicated.
    pub unmatched_switches: u64,
    /// Time in detours that belongs to one of two threads because of such a missing switch.
    pub missing_switch: Nanos,
    /// Activities that took so much longer than their like that the host must have taken the CPU meanwhile.
    pub preempted_by_host: u64,
    /// Events older than those already processed; ignored.
    pub late_events: u64,
    /// Steps that were empty or overlapped an earlier one; they made no detour.
    pub refused_steps: u64,
}

impl Tally {
    /// Counts an interrupt or softirq outside detours.
    pub(super) fn below_threshold(&mut self, extent: Nanos) {
        self.below_threshold_events += 1;
        self.below_threshold_max = self.below_threshold_max.max(extent);
    }
}
