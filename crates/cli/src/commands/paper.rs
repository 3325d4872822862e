//! `becalm paper`: the published figures of a paper, found again.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::Context;
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
    campaign.announce(&steps);
    let mut report = PaperReport {
        name: args.paper.clone(),
        here: here(),
        quick: args.quick,
        items,
        documents: HashMap::new(),
        commands: HashMap::new(),
        lacking: HashMap::new(),
        paper: paper.clone(),
    };
    for (number, step) in (1..).zip(&steps) {
        let name = step.name.clone();
        if let Some((command, _)) = step.run(args.quick) {
            report.commands.insert(name.clone(), format!("becalm {command}"));
        }
        match campaign.step(step, (number, steps.len()))? {
            Ok(document) => drop(report.documents.insert(name, document)),
            Err(why) => drop(report.lacking.insert(name, why)),
        }
    }
    emit(&report, Output::page(&campaign.folder.join(PAGE))?, out)?;
    emit(&report, Output::new(args.json, false), out)?;
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

/// The steps of these items. One that reads a recording has the step before it that makes the recording.
fn needed<'a>(paper: &'a Paper, items: &[Item]) -> Vec<&'a Step> {
    let is_named = |name: &str| items.iter().flat_map(Item::steps).any(|step| step == name);
    paper.steps.iter().filter(|step| is_named(&step.name)).collect()
}

fn list(items: &[Item], steps: &[&Step], quick: bool, out: &mut dyn Write) -> std::io::Result<()> {
    for item in items {
        writeln!(out, "{}: {}", item.name(), item.title)?;
        if !item.lacking.is_empty() {
            writeln!(out, "  ! {}", item.lacking)?;
        }
        for step in steps.iter().filter(|step| item.steps().any(|name| name == step.name)) {
            match step.run(quick) {
                Some((command, _)) => writeln!(out, "  becalm {command}")?,
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

/// A folder with the documents of steps.
struct Campaign {
    folder: PathBuf,
    quick: bool,
}

impl Campaign {
    fn open(folder: PathBuf, quick: bool) -> anyhow::Result<Self> {
        let failed = || format!("cannot make {}", folder.display());
        for name in ["steps", "inputs"] {
            fs::create_dir_all(folder.join(name)).with_context(failed)?;
        }
        for (name, text) in catalogue::INPUTS {
            fs::write(folder.join("inputs").join(name), text).with_context(failed)?;
        }
        Ok(Self { folder, quick })
    }

    fn document(&self, step: &Step) -> PathBuf {
        self.folder.join("steps").join(format!("{}.json", step.name))
    }

    /// What was stored for a step, if that was of the same command.
    fn stored(&self, step: &Step, command: &str) -> Option<Value> {
        let stored: Value = serde_json::from_str(&fs::read_to_string(self.document(step)).ok()?).ok()?;
        (stored["command"] == command && stored["version"] == env!("CARGO_PKG_VERSION"))
            .then(|| stored["document"].clone())
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
            "{} to run, about {seconds:.0} s; the documents go to {}",
            becalm_units::counted(left.len() as u64, "step", "steps"),
            self.folder.join("steps").display()
        ));
    }

    /// The document of a step, or why there is none.
    fn step(&self, step: &Step, (number, of): (usize, usize)) -> anyhow::Result<Result<Value, String>> {
        let Some((command, _)) = step.run(self.quick) else {
            return Ok(Err("takes too long for a quick campaign".to_owned()));
        };
        if let Some(document) = self.stored(step, command) {
            return Ok(Ok(document));
        }
        say(format_args!("step {number} of {of}: becalm {command}"));
        let words: Vec<&str> = command.split_whitespace().collect();
        if let Some(bundle) = words.iter().position(|word| *word == "-o").and_then(|at| words.get(at + 1)) {
            remove(&self.folder.join(bundle))?;
        }
        let program = env::current_exe().context("cannot find becalm itself")?;
        let mut child = Command::new(program);
        child.args(&words).arg("--json").current_dir(&self.folder).stdin(Stdio::null());
        let done = child.output().with_context(|| format!("cannot run becalm {command}"))?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            let why = said
                .lines()
                .rev()
                .find(|line| line.starts_with("becalm: "))
                .unwrap_or("becalm: it ended without a word");
            return Ok(Err(why.trim_start_matches("becalm: ").to_owned()));
        }
        let Ok(document) = serde_json::from_slice::<Value>(&done.stdout) else {
            return Ok(Err("the command printed no document".to_owned()));
        };
        let stored = json!({ "command": command, "version": env!("CARGO_PKG_VERSION"), "document": document });
        self.store(step, &stored)?;
        Ok(Ok(document))
    }

    /// Stores a document whole or not at all.
    fn store(&self, step: &Step, stored: &Value) -> anyhow::Result<()> {
        let path = self.document(step);
        let draft = path.with_extension("draft");
        let failed = || format!("cannot write {}", path.display());
        fs::write(&draft, format!("{stored:#}\n")).with_context(failed)?;
        fs::rename(&draft, &path).with_context(failed)
    }
}

/// Removes what a step that was stopped left of a recording.
fn remove(bundle: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(bundle) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", bundle.display()))
        }
        _ => Ok(()),
    }
}
