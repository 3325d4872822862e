//! `becalm cost tick`: the direct and indirect cost of a timer interrupt.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use becalm_bundle::BundleError;
use becalm_bundle::node_document::{self, NodeDocument};
use becalm_command::Exit;
use becalm_command::arguments::{FolderArgs, FormArgs, added_rate, cpu_id, refuse_existing};
use becalm_command::messages::say;
use becalm_command::output::emit;
use becalm_command::progress::Bar;
use becalm_command::rights::RightsKept;
use becalm_linux::file;
use becalm_linux::janitor::Janitor;
use becalm_linux::procfs::kernel;
use becalm_linux::sched::Policy;
use becalm_linux::signals::StopSignals;
use becalm_model::node_name;
use becalm_units::fault::{self, Context, Result, UsageError};
use becalm_units::{CpuId, Nanos};
use clap::Args;

use super::{chosen_site, progress_bar, wanted};
use crate::analysis::tick::{Analysis, TableFile, read_tables};
use crate::documents::tick::{Campaign, CampaignPlan};
use crate::measure::tick::campaign::{self, CampaignEnd, CampaignProgress};
use crate::report::TickReport;

/// Measure the cost of a timer interrupt (Tsafrir 2007)
///
/// Adds interrupts to one CPU with a perf event, and times sorts of half its L2 cache at each rate. The direct cost
/// (trap and handler) comes from the kernel's record and an empty system call; the rest is the indirect cost (caches).
/// Needs root, or access to perf events and tracefs.
///
/// Each measurement is stored at once: --resume continues an interrupted run, and `becalm report` shows it again.
/// --from analyzes published times or a stored run instead.
#[derive(Args, Debug)]
pub struct TickArgs {
    /// Analyze instead of measuring: a stored run, or a table with columns processor, processes, ms_100hz, ms_1000hz,
    /// ...
    #[arg(long, value_name = "SORT.csv|RUN", conflicts_with_all = ["cpu", "output", "folder", "resume", "quick", "rates", "copies", "threads", "rounds", "cell", "sched", "seed", "no_counters"])]
    from: Option<PathBuf>,

    /// Direct costs of that table, with columns processor, trap_us, handler_us, or mhz, trap_cycles, handler_cycles;
    /// other handlers are handler_NAME_us or handler_NAME_cycles
    #[arg(long, value_name = "DIRECT.csv", requires = "from")]
    direct: Option<PathBuf>,

    /// Column of --direct with the handler that ran while work was timed [default: handler_us or handler_cycles, else
    /// those of handler_pit]
    #[arg(long, value_name = "COLUMN", requires = "direct")]
    handler: Option<String>,

    /// CPU to measure on [default: an isolated one, else the one with the fewest interrupts since boot]
    #[arg(long, value_name = "CPU", value_parser = cpu_id, allow_hyphen_values = true)]
    cpu: Option<CpuId>,

    /// Interrupts per second to add to the CPU's own; idle adds none
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "idle,1000,5000,10000,20000",
        value_parser = added_rate,
        allow_hyphen_values = true
    )]
    rates: Vec<u32>,

    /// Numbers of copies of the sort that share the CPU, each from 1 to 64
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4,8", value_parser = clap::value_parser!(u32).range(1..=64))]
    copies: Vec<u32>,

    /// Run the copies as threads of one process, which share an address space, instead of processes
    #[arg(long)]
    threads: bool,

    /// Number of rounds; confidence intervals need at least 2 [default: 12]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,

    /// Length of one measurement, from 10ms to 1h [default: 1s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    cell: Option<Nanos>,

    /// Finish in about a minute: five rounds of 250ms measurements
    #[arg(long, conflicts_with_all = ["rounds", "cell"])]
    quick: bool,

    /// Scheduling class of the work: rr:PRIORITY keeps other programs off the CPU, other does not
    #[arg(long, value_name = "CLASS", default_value = "rr:1")]
    sched: Policy,

    /// Seed of the random order of the measurements
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Do not count cycles, instructions and cache misses, which take separate measurements
    #[arg(long)]
    no_counters: bool,

    /// Recording to write [default: HOST-TIME.becalm]
    #[arg(short, long, value_name = "RUN")]
    output: Option<PathBuf>,

    #[command(flatten)]
    folder: FolderArgs,

    /// Continue this interrupted run with its original plan
    #[arg(long, value_name = "RUN", conflicts_with_all = ["output", "folder", "cpu", "quick", "rates", "copies", "threads", "rounds", "cell", "sched", "seed", "no_counters"])]
    resume: Option<PathBuf>,

    #[command(flatten)]
    form: FormArgs,
}

impl TickArgs {
    /// Whether the command reads tables or a stored run instead of measuring.
    pub fn reads(&self) -> bool {
        self.from.is_some()
    }

    /// Whether it writes a page of an earlier measurement.
    pub fn writes_page(&self) -> bool {
        self.form.writes_page()
    }
}

/// Measures or reads, and prints. Fails if a table is malformed, the machine does not support the measurement, or `out` cannot be written.
pub fn run(args: &TickArgs, out: &mut dyn Write) -> Result<Exit> {
    let output = args.form.output(false)?;
    let report = match (&args.from, &args.direct) {
        (Some(sort), Some(direct)) => published(sort, direct, args.handler.as_deref())?,
        // A table is a file; a run is a directory, with or without its suffix.
        (Some(path), None) if !path.is_file() => TickReport::from_campaign(node_document::load(path, None)?.doc)?,
        (Some(_), None) => {
            return Err(UsageError::new("a table of times needs the direct costs as well: give --direct FILE").into());
        }
        (None, _) => match measured(args)? {
            Some(report) => report,
            None => return Ok(Exit::Failed),
        },
    };
    emit(&report, output, out)?;
    Ok(Exit::Done)
}

/// The maximum size of a table, in bytes.
const LARGEST: u64 = 64 << 20;

fn published(sort: &Path, direct: &Path, handler: Option<&str>) -> Result<TickReport> {
    let read =
        |path: &Path| file::read_regular_text(path, LARGEST).with_context(|| format!("cannot read {}", path.display()));
    let (sort_text, direct_text) = (read(sort)?, read(direct)?);
    let (sort, direct) = (sort.display().to_string(), direct.display().to_string());
    let processors = read_tables(
        TableFile { name: &sort, text: &sort_text },
        TableFile { name: &direct, text: &direct_text },
        handler,
    )?;
    Ok(TickReport::from_tables(processors.iter().map(Analysis::new).collect()))
}

/// Measures or resumes; `None` if a signal came before a round was complete.
fn measured(args: &TickArgs) -> Result<Option<TickReport>> {
    let root = Path::new("/");
    // Must run while the process has one thread.
    let guard = Janitor::spawn(&root.join("proc")).map(Arc::new).map_err(|error| error.to_string());
    let signals = StopSignals::block().context("cannot block signals")?;
    let (path, mut campaign) = match &args.resume {
        Some(path) => resumed(path, root)?,
        None => {
            let plan = plan(args)?;
            let path = args.folder.place(args.output.as_ref(), None, root)?;
            refuse_existing(&path)?;
            let campaign = campaign::begin(root, plan)?;
            node_document::create(&path, &campaign)?;
            (path, campaign)
        }
    };
    let bar = progress_bar();
    let mut store = |campaign: &Campaign| Ok(node_document::replace(&path, campaign)?);
    let end = campaign::go_on(&mut campaign, root, &guard, &signals, &mut store, &mut |progress| {
        show(&bar, progress);
    });
    drop(bar);
    let end = end.with_context(|| {
        format!("the campaign stopped; what was measured is in {}, go on with --resume", path.display())
    })?;
    if end == CampaignEnd::Interrupted {
        let (done, planned) = (campaign.cells.len(), campaign.cells_planned());
        say(format_args!(
            "interrupted after {done} of {planned} measurements; go on with: becalm cost tick --resume {}",
            path.display()
        ));
        return Ok(None);
    }
    say(format_args!("stored in {}", path.display()));
    // All is measured and stored.
    RightsKept::to_read(args.form.writes_page()).keep()?;
    Ok(Some(TickReport::from_campaign(campaign)?))
}

/// The campaign to resume, which must be from this machine and kernel.
fn resumed(path: &Path, root: &Path) -> Result<(PathBuf, Campaign)> {
    let node = node_name(&kernel::hostname(root)?);
    let stored: NodeDocument<Campaign> = match node_document::load(path, None) {
        Err(BundleError::SeveralNodes { .. }) => node_document::load(path, Some(&node))?,
        loaded => loaded?,
    };
    let NodeDocument { bundle: path, doc: campaign } = stored;
    if campaign.node != node || campaign.machine.kernel != kernel::release(root)? {
        fault::bail!(
            "{} was begun on {} with Linux {}; what another machine or kernel would add does not belong to it",
            path.display(),
            campaign.node,
            campaign.machine.kernel
        );
    }
    Ok((path, campaign))
}

fn plan(args: &TickArgs) -> Result<CampaignPlan> {
    let usage = |text: &str| fault::Error::from(UsageError::new(text.to_owned()));
    let sorted = |list: &[u32]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list.dedup();
        list
    };
    let (rates_hz, copies) = (sorted(&args.rates), sorted(&args.copies));
    if rates_hz.len() < 2 {
        return Err(usage("--rates needs at least two different rates: a cost is the difference between two"));
    }
    let (rounds, cell) = if args.quick { (5, Nanos::from_millis(250)) } else { (12, Nanos::from_secs(1)) };
    let cell = args.cell.unwrap_or(cell);
    if cell < Nanos::from_millis(10) || cell > Nanos::from_secs(3_600) {
        return Err(usage("--cell must be at least 10ms, long enough for some sorts, and at most 1h"));
    }
    let cpu = chosen_site(Path::new("/"), args.cpu)?.cpu;
    let rounds = args.rounds.unwrap_or(rounds);
    let sched = args.sched.to_string();
    let events = wanted(args.no_counters);
    Ok(CampaignPlan {
        cpu,
        rates_hz,
        copies,
        processes: !args.threads,
        rounds,
        sched,
        cell_ns: cell.get(),
        seed: args.seed,
        events,
    })
}

fn show(bar: &Bar, progress: CampaignProgress) {
    let CampaignProgress { done, planned, left } = progress;
    let (minutes, seconds) = (left.as_secs() / 60, left.as_secs() % 60);
    bar.say(format!("measuring {done} of {planned}, {minutes}:{seconds:02} left, Ctrl-C interrupts it"));
    bar.reach((done * 100 / planned.max(1)) as u64);
}
