//! Lists of single detours.

use becalm_model::node::Warning;
use becalm_units::{CpuId, Nanos};

/// The detours of one CPU, as a file tells of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DetourList {
    /// The CPU, if the file or its name says it.
    pub cpu: Option<CpuId>,
    /// How long was measured, if the file says it; it may be rounded, and then end before the last detour does.
    pub length: Option<Nanos>,
    /// Steps of at least this length were kept, if the file says it.
    pub threshold: Option<Nanos>,
    /// The shortest step, which was subtracted from each; `None` if the file does not say it, or subtracts nothing.
    pub t_min: Option<Nanos>,
    /// When each began, since the begin of the measurement, and how long it was: in order of time, without overlap.
    pub detours: Vec<(Nanos, Nanos)>,
    /// What must be known of the file.
    pub warnings: Vec<Warning>,
}

impl DetourList {
    /// When the last one ends.
    pub fn end(&self) -> Nanos {
        self.detours.last().map_or(Nanos::ZERO, |(start, duration)| *start + *duration)
    }
}

/// Detours while they are read, in picoseconds. They are rounded to nanoseconds by their begin and their end, so that what does
/// not overlap in the file does not after rounding.
#[derive(Default)]
pub(super) struct InOrder {
    /// When the last one ended, in picoseconds.
    last_end: i128,
    /// Those that came.
    pub detours: Vec<(Nanos, Nanos)>,
}

impl InOrder {
    /// Takes the next one. Fails if it begins before the end of the one in front of it, or ends later than times can
    /// hold.
    pub fn push(&mut self, start: i128, duration: i128) -> Result<(), String> {
        if start < self.last_end {
            let (start, end) = (start as f64 / 1e3, self.last_end as f64 / 1e3);
            return Err(format!(
                "the detour starts at {start}ns, before the end of the one in front of it, at {end}ns"
            ));
        }
        let end = start + duration;
        self.last_end = end;
        let [begin, end] = [start, end].map(|time| i64::try_from((time + 500).div_euclid(1_000)).ok());
        let (begin, end) = begin.zip(end).ok_or("it ends later than times can hold")?;
        self.detours.push((Nanos::new(begin), Nanos::new(end - begin)));
        Ok(())
    }
}
