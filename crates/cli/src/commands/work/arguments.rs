//! The arguments of `becalm work`.

use std::path::PathBuf;

use becalm_command::arguments::{FolderArgs, FormArgs, added_rate, some_cpus};
use becalm_linux::sched::Policy;
use becalm_measure::work::Body;
use becalm_model::node::Fixed;
use becalm_units::{Count, CpuList, Nanos, Share};
use clap::{Args, ValueEnum};

/// Time fixed amounts of work (FWQ, FTQ)
///
/// A calibrated loop takes samples on a CPU: --fixed work times the same work (FWQ), --fixed time counts the work in the same time (FTQ). The
/// kernel's trace shows what ran in each sample. After Ctrl-C, the samples are kept, and --resume continues. Options with several values, such as
/// --grain 1ms,2ms, make the recordings RUN-1ms and RUN-2ms, and compare them.
#[derive(Args, Debug)]
pub struct WorkArgs {
    /// Work: empty, sum, fibonacci, counter, call, lcg, add, mul, div, sort, stream [default: empty]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub body: Vec<Body>,

    /// Run all bodies of --body at once in one recording, one per CPU
    #[arg(long, requires = "body")]
    pub at_once: bool,

    /// Length of a sample, e.g. 100us [default: 1ms]
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub grain: Vec<Nanos>,

    /// Samples per CPU, e.g. 500, 10k or 1M [default: 10000]
    #[arg(long, value_name = "N", value_parser = some_samples, conflicts_with_all = ["maiv", "duration"])]
    pub samples: Option<u64>,

    /// Repeat until the accumulated mean varies less than this share, e.g. 1%
    #[arg(long, value_name = "SHARE", value_parser = some_share, conflicts_with = "duration")]
    pub maiv: Option<Share>,

    /// Time to measure, instead of a number of samples
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<Nanos>,

    /// Quantity that is the same in all samples [default: work]
    #[arg(long, value_name = "work|time", hide_possible_values = true)]
    pub fixed: Option<FixedArg>,

    /// CPUs to work on, e.g. 1 or 0-3,8 [default: the last online CPU]
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus)]
    pub cpus: Option<CpuList>,

    /// Loops that share each CPU, e.g. 4 [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=256))]
    pub copies: Vec<u32>,

    /// Timer interrupts per second to add, e.g. idle,1000 [default: idle]
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "idle", hide_default_value = true,
        value_parser = added_rate, allow_hyphen_values = true)]
    pub rates: Vec<u32>,

    /// Scheduling class of the loops, e.g. batch, fifo:50 or rr:50 [default: other]
    #[arg(long, value_name = "CLASS", default_value = "other", hide_default_value = true)]
    pub sched: Policy,

    /// Only take samples; do not trace the kernel
    #[arg(long)]
    pub no_sources: bool,

    /// Do not count cycles, instructions and cache misses of the loops
    #[arg(long)]
    pub no_counters: bool,

    /// Where to store the recording [default: HOST-TIME.becalm]
    #[arg(short, long, value_name = "RUN")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub folder: FolderArgs,

    /// Recording to continue up to its number of samples, or --samples
    #[arg(long, value_name = "RUN", conflicts_with_all = ["output", "folder", "body", "at_once", "grain", "fixed", "cpus", "copies", "rates", "baseline"])]
    pub resume: Option<PathBuf>,

    /// Recording of the same work on a quieter CPU, kernel or machine, to compare with
    #[arg(long, value_name = "RUN")]
    pub baseline: Option<PathBuf>,

    /// Memory between each loop and the collector, in KiB [default: 4096]
    #[arg(long, value_name = "KIB", default_value_t = 4096, hide_default_value = true, value_parser = clap::value_parser!(u32).range(4..=4_194_304))]
    pub buffer: u32,

    #[command(flatten)]
    pub form: FormArgs,

    /// Print no progress and no report
    #[arg(short, long)]
    pub quiet: bool,
}

/// The property that all samples share: the work or the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FixedArg {
    /// The work; its time is measured (FWQ)
    Work,
    /// The time; its work is counted (FTQ)
    Time,
}

impl From<FixedArg> for Fixed {
    fn from(fixed: FixedArg) -> Self {
        match fixed {
            FixedArg::Work => Self::Work,
            FixedArg::Time => Self::Time,
        }
    }
}

fn some_share(text: &str) -> Result<Share, String> {
    match text.parse::<Share>() {
        Ok(share) if share.ratio() > 0.0 && share.ratio() < 1.0 => Ok(share),
        Ok(_) => Err("it is not above 0% and below 100%".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn some_samples(text: &str) -> Result<u64, String> {
    match text.parse::<Count>() {
        Ok(count) if count.get() == 0 => Err("no sample is no measurement".to_owned()),
        Ok(count) => Ok(count.get()),
        Err(error) => Err(error.to_string()),
    }
}
