//! The sources of kind `unseen`: what is known of the time in which the kernel's trace shows nothing.

use becalm_units::Nanos;

use crate::Platform;

/// Below 1 us: the processor itself, its caches and what shares them. The kernel and a hypervisor take longer.
pub const SHORT: &str = "short";
/// On a guest, from 1 us and below 20 us: as long as the processor's way to the host and back takes.
pub const EXIT_TO_HOST: &str = "exit_to_host";
/// On a machine without hypervisor, from 1 us and below 20 us: hardware, or short work of the firmware.
pub const STALL: &str = "stall";
/// From 20 us: on a guest, the host ran something else; on other machines, firmware (system management interrupts).
pub const LONG: &str = "long";
/// From 20 us, on a guest: while it lasted, the hypervisor admitted to have taken the CPU for about as long.
pub const STOLEN: &str = "stolen";
/// From 20 us, on a machine without hypervisor: while it lasted, the processor counted a system management interrupt.
pub const SMI: &str = "smi";
/// Below 20 us: the other hardware thread of the core was away from its loop for 1 us or more, for at least half of it.
pub const SIBLING: &str = "sibling";
/// On a guest: the part of an activity of the kernel by which it took far longer than its like.
pub const PREEMPTED_BY_HOST: &str = "preempted_by_host";

/// From where on it is not the processor's own any more. Published ratios of noise count detours from here on.
pub const SHORTEST_OF_SYSTEM: Nanos = Nanos::new(1_000);
/// From where on it is longer than a way to the host and back.
const LONGEST_EXIT: Nanos = Nanos::new(20_000);

/// The source of a detour of that length in which the kernel did nothing.
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

/// What was counted of a CPU, from outside of its loop, between two looks at it. Looks follow each other without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// When the look before was taken at the earliest.
    pub from: Nanos,
    /// When this one was taken at the latest.
    pub until: Nanos,
    /// How much steal the kernel accounted meanwhile.
    pub steal: Nanos,
    /// How many system management interrupts the processor counted meanwhile.
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
