//! Reads and writes knobs of every kind.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use becalm_linux::file::is_gone;

use crate::Knob;
use crate::machine::Machine;

/// How often to try to empty and remove a control group, 10 ms apart: threads may fork meanwhile, and the kernel needs time to release dead ones.
const REMOVALS: u32 = 50;

/// The present value of a knob; `None` if it does not exist: the kernel lacks it, the thread ended, or the device was removed.
pub(crate) fn read(machine: &dyn Machine, knob: &Knob) -> io::Result<Option<String>> {
    match knob {
        Knob::File { path, .. } => optional(machine.read(path)),
        Knob::Affinity { tid, start_ticks, .. } => {
            let here = machine.affinity(*tid)?.filter(|(started, _)| started == start_ticks);
            Ok(here.map(|(_, cpus)| cpus.to_string()))
        }
        Knob::Group { path } => Ok(Some(if machine.has_folder(path) { "there" } else { "absent" }.to_owned())),
        Knob::Controller { path, name } => {
            let enabled = optional(machine.read(&path.join("cgroup.subtree_control")))?;
            let is_enabled = |text: String| text.split_whitespace().any(|word| word == name);
            Ok(enabled.map(|text| if is_enabled(text) { "on" } else { "off" }.to_owned()))
        }
        Knob::Property { unit, name } => machine.systemctl(&["show", "--property", name, "--value", unit]).map(Some),
        Knob::Unit { unit } => {
            let state = machine.systemctl(&["show", "--property", "ActiveState", "--value", unit])?;
            let active = matches!(state.trim(), "active" | "activating" | "reloading");
            Ok(Some(if active { "active" } else { "inactive" }.to_owned()))
        }
    }
}

/// Writes a value.
pub(crate) fn write(machine: &dyn Machine, knob: &Knob, value: &str) -> io::Result<()> {
    match knob {
        Knob::File { path, .. } => machine.write(path, value),
        Knob::Affinity { tid, .. } => {
            machine.set_affinity(*tid, &value.trim().parse().map_err(|error| invalid(&error))?)
        }
        Knob::Group { path } => match value.trim() {
            "there" => machine.make_group(path),
            _ => remove(machine, path),
        },
        Knob::Controller { path, name } => {
            let sign = if value.trim() == "on" { '+' } else { '-' };
            machine.write(&path.join("cgroup.subtree_control"), &format!("{sign}{name}"))
        }
        Knob::Property { unit, name } => {
            let cpus = value.split_whitespace().collect::<Vec<_>>().join(",");
            machine.systemctl(&["set-property", "--runtime", unit, &format!("{name}={cpus}")]).map(drop)
        }
        Knob::Unit { unit } => {
            let verb = if value.trim() == "active" { "start" } else { "stop" };
            machine.systemctl(&[verb, unit]).map(drop)
        }
    }
}

fn invalid(error: &dyn std::error::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
}

/// Moves the remaining processes of a control group to its parent, and removes it.
fn remove(machine: &dyn Machine, path: &Path) -> io::Result<()> {
    let mut result = Ok(());
    for attempt in 0..REMOVALS {
        if attempt > 0 {
            thread::sleep(Duration::from_millis(10));
        }
        if let Some(parent) = path.parent() {
            let inside = optional(machine.read(&path.join("cgroup.procs")))?.unwrap_or_default();
            for process in inside.split_whitespace() {
                // A process that ended meanwhile has left the group as well.
                let _ = machine.write(&parent.join("cgroup.procs"), process);
            }
        }
        result = machine.remove_group(path);
        match &result {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            Err(error) if is_gone(error) => return Ok(()),
            _ => break,
        }
    }
    result
}

/// `None` if the file does not exist.
fn optional(result: io::Result<String>) -> io::Result<Option<String>> {
    match result {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
