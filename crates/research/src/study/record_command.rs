//! The command that records a configuration of a study, in the words of a user.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use becalm_model::tune::Profile;
use becalm_units::{CpuList, Named, Nanos};

use super::configuration::{Configuration, Cpus};
use super::document::{ConfigurationDoc, ConfigurationOutcome, StudyDoc};

/// The common parameters of all recordings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordCommand<'a> {
    /// The recording time of a configuration per turn.
    pub duration: Nanos,
    /// The real-time class of the configurations that have one: `rr:80`.
    pub priority: String,
    /// The isolation profile.
    pub profile: Profile,
    /// Whether the kernel is traced.
    pub sources: bool,
    /// The directory of the study.
    pub folder: &'a Path,
}

/// The name of a configuration's bundle of a turn, counted from 1, in the study's directory.
pub fn run_name(configuration: Configuration, turn: u32) -> String {
    format!("{}-{turn}.becalm", configuration.name())
}

impl<'a> RecordCommand<'a> {
    /// The command of a study's document; `folder` is its present directory. Fails if a command differs from the one that this becalm would
    /// use: no command is run just because a document contains it.
    pub fn read_back(doc: &StudyDoc, folder: &'a Path) -> Result<Self, String> {
        let value = |command: &[String], option: &str| {
            command.iter().position(|word| word == option).and_then(|at| command.get(at + 1)).cloned()
        };
        // A configuration that this machine cannot run has no command.
        let recorded = || doc.configurations.iter().filter(|one| !one.command.is_empty());
        let is_real_time = |one: &&ConfigurationDoc| one.sched != "other";
        let profile = recorded().find_map(|one| value(&one.command, "--profile"));
        let command = Self {
            duration: turn(Nanos::new(doc.duration_ns), doc.turns),
            priority: recorded().find(is_real_time).map_or_else(|| "other".to_owned(), |one| one.sched.clone()),
            profile: profile.map_or(Ok(Profile::default()), |name| name.parse()).map_err(|error| error.to_string())?,
            sources: !recorded().any(|one| one.command.iter().any(|word| word == "--no-sources")),
            folder,
        };
        for one in recorded() {
            let configuration: Configuration = one.name.parse().map_err(|error| format!("{error}"))?;
            let own = command.words(configuration, 1, &one.cpus);
            // The last word is the output path at that time.
            if own[..own.len() - 1] != one.command[..one.command.len() - 1] {
                return Err(format!("the command of '{}' is none that this becalm would record it by", one.name));
            }
        }
        Ok(command)
    }

    /// The scheduling class of a configuration: `other` unless it has priority.
    fn sched(&self, configuration: Configuration) -> &str {
        if configuration.has_priority() { &self.priority } else { "other" }
    }

    /// The words of the command for a turn; `becalm` stands for this program.
    pub fn words(&self, configuration: Configuration, turn: u32, cpus: &CpuList) -> Vec<String> {
        let run = self.folder.join(run_name(configuration, turn));
        let sched = self.sched(configuration);
        let (cpus, duration, run) = (cpus.to_string(), self.duration.to_string(), run.display().to_string());
        let mut words: Vec<String> = Vec::new();
        if configuration.is_isolated() {
            words.extend(["becalm", "tune", "run", "--cpus", &cpus, "--profile"].map(str::to_owned));
            words.push(self.profile.to_string());
            if configuration.has_priority() {
                words.extend(["--priority", sched].map(str::to_owned));
            }
            // A recording needs root for its setup, and drops it itself.
            words.extend(["--as-root", "--"].map(str::to_owned));
        }
        let record = ["becalm", "record", "--quiet", "--cpus", &cpus, "--duration", &duration, "--sched", sched];
        words.extend(record.map(str::to_owned));
        if !self.sources {
            words.push("--no-sources".to_owned());
        }
        words.extend(["--output", &run].map(str::to_owned));
        words
    }

    /// A configuration before its first recording: planned, or skipped because this machine cannot run it.
    pub fn planned(&self, configuration: Configuration, cpus: &Cpus) -> ConfigurationDoc {
        let sched = self.sched(configuration);
        let doc = ConfigurationDoc {
            name: configuration.name().to_owned(),
            what: self.description(configuration, &cpus.first_core),
            cpus: CpuList::default(),
            idle: CpuList::default(),
            sched: sched.to_owned(),
            command: Vec::new(),
            outcome: ConfigurationOutcome::Planned,
        };
        match cpus.measured(configuration) {
            Ok(measured) => ConfigurationDoc {
                idle: cpus.all.without(&measured),
                command: self.words(configuration, 1, &measured),
                cpus: measured,
                ..doc
            },
            Err(why) => ConfigurationDoc { outcome: ConfigurationOutcome::Skipped { why }, ..doc },
        }
    }

    /// Describes a configuration; `core` is the one that some leave idle.
    fn description(&self, configuration: Configuration, core: &CpuList) -> String {
        let (sched, profile) = (self.sched(configuration), self.profile);
        match configuration {
            Configuration::Baseline => "ordinary processes on every CPU".to_owned(),
            Configuration::Priority => format!("class {sched} on every CPU"),
            Configuration::Isolated => format!("everything else moved off the CPUs (becalm tune run, {profile})"),
            Configuration::SiblingIdle => {
                "ordinary processes on one hardware thread of each core, the others idle".to_owned()
            }
            Configuration::OneLeftIdle => format!("ordinary processes on every CPU but {core}, idle"),
            Configuration::Combined => format!("isolated, class {sched}, siblings and {core} left idle"),
        }
    }
}

/// The recording time of a configuration per turn, in whole milliseconds.
pub fn turn(all: Nanos, turns: u32) -> Nanos {
    Nanos::from_millis(all.get() / i64::from(turns) / 1_000_000)
}

/// The words of a command for this program, with its path.
pub fn arguments(command: &[String], program: &OsStr) -> Vec<OsString> {
    let own = |word: &String| if word == "becalm" { program.to_owned() } else { word.into() };
    command.iter().skip(1).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::configuration::tests::machine;

    fn recording() -> RecordCommand<'static> {
        RecordCommand {
            duration: Nanos::from_secs(5),
            priority: "rr:80".to_owned(),
            profile: Profile::default(),
            sources: true,
            folder: Path::new("s.study"),
        }
    }

    #[test]
    fn commands_are_those_that_a_user_would_type() {
        let command = |configuration, turn, cpus: &str| recording().words(configuration, turn, &cpus.parse().unwrap());
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
        let words = arguments(&combined, OsStr::new("/opt/becalm"));
        assert_eq!((words[0].to_str(), words.iter().filter(|word| *word == "/opt/becalm").count()), (Some("tune"), 1));
    }

    #[test]
    fn what_cannot_be_had_is_skipped() {
        let root = machine(&["0", "1"]);
        let both: CpuList = "0-1".parse().unwrap();
        let cpus = Cpus::find(root.path(), &both, &both).unwrap();
        let planned = |configuration| recording().planned(configuration, &cpus);
        assert_eq!(
            planned(Configuration::Baseline).command.join(" "),
            "becalm record --quiet --cpus 0-1 --duration 5s --sched other --output s.study/baseline-1.becalm"
        );
        let combined = planned(Configuration::Combined);
        assert_eq!((combined.idle.to_string(), combined.sched.as_str()), ("0".to_owned(), "rr:80"));
        let skipped = planned(Configuration::SiblingIdle);
        assert!(skipped.command.is_empty() && matches!(skipped.outcome, ConfigurationOutcome::Skipped { .. }));
        assert!(skipped.cpus.is_empty() && skipped.idle.is_empty());
    }
}
