//! The common arguments of `plan`, `apply` and `run`, and the directory of journals.

use std::path::{Path, PathBuf};

use becalm_command::arguments::some_cpus;
use becalm_command::messages::say;
use becalm_linux::identity::Identity;
use becalm_linux::procfs::status::Capability;
use becalm_units::fault;
use becalm_units::{CpuList, counted, cpus_are};
use clap::Args;

use super::standing::Standing;
use crate::{Damage, Family, Folder, LiveMachine, Plan, Profile, Request, Restored, TuneError};

/// The CPUs to isolate, and the permitted changes.
#[derive(Args, Debug)]
pub struct PlanningArgs {
    /// CPUs to isolate, such as 1-3,8; at least one CPU must be left
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus, allow_hyphen_values = true)]
    pub cpus: CpuList,

    /// Purpose: hpc moves off all that can move, rt turns off throttling and deep sleep for low latency, benchmark
    /// keeps a constant speed, cloud-guest changes nothing that belongs to the host
    #[arg(long, value_name = "PROFILE", default_value = "hpc")]
    profile: Profile,

    /// Leave the last N of these CPUs idle for the system
    #[arg(long, value_name = "N", default_value_t = 0)]
    leave_idle: usize,

    /// Change only these families of settings: irq, workqueue, rps, watchdog, vmstat, timers, memory, frequency, idle,
    /// throttling, affinity, smt, cpuset
    #[arg(long, value_name = "FAMILIES", value_delimiter = ',')]
    only: Vec<Family>,

    /// Leave these families of settings unchanged
    #[arg(long, value_name = "FAMILIES", value_delimiter = ',')]
    skip: Vec<Family>,

    /// Directory with the machine's files
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

impl PlanningArgs {
    /// The machine below the root directory.
    pub fn machine(&self) -> LiveMachine {
        LiveMachine::for_root(&self.root)
    }

    /// The request for a plan.
    pub fn request(&self) -> Request {
        Request {
            cpus: self.cpus.clone(),
            profile: self.profile,
            leave_idle: self.leave_idle,
            only: self.only.iter().copied().collect(),
            skip: self.skip.iter().copied().collect(),
            realtime: false,
        }
    }
}

/// The option for the directory of the journal.
#[derive(Args, Debug)]
pub struct JournalArgs {
    /// Directory of the journal with the original values, which a reboot discards together with the changes
    #[arg(long, value_name = "DIR", default_value = Folder::DEFAULT)]
    journal: PathBuf,
}

impl JournalArgs {
    /// The journal's directory, as an absolute path.
    pub fn folder(&self) -> Folder {
        // A watcher may have another working directory.
        Folder::new(std::path::absolute(&self.journal).unwrap_or_else(|_| self.journal.clone()))
    }
}

/// Fails early if rights are missing.
pub fn need_rights() -> fault::Result<()> {
    let identity = Identity::read(Path::new("/"));
    let wanted = [Capability::SysAdmin, Capability::SysNice];
    let missing: Vec<&str> = wanted.into_iter().filter(|right| !identity.can(*right)).map(<&str>::from).collect();
    if missing.is_empty() {
        return Ok(());
    }
    fault::bail!(
        "changing settings needs root: this process lacks {}; becalm tune plan and becalm tune audit need no rights",
        missing.join(" and ")
    )
}

/// An error with the state of the existing journal; and with the advice that the command can extend it, if so.
pub fn explained(machine: &LiveMachine, folder: &Folder, error: TuneError, extends: bool) -> fault::Error {
    match (&error, folder.read()) {
        (TuneError::AlreadyTuned { owner, .. }, Ok(Some(state))) => {
            let Standing { sentence, advice, .. } = Standing::new(machine, owner, &state);
            let mut text = format!("{sentence} ({})", folder.journal().display());
            let extend = (extends && state.damage.is_empty()).then_some("--extend adds to it");
            let advice: Vec<&str> = advice.into_iter().chain(extend).collect();
            if !advice.is_empty() {
                text += &format!("; {}", advice.join(", and "));
            }
            fault::Error::new(text)
        }
        _ => error.into(),
    }
}

/// Prints the notes of a plan.
pub fn say_notes(plan: &Plan) {
    plan.notes.iter().for_each(|note| say(format_args!("{}: {}", note.family, note.text)));
}

/// Reports what no knob shows: CPUs without their interrupts, new threads that keep their CPUs, and damage of the journal.
pub fn tell(restored: &Restored) {
    if !restored.returned.is_empty() {
        say(format_args!(
            "{} online again. Interrupts that the kernel manages return to it only at a reboot",
            cpus_are(&restored.returned)
        ));
    }
    let left: Vec<&str> = restored.heirs.left.iter().map(String::as_str).collect();
    if !left.is_empty() {
        say(format_args!(
            "{} because another program may have chosen them: {}. To allow all CPUs: taskset -pc {} PID",
            counted(left.len() as u64, "new thread keeps its CPUs", "new threads keep their CPUs"),
            some(&left),
            restored.heirs.online
        ));
    }
    for Damage { line, why } in &restored.damage {
        say(format_args!("line {line} of the journal is damaged: {why}"));
    }
    for change in &restored.lost {
        say(format_args!(
            "{} is not restored, because the journal's line with its value is damaged. It was {} when the change was planned",
            change.knob,
            change.from.trim()
        ));
    }
    if let Some(why) = &restored.unwritten {
        say(format_args!("{why}. Repeat becalm tune restore"));
    }
}

/// The first of some names, and the number of the others.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        1 => format!("{shown} and 1 other"),
        more => format!("{shown} and {more} others"),
    }
}
