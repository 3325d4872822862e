//! What attribution counted over a CPU's run: the evidence for how far its result can be trusted.

use becalm_units::Nanos;

/// Totals of one CPU. With a trace that lost nothing and a clock that is the loop's own, all `unmatched_` counts,
/// `late_events` and `refused_steps` are zero, but for a frame or two that were open when tracing began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Kernel events that were given, without the marks of lost ones.
    pub events: u64,
    /// Events that the kernel lost; a gap of unknown size counts as one.
    pub lost_events: u64,
    /// Gaps in which they were lost.
    pub lost_gaps: u64,
    /// Detours that overlap such a gap, or began before an instant that had been declared complete.
    pub incomplete: u64,
    /// Interrupts (also non-maskable ones) and softirqs that fell in no detour, being shorter than the threshold.
    pub below_threshold_events: u64,
    /// The longest of them, from entry to exit with all that was nested in it, without the time for which its thread
    /// was switched away. Longer than the threshold only if the trace and the loop contradict each other.
    pub below_threshold_max: Nanos,
    /// Frames whose exit was not seen.
    pub unmatched_entries: u64,
    /// Exits whose entry was not seen.
    pub unmatched_exits: u64,
    /// Times at which another thread was on the CPU than the switches before had said.
    pub unmatched_switches: u64,
    /// The time in detours of which it is not known for that reason which of two threads had it.
    pub missing_switch: Nanos,
    /// Activities that took so much longer than their like that the host must have taken the CPU meanwhile.
    pub preempted_by_host: u64,
    /// Events that were older than what had been processed; nothing was concluded from them.
    pub late_events: u64,
    /// Steps that were empty, or overlapped an earlier one; they became no detour.
    pub refused_steps: u64,
}

impl Tally {
    /// Counts an interrupt or softirq that fell in no detour.
    pub(super) fn below_threshold(&mut self, extent: Nanos) {
        self.below_threshold_events += 1;
        self.below_threshold_max = self.below_threshold_max.max(extent);
    }
}
