//! Records a study: turn after turn, each configuration in its own process.

use std::path::{Path, PathBuf};
use std::{fs, io};

use becalm_command::Exit;
use becalm_command::child;
use becalm_command::messages::say;
use becalm_command::progress::{Bar, Tail};
use becalm_linux::access::Access;
use becalm_linux::folder;
use becalm_linux::procfs::kernel;
use becalm_linux::relay::Relay;
use becalm_linux::sysfs::cpu::CpuSets;
use becalm_measure::machine;
use becalm_model::node_name;
use becalm_units::Named;
use becalm_units::fault::{Context, Result, UsageError};

use super::StudyArgs;
use super::recording::{RecordingEnd, record};
use crate::study::configuration::{Configuration, Cpus};
use crate::study::document::{ConfigurationDoc, ConfigurationOutcome, SCHEMA, StudyDoc};
use crate::study::file;
use crate::study::record_command::{RecordCommand, arguments, run_name};

/// Makes the directory and records the configurations in it, turn after turn. Fails if the CPUs are not online, the directory cannot be
/// made, or no recording can be started.
pub fn record_all(args: &StudyArgs) -> Result<(PathBuf, StudyDoc, Exit)> {
    let root = Path::new("/");
    let signals = Relay::block().context("cannot block signals")?;
    let online = CpuSets::read(root)?.online;
    let all = args.cpus.clone().unwrap_or_else(|| online.clone());
    let absent = all.without(&online);
    if !absent.is_empty() {
        return Err(
            UsageError::new(format!("{} not online; online are {online}", becalm_units::cpus_are(&absent))).into()
        );
    }
    let node = node_name(&kernel::hostname(root)?);
    let begun = jiff::Timestamp::now();
    let folder =
        args.output.clone().unwrap_or_else(|| format!("{node}-{}.study", begun.strftime("%Y%m%dT%H%M%SZ")).into());
    // An existing directory is never overwritten.
    folder::make_new(&folder, Access::guarded())
        .with_context(|| format!("cannot make the directory {} for the study", folder.display()))?;
    let recording = RecordCommand {
        duration: args.turn(),
        priority: args.priority.to_string(),
        profile: args.profile,
        sources: !args.no_sources,
        folder: &folder,
    };
    let cpus = Cpus::find(root, &all, &online)?;
    let wanted = |configuration: &Configuration| args.only.is_empty() || args.only.contains(configuration);
    let configurations = Configuration::ALL.iter().filter(|one| wanted(one));
    let mut doc = StudyDoc {
        schema: SCHEMA.to_owned(),
        program: concat!("becalm ", env!("CARGO_PKG_VERSION")).to_owned(),
        node,
        begun,
        machine: machine::describe(root),
        duration_ns: args.duration.get(),
        turns: args.turns,
        configurations: configurations.map(|one| recording.planned(*one, &cpus)).collect(),
    };
    file::store(&doc, &folder)?;
    let exit = record_turns(&mut doc, &recording, &signals)?;
    Ok((folder, doc, exit))
}

/// Resumes a study that was stopped or killed: records the runs that its document does not name yet. Fails if there is no study, it is of
/// another machine, kernel or becalm, or no recording can be started.
pub fn resume(folder: &Path) -> Result<(PathBuf, StudyDoc, Exit)> {
    let root = Path::new("/");
    let signals = Relay::block().context("cannot block signals")?;
    let mut doc = file::load(folder)?;
    let usage = |why: String| UsageError::new(format!("cannot go on with the study in {}: {why}", folder.display()));
    let (node, here) = (node_name(&kernel::hostname(root)?), machine::describe(root));
    if (&node, &here.kernel, &here.processor) != (&doc.node, &doc.machine.kernel, &doc.machine.processor) {
        let there = &doc.machine;
        return Err(usage(format!(
            "it is of {}: Linux {}, {}, and this is {node}: Linux {}, {}; turns of different machines cannot be compared",
            doc.node, there.kernel, there.processor, here.kernel, here.processor
        ))
        .into());
    }
    for configuration in &doc.configurations {
        let absent = configuration.cpus.without(&here.online);
        if !absent.is_empty() {
            return Err(usage(format!("{} not online", becalm_units::cpus_are(&absent))).into());
        }
    }
    let recording = RecordCommand::read_back(&doc, folder).map_err(usage)?;
    let exit = record_turns(&mut doc, &recording, &signals)?;
    Ok((folder.to_owned(), doc, exit))
}

/// Records what was planned, and keeps the document up to date, so recordings can be shown whatever happens.
fn record_turns(doc: &mut StudyDoc, recording: &RecordCommand<'_>, signals: &Relay) -> Result<Exit> {
    let turns = doc.turns;
    let configurations: Vec<Configuration> =
        doc.configurations.iter().map(|one| one.name.parse()).collect::<Result<_, _>>()?;
    let steps = u64::from(turns) * configurations.len() as u64;
    let bar = Bar::new("recording", steps, Tail::Steps);
    for turn in 1..=turns {
        for (step, at) in order(turn, configurations.len()).into_iter().enumerate() {
            let (configuration, one) = (configurations[at], &mut doc.configurations[at]);
            bar.reach(u64::from(turn - 1) * configurations.len() as u64 + step as u64);
            bar.say(format!("recording {}", one.name));
            if !is_due(one, turn) {
                continue;
            }
            remove_unfinished(&recording.folder.join(run_name(configuration, turn)))?;
            let words = recording.words(configuration, turn, &one.cpus);
            let mut process = child::becalm()?;
            process.args(arguments(&words, process.get_program()));
            let end = record(process, signals)?;
            if end == RecordingEnd::Stopped {
                drop(bar);
                say(format_args!("interrupted at {}, in turn {turn} of {turns}", one.name));
                let folder = recording.folder.display();
                say(format_args!("the recordings are kept; to continue: becalm study --resume {folder}"));
                return Ok(Exit::Failed);
            }
            recorded(&mut one.outcome, run_name(configuration, turn), end);
            file::store(doc, recording.folder)?;
        }
    }
    Ok(Exit::Done)
}

/// The indexes of this many configurations in the order of a turn, counted from 1. Every other turn goes backwards, so a steady drift
/// affects the first as much as the last, and none always follows the same one.
fn order(turn: u32, configurations: usize) -> Vec<usize> {
    let forth = 0..configurations;
    if turn % 2 == 1 { forth.collect() } else { forth.rev().collect() }
}

/// True if it is to be recorded in this turn, counted from 1: not if it already was, and not after a failure, which would leave a gap among
/// the turns.
fn is_due(configuration: &ConfigurationDoc, turn: u32) -> bool {
    let can_be = matches!(
        configuration.outcome,
        ConfigurationOutcome::Planned | ConfigurationOutcome::Recorded { failed: None, .. }
    );
    can_be && configuration.runs().len() < turn as usize
}

/// Removes an unfinished recording of a stopped study: the document does not name it, and its turn is recorded again.
fn remove_unfinished(run: &Path) -> Result<()> {
    match fs::remove_dir_all(run) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove the unfinished recording {}", run.display()))
        }
        _ => Ok(()),
    }
}

/// Notes how the recording of a turn ended.
fn recorded(outcome: &mut ConfigurationOutcome, run: String, end: RecordingEnd) {
    match (&mut *outcome, end) {
        (_, RecordingEnd::Stopped) => {}
        (ConfigurationOutcome::Recorded { runs, .. }, RecordingEnd::Whole) => runs.push(run),
        (_, RecordingEnd::Whole) => *outcome = ConfigurationOutcome::Recorded { runs: vec![run], failed: None },
        (ConfigurationOutcome::Recorded { failed, .. }, RecordingEnd::Failed(why)) => *failed = Some(why),
        (_, RecordingEnd::Failed(why)) => *outcome = ConfigurationOutcome::Skipped { why },
    }
}

#[cfg(test)]
mod tests {
    use becalm_units::CpuList;

    use super::*;

    /// A steady drift affects all configurations equally in an even number of turns, and nearly so in an odd one.
    #[test]
    fn no_place_in_the_order_is_better_than_another() {
        let places = |turns: u32| -> Vec<usize> {
            let mut sums = vec![0; 5];
            for (place, at) in (1..=turns).flat_map(|turn| order(turn, 5)).enumerate() {
                sums[at] += place;
            }
            sums
        };
        assert_eq!(places(4), [38; 5]);
        // Without the way back it would be 15 to 27.
        assert_eq!(places(3), [19, 20, 21, 22, 23]);
        assert_eq!(order(1, 3), [0, 1, 2]);
    }

    #[test]
    fn a_failure_skips_what_was_never_recorded_and_ends_what_was() {
        let failed = || RecordingEnd::Failed("no right".to_owned());
        let mut one = ConfigurationDoc {
            name: "a".to_owned(),
            what: String::new(),
            cpus: CpuList::default(),
            idle: CpuList::default(),
            sched: "other".to_owned(),
            command: Vec::new(),
            outcome: ConfigurationOutcome::Planned,
        };
        recorded(&mut one.outcome, "a-1".to_owned(), RecordingEnd::Stopped);
        assert_eq!((&one.outcome, is_due(&one, 1)), (&ConfigurationOutcome::Planned, true));
        let mut never = one.clone();
        recorded(&mut never.outcome, "a-1".to_owned(), failed());
        let skipped = ConfigurationOutcome::Skipped { why: "no right".to_owned() };
        assert_eq!((&never.outcome, is_due(&never, 1)), (&skipped, false));
        for turn in 1..=2 {
            recorded(&mut one.outcome, format!("a-{turn}"), RecordingEnd::Whole);
            assert!(!is_due(&one, turn) && is_due(&one, turn + 1), "what was recorded is not recorded again");
        }
        recorded(&mut one.outcome, "a-3".to_owned(), failed());
        let runs = vec!["a-1".to_owned(), "a-2".to_owned()];
        assert_eq!(one.outcome, ConfigurationOutcome::Recorded { runs, failed: Some("no right".to_owned()) });
        assert!(!is_due(&one, 3));
    }
}
