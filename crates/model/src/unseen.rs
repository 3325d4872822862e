//! The sources of kind `unseen`: categories of time without events in the kernel's trace.

use becalm_units::Nanos;

use crate::Platform;

/// Below 1 us: the processor itself, its caches and what shares them. The kernel and a hypervisor take longer.
pub const SHORT: &str = "short";
/// On a guest, from 1 us and below 20 us: the length of a VM exit to the host and back.
pub const EXIT_TO_HOST: &str = "exit_to_host";
/// On a machine without hypervisor, from 1 us and below 20 us: hardware, or short work of the firmware.
pub const STALL: &str = "stall";
/// From 20 us: on a guest, the host ran something else; on other machines, firmware (system management interrupts).
pub const LONG: &str = "long";
/// From 20 us, on a guest: the hypervisor reported about as much steal time meanwhile.
pub const STOLEN: &str = "stolen";
/// From 20 us, on a machine without hypervisor: the processor counted a system management interrupt meanwhile.
pub const SMI: &str = "smi";
/// Below 20 us: the other hardware thread of the core was away from its loop for 1 us or more, for at least half of it.
pub const SIBLING: &str = "sibling";
/// On a guest: the excess of a kernel activity that took far longer than similar ones.
pub const PREEMPTED_BY_HOST: &str = "preempted_by_host";

/// Longer times are not from the processor itself. Published noise ratios count detours of at least this length.
pub const SHORTEST_OF_SYSTEM: Nanos = Nanos::new(1_000);
/// Longer times are longer than a VM exit to the host and back.
const LONGEST_EXIT: Nanos = Nanos::new(20_000);

/// The source of a detour of this length without kernel activity.
pub fn source(duration: Nanos, platform: Platform) -> &'static str {
    if duration < SHORTEST_OF_SYSTEM {
        SHORT
    } else if duration >= LONGEST_EXIT {
        LONG
    } else {
        match platform {
            Platform::Guest => EXIT_TO_HOST,
            Platform::Metal => STALL,
        }
    }
}

/// Counts of a CPU, from outside of its loop, between two reads. Reads follow each other without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// The earliest time of the previous read.
    pub from: Nanos,
    /// The latest time of this read.
    pub until: Nanos,
    /// The steal time that the kernel accounted meanwhile.
    pub steal: Nanos,
    /// The system management interrupts that the processor counted meanwhile.
    pub smis: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_says_what_it_can_be() {
        for (duration, guest, metal) in [
            (0, SHORT, SHORT),
            (999, SHORT, SHORT),
            (1_000, EXIT_TO_HOST, STALL),
            (19_999, EXIT_TO_HOST, STALL),
            (20_000, LONG, LONG),
            (i64::MAX, LONG, LONG),
        ] {
            let duration = Nanos::new(duration);
            assert_eq!(source(duration, Platform::Guest), guest);
            assert_eq!(source(duration, Platform::Metal), metal);
        }
    }
}
