//! The directory of a campaign: the documents of its steps, and the code that runs them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Instant;

use becalm_bundle::Draft;
use becalm_command::child::attend;
use becalm_command::messages::say;
use becalm_linux::file::read_regular_text;
use becalm_linux::folder;
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::relay::Relay;
use becalm_units::fault::{self, Context, UsageError};
use serde_json::Value;

use super::program::{Launch, StepCommand};
use crate::paper::catalogue::{self, Step};
use crate::paper::step_document::{SCHEMA as STEP_SCHEMA, StepDocument};

/// The largest file of a campaign that is read, in bytes: a step's document has thousands.
const LARGEST: u64 = 64 << 20;

/// How a step ended.
pub enum StepEnd {
    /// With its document.
    Done(Value),
    /// It was not run, because the campaign is a quick one.
    LeftOut,
    /// With this message of becalm.
    Failed(String),
    /// A signal with this number stopped it.
    Stopped(i32),
}

/// A directory with the documents of steps.
pub struct Campaign {
    pub folder: PathBuf,
    quick: bool,
    launch: Launch,
    /// The numbers of steps that were started and announced.
    begun: usize,
    announced: usize,
}

impl Campaign {
    /// Opens a new directory, or that of a campaign. Fails if the directory has other contents, or cannot be written.
    pub fn open(folder: PathBuf, quick: bool, launch: Launch) -> fault::Result<Self> {
        let is_ours = folder.join("steps").is_dir();
        if !is_ours && fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
            let message = format!("{} holds something else than a campaign of becalm paper", folder.display());
            return Err(UsageError::new(message).into());
        }
        for name in ["steps", "inputs"] {
            let path = folder.join(name);
            folder::make_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        let campaign = Self { folder, quick, launch, begun: 0, announced: 0 };
        for (name, text) in catalogue::INPUTS {
            put(&campaign.folder.join("inputs").join(name), text)?;
        }
        Ok(campaign)
    }

    /// The file of a step with this suffix.
    fn file(&self, step: &Step, ending: &str) -> PathBuf {
        self.step_path(&step.name, ending)
    }

    fn step_path(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join("steps").join(format!("{name}.{ending}"))
    }

    /// The stored document of a step, if its command was the same and none of its inputs is newer.
    fn stored(&self, step: &Step, command: &str) -> Option<Value> {
        let stored: StepDocument =
            serde_json::from_str(&read_regular_text(&self.file(step, "json"), LARGEST).ok()?).ok()?;
        let is_same =
            stored.schema == STEP_SCHEMA && stored.command == command && stored.version == env!("CARGO_PKG_VERSION");
        let written = |name: &str| self.step_path(name, "json").metadata().and_then(|found| found.modified()).ok();
        let is_old = step.after.iter().any(|name| written(name) > written(&step.name));
        (is_same && !is_old).then_some(stored.document)
    }

    /// The command of a step with these arguments.
    fn command(&self, step: &Step, arguments: &str) -> Result<StepCommand, String> {
        let is_there = |run: &&String| self.folder.join(run).is_dir();
        let gathered: Vec<String> = step.gathers.iter().filter(is_there).cloned().collect();
        if !step.gathers.is_empty() && (gathered.len() < 2 || gathered[0] != step.gathers[0]) {
            return Err(format!(
                "{} or the recordings to compare it with are missing; see the steps before",
                step.gathers[0]
            ));
        }
        self.launch.command(step, arguments, &gathered)
    }

    /// Reports the number of steps to run, and their time.
    pub fn announce(&mut self, steps: &[&Step]) {
        let is_left = |step: &&&Step| {
            let Some((arguments, _)) = step.run(self.quick) else { return false };
            if self.launch.lacking(step).is_some() {
                return false;
            }
            // Steps that gather recordings of steps still to come are to be run, too.
            self.command(step, arguments)
                .map_or(!step.gathers.is_empty(), |command| self.stored(step, &command.to_string()).is_none())
        };
        let left: Vec<f64> =
            steps.iter().filter(is_left).filter_map(|step| step.run(self.quick)).map(|(_, seconds)| seconds).collect();
        self.announced = left.len();
        let seconds = left.iter().sum::<f64>();
        say(format_args!(
            "{} to run, about {seconds:.0} s on a machine with two CPUs; the documents go to {}",
            becalm_units::counted(left.len() as u64, "step", "steps"),
            self.folder.join("steps").display()
        ));
    }

    /// Runs a step, unless its document exists; returns its command, and how it ended. Fails if the directory cannot be written, or an
    /// existing program cannot be run.
    pub fn step(&mut self, step: &Step, signals: &Relay) -> fault::Result<(Option<String>, StepEnd)> {
        let Some((arguments, _)) = step.run(self.quick) else { return Ok((None, StepEnd::LeftOut)) };
        let command = match self.command(step, arguments) {
            Ok(command) => command,
            Err(why) => return Ok((None, StepEnd::Failed(why))),
        };
        let shown = command.to_string();
        let mut end = match self.stored(step, &shown) {
            Some(document) => StepEnd::Done(document),
            None => {
                self.remove_page(step)?;
                self.run(step, &command, signals)?
            }
        };
        if matches!(end, StepEnd::Done(_))
            && let Some(signal) = self.draw(step, signals)?
        {
            end = StepEnd::Stopped(signal);
        }
        Ok((Some(shown), end))
    }

    /// True if the page of a step exists.
    pub fn has_page(&self, step: &Step) -> bool {
        step.page_file().is_some_and(|file| self.folder.join(file).is_file())
    }

    /// Removes the page of a step that is to be measured again.
    fn remove_page(&self, step: &Step) -> fault::Result<()> {
        match step.page_file().map(|file| self.folder.join(file)) {
            Some(file) if file.exists() => {
                fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))
            }
            _ => Ok(()),
        }
    }

    /// Draws the results of a step, if it should have a page and has none yet. The figures do not need it. Returns the number of the signal
    /// that stopped it.
    fn draw(&self, step: &Step, signals: &Relay) -> fault::Result<Option<i32>> {
        let (Some(arguments), Some(file)) = (&step.page, step.page_file()) else { return Ok(None) };
        if self.has_page(step) {
            return Ok(None);
        }
        let Ok(command) = self.command(step, arguments) else { return Ok(None) };
        let (status, stopped) = self.child(step, &command, &["--html", &file], signals)?;
        let said = self.file(step, "err");
        if !status.success() && stopped.is_none() {
            say(format_args!("{file} was not drawn: {}", reason(&fs::read_to_string(&said).unwrap_or_default())));
        }
        for file in [self.file(step, "out"), said] {
            let _ = fs::remove_file(file);
        }
        Ok(stopped)
    }

    /// Runs a step, and stores its document.
    fn run(&mut self, step: &Step, command: &StepCommand, signals: &Relay) -> fault::Result<StepEnd> {
        if let Some(why) = self.launch.lacking(step) {
            return Ok(StepEnd::Failed(why));
        }
        let shown = command.to_string();
        let resumed = self.resumed(step, &shown)?;
        let command = resumed.as_ref().unwrap_or(command);
        self.begun += 1;
        say(format_args!("step {} of {}: {command}", self.begun, self.announced));
        let begun = Instant::now();
        let (status, stopped) = self.child(step, command, &["--json"], signals)?;
        if let Some(signal) = stopped {
            return Ok(StepEnd::Stopped(signal));
        }
        let (printed, said) = (self.file(step, "out"), self.file(step, "err"));
        if !status.success() {
            return Ok(StepEnd::Failed(reason(&fs::read_to_string(&said).unwrap_or_default())));
        }
        let text = fs::read_to_string(&printed).with_context(|| format!("cannot read {}", printed.display()))?;
        let Ok(document) = serde_json::from_str::<Value>(&text) else {
            return Ok(StepEnd::Failed("the command printed no document".to_owned()));
        };
        let stored = StepDocument {
            schema: STEP_SCHEMA.to_owned(),
            command: shown,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seconds: begun.elapsed().as_secs_f64(),
            document,
        };
        put(
            &self.file(step, "json"),
            &format!("{}\n", serde_json::to_string_pretty(&stored).map_err(io::Error::from)?),
        )?;
        for file in [printed, said, self.file(step, "begun")] {
            // Their contents are in the document, or were empty.
            let _ = fs::remove_file(file);
        }
        Ok(StepEnd::Done(stored.document))
    }

    /// The command that resumes a stopped step. For any other step, removes its results and returns `None`, so it starts again.
    fn resumed(&self, step: &Step, command: &str) -> fault::Result<Option<StepCommand>> {
        let begun = self.file(step, "begun");
        let mark = format!("{} {command}\n", env!("CARGO_PKG_VERSION"));
        let is_left = step.makes.iter().all(|bundle| self.folder.join(bundle).is_dir());
        if let Some(arguments) = step.resume.as_deref().filter(|_| is_left)
            && read_regular_text(&begun, LARGEST).is_ok_and(|text| text == mark)
        {
            return Ok(self.launch.command(step, arguments, &[]).ok());
        }
        for bundle in &step.makes {
            remove(&self.folder.join(bundle))?;
        }
        if step.resume.is_some() {
            put(&begun, &mark)?;
        }
        Ok(None)
    }

    /// Runs a command with these arguments and its output in files; returns how it ended, and the number of the signal that stopped it.
    fn child(
        &self,
        step: &Step,
        command: &StepCommand,
        form: &[&str],
        signals: &Relay,
    ) -> fault::Result<(ExitStatus, Option<i32>)> {
        let file = |ending: &str| {
            let path = self.file(step, ending);
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))
        };
        let mut child = self.launch.process(command)?;
        child.args(form).current_dir(&self.folder);
        child.stdin(Stdio::null()).stdout(file("out")?).stderr(file("err")?);
        begin_in(&mut child, ProgramStart::default(), Some(signals))?;
        let child = child.spawn().with_context(|| format!("cannot run {command}"))?;
        attend(child, signals).with_context(|| format!("cannot wait for {command}"))
    }
}

/// Why a program failed, from its output: becalm's last message, else the first line with words, which is the launcher's.
fn reason(said: &str) -> String {
    let of_becalm =
        |line: &'_ str| ["becalm: ", "becalm-mpi: "].iter().find_map(|name| line.strip_prefix(name).map(str::to_owned));
    let has_words = |line: &&str| line.contains(char::is_alphabetic);
    let first = || said.lines().map(str::trim).find(has_words).map(str::to_owned);
    said.lines().rev().find_map(of_becalm).or_else(first).unwrap_or_else(|| "it ended without a word".to_owned())
}

/// Writes a file whole or not at all.
fn put(path: &Path, text: &str) -> fault::Result<()> {
    let mut draft = Draft::replace(path)?;
    draft.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(draft.finish()?)
}

/// Removes the unfinished recording of a stopped step.
fn remove(bundle: &Path) -> fault::Result<()> {
    match fs::remove_dir_all(bundle) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", bundle.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn reasons_are_of_becalm_before_the_launcher() {
        let launcher = "-----\nThere are not enough slots available.\nEither request fewer.\n-----\n";
        assert_eq!(reason(launcher), "There are not enough slots available.");
        assert_eq!(reason(&format!("becalm-mpi: no right to that\n{launcher}")), "no right to that");
        assert_eq!(reason("becalm: one\nbecalm: two\n"), "two");
        assert_eq!(reason("----\n"), "it ended without a word");
    }
}
