//! The kernel's identity and its settings in /proc/sys: release, host name, command line, sysctls.

use std::path::Path;

use becalm_units::Nanos;

use crate::file::{FileError, optional, read, value};

/// The kernel's release, `6.18.44`. For the running kernel, a system call also works without /proc.
pub fn release(root: &Path) -> Result<String, FileError> {
    line(root, "proc/sys/kernel/osrelease", "the kernel's release").or_else(|error| {
        let running = (root == Path::new("/")).then(rustix::system::uname);
        let release = running.and_then(|running| running.release().to_str().ok().map(str::to_owned));
        release.filter(|release| !release.is_empty()).ok_or(error)
    })
}

/// The kernel's build, `#1 SMP PREEMPT_DYNAMIC`.
pub fn version(root: &Path) -> Result<String, FileError> {
    line(root, "proc/sys/kernel/version", "the kernel's version")
}

/// The host's name.
pub fn hostname(root: &Path) -> Result<String, FileError> {
    line(root, "proc/sys/kernel/hostname", "the host's name")
}

/// The command line that the kernel was booted with.
pub fn command_line(root: &Path) -> Result<String, FileError> {
    line(root, "proc/cmdline", "the kernel's command line")
}

/// The value of a kernel command line parameter: that of `isolcpus` in `isolcpus=2-3`. The last one wins, as in the kernel; a parameter without value
/// has the empty text.
pub fn parameter<'a>(command_line: &'a str, name: &str) -> Option<&'a str> {
    let words = command_line.split_whitespace().take_while(|word| *word != "--");
    words.filter_map(|word| word.strip_prefix(name)).filter_map(after_name).last()
}

fn after_name(rest: &str) -> Option<&str> {
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('=') }
}

/// How long real-time threads may run per period (`sched_rt_runtime_us`, `sched_rt_period_us`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtThrottling {
    /// The time that they may use per period; `None` if there is no limit.
    pub runtime: Option<Nanos>,
    /// The length of the period; 1 s by default.
    pub period: Nanos,
}

impl RtThrottling {
    /// How long per period a real-time thread that never sleeps is kept from its CPU, in the worst case.
    pub fn stolen(&self) -> Option<Nanos> {
        let stolen = self.period - self.runtime?;
        (stolen > Nanos::ZERO).then_some(stolen)
    }
}

/// The system's limit on real-time threads. Fails if the files cannot be read, or hold no numbers.
pub fn rt_throttling(root: &Path) -> Result<RtThrottling, FileError> {
    let runtime: i32 = value(root, "proc/sys/kernel/sched_rt_runtime_us", "the limit on real-time threads")?;
    let period: u32 =
        value(root, "proc/sys/kernel/sched_rt_period_us", "the period of the limit on real-time threads")?;
    let runtime = u32::try_from(runtime).ok().map(|us| Nanos::from_micros(us.into()));
    Ok(RtThrottling { runtime, period: Nanos::from_micros(period.into()) })
}

/// Who sees kernel addresses: at 0 all users that /proc/kallsyms shows them to, at 1 the privileged, at 2 none. Fails if the file exists and cannot
/// be read, or is not a number.
pub fn kptr_restrict(root: &Path) -> Result<Option<i32>, FileError> {
    optional(value(root, "proc/sys/kernel/kptr_restrict", "the limit on kernel addresses"))
}

fn line(root: &Path, name: &str, what: &'static str) -> Result<String, FileError> {
    Ok(read(root, name, what)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_parameter_counts() {
        let line = "quiet isolcpus=1 nohz_full=2-3 isolcpus=managed_irq,2 nohz_full_x=9 -- rdinit=/x quiet2";
        assert_eq!(parameter(line, "isolcpus"), Some("managed_irq,2"));
        assert_eq!(parameter(line, "nohz_full"), Some("2-3"));
        assert_eq!(parameter(line, "quiet"), Some(""));
        assert_eq!(parameter(line, "rdinit"), None);
    }

    #[test]
    fn throttling_takes_what_real_time_threads_may_not_run() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("sched_rt_period_us"), "1000000\n").unwrap();
        for (runtime, stolen) in [("950000", Some(50)), ("-1", None), ("1000000", None), ("0", Some(1000))] {
            std::fs::write(folder.join("sched_rt_runtime_us"), runtime).unwrap();
            let throttling = rt_throttling(root.path()).unwrap();
            assert_eq!(throttling.stolen(), stolen.map(Nanos::from_millis), "{runtime}");
        }
        std::fs::write(folder.join("sched_rt_runtime_us"), "much").unwrap();
        assert!(rt_throttling(root.path()).is_err());
    }

    #[test]
    fn the_settings_of_this_kernel_are_read() {
        let root = Path::new("/");
        assert!(release(root).unwrap().contains('.'));
        assert!(version(root).unwrap().contains('#'));
        assert!(!hostname(root).unwrap().is_empty());
    }
}
