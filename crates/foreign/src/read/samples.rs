//! Samples of fixed work or of fixed time.

use becalm_model::node::{Fixed, Warning};
use becalm_units::{CpuId, Nanos};

use super::ReadError;

/// The samples of one loop in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct SampleList {
    /// The CPU, if the file or its name has it.
    pub cpu: Option<CpuId>,
    /// The loop's body: the name of its program.
    pub body: &'static str,
    /// One iteration, in words.
    pub iteration: &'static str,
    /// Whether work or time is the same for all samples.
    pub fixed: Fixed,
    /// The intended length of a sample, if the file has it.
    pub grain: Option<Nanos>,
    /// Whether the file has the starts of samples. Otherwise they are laid end to end, because the time between them is unknown.
    pub has_starts: bool,
    /// The samples, in order of time.
    pub samples: Vec<SampleRow>,
    /// Warnings about the file.
    pub warnings: Vec<Warning>,
}

/// A sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleRow {
    /// Its start, since that of the first one.
    pub start: Nanos,
    /// Its length.
    pub duration: Nanos,
    /// The number of its iterations; 0 for fixed work, because files do not have it.
    pub work: u64,
}

impl SampleList {
    /// The end of the last one.
    pub fn end(&self) -> Nanos {
        self.samples.last().map_or(Nanos::ZERO, |sample| sample.start + sample.duration)
    }
}

/// Samples with unknown starts, laid end to end. Fails at the first invalid line, and if they last longer than times can be.
pub(super) fn end_to_end(
    samples: impl ExactSizeIterator<Item = Result<(Nanos, u64), ReadError>>,
) -> Result<Vec<SampleRow>, ReadError> {
    let mut start = Nanos::ZERO;
    let mut rows = Vec::with_capacity(samples.len());
    for sample in samples {
        let (duration, work) = sample?;
        rows.push(SampleRow { start, duration, work });
        start = start
            .checked_add(duration)
            .ok_or_else(|| ReadError::new("all samples together last longer than times can be"))?;
    }
    Ok(rows)
}
