//! What plans are made from: the arguments that `plan`, `apply` and `run` have in common, and where journals lie.

use std::path::{Path, PathBuf};

use becalm_command::arguments::some_cpus;
use becalm_command::messages::say;
use becalm_linux::identity::Identity;
use becalm_linux::procfs::status::Capability;
use becalm_tune::{
    Damage, Family, Folder, LiveMachine, Owner, Plan, Profile, Request, Restored, Stage, State, TuneError,
};
use becalm_units::fault;
use becalm_units::{CpuList, counted};
use clap::Args;

/// What is to become quiet, and how far that may go.
#[derive(Args, Debug)]
pub struct PlanningArgs {
    /// The CPUs to make quiet, like 1-3,8; at least one must be left for everything else
    #[arg(long, value_name = "LIST", value_parser = some_cpus, allow_hyphen_values = true)]
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
    /// The machine below the root folder.
    pub fn machine(&self) -> LiveMachine {
        LiveMachine::for_root(&self.root)
    }

    /// What is asked of a plan.
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

/// Makes a plan; a request that cannot be meant is wrong usage.
pub fn plan(machine: &LiveMachine, request: &Request) -> fault::Result<Plan> {
    becalm_tune::plan(machine, request).map_err(fault::Error::from)
}

/// The option for the folder of the journal.
#[derive(Args, Debug)]
pub struct JournalArgs {
    /// The folder of the journal that says what was before; lost at a reboot, as the settings are
    #[arg(long, value_name = "DIR", default_value = Folder::DEFAULT)]
    journal: PathBuf,
}

impl JournalArgs {
    /// The journal's folder, as an absolute path.
    pub fn folder(&self) -> Folder {
        // A watcher may stand in another folder.
        Folder::new(std::path::absolute(&self.journal).unwrap_or_else(|_| self.journal.clone()))
    }
}

/// Refuses to begin what will fail for want of rights.
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

/// What to do where settings are changed.
pub const RESTORE: &str = "becalm tune restore brings back what was";

/// What to do if everything is restored that a damaged journal still says.
pub const FORGET: &str = "becalm tune restore --keep leaves the rest as it is, and puts the journal away";

/// How many lines of a journal are damaged, and which is the first.
pub fn damaged_lines(damage: &[Damage]) -> String {
    match damage {
        [only] => format!("line {} of the journal is damaged", only.line),
        [first, ..] => format!("{} lines of the journal are damaged, from line {} on", damage.len(), first.line),
        [] => String::new(),
    }
}

/// What a journal says: how far settings are changed, the same in a sentence, and what to do next, if anything.
pub fn words(machine: &LiveMachine, owner: &Owner, state: &State) -> (Stage, String, Option<&'static str>) {
    let open = state.steps.iter().filter(|step| step.is_open()).count();
    if matches!(owner.is_of_this_boot(machine), Ok(false)) {
        let text = "the journal is of an earlier boot: its settings are gone, and there is nothing to restore";
        return (Stage::EarlierBoot, text.to_owned(), Some("becalm tune restore puts the journal away"));
    }
    let alive = owner.is_alive(machine);
    let mut knobs = if open == 1 { "1 knob is changed".to_owned() } else { format!("{open} knobs are changed") };
    if !state.damage.is_empty() {
        knobs += &format!(", and perhaps others: {}", damaged_lines(&state.damage));
    }
    if open == 0 && !state.damage.is_empty() {
        return (Stage::PartlyRestored, knobs, Some(FORGET));
    }
    if owner.runs_command && alive {
        let text = format!("{knobs}; {owner} runs a command on them, and restores them when it ends");
        return (Stage::Running, text, None);
    }
    if owner.runs_command {
        let text = format!("{knobs}; {owner}, which ran a command on them, is dead");
        return (Stage::Unfinished, text, Some(RESTORE));
    }
    if !state.applied {
        let how = if alive { "is applying changes" } else { "died while applying them" };
        return (Stage::Unfinished, format!("{knobs}; {owner} {how}"), Some(RESTORE));
    }
    (Stage::Tuned, knobs, Some(RESTORE))
}

/// An error with what is known of the journal that is there; and that a plan can be added to it, where the command can do that.
pub fn explained(machine: &LiveMachine, folder: &Folder, error: TuneError, extends: bool) -> fault::Error {
    match (&error, folder.read()) {
        (TuneError::AlreadyTuned { owner, .. }, Ok(Some(state))) => {
            let (_, sentence, advice) = words(machine, owner, &state);
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

/// Says what no knob tells: what cannot be put back, which threads were taken for heirs, and what the journal lacks.
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

/// The first of some names, and how many there are besides.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        1 => format!("{shown} and 1 other"),
        more => format!("{shown} and {more} others"),
    }
}
