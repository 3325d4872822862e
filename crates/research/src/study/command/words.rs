//! The command that records a configuration of a study, as a user would type it.

use std::ffi::OsString;
use std::path::Path;

use becalm_model::tune::Profile;
use becalm_units::{CpuList, Named, Nanos};

use crate::study::configuration::{Configuration, Means};
use crate::study::document::{ConfigurationDoc, StudyDoc};

/// What is the same for the recordings of all configurations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordCommand<'a> {
    /// How long each configuration is recorded in a turn.
    pub duration: Nanos,
    /// In which real-time class, and how CPUs are made quiet.
    pub means: Means,
    /// Whether the kernel is traced.
    pub sources: bool,
    /// The folder of the study.
    pub folder: &'a Path,
}

/// The name of a configuration's bundle of a turn, from 1 on, in the study's folder.
pub fn run_name(configuration: Configuration, turn: u32) -> String {
    format!("{}-{turn}.becalm", configuration.name())
}

/// The words of the command for a turn; `becalm` stands for this program.
pub fn command(configuration: Configuration, turn: u32, cpus: &CpuList, recording: &RecordCommand<'_>) -> Vec<String> {
    let run = recording.folder.join(run_name(configuration, turn));
    let sched = recording.means.sched(configuration);
    let (cpus, duration, run) = (cpus.to_string(), recording.duration.to_string(), run.display().to_string());
    let mut words: Vec<String> = Vec::new();
    if configuration.is_isolated() {
        words.extend(["becalm", "tune", "run", "--cpus", &cpus, "--profile"].map(str::to_owned));
        words.push(recording.means.profile.to_string());
        if configuration.has_priority() {
            words.extend(["--priority", sched].map(str::to_owned));
        }
        // A recording needs rights until it is set up, and gives them up itself.
        words.extend(["--as-root", "--"].map(str::to_owned));
    }
    let record = ["becalm", "record", "--quiet", "--cpus", &cpus, "--duration", &duration, "--sched", sched];
    words.extend(record.map(str::to_owned));
    if !recording.sources {
        words.push("--no-sources".to_owned());
    }
    words.extend(["--output", &run].map(str::to_owned));
    words
}

/// What the commands of a study's document say of how it is recorded; `folder` is where that lies now.
///
/// # Errors
/// In words, where a command is not one that a study of this becalm records by: nothing of a document is run as it stands there.
pub fn read_back<'a>(doc: &StudyDoc, folder: &'a Path) -> Result<RecordCommand<'a>, String> {
    let behind = |command: &[String], option: &str| {
        command.iter().position(|word| word == option).and_then(|at| command.get(at + 1)).cloned()
    };
    // What this machine cannot do has no command.
    let commands = || doc.configurations.iter().filter(|of| !of.command.is_empty());
    let is_real_time = |of: &&ConfigurationDoc| of.sched != "other";
    let priority = commands().find(is_real_time).map_or_else(|| "other".to_owned(), |of| of.sched.clone());
    let profile = commands().find_map(|of| behind(&of.command, "--profile"));
    let profile = profile.map_or(Ok(Profile::default()), |name| name.parse()).map_err(|error| format!("{error}"))?;
    let sources = !commands().any(|of| of.command.iter().any(|word| word == "--no-sources"));
    let duration = turn(Nanos::new(doc.duration_ns), doc.turns);
    let recording = RecordCommand { duration, means: Means { priority, profile }, sources, folder };
    for of in commands() {
        let configuration: Configuration = of.name.parse().map_err(|error| format!("{error}"))?;
        let own = command(configuration, 1, &of.cpus, &recording);
        // The last word is where it went.
        if own[..own.len() - 1] != of.command[..of.command.len() - 1] {
            return Err(format!("the command of '{}' is none that this becalm would record it by", of.name));
        }
    }
    Ok(recording)
}

/// How long each configuration is recorded in a turn of so many, in whole milliseconds.
pub fn turn(all: Nanos, turns: u32) -> Nanos {
    Nanos::from_millis(all.get() / i64::from(turns) / 1_000_000)
}

/// The words of a command for this program, wherever it lies.
pub fn arguments(command: &[String], program: &Path) -> Vec<OsString> {
    let own = |word: &String| if word == "becalm" { program.as_os_str().to_owned() } else { word.into() };
    command.iter().skip(1).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_that_a_user_would_type() {
        let recording = RecordCommand {
            duration: Nanos::from_secs(5),
            means: Means { priority: "rr:80".to_owned(), profile: Profile::default() },
            sources: true,
            folder: Path::new("s.study"),
        };
        let command =
            |configuration, turn, cpus: &str| command(configuration, turn, &cpus.parse().unwrap(), &recording);
        assert_eq!(
            command(Configuration::Baseline, 1, "0-1").join(" "),
            "becalm record --quiet --cpus 0-1 --duration 5s --sched other --output s.study/baseline-1.becalm"
        );
        let combined = command(Configuration::Combined, 2, "1");
        assert_eq!(
            combined.join(" "),
            "becalm tune run --cpus 1 --profile hpc --priority rr:80 --as-root -- becalm record --quiet --cpus 1 --duration 5s --sched \
             rr:80 --output s.study/combined-2.becalm"
        );
        let words = arguments(&combined, Path::new("/opt/becalm"));
        assert_eq!((words[0].to_str(), words.iter().filter(|word| *word == "/opt/becalm").count()), (Some("tune"), 1));
    }
}
