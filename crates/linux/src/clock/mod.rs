//! Clocks: which counter the loops read, and how fast it runs, with what accuracy.

mod counter;
mod cross_cpu;
mod gettime;
mod rate;
mod wall;

use std::path::Path;

use becalm_units::{Nanos, TickRate};

use crate::procfs::cpuinfo::CpuInfo;

#[cfg(target_arch = "x86_64")]
pub use counter::Rdtscp;
pub use counter::{Counter, MonotonicRaw};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub use counter::{Fenced, Native};
pub(crate) use counter::{Promises, asked_processor};
pub use cross_cpu::{CrossCpu, compare_cpus};
pub(crate) use gettime::clock_gettime_ns;
pub use gettime::{thread_time, wall_clocks};
pub use rate::{Anchor, Calibration, RateError, calibrate};
pub use wall::{WallError, wall_error};

/// Which counter a run reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The processor's own: TSC, CNTVCT.
    Native,
    /// The kernel's `CLOCK_MONOTONIC_RAW`, for processors without a trustworthy counter.
    MonotonicRaw,
}

/// The result of looking for an invariant counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The counter for the loops.
    pub source: Source,
    /// Why the processor's own counter is not used; `None` if it is.
    pub why_not_native: Option<String>,
}

/// Chooses the cheapest counter that is invariant.
///
/// On x86-64 the TSC qualifies if the processor (or the hypervisor) promises that it runs at a constant rate and in deep sleep (`constant_tsc`,
/// `nonstop_tsc`), and if the kernel, which keeps checking it against other clocks, still has it in its list of clock sources. On AArch64 the virtual
/// counter is invariant by architecture. `root` is the root of the file system, `/` outside of tests.
pub fn choose(root: &Path) -> Choice {
    choose_by(root, if root == Path::new("/") { asked_processor() } else { None })
}

/// `processor` is what this machine's processor reports, used if /proc/cpuinfo cannot be read.
fn choose_by(root: &Path, processor: Option<Promises>) -> Choice {
    let fallback = |why: &str| Choice { source: Source::MonotonicRaw, why_not_native: Some(why.to_owned()) };
    if cfg!(target_arch = "aarch64") {
        return Choice { source: Source::Native, why_not_native: None };
    }
    if !cfg!(target_arch = "x86_64") {
        return fallback("this architecture's counter is not known to becalm");
    }
    match (CpuInfo::read(root), processor) {
        (Ok(info), _) if !info.has("constant_tsc") => {
            return fallback(
                "the processor does not promise a constant rate of its TSC (no constant_tsc in /proc/cpuinfo)",
            );
        }
        (Ok(info), _) if !info.has("nonstop_tsc") => {
            return fallback("the processor's TSC may stop in deep sleep (no nonstop_tsc in /proc/cpuinfo)");
        }
        (Ok(_), _) | (Err(_), Some(Promises { invariant: true, .. })) => {}
        (Err(_), Some(Promises { invariant: false, .. })) => {
            return fallback(
                "the processor does not promise a constant rate of its TSC (CPUID 80000007h, EDX bit 8 is not set)",
            );
        }
        (Err(error), None) => {
            return fallback(&format!("it is not known whether the TSC has a constant rate: {error}"));
        }
    }
    let available = root.join("sys/devices/system/clocksource/clocksource0/available_clocksource");
    // Paravirtual guests list kvm-clock or hyperv_clocksource_tsc_page next to tsc, and those stay when the kernel has removed tsc; only tsc itself
    // counts.
    if let Ok(sources) = std::fs::read_to_string(available)
        && !sources.split_whitespace().any(|source| matches!(source, "tsc" | "tsc-early"))
    {
        return fallback("the kernel has found the TSC unstable (it is not among the available clock sources)");
    }
    Choice { source: Source::Native, why_not_native: None }
}

/// The median difference between two unequal consecutive readings: the counter's granularity, or the time that a reading takes if that is longer. The
/// smallest difference would mislead: the counters of some processors advance in leaps of several nanoseconds, and a second reading within one leap
/// is the first one plus a single tick.
pub fn resolution<C: Counter>(rate: TickRate) -> Nanos {
    let mut differences = Vec::with_capacity(10_000);
    let mut previous = C::read();
    while differences.len() < differences.capacity() {
        let now = C::read();
        if now > previous {
            differences.push(now - previous);
        }
        previous = now;
    }
    differences.sort_unstable();
    Nanos::new((differences[differences.len() / 2] as f64 * rate.tick_ns()).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file system root on which a processor with these flags lists these clock sources.
    #[cfg(target_arch = "x86_64")]
    fn tree(flags: &str, sources: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/cpuinfo"), format!("processor\t: 0\nflags\t\t: {flags}\n")).unwrap();
        let folder = root.path().join("sys/devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("available_clocksource"), sources).unwrap();
        root
    }

    #[test]
    fn the_raw_clock_resolves_nanoseconds() {
        let resolution = resolution::<MonotonicRaw>(TickRate::from_hz(1e9));
        assert!(resolution >= Nanos::new(1) && resolution < Nanos::from_micros(100), "{resolution}");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_tsc_is_taken_only_where_everybody_trusts_it() {
        let good = tree("fpu constant_tsc nonstop_tsc", "tsc kvm-clock acpi_pm\n");
        assert_eq!(choose(good.path()).source, Source::Native);
        for (flags, sources, why) in [
            ("fpu nonstop_tsc", "tsc", "constant_tsc"),
            ("fpu constant_tsc", "tsc", "nonstop_tsc"),
            ("constant_tsc nonstop_tsc", "hpet acpi_pm", "unstable"),
            ("constant_tsc nonstop_tsc", "hyperv_clocksource_tsc_page hyperv_clocksource_msr", "unstable"),
        ] {
            let choice = choose(tree(flags, sources).path());
            assert_eq!(choice.source, Source::MonotonicRaw);
            assert!(choice.why_not_native.unwrap().contains(why));
        }
    }

    /// Without /proc, the processor is asked; unknown is another reason than a missing flag.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn without_cpuinfo_the_processor_itself_is_asked() {
        let empty = tempfile::tempdir().unwrap();
        let choice = |processor| choose_by(empty.path(), processor);
        assert_eq!(choice(Some(Promises { invariant: true, guest: false })).source, Source::Native);
        let why = |processor| choice(processor).why_not_native.unwrap();
        assert!(why(Some(Promises { invariant: false, guest: false })).contains("CPUID 80000007h"));
        assert!(why(None).contains("it is not known whether the TSC has a constant rate: cannot read"));
        let flags = tree("fpu", "tsc");
        assert_eq!(
            choose_by(flags.path(), Some(Promises { invariant: true, guest: false })).source,
            Source::MonotonicRaw
        );
    }

    /// The kernel's flags come from the same bits.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_processor_says_what_the_kernel_read_of_it() {
        let Ok(info) = CpuInfo::read(Path::new("/")) else { return };
        let asked = asked_processor().unwrap();
        assert_eq!(asked.guest, info.has("hypervisor"));
        assert_eq!(asked.invariant, info.has("nonstop_tsc"));
    }
}
