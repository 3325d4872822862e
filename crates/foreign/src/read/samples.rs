//! Samples of fixed work or of fixed time.

use becalm_model::node::{Fixed, Warning};
use becalm_units::{CpuId, Nanos};

use super::ReadError;

/// The samples of one loop, as a file tells of them.
#[derive(Clone, PartialEq, Debug)]
pub struct SampleList {
    /// The CPU, if the file or its name says it.
    pub cpu: Option<CpuId>,
    /// What the loop did: the name of the program whose loop it is.
    pub body: &'static str,
    /// What one iteration of it is, in words.
    pub iteration: &'static str,
    /// Whether the work or the time stayed the same from sample to sample.
    pub fixed: Fixed,
    /// How long a sample should take, if the file says it.
    pub grain: Option<Nanos>,
    /// Whether the file says when samples began. Otherwise they are laid end to end: the time between two of them is not known.
    pub has_starts: bool,
    /// The samples, in order of time.
    pub samples: Vec<SampleRow>,
    /// What must be known of the file.
    pub warnings: Vec<Warning>,
}

/// A sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleRow {
    /// When it began, since the first one did.
    pub start: Nanos,
    /// How long it took.
    pub duration: Nanos,
    /// Iterations that were done in it; 0 of fixed work, of which files do not say it.
    pub work: u64,
}

impl SampleList {
    /// When the last one ends.
    pub fn end(&self) -> Nanos {
        self.samples.last().map_or(Nanos::ZERO, |sample| sample.start + sample.duration)
    }
}

/// Samples whose begins are not known, laid end to end. Fails at the first line that is none, and if they last longer
/// than times can be.
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
