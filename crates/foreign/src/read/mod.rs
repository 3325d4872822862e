//! What other programs measured, read from their files: a file a format.
//!
//! What is read is one of the forms in which becalm keeps what it measured itself, or the one that is for imports alone:
//!
//! - Lists of detours, each with its begin, are detours: [`DetourList`], a list a CPU.
//! - Samples of fixed work or of fixed time are samples of work: [`SampleList`], a list a loop. Where a file does not say when they began,
//!   they are laid end to end, and the list says so.
//! - Histograms and statistics, which have no single events, are distributions: [`DistributionDoc`]. The summary form of a recording cannot
//!   hold them: its figures are shares of a known time, its buckets are fine, and its lengths are always of time that a loop lost.
//!
//! - Traces of a kernel's events are neither: what becomes of them is found out by whoever attributes them. [`trace_dat`] gives the
//!   pages that the kernel wrote, [`perf_data`] its records.
//!
//! What a file does not say is `None`, and stays unknown: no begin, share or length of a run is made up. What the instrument could not see (its
//! threshold, the shortest step of its loop) is kept beside the data. Wake-up latencies are no time that was taken from anybody: a distribution
//! says what its lengths are of.
//!
//! All of a file is in memory, and beside it what is read of it: of a detour, whose line has four bytes at least, 16 bytes; of a sample, whose
//! line has two, 32 bytes; of a bucket 24 bytes; and as much again while a list grows.

mod binary;
mod cyclictest;
mod detours;
mod distribution;
mod error;
mod format;
mod ftq;
pub mod ftq_ticks;
pub mod ftrace_text;
mod fwq;
mod hdr;
mod hiccups;
mod kernel_formats;
pub mod kernel_text;
mod lines;
mod loggopsim;
mod near_miss;
mod netgauge;
mod osjitter;
mod oslat;
pub mod osnoise;
pub mod perf_data;
pub mod perf_script;
mod recognize;
mod rt_json;
mod rtla;
mod samples;
mod selfish;
mod sysjitter;
mod time;
pub mod trace_dat;

#[cfg(test)]
mod tests;

pub use detours::DetourList;
pub use error::{Place, ReadError};
pub use format::{Form, Format};
pub use kernel_formats::KernelFormats;
pub use lines::Progress;
pub use near_miss::near_miss;
pub use recognize::{guessed_by, recognize};
pub use samples::{SampleList, SampleRow};
pub use time::TimeUnit;

use crate::distribution::DistributionDoc;

/// A file that is read, or a part of one that holds all of it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name, without the folders: some formats say in it which CPU was measured.
    pub name: &'a str,
    /// What it holds.
    pub bytes: &'a [u8],
}

/// Facts that the user supplies about files that do not contain them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileFacts {
    /// The unit of numbers that have none; `None` for what is usual in the format.
    pub unit: Option<TimeUnit>,
    /// How often the counter ticks in a second by which times are told.
    pub rate_hz: Option<f64>,
}

/// Reads a list of detours. Fails if the file is not in the format, with the place. Panics for a format of another
/// form.
pub fn detours(
    format: Format,
    source: Source<'_>,
    known: FileFacts,
    told: Progress<'_>,
) -> Result<DetourList, ReadError> {
    match format {
        Format::Selfish => selfish::read(source, known.unit.unwrap_or(TimeUnit::Ns), told),
        Format::Loggopsim => loggopsim::read(source, told),
        Format::SysjitterRaw => sysjitter::read_raw(source, told),
        _ => unreachable!("{format} is no list of detours"),
    }
}

/// Reads samples of work: a list a loop. Fails if the file is not in the format, with the place. Panics for a format of
/// another form.
pub fn samples(
    format: Format,
    source: Source<'_>,
    known: FileFacts,
    told: Progress<'_>,
) -> Result<Vec<SampleList>, ReadError> {
    match format {
        Format::Netgauge => netgauge::read(source, told).map(|list| vec![list]),
        Format::Ftq => ftq::read(source, told).map(|list| vec![list]),
        Format::FtqTicks => ftq_ticks::read(source, known.rate_hz, told),
        Format::Fwq => fwq::read(source, known.rate_hz, told),
        _ => unreachable!("{format} holds no samples"),
    }
}

/// Reads a histogram or statistics. Fails if the file is not in the format, with the place. Panics for a format of
/// another form.
pub fn distribution(
    format: Format,
    source: Source<'_>,
    known: FileFacts,
    told: Progress<'_>,
) -> Result<DistributionDoc, ReadError> {
    let found = match format {
        Format::Hiccups => hiccups::read(source, told),
        Format::Osjitter => osjitter::read(source, told),
        Format::Sysjitter => sysjitter::read(source, told),
        Format::Cyclictest | Format::Oslat if rt_json::is_json(source) => rt_json::read(source, format),
        Format::Cyclictest => cyclictest::read(source, known.unit.unwrap_or(TimeUnit::Us), told),
        Format::Oslat => oslat::read(source, told),
        Format::Rtla => rtla::read(source, told),
        Format::Hdr => hdr::read(source, known.unit.unwrap_or(TimeUnit::Ns), told),
        _ => unreachable!("{format} is no distribution"),
    }?;
    Ok(DistributionDoc { format: format.to_string(), ..found })
}
