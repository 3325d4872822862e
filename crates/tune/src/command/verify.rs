//! Verifies that tuning helps: records the CPUs outside and inside in turn, and compares the recordings.
//!
//! A single recording of each would differ even on an unchanged machine, because its noise varies from minute to minute. Several turns show that
//! variation, and drift affects both sides equally.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use becalm_command::arguments::refuse_existing;
use becalm_command::messages::say;
use becalm_command::{child, looks};
use becalm_linux::folder;
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::relay::Relay;
use becalm_linux::sched::Policy;
use becalm_report::form::words::quoted;
use becalm_units::fault::{self, Context};
use becalm_units::{CpuList, Nanos, cpus};

/// The number of turns, each one recording before and one inside.
pub const TURNS: usize = 3;

/// The threshold of all recordings, which makes them comparable: above the resolution of the loop on every machine.
const THRESHOLD: &str = "1us";

/// A private directory, removed with its contents on drop.
#[derive(Debug)]
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        // The name identifies the program, in case becalm is killed.
        let path = env::temp_dir().join(format!("becalm-verify-{}-{now}", process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Recordings of the same CPUs, alternately before and inside.
#[derive(Debug)]
pub struct Proof {
    cpus: CpuList,
    /// The duration of each recording.
    duration: Nanos,
    before: Vec<PathBuf>,
    inside: Vec<PathBuf>,
    /// The directory of the recordings unless they are kept.
    folder: Option<TemporaryFolder>,
}

impl Proof {
    /// Recordings with this total duration per side, in the directory `keep` or a temporary one. Fails if the directory cannot be made, or already
    /// contains such recordings.
    pub fn new(cpus: &CpuList, duration: Nanos, keep: Option<&Path>) -> fault::Result<Self> {
        let temporary = match keep {
            Some(_) => None,
            None => Some(TemporaryFolder::new().context("cannot make a directory for the recordings")?),
        };
        let folder = keep.or(temporary.as_ref().map(|folder| folder.0.as_path())).unwrap_or(Path::new("."));
        folder::make_all(folder).with_context(|| format!("cannot make the directory {}", folder.display()))?;
        let names =
            |side: &str| (1..=TURNS).map(|turn| folder.join(format!("{side}-{turn}.becalm"))).collect::<Vec<_>>();
        let (before, inside) = (names("before"), names("inside"));
        for path in before.iter().chain(&inside) {
            refuse_existing(path)?;
            fault::ensure!(!path.exists(), "{} exists already; choose another directory", path.display());
        }
        let duration = Nanos::new(duration.get() / TURNS as i64);
        Ok(Self { cpus: cpus.clone(), duration, before, inside, folder: temporary })
    }

    /// Records the CPUs unchanged, in a turn below [`TURNS`]. Fails if the recording fails.
    pub fn before(&self, turn: usize) -> fault::Result<()> {
        self.record(&self.before[turn], ProgramStart::default(), Policy::Other, None)
    }

    /// Records them from within the tuned CPUs, in a turn below [`TURNS`]. Fails if the recording fails.
    pub fn inside(&self, turn: usize, group: Option<&Path>, policy: Policy, relay: &Relay) -> fault::Result<()> {
        self.record(&self.inside[turn], ProgramStart { group, ..ProgramStart::default() }, policy, Some(relay))
    }

    fn record(&self, path: &Path, start: ProgramStart<'_>, policy: Policy, relay: Option<&Relay>) -> fault::Result<()> {
        let mut command = child::becalm()?;
        command.args(["record", "--quiet", "--cpus", &self.cpus.to_string(), "--duration", &self.duration.to_string()]);
        command.args(["--threshold", THRESHOLD, "--sched", &policy.to_string(), "--output"]).arg(path);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        begin_in(&mut command, start, relay)?;
        let status = command.status().with_context(|| format!("cannot record {}", cpus(&self.cpus)))?;
        fault::ensure!(status.success(), "the recording of {} failed; see above", cpus(&self.cpus));
        Ok(())
    }

    /// Prints the differences, and where the recordings are: on `out`, or on standard error if standard output belongs to a command. Another process
    /// reads the recordings, without the rights that this one keeps for restoring. Fails if a recording cannot be read, they have nothing in common,
    /// or `out` cannot be written.
    pub fn print(&self, is_result: bool, out: &mut dyn Write) -> fault::Result<()> {
        let mut command = child::becalm()?;
        looks::pass_on(&mut command);
        command.arg("compare").stdin(Stdio::null());
        if let Some(folder) = &self.folder {
            // The report has only names, because the directory will be gone.
            command.current_dir(&folder.0);
        }
        let temporary = self.folder.is_some();
        let named = |path: &PathBuf| path.file_name().filter(|_| temporary).map_or_else(|| path.clone(), PathBuf::from);
        command.args(self.before.iter().map(named)).arg("--").args(self.inside.iter().map(named));
        command.stdout(if is_result { Stdio::inherit() } else { io::stderr().into() });
        // Flushes before another process prints.
        out.flush()?;
        let status = command.status().context("cannot compare the recordings")?;
        fault::ensure!(status.success(), "the recordings could not be compared; see above");
        let place = match &self.folder {
            Some(_) => "To keep these recordings, add --verify-output DIR".to_owned(),
            None => format!("To see a recording: becalm report {}", quoted(&self.inside[0].to_string_lossy())),
        };
        if is_result {
            writeln!(out, "\n  {place}")?;
        } else {
            say(format_args!("{place}"));
        }
        Ok(())
    }
}
