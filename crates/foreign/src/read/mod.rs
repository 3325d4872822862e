//! Reads the measurements of other programs from their files, with one file per format.
//!
//! The result is one of the forms that becalm uses for its own measurements, or one for imports alone:
//!
//! - Lists of detours with their starts become detours: [`DetourList`], one per CPU.
//! - Samples of fixed work or of fixed time become samples of work: [`SampleList`], one per loop. If a file lacks their starts, they are
//!   laid end to end, and the list says so.
//! - Histograms and statistics, which have no single events, become distributions: [`DistributionDoc`]. The summary form of a recording
//!   cannot hold them: its figures are shares of a known time, its buckets are fine, and its lengths are always time that a loop lost.
//! - Kernel traces are none of these: attribution finds the detours in them. [`trace_dat`] gives the pages that the kernel wrote,
//!   [`perf_data`] its records.
//!
//! Facts that a file lacks are `None`, and stay unknown: no start, share or length of a run is made up. The limits of the instrument (its
//! threshold, the shortest step of its loop) are kept with the data. Wake-up latencies are no stolen time, so a distribution names the
//! quantity of its lengths.
//!
//! Memory holds the whole file, and with it the result: 16 bytes per detour, whose line has at least four bytes; 32 bytes per sample, whose
//! line has two; 24 bytes per bucket; and as much again while a list grows.

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
pub mod perfetto;
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

/// A file, or a part of one that contains all of it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its file name: some formats put the measured CPU in it.
    pub name: &'a str,
    /// Its contents.
    pub bytes: &'a [u8],
}

/// Facts that the user supplies about files that do not contain them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileFacts {
    /// The unit of numbers that have none; `None` for the format's usual one.
    pub unit: Option<TimeUnit>,
    /// Ticks per second of the counter that times are in.
    pub rate_hz: Option<f64>,
}

/// Reads a list of detours. Fails if the file is not in the format, with the place. Panics for a format of another form.
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

/// Reads samples of work, a list per loop. Fails if the file is not in the format, with the place. Panics for a format of another form.
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

/// Reads a histogram or statistics. Fails if the file is not in the format, with the place. Panics for a format of another form.
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
