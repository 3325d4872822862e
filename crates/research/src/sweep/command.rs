//! Injects several noises, one after the other. Each has its own becalm process, because becalm drops its privileges once injection has started.

use std::io::Write;
use std::process::Stdio;

use becalm_command::Exit;
use becalm_command::arguments::FormArgs;
use becalm_command::child::{attend, becalm};
use becalm_command::messages::say;
use becalm_command::output::emit;
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::relay::Relay;
use becalm_units::Nanos;
use becalm_units::fault::{self, Context, Result, UsageError};

use super::{InjectSweepReport, InjectedCell};
use crate::child::{last_words, reader, text};

/// The most noises: more are rather a mistake than meant.
const CELLS: usize = 10_000;

/// Noises to make one after the other: each value of an option with each length of detours.
pub struct InjectSweep<'a> {
    /// The option for the frequency of detours: `interval`, `rate` or `ratio`.
    pub option: &'static str,
    /// Its values.
    pub often: Vec<String>,
    /// The lengths of detours.
    pub detours: &'a [Nanos],
    /// The other options of each `becalm inject`.
    pub options: Vec<String>,
    /// The command that runs under each noise; may be empty.
    pub command: &'a [String],
    /// The form of the report.
    pub form: &'a FormArgs,
    /// Whether nothing is printed.
    pub quiet: bool,
}

/// Makes each noise, and shows what was delivered. Fails if they are too many, none could be made, or the output cannot be written.
pub fn run(sweep: &InjectSweep<'_>, out: &mut dyn Write) -> Result<Exit> {
    let InjectSweep { option, often, detours, .. } = sweep;
    let count = often.len() * detours.len();
    if count > CELLS {
        return Err(UsageError::new(format!("{count} noises are more than {CELLS}")).into());
    }
    let output = sweep.form.output(false)?;
    let signals = Relay::block().context("cannot block signals")?;
    let mut cells = Vec::new();
    let mut stopped = false;
    'all: for value in often {
        for detour in *detours {
            let number = cells.len() + 1;
            if !sweep.quiet {
                say(format_args!("noise {number} of {count}: --{option} {value} --detour {detour}"));
            }
            let (made, was_stopped) = one(sweep, value, *detour, &signals)?;
            cells.push(InjectedCell { often: value.clone(), detour: *detour, made });
            stopped = was_stopped;
            if stopped {
                break 'all;
            }
        }
    }
    drop(signals);
    if sweep.form.is_given() || !sweep.quiet {
        let report = InjectSweepReport { option, often, detours, cells: &cells };
        emit(&report, output, out)?;
    }
    let failed: Vec<&String> = cells.iter().filter_map(|cell| cell.made.as_ref().err()).collect();
    // With a command, every noise must succeed; without one, those that can be made are enough.
    if let Some(why) = failed.first()
        && !stopped
        && (!sweep.command.is_empty() || failed.len() == cells.len())
    {
        fault::bail!("{} of {} noises failed; the first: {why}", failed.len(), cells.len());
    }
    Ok(Exit::Done)
}

/// The words of the command that makes one noise.
fn words(sweep: &InjectSweep<'_>, value: &str, detour: Nanos) -> Vec<String> {
    let mut words = vec!["inject".to_owned(), format!("--{}={value}", sweep.option), format!("--detour={detour}")];
    words.extend_from_slice(&sweep.options);
    words.push("--json".to_owned());
    if !sweep.command.is_empty() {
        words.push("--".to_owned());
        words.extend_from_slice(sweep.command);
    }
    words
}

/// Makes one noise: returns its document, or why it could not be made, and whether a signal stopped it.
fn one(
    sweep: &InjectSweep<'_>,
    value: &str,
    detour: Nanos,
    signals: &Relay,
) -> Result<(Result<serde_json::Value, String>, bool)> {
    let mut child = becalm()?;
    child.args(words(sweep, value, detour)).stdout(Stdio::piped());
    // The messages of a user's command pass through. Without one, all messages are about why a noise cannot be made.
    let is_alone = sweep.command.is_empty();
    if is_alone {
        child.stdin(Stdio::null()).stderr(Stdio::piped());
    }
    begin_in(&mut child, ProgramStart::default(), Some(signals))?;
    let mut child = child.spawn().context("cannot run becalm inject")?;
    let (printed, said) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let (status, signal) = attend(child, signals).context("cannot wait for becalm inject")?;
    let text = |reader| text(reader).context("cannot read what becalm inject printed");
    let (printed, said) = (text(printed)?, text(said)?);
    let made = match serde_json::from_str(&printed) {
        Ok(document) if status.success() => Ok(document),
        _ => Err(last_words(&said).map_or_else(|| format!("it ended with {status}"), str::to_owned)),
    };
    Ok((made, signal.is_some()))
}
