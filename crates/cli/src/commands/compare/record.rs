//! Records one side of a comparison: several recordings in sequence, each by a separate becalm process.

use std::path::{Path, PathBuf};
use std::process::Stdio;

#[cfg(feature = "observe")]
use becalm_bundle::node_document;
use becalm_bundle::{Bundle, Contents};
use becalm_command::child::{attend, becalm};
use becalm_command::messages::say;
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::procfs::kernel;
use becalm_linux::relay::Relay;
#[cfg(feature = "observe")]
use becalm_model::node::Ended;
use becalm_model::node::{NodeDoc, Rung};
use becalm_model::node_name;
#[cfg(feature = "observe")]
use becalm_observe::document::{ChoiceDoc, ObservedDoc};
use becalm_units::fault::{self, Context, Result, UsageError};
use becalm_units::{CpuList, Nanos};

/// The length of each recording without a model.
const DURATION: Nanos = Nanos::new(10_000_000_000);

#[derive(Debug)]
pub struct RecordedSide {
    paths: Vec<PathBuf>,
    settings: Settings,
}

/// The settings of each recording.
#[derive(Debug)]
struct Settings {
    /// The command that records.
    command: &'static str,
    /// Its arguments, without those of all commands.
    arguments: Vec<String>,
    duration: Nanos,
}

impl Default for Settings {
    fn default() -> Self {
        Self { command: "record", arguments: Vec::new(), duration: DURATION }
    }
}

/// The result of recording.
#[derive(Debug)]
pub enum RecordedEnd {
    /// All recordings are complete.
    Whole,
    /// A signal ended the recording.
    Stopped,
}

impl RecordedSide {
    /// Plans recordings like the first of the runs before them, under unused names. Fails if that run cannot be repeated here, or a name is
    /// taken.
    pub fn plan(number: usize, before: &[PathBuf], output: Option<&Path>, duration: Option<Nanos>) -> Result<Self> {
        let settings = before.first().map(|path| settings_of(path)).transpose()?.unwrap_or_default();
        let stem = match (output, before.first()) {
            (Some(output), _) => stem(output),
            (None, Some(first)) => {
                let stem = stem(first);
                let name = stem.file_name().unwrap_or_default().to_string_lossy().into_owned();
                stem.with_file_name(format!("{}-after", without_number(&name)))
            }
            (None, None) => PathBuf::from(format!(
                "{}-{}",
                node_name(&kernel::hostname(Path::new("/"))?),
                jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ")
            )),
        };
        if stem.file_name().is_none() {
            return Err(UsageError::new("the name of the recordings is empty; give one, like --output after").into());
        }
        let name = stem.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let paths: Vec<PathBuf> =
            (1..=number).map(|turn| stem.with_file_name(format!("{name}-{turn}.becalm"))).collect();
        if let Some(taken) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
            let text =
                format!("{} exists already; give the new recordings another name with --output", taken.display());
            return Err(UsageError::new(text).into());
        }
        let settings = Settings { duration: duration.unwrap_or(settings.duration), ..settings };
        Ok(Self { paths, settings })
    }

    /// The recordings' paths in order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Records them.
    pub fn record(&self) -> Result<RecordedEnd> {
        let signals = Relay::block().context("cannot block signals")?;
        let all = self.paths.len();
        let Settings { command: name, arguments, duration } = &self.settings;
        for (at, path) in self.paths.iter().enumerate() {
            say(format_args!("recording {} of {all}, {duration}: {}", at + 1, path.display()));
            let mut command = becalm()?;
            command.args([*name, "--quiet"]).arg(format!("--duration={duration}")).args(arguments);
            command.arg("--output").arg(path).stdin(Stdio::null()).stdout(Stdio::null());
            begin_in(&mut command, ProgramStart::default(), Some(&signals))?;
            let child = command.spawn().with_context(|| format!("cannot run becalm {name}"))?;
            let waited = attend(child, &signals).with_context(|| format!("cannot wait for becalm {name}"));
            let (status, signal) = waited?;
            if signal.is_some() {
                say(format_args!("interrupted in recording {} of {all}{}", at + 1, kept(&self.paths)));
                return Ok(RecordedEnd::Stopped);
            }
            fault::ensure!(
                status.success(),
                "recording {} of {all} failed, see above{}",
                at + 1,
                kept(&self.paths[..at])
            );
        }
        Ok(RecordedEnd::Whole)
    }
}

/// Describes which of these recordings are kept.
fn kept(paths: &[PathBuf]) -> String {
    let is_kept = |path: &&PathBuf| match Contents::read(path) {
        Ok(Contents::Observed) => true,
        _ => Bundle::open(path).is_ok(),
    };
    let kept: Vec<String> = paths.iter().filter(is_kept).map(|path| path.display().to_string()).collect();
    if kept.is_empty() { "; nothing was recorded".to_owned() } else { format!("; kept: {}", kept.join(" ")) }
}

/// A recording's name without its suffix.
fn stem(path: &Path) -> PathBuf {
    if path.extension().is_some_and(|extension| extension == "becalm") {
        path.with_extension("")
    } else {
        path.to_owned()
    }
}

/// A name without its final number: `before` for `before-1`.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((stem, number)) if !stem.is_empty() && !number.is_empty() && number.len() < 4 => {
            if number.bytes().all(|byte| byte.is_ascii_digit()) { stem } else { name }
        }
        _ => name,
    }
}

/// The refusal to record like this run.
fn refusal(path: &Path, why: &str) -> UsageError {
    UsageError::new(format!("cannot record like {}: {why}", path.display()))
}

/// Fails if a run is of another machine.
fn refuse_elsewhere(path: &Path, node: &str) -> Result<()> {
    let here = node_name(&kernel::hostname(Path::new("/"))?);
    if node == here {
        return Ok(());
    }
    Err(refusal(path, &format!("it is of node {node}, and this is {here}; record on the same machine")).into())
}

/// The settings of a run.
fn settings_of(path: &Path) -> Result<Settings> {
    #[cfg(feature = "observe")]
    if matches!(Contents::read(path), Ok(Contents::Observed)) {
        return settings_of_threads(path);
    }
    let bundle = Bundle::open(path)?;
    let [doc] = bundle.nodes() else {
        return Err(refusal(path, "it has several nodes; record on each of them, and give all runs").into());
    };
    refuse_elsewhere(path, &doc.node)?;
    if !doc.settings.command.is_empty() {
        let text = "becalm does not start its command again; record both sides with becalm record";
        return Err(refusal(path, text).into());
    }
    if doc.settings.work.is_some() || doc.cpus.is_empty() {
        return Err(refusal(path, "it is not made by becalm record").into());
    }
    let cpus: CpuList = doc.cpus.iter().map(|cpu| cpu.cpu).collect();
    let (sched, threshold) = (&doc.settings.sched, &doc.settings.threshold);
    let mut arguments = vec![format!("--cpus={cpus}"), format!("--sched={sched}"), format!("--threshold={threshold}")];
    if doc.rung == Rung::Loop {
        arguments.push("--no-sources".to_owned());
    }
    Ok(Settings { command: "record", arguments, duration: length_of(doc) })
}

/// The settings of observed threads.
#[cfg(feature = "observe")]
fn settings_of_threads(path: &Path) -> Result<Settings> {
    let doc = node_document::load::<ObservedDoc>(path, None)?.doc;
    refuse_elsewhere(path, &doc.node)?;
    // An import does not know how the trace ended.
    if matches!(doc.ended, None | Some(Ended::Unknown)) {
        return Err(refusal(path, "it is no complete recording of becalm observe").into());
    }
    let ChoiceDoc { processes, names, groups, command, calls } = &doc.choice;
    if !command.is_empty() {
        let text = "becalm does not start its command again; observe both sides with becalm observe";
        return Err(refusal(path, text).into());
    }
    if let Some(gone) = processes.iter().find(|number| !Path::new(&format!("/proc/{number}")).exists()) {
        let text = format!("process {gone} has ended; observe both sides by name: becalm observe --comm NAME");
        return Err(refusal(path, &text).into());
    }
    let processes = processes.iter().map(|number| format!("--pid={number}"));
    let names = names.iter().map(|name| format!("--comm={name}"));
    let groups = groups.iter().map(|group| format!("--cgroup={group}"));
    let mut arguments: Vec<String> = processes.chain(names).chain(groups).collect();
    if *calls {
        arguments.push("--syscalls".to_owned());
    }
    // The books are some microseconds longer than planned.
    let length = Nanos::from_millis((doc.duration_ns.get() / 1_000_000).max(1));
    Ok(Settings { command: "observe", arguments, duration: length })
}

/// The planned length of a run, or else its actual one.
fn length_of(doc: &NodeDoc) -> Nanos {
    let lasted = || doc.cpus.iter().map(|cpu| cpu.duration_ns).max().filter(|length| *length > Nanos::ZERO);
    doc.settings.duration_ns.or_else(lasted).unwrap_or(DURATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_named_after_the_run_before() {
        let folder = tempfile::tempdir().unwrap();
        let names = |output: &str| -> Vec<String> {
            let side = RecordedSide::plan(2, &[], Some(&folder.path().join(output)), None).unwrap();
            side.paths().iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names("after"), ["after-1.becalm", "after-2.becalm"]);
        assert_eq!(names("after.becalm"), ["after-1.becalm", "after-2.becalm"]);
        assert_eq!(names("linux-6.18"), ["linux-6.18-1.becalm", "linux-6.18-2.becalm"]);
        assert_eq!(
            ["before-1", "before", "vm-20261129T022710Z", "6.18-x", "-1"].map(without_number),
            ["before", "before", "vm-20261129T022710Z", "6.18-x", "-1"]
        );
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("after-2.becalm")).unwrap();
        let error = RecordedSide::plan(3, &[], Some(&folder.path().join("after")), None).unwrap_err();
        assert!(error.to_string().contains("after-2.becalm exists already"), "{error}");
        assert!(error.is_usage());
    }
}
