//! The formats that can be read, by name.

use becalm_units::UnknownName;

/// A format that can be read, in the order of the book's page.
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
    /// Detours as selfish benchmarks print them, for example netgauge's.
    Selfish,
    /// The noise file of LogGOPSim.
    Loggopsim,
    /// The files of sysjitter's `--raw`.
    SysjitterRaw,
    /// Samples of netgauge's methods fwq and ftq.
    Netgauge,
    /// Windows of ftq.
    Ftq,
    /// Windows of ftq with times in ticks: two files, their pairs, and the MPI variant's CSV.
    FtqTicks,
    /// Samples of LLNL's FWQ.
    Fwq,
    /// The table of hiccups.
    Hiccups,
    /// The table of osjitter.
    Osjitter,
    /// sysjitter's output.
    Sysjitter,
    /// cyclictest's histogram, statistics and JSON.
    Cyclictest,
    /// oslat's text and JSON.
    Oslat,
    /// The tables and histograms of rtla.
    Rtla,
    /// Logs of HdrHistogram, for example jHiccup's.
    Hdr,
    /// The files of `trace-cmd record`.
    TraceDat,
    /// The kernel events in files of `perf record`.
    PerfData,
    /// The same printed by `perf script`.
    PerfScript,
    /// The same printed by the kernel or `trace-cmd report`.
    Ftrace,
    /// The kernel's events in traces of Perfetto.
    Perfetto,
    /// The text of the kernel's tracers osnoise and timerlat, which `rtla -t` stores.
    Osnoise,
}

/// The form that files of a format become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A run of detours.
    Detours,
    /// A run of samples of work.
    Samples,
    /// A distribution.
    Distribution,
    /// A run of detours, found in kernel events.
    Trace,
}

impl Format {
    /// The form that its files become.
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
            Self::TraceDat | Self::PerfData | Self::PerfScript | Self::Ftrace | Self::Perfetto | Self::Osnoise => {
                Form::Trace
            }
        }
    }
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<Format>("format", text)
}
