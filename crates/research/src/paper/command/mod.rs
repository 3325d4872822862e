//! `becalm paper`: reproduces the published figures of a paper.

mod campaign;
mod program;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use becalm_command::Exit;
use becalm_command::Task;
use becalm_command::arguments::FormArgs;
use becalm_command::messages::say;
use becalm_command::output::{Output, emit};
use becalm_command::pager::Paging;
use becalm_command::rights::RightsKept;
use becalm_linux::relay::Relay;
use becalm_units::fault::{self, Context, UsageError};
use clap::Args;
use clap::builder::PossibleValuesParser;

use self::campaign::{Campaign, StepEnd};
use self::program::Launch;
use crate::paper::catalogue::{self, Item, ItemKind, Paper, Step};
use crate::paper::report::PaperReport;

/// The page in the campaign's directory.
const PAGE: &str = "index.html";

/// Reproduce the tables and figures of a paper
///
/// Runs the becalm commands behind the tables and figures, and writes their documents and a page (index.html) to a
/// directory. A stopped run continues when it is started again with the same directory. Times that depend on the
/// paper's own machine are shown for comparison only. Steps that this machine cannot run are listed with the reason.
#[derive(Args, Debug)]
pub struct PaperArgs {
    /// Paper to reproduce
    #[arg(value_name = "PAPER", value_parser = PossibleValuesParser::new(catalogue::names()))]
    paper: String,

    /// Reproduce only this figure; repeatable, and combines with --table and --section
    #[arg(long, value_name = "N")]
    figure: Vec<u32>,

    /// Reproduce only this table; repeatable
    #[arg(long, value_name = "N")]
    table: Vec<u32>,

    /// Reproduce only this section; repeatable
    #[arg(long, value_name = "N")]
    section: Vec<u32>,

    /// Skip long steps, and measure for seconds instead of minutes
    #[arg(long)]
    quick: bool,

    /// Launcher of parallel jobs, without -n and the number of ranks, such as 'srun --mpi=pmix'
    #[arg(long, value_name = "LAUNCHER", default_value = "mpirun")]
    mpirun: String,

    /// Directory of the results, also of a stopped run [default: the paper's name]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// List tables and figures with their commands, and run nothing
    #[arg(long, conflicts_with_all = ["output", "json", "markdown", "html"])]
    list: bool,

    #[command(flatten)]
    form: FormArgs,
}

impl Task for PaperArgs {
    fn rights(&self) -> RightsKept {
        // Each of its children drops the rights that it does not need.
        if self.list { RightsKept::Reading } else { RightsKept::All }
    }

    fn paging(&self) -> Paging {
        if self.list { Paging::Long } else { Paging::Never }
    }

    fn run(self: Box<Self>, out: &mut dyn Write) -> fault::Result<Exit> {
        run(&self, out)
    }
}

/// Runs the campaign, and prints its results. Fails if the paper has no such table or figure, or the directory or `out` cannot be written.
fn run(args: &PaperArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let paper = catalogue::paper(&args.paper).context("no such paper")?;
    let items = chosen(args, &paper)?;
    let steps = needed(&paper, &items);
    let launch = Launch::here(&args.mpirun)?;
    if args.list {
        list(&items, &steps, args.quick, &launch, out)?;
        return Ok(Exit::Done);
    }
    let folder = args.output.clone().unwrap_or_else(|| PathBuf::from(&args.paper));
    let mut campaign = Campaign::open(folder, args.quick, launch)?;
    let page = Output::page(&campaign.folder.join(PAGE))?;
    let signals = Relay::block().context("cannot block signals")?;
    campaign.announce(&steps);
    let mut report = PaperReport {
        name: args.paper.clone(),
        here: here(),
        quick: args.quick,
        items,
        documents: HashMap::new(),
        commands: HashMap::new(),
        pages: HashSet::new(),
        lacking: HashMap::new(),
        broken: HashMap::new(),
        paper: paper.clone(),
    };
    for step in &steps {
        let name = step.name.clone();
        let (command, end) = campaign.step(step, &signals)?;
        if let Some(command) = command {
            report.commands.insert(name.clone(), command);
        }
        match end {
            StepEnd::Done(document) => {
                if campaign.has_page(step) {
                    report.pages.insert(name.clone());
                }
                report.documents.insert(name, document);
            }
            StepEnd::LeftOut => drop(report.lacking.insert(name, "a quick campaign leaves it out".to_owned())),
            StepEnd::Failed(why) if step.measures => drop(report.lacking.insert(name, why)),
            StepEnd::Failed(why) => drop(report.broken.insert(name, why)),
            StepEnd::Stopped(signal) => {
                say(format_args!("stopped; begun again with {}, it goes on from here", campaign.folder.display()));
                return Ok(Exit::As(128 + u8::try_from(signal).unwrap_or(0)));
            }
        }
    }
    drop(signals);
    emit(&report, page, out)?;
    emit(&report, args.form.output(false)?, out)?;
    let errors = report.errors();
    if let Some(first) = errors.first() {
        let more = becalm_units::counted(errors.len() as u64, "error", "errors");
        fault::bail!("{more} of becalm itself, not of this machine; the first: {first}");
    }
    Ok(Exit::Done)
}

/// The requested tables and figures: all by default.
fn chosen(args: &PaperArgs, paper: &Paper) -> Result<Vec<Item>, UsageError> {
    let figures = args.figure.iter().map(|number| (ItemKind::Figure, "figure", *number));
    let tables = args.table.iter().map(|number| (ItemKind::Table, "table", *number));
    let sections = args.section.iter().map(|number| (ItemKind::Section, "section", *number));
    let asked: Vec<_> = figures.chain(tables).chain(sections).collect();
    let is = |item: &Item, kind, number| item.kind == kind && item.number == number;
    if let Some((_, what, number)) =
        asked.iter().find(|(kind, _, number)| !paper.items.iter().any(|item| is(item, *kind, *number)))
    {
        let message = format!("{} has no {what} {number} that becalm knows; --list names all", args.paper);
        return Err(UsageError::new(message));
    }
    let wanted = |item: &&Item| asked.is_empty() || asked.iter().any(|(kind, _, number)| is(item, *kind, *number));
    Ok(paper.items.iter().filter(wanted).cloned().collect())
}

/// The steps of these items, and those that make their input.
fn needed<'a>(paper: &'a Paper, items: &[Item]) -> Vec<&'a Step> {
    let is_named = |step: &Step| items.iter().flat_map(Item::steps).any(|name| name == step.name);
    let read: Vec<&String> = paper.steps.iter().filter(|step| is_named(step)).flat_map(|step| &step.after).collect();
    paper.steps.iter().filter(|step| is_named(step) || read.contains(&&step.name)).collect()
}

fn list(items: &[Item], steps: &[&Step], quick: bool, launch: &Launch, out: &mut dyn Write) -> fault::Result<()> {
    for item in items {
        writeln!(out, "{}: {}", item.name(), item.title)?;
        if !item.lacking.is_empty() {
            writeln!(out, "  ! {}", item.lacking)?;
        }
        let is_named = |step: &Step| item.steps().any(|name| name == step.name);
        let read: Vec<&String> = steps.iter().filter(|step| is_named(step)).flat_map(|step| &step.after).collect();
        for step in steps.iter().filter(|step| is_named(step) || read.contains(&&step.name)) {
            let (arguments, seconds) = step.run(quick).unwrap_or((&step.command, step.seconds));
            let command = match launch.command(step, arguments, &step.gathers) {
                Ok(command) => command.to_string(),
                Err(why) => format!("not on this machine: {why}"),
            };
            match step.run(quick) {
                Some(_) => writeln!(out, "  about {seconds} s: {command}")?,
                None => writeln!(out, "  left out by --quick: {command}")?,
            }
        }
    }
    Ok(())
}

/// This machine, in words.
fn here() -> String {
    let first = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let info = first("/proc/cpuinfo");
    let value = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map_or("unknown processor", |(_, value)| value.trim()).to_owned()
    };
    let is_virtual = info.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kind = if is_virtual { ", a virtual machine" } else { "" };
    format!(
        "{}, Linux {}, {}{kind}",
        value("model name"),
        first("/proc/sys/kernel/osrelease"),
        becalm_units::counted(cpus as u64, "CPU", "CPUs")
    )
}
