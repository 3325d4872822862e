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
/// kernel's trace shows what ran in each sample. The samples are stored as a directory of Parquet and JSON files, and a report is printed. After
/// Ctrl-C, the samples are kept and --resume continues.
#[derive(Args, Debug)]
pub struct WorkArgs {
    /// Work of the loop: empty (a volatile counter), sum, fibonacci, counter (readings), call, lcg, add, mul, div (512 instructions each), sort (half
    /// of L2) or stream (memory). Several, such as sum,call, make RUN-sum, RUN-call, and are compared [default: empty]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub body: Vec<Body>,

    /// Run all bodies of --body at once in one recording, one per CPU: --cpus in rising order, or the last CPUs. With --maiv, all continue until each
    /// mean has settled
    #[arg(long, requires = "body")]
    pub at_once: bool,

    /// Length of a sample, such as 100us. Several, such as 1ms,2ms, make RUN-1ms, RUN-2ms, and are compared [default: 1ms]
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub grain: Vec<Nanos>,

    /// Samples per CPU, such as 500, 10k or 1M [default: 10000]
    #[arg(long, value_name = "N", value_parser = some_samples, conflicts_with_all = ["maiv", "duration"])]
    pub samples: Option<u64>,

    /// Repeat until the accumulated mean varies less than this share, such as 1%, over the later half of at least 5 repetitions
    #[arg(long, value_name = "SHARE", value_parser = some_share, conflicts_with = "duration")]
    pub maiv: Option<Share>,

    /// Time to measure, instead of a number of samples
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<Nanos>,

    /// Quantity that is the same in all samples [default: work]
    #[arg(long, value_name = "work|time")]
    pub fixed: Option<FixedArg>,

    /// CPUs to work on, such as 1 or 0-3,8 [default: the last online CPU]
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus)]
    pub cpus: Option<CpuList>,

    /// Loops that share each CPU, such as 4. Several, such as 1,2,4, make RUN-1, RUN-2, ...
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=256))]
    pub copies: Vec<u32>,

    /// Timer interrupts per second to add; idle adds none. Several, such as idle,1000, make RUN-idle, RUN-1000hz, and are compared. Needs perf events
    /// of whole CPUs
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "idle", value_parser = added_rate,
        allow_hyphen_values = true)]
    pub rates: Vec<u32>,

    /// Scheduling class of the loops: other, batch, fifo:PRIORITY, rr:PRIORITY
    #[arg(long, value_name = "CLASS", default_value = "other")]
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

    /// Continue an interrupted or killed recording, with the same work, up to its number of samples (or --samples)
    #[arg(long, value_name = "RUN", conflicts_with_all = ["output", "folder", "body", "at_once", "grain", "fixed", "cpus", "copies", "rates", "baseline"])]
    pub resume: Option<PathBuf>,

    /// Compare the samples with this recording of the same work on a quieter CPU, kernel or machine
    #[arg(long, value_name = "RUN")]
    pub baseline: Option<PathBuf>,

    /// Memory between each loop and the collector, in KiB; 24 bytes per sample
    #[arg(long, value_name = "KIB", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(4..=4_194_304))]
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
