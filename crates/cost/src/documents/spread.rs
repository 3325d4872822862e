//! The processes over which a measurement of probes is spread.

use serde::{Deserialize, Serialize};

use super::check::check_time;
use super::{CostSamples, Costs};

/// Default number of measuring processes, one after another. The minimum and maximum of eight independent medians enclose the true median
/// with 99.2 %; fewer than six cannot reach 95 %.
pub const PROCESSES: u32 = 8;

/// The maximum number of processes.
pub const MOST_PROCESSES: u32 = 1_000;

/// The processes over which a measurement was spread. Each measures every probe in an address space and in pages of its own,
/// so they differ by what does not change within one: where pages and code are, and what the CPU and its neighbors did then.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SpreadDoc {
    /// Planned number of processes.
    pub planned: u32,
    /// Over how long their starts were to be spread, in nanoseconds. Each starts once the one before it has ended.
    pub over_ns: i64,
    /// Those that measured, in order of time.
    pub processes: Vec<ProcessDoc>,
}

/// The time span of a process, in nanoseconds since the first one was to start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProcessDoc {
    /// Its start.
    pub begun_ns: i64,
    /// Its end.
    pub ended_ns: i64,
}

/// The measurement of one of these processes, in the form passed to its parent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ProcessCosts {
    /// The documents of the probes.
    pub measured: Costs,
    /// Their samples.
    pub samples: CostSamples,
    /// Whether it measured every probe, i.e. no signal ended it.
    pub is_whole: bool,
}

impl SpreadDoc {
    /// From the start of the first process to the end of the last, in nanoseconds; 0 without any.
    pub fn length_ns(&self) -> i64 {
        match (self.processes.first(), self.processes.last()) {
            (Some(first), Some(last)) => last.ended_ns.saturating_sub(first.begun_ns),
            _ => 0,
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let Self { planned, over_ns, processes } = self;
        if !(1..=MOST_PROCESSES).contains(planned) || processes.len() > *planned as usize {
            return Err(format!("{} of {planned} processes cannot have measured", processes.len()));
        }
        check_time("over_ns", *over_ns, 0)?;
        let mut last = 0;
        for ProcessDoc { begun_ns, ended_ns } in processes {
            check_time("begun_ns of a process", *begun_ns, last)?;
            check_time("ended_ns of a process", *ended_ns, *begun_ns)?;
            last = *ended_ns;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_measure_one_after_another() {
        let spread = |planned, times: &[(i64, i64)]| SpreadDoc {
            planned,
            over_ns: 10,
            processes: times
                .iter()
                .map(|(begun_ns, ended_ns)| ProcessDoc { begun_ns: *begun_ns, ended_ns: *ended_ns })
                .collect(),
        };
        assert_eq!(spread(2, &[(1, 4), (5, 9)]).check(), Ok(()));
        assert_eq!((spread(2, &[(1, 4), (5, 9)]).length_ns(), spread(2, &[]).length_ns()), (8, 0));
        for (planned, times) in
            [(0, &[][..]), (1, &[(1, 4), (5, 9)]), (2, &[(1, 4), (3, 9)]), (2, &[(4, 1)]), (2, &[(-1, 1)])]
        {
            assert!(spread(planned, times).check().is_err(), "{planned} {times:?}");
        }
    }
}
