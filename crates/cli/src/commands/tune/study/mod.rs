//! `becalm tune study`: configurations of a machine recorded one after another, and what each costs a job of many ranks.
//!
//! Each configuration is recorded by a process of its own, as a user would do it; nothing of the study runs on the measured
//! CPUs meanwhile but its waiting.

mod configurations;

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use becalm_analyze::summary::{Selection, summarize};
use becalm_bundle::Bundle;
use becalm_bundle::study::{self, FILE};
use becalm_linux::procfs::kernel;
use becalm_linux::sched::Policy;
use becalm_linux::signals::{self, StopSignals};
use becalm_linux::sysfs::cpu::CpuSets;
use becalm_measure::machine;
use becalm_model::node::Rung;
use becalm_model::node_name;
use becalm_model::study::{ConfigurationDoc, Outcome, SCHEMA, StudyDoc};
use becalm_report::{Studied, StudyReport};
use becalm_scale::collective::Collective;
use becalm_scale::predict::{Prediction, Question};
use becalm_tune::Profile;
use becalm_units::{Count, CpuList, Nanos};
use clap::Args;

use self::configurations::{Configuration, Cpus, Recording, arguments, planned, run_name};
use crate::arguments::some_cpus;
use crate::commands::predict::short_recording;
use crate::exit::{Exit, UsageError};
use crate::messages::say;
use crate::noise;
use crate::output::{Output, emit};
use crate::progress;

/// Record a machine under several configurations, and say what each costs a job of many ranks (De 2009)
///
/// The configurations are: as it is, with real-time priority, on isolated CPUs, with idle siblings, with one core left idle, and
/// all of them combined. Each is recorded with its sources; then a job on up to 16,384 ranks is simulated under the noise of
/// each. What this machine cannot do is said and skipped. becalm's own work is taken out of all of them alike.
///
/// The recordings and study.json lie in a folder; --from shows them again. What isolation changes is put back after each.
#[derive(Args, Debug)]
pub struct StudyArgs {
    /// Only these configurations
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum, conflicts_with = "from")]
    only: Vec<Configuration>,

    /// The CPUs that a job would use [default: all that are online]
    #[arg(long, value_name = "LIST", value_parser = some_cpus, allow_hyphen_values = true, conflicts_with = "from")]
    cpus: Option<CpuList>,

    /// How long each configuration is recorded
    #[arg(long, value_name = "TIME", default_value = "30s", allow_hyphen_values = true, conflicts_with = "from")]
    duration: Nanos,

    /// The real-time class
    #[arg(long, value_name = "CLASS", default_value = "rr:80", conflicts_with = "from")]
    priority: Policy,

    /// How CPUs are isolated: a profile of becalm tune plan
    #[arg(long, value_name = "PROFILE", default_value = "hpc", conflicts_with = "from")]
    profile: Profile,

    /// Only catch detours; do not trace the kernel for their sources
    #[arg(long, conflicts_with = "from")]
    no_sources: bool,

    /// The folder for the recordings [default: HOST-TIME.study]
    #[arg(short, long, value_name = "FOLDER", conflicts_with = "from")]
    output: Option<PathBuf>,

    /// Measure nothing; show the study in this folder
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,

    /// Numbers of ranks of the job, where k is 1,024
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64,256,1k,4k,16k")]
    ranks: Vec<Count>,

    /// Useful CPU time of a phase
    #[arg(long, value_name = "TIME", default_value = "1ms", allow_hyphen_values = true)]
    grain: Nanos,

    /// How many phases to replay
    #[arg(long, value_name = "N", default_value = "10000")]
    phases: Count,

    /// How often the job is replayed, each time from other offsets
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    replicas: u64,

    /// What offsets are drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print one JSON document (becalm.tune-study/1)
    #[arg(long)]
    json: bool,

    /// Write a page for a browser instead: one file with charts, which opens offline
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

/// Records what is to be recorded, and shows what it comes to.
///
/// # Errors
/// If nothing can be recorded or read, or the output cannot be written.
pub fn run(args: &StudyArgs, out: &mut dyn Write) -> Result<Exit> {
    let question = question(args)?;
    // Whether it can be written is found out before anything is measured.
    let output = match &args.html {
        Some(file) => Output::page(file)?,
        None => Output::new(args.json, false),
    };
    let (folder, doc, exit) = match &args.from {
        Some(folder) => (folder.clone(), study::load(folder)?, Exit::Done),
        None => record_all(args)?,
    };
    let studied =
        doc.configurations.iter().map(|of| studied(&folder, of, args, question)).collect::<Result<Vec<_>>>()?;
    let report = StudyReport { doc: &doc, studied: &studied, question };
    emit(&report, output, out)?;
    if args.from.is_none() {
        say(format_args!("the recordings are in {}", folder.display()));
    }
    Ok(if studied.iter().all(Option::is_none) { Exit::Failed } else { exit })
}

/// The job that is simulated; one that cannot be is refused before anything is measured.
fn question(args: &StudyArgs) -> Result<Question> {
    let usage = |text: String| Err(UsageError(text).into());
    if args.grain <= Nanos::ZERO {
        return usage("--grain is 0: a phase without work says nothing about noise".to_owned());
    }
    if args.ranks.iter().any(|ranks| ranks.get() == 0) {
        return usage("--ranks holds 0: a job has ranks".to_owned());
    }
    if !args.ranks.is_sorted() {
        return usage("--ranks is to rise".to_owned());
    }
    if let Some(most) = args.ranks.iter().find(|ranks| ranks.get() > becalm_scale::placement::RANKS_LIMIT) {
        return usage(format!("{most} ranks are more than a replay can hold; becalm predict goes further"));
    }
    if args.duration < Nanos::from_millis(100) || args.duration > Nanos::from_secs(86_400) {
        return usage("--duration lies from 100ms to 24h".to_owned());
    }
    Ok(Question {
        grain: args.grain,
        phases: args.phases.get(),
        collective: Collective::Ideal,
        network: "infiniband".parse()?,
        bytes: 8,
        per_node: 1,
        synchronized: false,
        seed: args.seed,
        replicas: args.replicas,
    })
}

/// Makes the folder and records one configuration after another in it.
fn record_all(args: &StudyArgs) -> Result<(PathBuf, StudyDoc, Exit)> {
    let root = Path::new("/");
    let signals = StopSignals::block().context("cannot block signals")?;
    let program = env::current_exe().context("cannot find this program's own file")?;
    let online = CpuSets::read(root)?.online;
    let all = args.cpus.clone().unwrap_or_else(|| online.clone());
    let absent = all.without(&online);
    if !absent.is_empty() {
        return Err(UsageError(format!("CPU {absent} is not online; online are {online}")).into());
    }
    let node = node_name(&kernel::hostname(root)?);
    let begun = jiff::Timestamp::now();
    let folder =
        args.output.clone().unwrap_or_else(|| format!("{node}-{}.study", begun.strftime("%Y%m%dT%H%M%SZ")).into());
    // Whatever is there stays.
    fs::create_dir(&folder).with_context(|| format!("cannot make the folder {} for the study", folder.display()))?;
    let recording = Recording {
        duration: args.duration,
        priority: args.priority.to_string(),
        profile: args.profile,
        sources: !args.no_sources,
        folder: &folder,
    };
    let cpus = Cpus::find(root, &all, &online)?;
    let wanted = |of: &Configuration| args.only.is_empty() || args.only.contains(of);
    let mut doc = StudyDoc {
        schema: SCHEMA.to_owned(),
        program: concat!("becalm ", env!("CARGO_PKG_VERSION")).to_owned(),
        node,
        begun,
        machine: machine::describe(root),
        duration_ns: args.duration.get(),
        configurations: Configuration::ALL
            .into_iter()
            .filter(wanted)
            .map(|of| planned(of, &cpus, &recording))
            .collect(),
    };
    study::store(&doc, &folder)?;
    let bar = progress::bar(doc.configurations.len() as u64, "recording {msg} {wide_bar} {pos} of {len}");
    let mut exit = Exit::Done;
    for at in 0..doc.configurations.len() {
        let configuration = &doc.configurations[at];
        bar.set_position(at as u64);
        bar.set_message(configuration.name.clone());
        bar.tick();
        if configuration.outcome == Outcome::Planned {
            match record(&program, configuration, &signals)? {
                Recorded::Stopped => {
                    say(format_args!("interrupted at {}", configuration.name));
                    exit = Exit::Failed;
                    break;
                }
                Recorded::Whole => doc.configurations[at].outcome = Outcome::Recorded { run: run_name(configuration) },
                Recorded::Failed(why) => doc.configurations[at].outcome = Outcome::Skipped { why },
            }
            study::store(&doc, &folder)?;
        }
    }
    bar.finish_and_clear();
    Ok((folder, doc, exit))
}

/// How the recording of a configuration ended.
enum Recorded {
    Whole,
    /// What it said last.
    Failed(String),
    /// A signal is to end the study.
    Stopped,
}

/// How often it is looked whether a recording has ended: seldom, as that is noise.
const LOOK: Duration = Duration::from_millis(200);

fn record(program: &Path, configuration: &ConfigurationDoc, signals: &StopSignals) -> Result<Recorded> {
    let mut command = Command::new(program);
    command.args(arguments(&configuration.command, program));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child =
        signals.let_through(|| command.spawn()).with_context(|| format!("cannot start {}", program.display()))?;
    // Or a recording with much to say would wait for its reader for ever.
    let said = child.stderr.take().map(|mut stderr| {
        thread::spawn(move || {
            let mut said = Vec::new();
            // What cannot be read was not said.
            let _ = stderr.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        })
    });
    let (status, stopped) = wait(&mut child, signals)?;
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    Ok(match (stopped, status.success()) {
        (true, _) => Recorded::Stopped,
        (false, true) => Recorded::Whole,
        (false, false) => Recorded::Failed(last_words(&said, &status.to_string())),
    })
}

/// Waits for the end; a signal is passed on, so that the recording ends in order and isolation is undone.
fn wait(child: &mut Child, signals: &StopSignals) -> Result<(std::process::ExitStatus, bool)> {
    let mut stopped = false;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the recording")? {
            return Ok((status, stopped));
        }
        if signals.take().is_some() {
            stopped = true;
            // One that is gone has ended.
            let _ = signals::terminate(child.id());
        }
        thread::sleep(LOOK);
    }
}

/// The last line of messages without the program's name, or how the process ended.
fn last_words(said: &str, status: &str) -> String {
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or_else(|| status.to_owned(), |line| line.strip_prefix("becalm: ").unwrap_or(line).to_owned())
}

/// Reads a recording and simulates the job under its noise; nothing where there is none.
fn studied(folder: &Path, of: &ConfigurationDoc, args: &StudyArgs, question: Question) -> Result<Option<Studied>> {
    let Outcome::Recorded { run } = &of.outcome else { return Ok(None) };
    let bundle = Bundle::open(&folder.join(run))
        .with_context(|| format!("cannot read {}, which {} of the study names", run, folder.join(FILE).display()))?;
    let everything = Selection { node: None, cpus: None };
    let summary = summarize(&bundle, &everything)?;
    let mut source = noise::from_run(&bundle, &everything, summary.rung == Rung::Tracepoints)?;
    source.take_out_kind("self")?;
    let ranks: Vec<u64> = args.ranks.iter().map(|ranks| ranks.get()).collect();
    let prediction = Prediction::new(&source.noise, question)?;
    let rows = ranks.iter().map(|ranks| prediction.row(*ranks)).collect::<Result<Vec<_>, _>>()?;
    let mut warnings = std::mem::take(&mut source.warnings);
    warnings.extend(short_recording(&source, &question, &ranks));
    Ok(Some(Studied { summary, rows, warnings }))
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn the_last_words_say_why() {
        assert_eq!(
            last_words("becalm: 1\nbecalm: cannot set the class rr:80\n\n", "exit status: 1"),
            "cannot set the class rr:80"
        );
        assert_eq!(last_words(" \n", "exit status: 1"), "exit status: 1");
    }
}
