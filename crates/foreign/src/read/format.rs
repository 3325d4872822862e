//! The formats that can be read, by name.

use becalm_units::UnknownName;

/// A format that can be read. The order is that of the book's page.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Debug,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Format {
    /// Detours as selfish benchmarks print them, among them netgauge's.
    Selfish,
    /// The noise file of LogGOPSim.
    Loggopsim,
    /// The files of sysjitter's `--raw`.
    SysjitterRaw,
    /// Samples of netgauge's methods fwq and ftq.
    Netgauge,
    /// Windows of ftq.
    Ftq,
    /// Windows of ftq whose times are in ticks: two files, their pairs, and the MPI variant's CSV.
    FtqTicks,
    /// Samples of LLNL's FWQ.
    Fwq,
    /// The table of hiccups.
    Hiccups,
    /// The table of osjitter.
    Osjitter,
    /// What sysjitter prints.
    Sysjitter,
    /// cyclictest's histogram, statistics and JSON.
    Cyclictest,
    /// oslat's text and JSON.
    Oslat,
    /// The tables and histograms of rtla.
    Rtla,
    /// Logs of HdrHistogram, among them jHiccup's.
    Hdr,
    /// What `trace-cmd record` writes.
    TraceDat,
    /// What `perf record` writes of kernel events.
    PerfData,
    /// What `perf script` prints of them.
    PerfScript,
    /// What the kernel prints of them, and `trace-cmd report`.
    Ftrace,
    /// What the kernel's tracers osnoise and timerlat print, and `rtla -t` stores.
    Osnoise,
}

/// What the files of a format become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A run of detours.
    Detours,
    /// A run of samples of work.
    Samples,
    /// A distribution.
    Distribution,
    /// A run of detours, which are found in events of the kernel.
    Trace,
}

impl Format {
    /// What its files become.
    pub const fn form(self) -> Form {
        match self {
            Self::Selfish | Self::Loggopsim | Self::SysjitterRaw => Form::Detours,
            Self::Netgauge | Self::Ftq | Self::FtqTicks | Self::Fwq => Form::Samples,
            Self::Hiccups
            | Self::Osjitter
            | Self::Sysjitter
            | Self::Cyclictest
            | Self::Oslat
            | Self::Rtla
            | Self::Hdr => Form::Distribution,
            Self::TraceDat | Self::PerfData | Self::PerfScript | Self::Ftrace | Self::Osnoise => Form::Trace,
        }
    }
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<Format>("format", text)
}
