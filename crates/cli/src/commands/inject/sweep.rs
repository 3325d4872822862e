//! Several noises, one after the other: each is made by a becalm of its own, as a user would type it, since what it takes to make one is
//! given up when it has begun.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::Stdio;
use std::thread;

use becalm_command::Exit;
use becalm_command::child::{attend, becalm};
use becalm_command::messages::say;
use becalm_command::output::{Output, emit};
use becalm_linux::placed::{ProgramStart, begin_in};
use becalm_linux::relay::Relay;
use becalm_model::inject::Together;
use becalm_report::{InjectSweepReport, InjectedCell};
use becalm_units::fault::{self, Context, Result, UsageError};
use becalm_units::{Named, Nanos};

use super::{InjectArgs, end_with_parent};

/// More noises than this are more likely a slip than meant.
const CELLS: usize = 10_000;

/// How often detours come: the option, and its values; none of a replay.
fn often(args: &InjectArgs) -> (&'static str, Vec<String>) {
    let texts = |values: &[Nanos]| values.iter().map(ToString::to_string).collect();
    if !args.interval.is_empty() {
        return ("interval", texts(&args.interval));
    }
    if !args.rate.is_empty() {
        return ("rate", args.rate.clone());
    }
    ("ratio", args.ratio.iter().map(ToString::to_string).collect())
}

/// Makes each noise, and shows what was delivered of all.
///
/// # Errors
/// If no end of a noise is given, none could be made, or the output cannot be written.
pub fn run(args: &InjectArgs, out: &mut dyn Write) -> Result<Exit> {
    if args.duration.is_none() && args.command.is_empty() {
        let text = "several noises come one after the other, so each needs an end: give --duration or a command";
        return Err(UsageError::new(text.to_owned()).into());
    }
    let (option, often) = often(args);
    if often.len() * args.detour.len() > CELLS {
        return Err(UsageError::new(format!("{} noises are more than {CELLS}", often.len() * args.detour.len())).into());
    }
    // No further noise begins when nobody waits for it any more; the one that is made ends likewise.
    end_with_parent(None)?;
    let signals = Relay::block().context("cannot block signals")?;
    let mut cells = Vec::new();
    let mut stopped = false;
    'all: for value in &often {
        for detour in &args.detour {
            let number = cells.len() + 1;
            if !args.quiet {
                let of = often.len() * args.detour.len();
                say(format_args!("noise {number} of {of}: --{option} {value} --detour {detour}"));
            }
            let (made, was_stopped) = one(args, option, value, *detour, &signals)?;
            let (document, why_not) = match made {
                Ok(document) => (Some(document), None),
                Err(why) => (None, Some(why)),
            };
            cells.push(InjectedCell { often: value.clone(), detour: *detour, document, why_not });
            stopped = was_stopped;
            if stopped {
                break 'all;
            }
        }
    }
    drop(signals);
    if args.json || !args.quiet {
        emit(
            &InjectSweepReport { option, often: &often, detours: &args.detour, cells: &cells },
            Output::new(args.json, false),
            out,
        )?;
    }
    let failed: Vec<&String> = cells.iter().filter_map(|cell| cell.why_not.as_ref()).collect();
    // What a command did under a noise is what it was asked for; of noises alone those that can be made are.
    if let Some(why) = failed.first()
        && !stopped
        && (!args.command.is_empty() || failed.len() == cells.len())
    {
        fault::bail!("{} of {} noises failed; the first: {why}", failed.len(), cells.len());
    }
    Ok(Exit::Done)
}

/// The words of the command that makes one noise.
fn words(args: &InjectArgs, option: &str, value: &str, detour: Nanos) -> Vec<OsString> {
    let mut words: Vec<String> =
        ["inject", &format!("--{option}={value}"), &format!("--detour={detour}")].map(str::to_owned).into();
    let mut add = |given: Option<String>| words.extend(given);
    add(args.jitter.map(|jitter| format!("--jitter={jitter}")));
    add(args.burst.map(|burst| format!("--burst={burst}")));
    add(args.packets.then(|| "--packets".to_owned()));
    add(args.main_thread.then(|| "--main-thread".to_owned()));
    add(args.cpus.as_ref().map(|cpus| format!("--cpus={cpus}")));
    add((args.sync != Together::Apart).then(|| format!("--sync={}", args.sync.name())));
    add(args.coalesce.map(|window| format!("--coalesce={window}")));
    add(args.duration.map(|duration| format!("--duration={duration}")));
    add(args.command_user.as_root.then(|| "--as-root".to_owned()));
    add(Some(format!("--seed={}", args.seed)));
    add(Some(if args.signal { "--signal".to_owned() } else { format!("--sched={}", args.sched) }));
    words.push("--json".to_owned());
    if !args.command.is_empty() {
        words.push("--".to_owned());
        words.extend(args.command.iter().cloned());
    }
    words.into_iter().map(OsString::from).collect()
}

/// Makes one noise: its document, or why it could not be made; and whether a signal came meanwhile.
fn one(
    args: &InjectArgs,
    option: &str,
    value: &str,
    detour: Nanos,
    signals: &Relay,
) -> Result<(Result<serde_json::Value, String>, bool)> {
    let mut child = becalm()?;
    child.args(words(args, option, value, detour)).stdout(Stdio::piped());
    // What a command of the user says goes where it is read; without one, all that comes is why a noise cannot be made.
    let is_alone = args.command.is_empty();
    if is_alone {
        child.stdin(Stdio::null()).stderr(Stdio::piped());
    }
    begin_in(&mut child, ProgramStart { group: None, cpus: None, policy: None, user: None }, Some(signals))?;
    let mut child = child.spawn().context("cannot run becalm inject")?;
    let (printed, said) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let (status, signal) = attend(child, signals).context("cannot wait for becalm inject")?;
    let text = |reader: Option<thread::JoinHandle<io::Result<String>>>| -> Result<String> {
        let read = reader.map(|reader| reader.join().unwrap_or_else(|_| Ok(String::new())));
        read.unwrap_or_else(|| Ok(String::new())).context("cannot read what becalm inject printed")
    };
    let (printed, said) = (text(printed)?, text(said)?);
    let made = match serde_json::from_str(&printed) {
        Ok(document) if status.success() => Ok(document),
        _ => {
            let last =
                said.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim_start_matches("becalm: "));
            Err(last.map_or_else(|| format!("it ended with {status}"), str::to_owned))
        }
    };
    Ok((made, signal.is_some()))
}

/// Reads all that comes, while it is waited for elsewhere.
fn reader(from: Option<impl Read + Send + 'static>) -> Option<thread::JoinHandle<io::Result<String>>> {
    let mut from = from?;
    Some(thread::spawn(move || {
        let mut text = Vec::new();
        from.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }))
}
