//! One of several processes that measure the same probes: how it is started, and how it returns its samples.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use becalm_command::Exit;
use becalm_command::child;
use becalm_linux::signals::{StopSignals, end_with_parent, terminate, wait_readable};
use becalm_record::Session;
use becalm_units::fault::{self, Context, Result};

use super::probe::ProbeCommand;
use super::{SiteArgs, recording};
use crate::documents::{Costs, ProcessCosts};
use crate::measure::Site;
use crate::measure::clock::clocks;
use crate::measure::probe::{detours, traps};

/// The longest wait for either a signal or the process; both wake it at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures in this process, one of several, and returns the samples to its parent. Fails if the CPU cannot be used, a signal ends the
/// recording, or `out` cannot be written.
pub fn measure(probes: ProbeCommand, site: &SiteArgs, out: &mut dyn Write) -> Result<Exit> {
    // Must run while the process has one thread; it is refused afterwards.
    let session = Session::begin(Path::new("/"), probes == ProbeCommand::Detours).context("cannot block signals")?;
    // If becalm is killed, its measuring processes must end as well.
    end_with_parent().context("cannot ask to end with the process that started this one")?;
    let site = site.choose()?;
    let recorded = match probes {
        ProbeCommand::Detours => recording::probes(&site, &session),
        ProbeCommand::Clock | ProbeCommand::Trap => Some(Vec::new()),
    };
    let mut is_whole = recorded.is_some();
    let mut progress = |_: usize, _: usize, _: &str| {
        is_whole &= session.signals().take().is_none();
        is_whole
    };
    let (measured, samples) = match probes {
        ProbeCommand::Clock => clocks(&site, &mut progress).map(|(costs, samples)| (Costs::Clock(costs), samples)),
        ProbeCommand::Trap => traps(&site, &mut progress).map(|(costs, samples)| (Costs::Trap(costs), samples)),
        ProbeCommand::Detours => detours(&site, &mut progress).map(|(mut costs, mut samples)| {
            costs.add(recorded.into_iter().flatten(), &mut samples);
            (Costs::Detours(costs), samples)
        }),
    }?;
    serde_json::to_writer(&mut *out, &ProcessCosts { measured, samples, is_whole }).map_err(io::Error::from)?;
    out.flush()?;
    Ok(Exit::Done)
}

/// Measures in another process on the same CPU and in the same class, and waits for it; `None` if a signal came before it measured
/// anything. Passes signals on. Fails if the process cannot be started, or fails; its reason is on standard error.
pub fn have_measured(probes: ProbeCommand, site: &Site, signals: &StopSignals) -> Result<Option<ProcessCosts>> {
    let mut command = child::becalm()?;
    command.args(["cost", probes.name(), "--one-process", "--cpu", &site.cpu.to_string()]);
    command.args(["--sched", &site.policy.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start it")?;
    let pipe = child.stdout.take().expect("its output is piped");
    let (bytes, stopped) = match attend(&child, pipe, signals) {
        Ok(read) => read,
        Err(error) => {
            // Its samples have no reader.
            let _ = child.kill().and_then(|()| child.wait());
            return Err(error).context("cannot read what it measured");
        }
    };
    let status = child.wait().context("cannot wait for it")?;
    if !status.success() {
        // A signal may arrive before it has blocked signals.
        fault::ensure!(stopped, "it ended with {status}");
        return Ok(None);
    }
    let handed: ProcessCosts =
        serde_json::from_slice(&bytes).map_err(io::Error::from).context("what it measured cannot be read")?;
    Ok(Some(handed).filter(|handed| handed.is_whole || !handed.samples.is_empty()))
}

/// Reads the output of a process, and terminates it after a signal; returns whether there was one.
fn attend(child: &Child, mut pipe: ChildStdout, signals: &StopSignals) -> std::io::Result<(Vec<u8>, bool)> {
    let (mut bytes, mut stopped) = (Vec::new(), false);
    let mut part = vec![0; 1 << 16];
    loop {
        if signals.take().is_some() {
            stopped = true;
            // It may just have ended, and then needs no signal.
            let _ = terminate(child.id());
        }
        let [_, readable] = wait_readable([Some(signals.as_fd()), Some(pipe.as_fd())], PATIENCE)?;
        if readable {
            match pipe.read(&mut part)? {
                0 => return Ok((bytes, stopped)),
                read => bytes.extend_from_slice(&part[..read]),
            }
        }
    }
}
