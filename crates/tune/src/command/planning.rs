//! The common arguments of `plan`, `apply` and `run`, and the directory of journals.

use std::path::{Path, PathBuf};

use becalm_command::arguments::some_cpus;
use becalm_command::messages::say;
use becalm_linux::identity::Identity;
use becalm_linux::procfs::status::Capability;
use becalm_units::fault;
use becalm_units::{CpuList, counted};
use clap::Args;

use super::standing::Standing;
use crate::{Damage, Family, Folder, LiveMachine, Profile, Request, Restored, TuneError};

/// What is to become quiet, and how far that may go.
#[derive(Args, Debug)]
pub struct PlanningArgs {
    /// The CPUs to make quiet, like 1-3,8; at least one must be left for everything else
    #[arg(short, long, value_name = "LIST", value_parser = some_cpus, allow_hyphen_values = true)]
    pub cpus: CpuList,

    /// What they are wanted for: hpc moves away whatever can be, rt gives up throttling and deep sleep for latency, benchmark
    /// wants the same speed each time, cloud-guest leaves alone what is the host's
    #[arg(long, value_name = "PROFILE", default_value = "hpc")]
    profile: Profile,

    /// Leave this many of the CPUs, the last ones, idle for the system's use
    #[arg(long, value_name = "N", default_value_t = 0)]
    leave_idle: usize,

    /// Change only knobs of these families: irq, workqueue, rps, watchdog, vmstat, timers, memory, frequency, idle,
    /// throttling, affinity, smt, cpuset
    #[arg(long, value_name = "FAMILIES", value_delimiter = ',')]
    only: Vec<Family>,

    /// Change no knobs of these families
    #[arg(long, value_name = "FAMILIES", value_delimiter = ',')]
    skip: Vec<Family>,

    /// The folder below which the machine's files lie
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

/// The option for the folder of the journal.
#[derive(Args, Debug)]
pub struct JournalArgs {
    /// The folder of the journal that says what was before; lost at a reboot, as the settings are
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
        "changing settings needs root: this process lacks {}; becalm tune plan and becalm tune check need no rights",
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

/// Reports what no knob shows: CPUs without their interrupts, threads started meanwhile, and damage of the journal.
pub fn tell(restored: &Restored) {
    if !restored.returned.is_empty() {
        say(format_args!(
            "CPU {} was offline and is online again; interrupts that the kernel alone places left it, and come back at a reboot",
            restored.returned
        ));
    }
    let heirs: Vec<&str> = restored.heirs.widened.iter().map(|heir| heir.name.as_str()).collect();
    if !heirs.is_empty() {
        say(format_args!("threads that moved ones had started may run where those could before: {}", some(&heirs)));
    }
    let left: Vec<&str> = restored.heirs.left.iter().map(String::as_str).collect();
    if !left.is_empty() {
        say(format_args!(
            "{} that others may have chosen: {}. To give one all CPUs: taskset -pc {} PID",
            counted(left.len() as u64, "new thread keeps CPUs", "new threads keep CPUs"),
            some(&left),
            restored.heirs.online
        ));
    }
    for Damage { line, why } in &restored.damage {
        say(format_args!("line {line} of the journal is damaged: {why}"));
    }
    for change in &restored.lost {
        say(format_args!(
            "{} stays as it is: the line that said what it was is damaged. It was {} when the change was planned",
            change.knob,
            change.from.trim()
        ));
    }
    if let Some(why) = &restored.unwritten {
        say(format_args!("{why}; what is restored is restored, and becalm tune restore can be repeated"));
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
