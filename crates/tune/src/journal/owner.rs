//! The owner of a journal: a process of one boot of the machine, distinct from later ones with the same number.

use std::fmt;
use std::fs;

use becalm_linux::file;
use becalm_linux::procfs::task::TaskStat;
use serde::{Deserialize, Serialize};

use super::error::JournalError;
use crate::machine::Machine;

/// The kernel's boot ID.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The process that changed settings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Owner {
    /// The number of the process.
    pub pid: i32,
    /// Its start, in clock ticks since boot.
    pub start_ticks: u64,
    /// The boot ID of the machine.
    pub boot_id: String,
    /// Whether it runs a command on the changed settings and restores them itself.
    pub runs_command: bool,
}

impl Owner {
    /// The calling process. Fails if the kernel does not provide the data.
    pub fn this_process(machine: &dyn Machine, runs_command: bool) -> Result<Self, JournalError> {
        let pid = std::process::id().cast_signed();
        let identity = |error: &dyn fmt::Display| JournalError::Identity(error.to_string());
        // The actual process, even if the machine is a tree of files.
        let own = TaskStat::read(std::path::Path::new("/"), pid).map_err(|error| identity(&error))?;
        let start_ticks = own.ok_or_else(|| identity(&"/proc does not show this process"))?.start_ticks;
        Ok(Self { pid, start_ticks, boot_id: boot_id(machine)?, runs_command })
    }

    /// Whether the process still exists.
    pub fn is_alive(&self, machine: &dyn Machine) -> bool {
        let now = TaskStat::read(std::path::Path::new("/"), self.pid).ok().flatten();
        let same = now.is_some_and(|now| now.start_ticks == self.start_ticks && !matches!(now.state, 'Z' | 'X'));
        // If the boot is unknown, a process with the same number and start counts as the same.
        same && self.is_of_this_boot(machine).unwrap_or(true)
    }

    /// Whether the machine was not rebooted since. Fails if the boot ID is unknown, now or at that time, for example because a container hides it.
    pub fn is_of_this_boot(&self, machine: &dyn Machine) -> Result<bool, JournalError> {
        if !is_boot_id(&self.boot_id) {
            let why = format!("the journal has no valid boot ID but '{}'", self.boot_id);
            return Err(JournalError::Identity(why));
        }
        Ok(boot_id(machine)? == self.boot_id)
    }

    /// Whether the machine was rebooted between this process and the present one.
    pub(crate) fn is_of_boot_before(&self, now: &Self) -> bool {
        is_boot_id(&self.boot_id) && self.boot_id != now.boot_id
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)
    }
}

fn boot_id(machine: &dyn Machine) -> Result<String, JournalError> {
    let identity = |why: String| JournalError::Identity(format!("{BOOT_ID} {why}"));
    let read = fs::read_to_string(file::path_below(machine.root(), BOOT_ID));
    let text = read.map_err(|error| identity(format!("cannot be read: {error}")))?;
    match text.trim() {
        id if is_boot_id(id) => Ok(id.to_owned()),
        other => {
            let found: String = other.chars().take(60).collect();
            Err(identity(format!("does not tell which boot this is, but '{found}'; a container may hide it")))
        }
    }
}

/// Whether a text is a boot ID (a UUID). A container hides it with an empty file.
fn is_boot_id(text: &str) -> bool {
    let is_hyphen = |at| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, u8)| if is_hyphen(at) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}
