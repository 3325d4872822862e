//! The arguments of `becalm work`.

use std::path::PathBuf;

use becalm_command::arguments::{FolderArgs, FormArgs, added_rate, some_cpus};
use becalm_linux::sched::Policy;
use becalm_measure::work::Body;
use becalm_model::node::Fixed;
use becalm_units::{Count, CpuList, Nanos, Share};
use clap::{Args, ValueEnum};

/// Do the same work again and again, and see how much longer than its own time it takes
///
/// A loop is calibrated so that it takes the grain on a quiet CPU, then repeated; with --fixed work every sample does the
/// same and its time is taken, with --fixed time every sample lasts as long and its work is counted. The kernel's trace,
/// recorded meanwhile, says what ran in each sample. The samples are stored as a folder of Parquet and JSON files, and
/// their report is printed: the distribution, which samples are off, what is left of them when the direct time of each
/// source is subtracted, and which frequencies are in them.
///
/// Ctrl-C ends it; what was recorded is kept, and --resume goes on with it.
#[derive(Args, Debug)]
pub struct WorkArgs {
    /// What the loop does: empty (a volatile counter), sum, fibonacci, counter (readings), call, lcg, add, mul, div (512
    /// instructions of that kind a pass), sort (introsort over half of the L2 cache), stream (memory); of several, like
    /// empty,sum,call, one run each, stored in RUN-empty, RUN-sum, ..., and compared [default: empty]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub body: Vec<Body>,

    /// Work with all bodies of --body at once, each on a CPU of its own: those of --cpus in rising order, else the last ones. It is one run. With
    /// --maiv all go on until the mean of each has settled
    #[arg(long, requires = "body")]
    pub at_once: bool,

    /// How long a sample takes, like 100us, 1ms, 1s; of several, like 1ms,2ms, one run each, stored in RUN-1ms, RUN-2ms, and
    /// compared [default: 1ms]
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    pub grain: Vec<Nanos>,

    /// How many samples to take on each CPU, like 500, 10k, 1M [default: 10000]
    #[arg(long, value_name = "N", value_parser = some_samples, conflicts_with_all = ["maiv", "duration"])]
    pub samples: Option<u64>,

    /// Repeat until the accumulated mean has stayed within this share of itself over the later half of at least five
    /// repetitions, like 1%
    #[arg(long, value_name = "SHARE", value_parser = some_share, conflicts_with = "duration")]
    pub maiv: Option<Share>,

    /// How long to measure, instead of a number of samples
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<Nanos>,

    /// What stays the same from sample to sample [default: work]
    #[arg(long, value_name = "work|time")]
    pub fixed: Option<FixedArg>,

    /// The CPUs to work on, like 1 or 0-3,8 [default: the last one that is online]
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus)]
    pub cpus: Option<CpuList>,

    /// How many loops share each CPU, like 4; of several numbers, like 1,2,4,8, one run each, stored in RUN-1, RUN-2, ...
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=256))]
    pub copies: Vec<u32>,

    /// Timer interrupts a second to add to those of the CPUs; idle adds none. Of several, like idle,1000,10000, one run of the same
    /// work each, stored in RUN-idle, RUN-1000hz, ..., and compared. Needs perf events of a whole CPU
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "idle", value_parser = added_rate,
        allow_hyphen_values = true)]
    pub rates: Vec<u32>,

    /// The scheduling class of the loops: other, batch, fifo:PRIORITY, rr:PRIORITY
    #[arg(long, value_name = "CLASS", default_value = "other")]
    pub sched: Policy,

    /// Only take the samples; do not trace the kernel
    #[arg(long)]
    pub no_sources: bool,

    /// Do not count cycles, instructions and cache misses of the loops, which is done where the processor can
    #[arg(long)]
    pub no_counters: bool,

    /// Where to store the run [default: HOST-TIME.becalm]
    #[arg(short, long, value_name = "RUN")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub folder: FolderArgs,

    /// Go on with a run that was interrupted or killed, with the work that it did, up to the number of samples that was
    /// asked for (or --samples)
    #[arg(long, value_name = "RUN", conflicts_with_all = ["output", "folder", "body", "at_once", "grain", "fixed", "cpus", "copies", "rates", "baseline"])]
    pub resume: Option<PathBuf>,

    /// Hold the samples against those of this run, of the same work on a quieter CPU, kernel or machine
    #[arg(long, value_name = "RUN")]
    pub baseline: Option<PathBuf>,

    /// Memory between each loop and the collector, in KiB; 24 bytes a sample
    #[arg(long, value_name = "KIB", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(4..=4_194_304))]
    pub buffer: u32,

    #[command(flatten)]
    pub form: FormArgs,

    /// Print no progress and no report
    #[arg(short, long)]
    pub quiet: bool,
}

/// What is the same for every sample: the work or the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FixedArg {
    /// The work; its time is taken (FWQ)
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
