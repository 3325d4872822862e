//! `becalm paper`: the published figures of a paper, found again.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, io};

use anyhow::Context;
use becalm_bundle::Draft;
use becalm_linux::folder;
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::relay::{self, Relay};
use becalm_linux::signals::{process_end, wait_readable};
use becalm_paper::{Item, ItemKind, Paper, Step, catalogue};
use becalm_report::PaperReport;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use crate::exit::{Exit, UsageError};
use crate::messages::say;
use crate::output::{Output, emit};

/// The page in the folder of a campaign.
const PAGE: &str = "index.html";

/// The numbers of SIGHUP, SIGINT, SIGQUIT and SIGTERM.
const ENDING: [i32; 4] = [1, 2, 3, 15];

/// Find the published tables and figures of a paper again, each beside what comes out here
///
/// Runs the becalm commands behind them, keeps their documents in a folder, and writes a page with every table and figure in the
/// paper's order. Begun again with the same folder, it goes on where it was stopped. Times of the paper's own machine are shown beside
/// those of this one and get no verdict; what this machine cannot do says why.
#[derive(Args, Debug)]
pub struct PaperArgs {
    /// The paper
    #[arg(value_name = "PAPER", value_parser = PossibleValuesParser::new(catalogue::names()))]
    paper: String,

    /// Only this figure of the paper; may be repeated, also beside --table
    #[arg(long, value_name = "N")]
    figure: Vec<u32>,

    /// Only this table of the paper
    #[arg(long, value_name = "N")]
    table: Vec<u32>,

    /// Leave out what takes long, and measure for seconds instead of minutes
    #[arg(long)]
    quick: bool,

    /// The folder of the campaign, also of one that was stopped [default: the paper's name]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// List tables and figures with the commands behind them, and run nothing
    #[arg(long, conflicts_with = "output")]
    list: bool,

    /// Print one JSON document (becalm.paper/1)
    #[arg(long, conflicts_with = "list")]
    json: bool,
}

impl PaperArgs {
    /// Whether nothing is run or written.
    pub const fn reads(&self) -> bool {
        self.list
    }
}

/// Runs the campaign, and prints what came of it.
///
/// # Errors
/// If the paper has no such table or figure, the folder cannot be written, or `out`.
pub fn run(args: &PaperArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let paper = catalogue::paper(&args.paper).context("no such paper")?;
    let items = chosen(args, &paper)?;
    let steps = needed(&paper, &items);
    if args.list {
        list(&items, &steps, args.quick, out)?;
        return Ok(Exit::Done);
    }
    let folder = args.output.clone().unwrap_or_else(|| PathBuf::from(&args.paper));
    let campaign = Campaign::open(folder, args.quick)?;
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
        lacking: HashMap::new(),
        broken: HashMap::new(),
        paper: paper.clone(),
    };
    for (number, step) in (1..).zip(&steps) {
        let name = step.name.clone();
        if let Some((command, _)) = step.run(args.quick) {
            report.commands.insert(name.clone(), format!("becalm {command}"));
        }
        match campaign.step(step, (number, steps.len()), &signals)? {
            StepEnd::Done(document) => drop(report.documents.insert(name, document)),
            StepEnd::LeftOut => drop(report.lacking.insert(name, "takes too long for a quick campaign".to_owned())),
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
    emit(&report, Output::new(args.json, false), out)?;
    let errors = report.errors();
    if let Some(first) = errors.first() {
        let more = becalm_units::counted(errors.len() as u64, "error", "errors");
        anyhow::bail!("{more} of becalm itself, not of this machine; the first: {first}");
    }
    Ok(Exit::Done)
}

/// The tables and figures that are asked for: all where none is named.
fn chosen(args: &PaperArgs, paper: &Paper) -> Result<Vec<Item>, UsageError> {
    let figures = args.figure.iter().map(|number| (ItemKind::Figure, "figure", *number));
    let tables = args.table.iter().map(|number| (ItemKind::Table, "table", *number));
    let asked: Vec<_> = figures.chain(tables).collect();
    let is = |item: &Item, kind, number| item.kind == kind && item.number == number;
    if let Some((_, what, number)) =
        asked.iter().find(|(kind, _, number)| !paper.items.iter().any(|item| is(item, *kind, *number)))
    {
        let message = format!("{} has no {what} {number} that becalm knows; --list names all", args.paper);
        return Err(UsageError(message));
    }
    let wanted = |item: &&Item| asked.is_empty() || asked.iter().any(|(kind, _, number)| is(item, *kind, *number));
    Ok(paper.items.iter().filter(wanted).cloned().collect())
}

/// The steps of these items, and those that make what they read.
fn needed<'a>(paper: &'a Paper, items: &[Item]) -> Vec<&'a Step> {
    let is_named = |step: &Step| items.iter().flat_map(Item::steps).any(|name| name == step.name);
    let read: Vec<&String> = paper.steps.iter().filter(|step| is_named(step)).flat_map(|step| &step.after).collect();
    paper.steps.iter().filter(|step| is_named(step) || read.contains(&&step.name)).collect()
}

fn list(items: &[Item], steps: &[&Step], quick: bool, out: &mut dyn Write) -> std::io::Result<()> {
    for item in items {
        writeln!(out, "{}: {}", item.name(), item.title)?;
        if !item.lacking.is_empty() {
            writeln!(out, "  ! {}", item.lacking)?;
        }
        let is_named = |step: &Step| item.steps().any(|name| name == step.name);
        let read: Vec<&String> = steps.iter().filter(|step| is_named(step)).flat_map(|step| &step.after).collect();
        for step in steps.iter().filter(|step| is_named(step) || read.contains(&&step.name)) {
            match step.run(quick) {
                Some((command, seconds)) => writeln!(out, "  about {seconds} s: becalm {command}")?,
                None => writeln!(out, "  left out by --quick: becalm {}", step.command)?,
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

/// How a step ended.
enum StepEnd {
    /// With its document.
    Done(Value),
    /// It was not run, as the campaign is a quick one.
    LeftOut,
    /// With what becalm said.
    Failed(String),
    /// A signal of this number came meanwhile.
    Stopped(i32),
}

/// A folder with the documents of steps.
struct Campaign {
    folder: PathBuf,
    quick: bool,
}

impl Campaign {
    /// A new folder, or that of a campaign.
    fn open(folder: PathBuf, quick: bool) -> anyhow::Result<Self> {
        let is_ours = folder.join("steps").is_dir();
        if !is_ours && fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
            let message = format!("{} holds something else than a campaign of becalm paper", folder.display());
            return Err(UsageError(message).into());
        }
        for name in ["steps", "inputs"] {
            let path = folder.join(name);
            folder::make_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        let campaign = Self { folder, quick };
        for (name, text) in catalogue::INPUTS {
            put(&campaign.folder.join("inputs").join(name), text)?;
        }
        Ok(campaign)
    }

    /// The file of a step with this ending.
    fn file(&self, step: &Step, ending: &str) -> PathBuf {
        self.folder.join("steps").join(format!("{}.{ending}", step.name))
    }

    /// What was stored for a step, if that was of the same command.
    fn stored(&self, step: &Step, command: &str) -> Option<Value> {
        let mut stored: Value = serde_json::from_str(&fs::read_to_string(self.file(step, "json")).ok()?).ok()?;
        let is_same = stored["command"] == command && stored["version"] == env!("CARGO_PKG_VERSION");
        is_same.then(|| stored["document"].take())
    }

    /// Says how many steps are to be run, and how long they take.
    fn announce(&self, steps: &[&Step]) {
        let left: Vec<f64> = steps
            .iter()
            .filter_map(|step| step.run(self.quick).filter(|(command, _)| self.stored(step, command).is_none()))
            .map(|(_, seconds)| seconds)
            .collect();
        let seconds = left.iter().sum::<f64>();
        say(format_args!(
            "{} to run, about {seconds:.0} s on a machine with two CPUs; the documents go to {}",
            becalm_units::counted(left.len() as u64, "step", "steps"),
            self.folder.join("steps").display()
        ));
    }

    /// Runs a step, unless its document is there already.
    fn step(&self, step: &Step, (number, of): (usize, usize), signals: &Relay) -> anyhow::Result<StepEnd> {
        let Some((command, _)) = step.run(self.quick) else { return Ok(StepEnd::LeftOut) };
        if let Some(document) = self.stored(step, command) {
            return Ok(StepEnd::Done(document));
        }
        say(format_args!("step {number} of {of}: becalm {command}"));
        for bundle in &step.makes {
            remove(&self.folder.join(bundle))?;
        }
        let begun = Instant::now();
        let (status, stopped) = self.child(step, command, signals)?;
        if let Some(signal) = stopped {
            return Ok(StepEnd::Stopped(signal));
        }
        let (printed, said) = (self.file(step, "out"), self.file(step, "err"));
        if !status.success() {
            let said = fs::read_to_string(&said).unwrap_or_default();
            let why = said.lines().rev().find_map(|line| line.strip_prefix("becalm: "));
            return Ok(StepEnd::Failed(why.unwrap_or("it ended without a word").to_owned()));
        }
        let text = fs::read_to_string(&printed).with_context(|| format!("cannot read {}", printed.display()))?;
        let Ok(document) = serde_json::from_str::<Value>(&text) else {
            return Ok(StepEnd::Failed("the command printed no document".to_owned()));
        };
        let seconds = begun.elapsed().as_secs_f64();
        let stored = json!({
            "command": command, "version": env!("CARGO_PKG_VERSION"), "seconds": seconds, "document": document,
        });
        put(&self.file(step, "json"), &format!("{stored:#}\n"))?;
        for file in [printed, said] {
            // They are in the document, or said nothing.
            let _ = fs::remove_file(file);
        }
        Ok(StepEnd::Done(document))
    }

    /// Runs becalm with these arguments and `--json`, what it prints in files; how it ended, and the number of the signal that came
    /// meanwhile.
    fn child(&self, step: &Step, command: &str, signals: &Relay) -> anyhow::Result<(ExitStatus, Option<i32>)> {
        let file = |ending: &str| {
            let path = self.file(step, ending);
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))
        };
        let program = env::current_exe().context("cannot find becalm itself")?;
        let mut child = Command::new(program);
        child.args(command.split_whitespace()).arg("--json").current_dir(&self.folder);
        child.stdin(Stdio::null()).stdout(file("out")?).stderr(file("err")?);
        begin_in(&mut child, ProgramStart { group: None, cpus: None, policy: None, user: None }, Some(signals))?;
        let child = child.spawn().with_context(|| format!("cannot run becalm {command}"))?;
        attend(child, signals).with_context(|| format!("cannot wait for becalm {command}"))
    }
}

/// Waits for a becalm, and passes signals on that are to end it.
fn attend(mut child: Child, signals: &Relay) -> io::Result<(ExitStatus, Option<i32>)> {
    let end = process_end(child.id()).ok();
    let mut stopped = None;
    loop {
        while let Some(incoming) = signals.take() {
            if !ENDING.contains(&incoming.signal) {
                continue;
            }
            stopped = Some(incoming.signal);
            // What a key at the terminal sends, it sends to the child as well. One that has just ended needs no signal.
            if !incoming.by_kernel {
                let _ = relay::send(child.id(), incoming.signal);
            }
        }
        if let Some(status) = child.try_wait()? {
            return Ok((status, stopped));
        }
        // Without a descriptor for its end, as on kernels before 5.3, it is looked at now and then.
        let patience = Duration::from_millis(if end.is_some() { 60_000 } else { 50 });
        wait_readable([Some(signals.as_fd()), end.as_ref().map(AsFd::as_fd)], patience)?;
    }
}

/// Writes a file whole or not at all.
fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut draft = Draft::replace(path)?;
    draft.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(draft.finish()?)
}

/// Removes what a step that was stopped left of a recording.
fn remove(bundle: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(bundle) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", bundle.display()))
        }
        _ => Ok(()),
    }
}
