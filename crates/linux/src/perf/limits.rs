//! The kernel's limits on sampling, in /proc/sys/kernel. It lowers them by itself if interrupts for samples take more time than allowed.

use std::path::Path;

use super::PerfError;
use crate::file::{FileError, optional, value};

const MAX_SAMPLE_RATE: &str = "proc/sys/kernel/perf_event_max_sample_rate";
const CPU_TIME_MAX: &str = "proc/sys/kernel/perf_cpu_time_max_percent";

/// The current limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleLimits {
    /// `kernel.perf_event_max_sample_rate`: how often per second an event may interrupt; faster ones are throttled.
    pub max_sample_rate_hz: u32,
    /// `kernel.perf_cpu_time_max_percent`: the share of a CPU that samples may take before the kernel lowers the rate; 0 and 100 disable that. `None`
    /// on kernels before 3.11.
    pub cpu_time_max_percent: Option<u32>,
}

impl SampleLimits {
    /// Reads them; `None` on a kernel without perf events. Fails if a file exists and cannot be read, or is not a number.
    pub fn read(root: &Path) -> Result<Option<Self>, FileError> {
        let rate = optional(value(root, MAX_SAMPLE_RATE, "the limit on the rate of samples"))?;
        let Some(max_sample_rate_hz) = rate else { return Ok(None) };
        let cpu_time_max_percent = optional(value(root, CPU_TIME_MAX, "the limit on the time of samples"))?;
        Ok(Some(Self { max_sample_rate_hz, cpu_time_max_percent }))
    }

    /// Restores the limit on the rate if the kernel has lowered it. Returns the lowered value, if any.
    ///
    /// The kernel accepts a new rate only while it monitors the time of samples itself, which is the default. Fails if the limit cannot be read, or
    /// is lower and cannot be written.
    pub fn restore(&self, root: &Path) -> Result<Option<u32>, PerfError> {
        let now = Self::read(root)?.map_or(self.max_sample_rate_hz, |now| now.max_sample_rate_hz);
        if now >= self.max_sample_rate_hz {
            return Ok(None);
        }
        let path = root.join(MAX_SAMPLE_RATE);
        std::fs::write(&path, self.max_sample_rate_hz.to_string())
            .map_err(|source| PerfError::Restore(path.clone(), self.max_sample_rate_hz, source))?;
        Ok(Some(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;

    #[test]
    fn what_the_kernel_lowered_is_put_back() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(SampleLimits::read(root.path()).unwrap(), None);
        write_tree(root.path(), &[(MAX_SAMPLE_RATE, "100000\n")]);
        let limits = SampleLimits::read(root.path()).unwrap().unwrap();
        assert_eq!(limits, SampleLimits { max_sample_rate_hz: 100_000, cpu_time_max_percent: None });
        assert_eq!(limits.restore(root.path()).unwrap(), None);
        write_tree(root.path(), &[(MAX_SAMPLE_RATE, "32000\n"), (CPU_TIME_MAX, "25\n")]);
        assert_eq!(SampleLimits::read(root.path()).unwrap().unwrap().cpu_time_max_percent, Some(25));
        assert_eq!(limits.restore(root.path()).unwrap(), Some(32_000));
        assert_eq!(SampleLimits::read(root.path()).unwrap().unwrap().max_sample_rate_hz, 100_000);
        // A raised limit is left alone.
        write_tree(root.path(), &[(MAX_SAMPLE_RATE, "200000\n")]);
        assert_eq!(limits.restore(root.path()).unwrap(), None);
        write_tree(root.path(), &[(MAX_SAMPLE_RATE, "many\n")]);
        assert!(SampleLimits::read(root.path()).is_err());
    }
}
