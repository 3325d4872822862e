//! The smallest rights that each part of a measurement needs, defined once for messages, for the audit, and for the tests, which check that each of
//! them is sufficient and every part of it necessary. The book lists them in a table (concepts/rights.md).

use crate::procfs::status::Capability;

/// A part of a measurement that an ordinary user has no right to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::VariantArray)]
pub enum Need {
    /// The kernel's trace, which names the sources of detours.
    Trace,
    /// The addresses of kernel functions, which name work items and handlers.
    Symbols,
    /// Real-time classes.
    Realtime,
    /// Locking more memory than every user may.
    LockedMemory,
    /// Perf events of a whole CPU, which raise its rate of interrupts.
    CpuEvents,
    /// Counts of the kernel's activity in a thread.
    KernelCounts,
}

impl Need {
    /// The one capability that is sufficient.
    pub const fn capability(self) -> Capability {
        match self {
            Self::Trace => Capability::DacOverride,
            Self::Symbols => Capability::Syslog,
            Self::Realtime => Capability::SysNice,
            Self::LockedMemory => Capability::IpcLock,
            Self::CpuEvents | Self::KernelCounts => Capability::Perfmon,
        }
    }

    /// How to get it, with a capability and without, as an instruction.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Trace => {
                "run as root, with CAP_DAC_OVERRIDE, or open tracefs to this user (mount -o remount,gid=GROUP,mode=750 \
                 /sys/kernel/tracing; chown USER /sys/kernel/tracing/instances)"
            }
            Self::Symbols => "run as root or with CAP_SYSLOG, and have kernel.kptr_restrict at 1 or 0",
            Self::Realtime => "run as root, with CAP_SYS_NICE, or with a limit on rtprio in limits.conf",
            Self::LockedMemory => "run as root, with CAP_IPC_LOCK, or with a higher memlock in limits.conf (ulimit -l)",
            Self::CpuEvents => "run as root, with CAP_PERFMON, or with kernel.perf_event_paranoid below 1",
            Self::KernelCounts => "run as root, with CAP_PERFMON, or with kernel.perf_event_paranoid below 2",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn advice_names_the_capability_and_the_book_has_it() {
        let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/concepts/rights.md");
        let book = std::fs::read_to_string(book).unwrap();
        for need in Need::VARIANTS {
            let name: &'static str = need.capability().into();
            assert!(need.advice().contains(name) && book.contains(&format!("`{name}`")), "{name}");
        }
    }
}
