//! `becalm doctor`: collects facts for a bug report and checks becalm's installation.

use std::env;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use becalm_command::arguments::FormArgs;
use becalm_command::output::emit;
use becalm_command::pager::Paging;
use becalm_command::{Exit, Task};
use becalm_linux::clock::{self, Source};
use becalm_linux::identity::Identity;
use becalm_linux::limits::{self, Limit, free_bytes};
use becalm_linux::procfs::{kernel, meminfo};
use becalm_linux::rights::User;
use becalm_linux::sysfs::{cpu::CpuSets, machine};
use becalm_model::audit::{Answer, Audit};
use becalm_report::{
    ConfigReport, ConfigSetting, DoctorCheck, DoctorCompanion, DoctorLimit, DoctorMachine, DoctorProgram, DoctorReport,
    DoctorRights, DoctorState, DoctorUser, LastError,
};
use becalm_tune::{Folder, LiveMachine, Stage, Standing, see};
use becalm_units::fault::Result;
use clap::Args;

use crate::commands::config;
use crate::discretion::Discretion;
use crate::{command_line, last_error, settings};

/// Check the installation; what a bug report needs
///
/// Changes and measures nothing. The text contains no names of hosts, users or files, no addresses, no values of the environment and no serial
/// numbers. It starts with a list of what it contains and omits.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    form: FormArgs,
}

/// Boot parameters that affect noise.
const BOOT: [&str; 20] = [
    "isolcpus",
    "nohz",
    "nohz_full",
    "rcu_nocbs",
    "rcu_nocb_poll",
    "irqaffinity",
    "kthread_cpus",
    "skew_tick",
    "tsc",
    "clocksource",
    "nosmt",
    "mitigations",
    "idle",
    "intel_idle.max_cstate",
    "processor.max_cstate",
    "intel_pstate",
    "amd_pstate",
    "threadirqs",
    "preempt",
    "transparent_hugepage",
];

/// Programs that becalm works with, and their version options.
const COMPANIONS: [(&str, &str); 5] = [
    ("becalm-mpi", "--version"),
    ("mpirun", "--version"),
    ("systemctl", "--version"),
    ("srun", "--version"),
    ("tuned-adm", "--version"),
];

/// The minimum free space for recordings.
const ROOM: u64 = 1 << 30;

impl Task for DoctorArgs {
    fn paging(&self) -> Paging {
        Paging::Long
    }

    fn run(self: Box<Self>, out: &mut dyn Write) -> Result<Exit> {
        let root = Path::new("/");
        let discretion = Discretion::for_process();
        let identity = Identity::read(root);
        let config = config::report(false);
        let (last_error, unread) = match last_error::read() {
            Ok(last) => (last.map(|last| hidden_error(&discretion, last)), None),
            Err(why) => (None, Some(why)),
        };
        let audit = see::look(root);
        let companions = companions(&discretion);
        let mut checks =
            vec![check_settings(&config), check_journal(), check_programs(), check_companions(&companions)];
        checks.extend([check_room(), check_last_error(last_error.as_ref(), unread.as_deref())]);
        for check in &mut checks {
            check.what = discretion.hide(&check.what);
        }
        let report = DoctorReport {
            program: program(),
            machine: machine_of(root, &audit, &identity, &discretion),
            rights: rights(&identity),
            checks,
            findings: audit.answers.into_iter().map(|answer| hidden_answer(&discretion, answer)).collect(),
            settings: config.settings.into_iter().map(|setting| hidden_setting(&discretion, setting)).collect(),
            companions,
            last_error,
        };
        emit(&report, self.form.output(false)?, out)?;
        Ok(Exit::Done)
    }
}

fn program() -> DoctorProgram {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    DoctorProgram {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("BECALM_COMMIT").filter(|commit| !commit.is_empty()).map(str::to_owned),
        target: format!("{}-{}-{libc}", env::consts::ARCH, env::consts::OS),
        static_libc: cfg!(target_feature = "crt-static"),
        debug: cfg!(debug_assertions),
    }
}

fn machine_of(root: &Path, audit: &Audit, identity: &Identity, discretion: &Discretion) -> DoctorMachine {
    let cpus = CpuSets::read(root).ok();
    let line = kernel::command_line(root).unwrap_or_default();
    let told = |word: &&str| BOOT.contains(&word.split('=').next().unwrap_or_default());
    DoctorMachine {
        kernel: discretion.hide(&audit.kernel),
        boot: line.split_whitespace().filter(told).map(|word| discretion.hide(word)).collect(),
        processor: audit.processor.clone(),
        cpus_online: cpus.as_ref().map_or(0, |cpus| cpus.online.len()),
        cpus_isolated: audit.isolated.len(),
        memory_bytes: meminfo::total_bytes(root).unwrap_or(0),
        clocksource: machine::clocksource(root).ok().flatten(),
        counter: match clock::choose(root).source {
            Source::Native => "the processor's own".to_owned(),
            Source::MonotonicRaw => "CLOCK_MONOTONIC_RAW".to_owned(),
        },
        hypervisor: machine::hypervisor(root).ok().flatten().map(|name| discretion.hide(&name)),
        container: identity.in_container,
    }
}

fn rights(identity: &Identity) -> DoctorRights {
    let user = match identity.status.uid {
        0 if User::from_sudo().is_some() => DoctorUser::Sudo,
        0 => DoctorUser::Root,
        _ => DoctorUser::Ordinary,
    };
    let limits = limits::process_limits().map(|Limit { name, now, most }| DoctorLimit { name, now, most });
    DoctorRights { user, capabilities: format!("{:016x}", identity.status.capabilities.0), limits: limits.into() }
}

fn ok(name: &'static str, what: impl Into<String>) -> DoctorCheck {
    DoctorCheck { name, state: DoctorState::Ok, what: what.into(), advice: String::new() }
}

fn not_ok(name: &'static str, what: impl Into<String>, advice: impl Into<String>) -> DoctorCheck {
    DoctorCheck { name, state: DoctorState::NotOk, what: what.into(), advice: advice.into() }
}

/// Checks that the defaults are valid and all their files are read.
fn check_settings(config: &ConfigReport) -> DoctorCheck {
    let name = "defaults";
    if let Some(error) = &config.error {
        return not_ok(name, error.clone(), "correct that, which becalm config shows in full");
    }
    if let Some(why) = config.files.iter().find_map(|file| file.why.as_ref()) {
        return not_ok(name, format!("a file of them is not read: {why}"), "see becalm config path");
    }
    match config.settings.len() {
        0 if config.off => ok(name, "none are read"),
        0 => ok(name, "none are set"),
        count => ok(name, format!("{} set", becalm_units::counted(count as u64, "is", "are"))),
    }
}

/// Checks whether machine settings still have to be restored.
fn check_journal() -> DoctorCheck {
    let name = "tuning";
    let folder = Folder::new(Folder::DEFAULT);
    match folder.read() {
        Err(error) => not_ok(
            name,
            format!("the journal of changes cannot be read: {error}"),
            "look at it with sudo becalm tune status",
        ),
        Ok(state) => match state.filter(|state| !state.is_spent()) {
            None => ok(name, "nothing is changed on the machine"),
            Some(state) => {
                let machine = LiveMachine::for_root(Path::new("/"));
                let Standing { stage, sentence, advice } = Standing::new(&machine, &state.owner, &state);
                match stage {
                    Stage::Unfinished | Stage::EarlierBoot => {
                        not_ok(name, sentence, advice.unwrap_or("see becalm tune status"))
                    }
                    _ => ok(name, sentence),
                }
            }
        },
    }
}

/// Checks for another becalm in the path, before or after this one.
fn check_programs() -> DoctorCheck {
    let name = "programs";
    let own = env::current_exe().and_then(|own| own.canonicalize()).unwrap_or_default();
    let folders: Vec<PathBuf> = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    let mut found: Vec<PathBuf> = Vec::new();
    for path in folders.iter().filter_map(|folder| folder.join("becalm").canonicalize().ok()) {
        if path.is_file() && !found.contains(&path) {
            found.push(path);
        }
    }
    match found.iter().position(|path| *path == own) {
        _ if found.is_empty() => ok(name, "no other becalm is in a directory of PATH"),
        Some(0) if found.len() == 1 => ok(name, "this becalm is the only one in the directories of PATH"),
        Some(0) => not_ok(
            name,
            format!("there are {} more in the directories of PATH, behind this one", found.len() - 1),
            "remove those that are old",
        ),
        _ => not_ok(
            name,
            "becalm in the directories of PATH is another program than this one",
            "remove the old one, or name the new one by its path",
        ),
    }
}

/// Checks that becalm-mpi has the same version.
fn check_companions(companions: &[DoctorCompanion]) -> DoctorCheck {
    let name = "becalm-mpi";
    match companions.iter().find(|companion| companion.name == name) {
        None => ok(name, "it is not here, and is needed for measuring parallel jobs alone"),
        Some(companion) if companion.version.split(' ').any(|word| word == env!("CARGO_PKG_VERSION")) => {
            ok(name, "it is of the same version")
        }
        Some(companion) => {
            not_ok(name, format!("it is of another version: {}", companion.version), "build both from the same sources")
        }
    }
}

/// Checks the free space at the location of recordings.
fn check_room() -> DoctorCheck {
    let name = "room";
    match free_bytes(Path::new(".")) {
        Ok(free) if free >= ROOM => {
            ok(name, format!("{:.1} GiB are free in this directory", free as f64 / ROOM as f64))
        }
        Ok(free) => not_ok(
            name,
            format!("{} MiB are free in this directory", free >> 20),
            "record into another one, with --folder or --output",
        ),
        Err(error) => not_ok(
            name,
            format!("cannot determine the free space of this directory: {error}"),
            "record into another one",
        ),
    }
}

fn check_last_error(last: Option<&LastError>, unread: Option<&str>) -> DoctorCheck {
    let name = "last error";
    match (last, unread) {
        (_, Some(why)) => not_ok(name, format!("what was kept cannot be read: {why}"), "remove that file"),
        (None, None) => ok(name, "none is kept"),
        (Some(last), None) => ok(name, format!("one of {} is kept; see below", last.when)),
    }
}

/// The versions of programs in PATH, from the first lines of their output.
fn companions(discretion: &Discretion) -> Vec<DoctorCompanion> {
    let beside = env::current_exe().ok().map(|own| own.with_file_name("becalm-mpi")).filter(|path| path.is_file());
    let version = |(name, option): (&'static str, &str)| {
        let program = beside.as_deref().filter(|_| name == "becalm-mpi").map_or(OsStr::new(name), Path::as_os_str);
        let asked = Command::new(program).arg(option).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        let said = OsStr::from_bytes(&asked.stdout).to_string_lossy().lines().next()?.trim().to_owned();
        asked
            .status
            .success()
            .then(|| DoctorCompanion { name, version: discretion.hide(&becalm_units::printable(&said)) })
    };
    COMPANIONS.into_iter().filter_map(version).collect()
}

fn hidden_error(discretion: &Discretion, last: LastError) -> LastError {
    // It was hidden when written, but the file may have changed since.
    let hide = |text: &str| discretion.hide(text);
    LastError {
        when: hide(&last.when),
        version: hide(&last.version),
        command: hide(&last.command),
        error: hide(&last.error),
    }
}

fn hidden_answer(discretion: &Discretion, answer: Answer) -> Answer {
    Answer {
        what: discretion.hide(&answer.what),
        consequence: discretion.hide(&answer.consequence),
        advice: discretion.hide(&answer.advice),
        ..answer
    }
}

/// A default without its value if that is a text or a path, with the kind of its origin.
fn hidden_setting(discretion: &Discretion, setting: ConfigSetting) -> ConfigSetting {
    let is_plain = settings::is_plain(&command_line(), &setting.command, &setting.option);
    let values = setting.values.iter().map(|value| if is_plain { discretion.hide(value) } else { "TEXT".to_owned() });
    let origin = setting.origin.map(|origin| match origin.rsplit_once(':') {
        Some((_, line)) => format!("line {line} of a file"),
        None => origin,
    });
    ConfigSetting { values: values.collect(), origin, ..setting }
}
