//! The number of timer interrupts of a CPU, as counted by the kernel.

use std::path::Path;

use becalm_linux::procfs::interrupts::Interrupts;
use becalm_units::CpuId;

use super::TickError;

/// The timer interrupts of a CPU since boot: `LOC` on x86, elsewhere the interrupts of devices with `timer` in their names, such as
/// `arch_timer`. Fails if the counts cannot be read, or lack the CPU.
pub fn timer_interrupts(root: &Path, cpu: CpuId) -> Result<u64, TickError> {
    let interrupts = Interrupts::read(root)?;
    if let Some(count) = interrupts.count("LOC", cpu) {
        return Ok(count);
    }
    let timers = interrupts.lines.iter().filter(|line| {
        line.device.as_ref().is_some_and(|device| device.names.iter().any(|name| name.contains("timer")))
    });
    let counts: Vec<u64> = timers.filter_map(|line| interrupts.count(&line.id, cpu)).collect();
    if counts.is_empty() { Err(TickError::NoTimerCount(cpu)) } else { Ok(counts.iter().sum()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Result<u64, TickError> {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/interrupts"), text).unwrap();
        timer_interrupts(root.path(), CpuId::new(1))
    }

    #[test]
    fn each_architecture_counts_in_its_own_place() {
        let x86 = "           CPU0       CPU1\n  1:          5          6   IO-APIC   1-edge      i8042\n\
                   LOC:        100        200   Local timer interrupts\n";
        assert_eq!(count(x86).unwrap(), 200);
        let arm = "           CPU0       CPU1\n 11:         70         80     GICv3  27 Level     arch_timer\n\
                   IPI0:         1          2       Rescheduling interrupts\n";
        assert_eq!(count(arm).unwrap(), 80);
        let none = "           CPU0       CPU1\n  1:          5          6   IO-APIC   1-edge      i8042\n";
        assert!(matches!(count(none), Err(TickError::NoTimerCount(_))));
        let other = "           CPU0\nLOC:        100   Local timer interrupts\n";
        assert!(matches!(count(other), Err(TickError::NoTimerCount(_))));
    }
}
