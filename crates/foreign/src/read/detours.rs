//! Lists of single detours.

use becalm_model::node::Warning;
use becalm_units::{CpuId, Nanos};

/// The detours of one CPU in a file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DetourList {
    /// The CPU, if the file or its name has it.
    pub cpu: Option<CpuId>,
    /// The length of the measurement, if the file has it; it may be rounded, and then end before the last detour does.
    pub length: Option<Nanos>,
    /// The length from which steps were kept, if the file has it.
    pub threshold: Option<Nanos>,
    /// The shortest step, which was subtracted from each; `None` if the file does not have it, or nothing was subtracted.
    pub t_min: Option<Nanos>,
    /// Start since the start of the measurement, and length of each: in order of time, without overlap.
    pub detours: Vec<(Nanos, Nanos)>,
    /// Warnings about the file.
    pub warnings: Vec<Warning>,
}

impl DetourList {
    /// The end of the last one.
    pub fn end(&self) -> Nanos {
        self.detours.last().map_or(Nanos::ZERO, |(start, duration)| *start + *duration)
    }
}

/// Collects detours in picoseconds. Their starts and ends are rounded to nanoseconds, so detours that do not overlap in the file do not
/// overlap after rounding.
#[derive(Default)]
pub(super) struct InOrder {
    /// The end of the last one, in picoseconds.
    last_end: i128,
    /// Those taken so far.
    pub detours: Vec<(Nanos, Nanos)>,
}

impl InOrder {
    /// Takes the next one. Fails if it starts before the end of the one before, or ends later than times can be.
    pub fn push(&mut self, start: i128, duration: i128) -> Result<(), String> {
        if start < self.last_end {
            let (start, end) = (start as f64 / 1e3, self.last_end as f64 / 1e3);
            return Err(format!("the detour starts at {start}ns, before the end of the previous one at {end}ns"));
        }
        let end = start + duration;
        self.last_end = end;
        let [begin, end] = [start, end].map(|time| i64::try_from((time + 500).div_euclid(1_000)).ok());
        let (begin, end) = begin.zip(end).ok_or("it ends later than times can hold")?;
        self.detours.push((Nanos::new(begin), Nanos::new(end - begin)));
        Ok(())
    }
}
