//! The information about becalm and the machine that a bug report needs, without private data: for a terminal and as `becalm.doctor/1`.

use becalm_model::audit::Answer;
use serde::{Deserialize, Serialize};

use crate::audit::finding;
use crate::config::ConfigSetting;
use crate::form::known::known;
use crate::form::section::{Block, Finding, Page, Section};
use crate::form::sheet::Form;
use crate::form::value::grouped;
use crate::report::Report;

/// The contents of the text, and the data that it leaves out.
const CONTENTS: &str = "For bug reports. Contains versions, kernel, machine, rights, limits, abilities, defaults, the last error, and what is left to \
    restore.";
const LEFT_OUT: &str = "Contains no names of hosts, users, files or commands, no addresses, no values of the environment, and nothing recorded. \
    Read it before you send it.";

/// The information that a bug report needs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DoctorReport {
    /// The program.
    pub program: DoctorProgram,
    /// The machine that it runs on.
    pub machine: DoctorMachine,
    /// As whom it runs.
    pub rights: DoctorRights,
    /// Checks of becalm itself and of its leftovers on the machine.
    pub checks: Vec<DoctorCheck>,
    /// The abilities on this machine; plain `becalm` reports the same.
    pub findings: Vec<Answer>,
    /// The defaults that are set; texts and paths among their values are left out.
    pub settings: Vec<ConfigSetting>,
    /// The versions of programs that becalm works with and which are here.
    pub companions: Vec<DoctorCompanion>,
    /// The error that becalm ended with last; null if none is kept.
    pub last_error: Option<LastError>,
}

/// The program.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DoctorProgram {
    /// Its version.
    pub version: String,
    /// The commit that it was built from; null if unknown.
    pub commit: Option<String>,
    /// The machine and the C library that it was built for, like `x86_64-linux-gnu`.
    pub target: String,
    /// Whether it needs no libraries of the system.
    pub static_libc: bool,
    /// Whether it was built with the checks of a development build.
    pub debug: bool,
}

/// The machine.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DoctorMachine {
    /// The release of the kernel.
    pub kernel: String,
    /// Boot parameters that concern noise, without the others.
    pub boot: Vec<String>,
    /// The model of the processors; empty if the kernel does not tell.
    pub processor: String,
    /// How many CPUs are online.
    pub cpus_online: usize,
    /// How many of them are isolated.
    pub cpus_isolated: usize,
    /// How much memory there is, in bytes.
    pub memory_bytes: u64,
    /// The clock that the kernel keeps time by; null if it does not tell.
    pub clocksource: Option<String>,
    /// What becalm's loops read time from.
    pub counter: String,
    /// The hypervisor; null if none shows.
    pub hypervisor: Option<String>,
    /// Whether becalm runs in a container, as far as that shows.
    pub container: bool,
}

/// As whom becalm runs, and what it may do.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DoctorRights {
    /// Root, root by `sudo`, or an ordinary user.
    pub user: DoctorUser,
    /// The effective capabilities, a 64-bit number in hexadecimal.
    pub capabilities: String,
    /// Limits of the process.
    pub limits: Vec<DoctorLimit>,
}

/// As whom becalm runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DoctorUser {
    /// As root.
    Root,
    /// As root, started by `sudo`.
    Sudo,
    /// As any other user.
    Ordinary,
}

/// A limit of the process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DoctorLimit {
    /// Its name, as `prlimit` has it.
    pub name: &'static str,
    /// The limit in force; null if there is none.
    pub now: Option<u64>,
    /// How far the process may raise it; null if there is no bound.
    pub most: Option<u64>,
}

impl DoctorLimit {
    /// The limit with its unit; the bound only if it differs.
    fn shown(&self) -> String {
        let is_bytes = ["as", "fsize", "memlock", "stack"].contains(&self.name);
        let number = |limit: Option<u64>| match limit {
            None => "unlimited".to_owned(),
            Some(bytes) if is_bytes => format!("{} MiB", grouped(bytes >> 20)),
            Some(number) => grouped(number),
        };
        if self.now == self.most {
            format!("{} {}", self.name, number(self.now))
        } else {
            format!("{} {} of {}", self.name, number(self.now), number(self.most))
        }
    }
}

/// Something that was checked.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DoctorCheck {
    /// The checked thing, in a word or two.
    pub name: &'static str,
    /// How it is.
    pub state: DoctorState,
    /// The result.
    pub what: String,
    /// What to do about it; empty if nothing.
    pub advice: String,
}

/// How something is that was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DoctorState {
    /// As it should be.
    Ok,
    /// Not as it should be.
    NotOk,
}

/// A program that becalm works with.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DoctorCompanion {
    /// Its name.
    pub name: &'static str,
    /// The version that it prints.
    pub version: String,
}

/// An error that becalm ended with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LastError {
    /// When, in UTC and to the second.
    pub when: String,
    /// The version of becalm.
    pub version: String,
    /// The command and its options; of values only numbers, times and choices.
    pub command: String,
    /// The text of the error.
    pub error: String,
}

impl Report for DoctorReport {
    fn schema(&self) -> &'static str {
        "becalm.doctor/1"
    }

    fn document(&self) -> impl Serialize {
        self
    }

    fn view(&self, _: Form) -> Page {
        let contents = [CONTENTS, LEFT_OUT].map(|text| Block::Lead(text.to_owned())).to_vec();
        let seen = self.findings.iter().map(finding).collect();
        Page {
            title: "becalm doctor".to_owned(),
            subtitle: format!("becalm {}", self.program.version),
            sections: vec![
                Section::new("contents", "Contents", "Contents", contents),
                Section::named("checks", "Checks", vec![Block::Findings(self.checks.iter().map(check).collect())]),
                Section::named("programs", "Programs", vec![Block::Facts(self.programs())]),
                Section::named("machine", "Machine", vec![Block::Facts(self.machine())]),
                Section::named("rights", "Rights", vec![Block::Facts(self.rights())]),
                Section::named("findings", "Abilities on this machine", vec![Block::Findings(seen)]),
                Section::named("defaults", "Defaults", vec![self.defaults()]),
                Section::named("last-error", "Last error", vec![self.last_error()]),
            ],
            foot: Vec::new(),
        }
    }
}

impl DoctorReport {
    fn programs(&self) -> Vec<(String, String)> {
        let DoctorProgram { version, commit, target, static_libc, debug } = &self.program;
        let commit = commit.as_ref().map_or_else(|| "commit unknown".to_owned(), |commit| format!("commit {commit}"));
        let libc = if *static_libc { ", static" } else { "" };
        let debug = if *debug { ", a development build" } else { "" };
        let becalm = fact("becalm", &format!("{version}, {commit}, for {target}{libc}{debug}"));
        let companions = self.companions.iter().map(|companion| fact(companion.name, &companion.version));
        [becalm].into_iter().chain(companions).collect()
    }

    fn machine(&self) -> Vec<(String, String)> {
        let machine = &self.machine;
        // A count of 0 means that it could not be read.
        let cpus = match machine.cpus_online {
            0 => String::new(),
            online => format!("{online} online, {} of them isolated", machine.cpus_isolated),
        };
        let memory = match machine.memory_bytes {
            0 => String::new(),
            bytes => format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64),
        };
        let clocksource = machine.clocksource.as_deref().unwrap_or("unknown");
        let boot = (!machine.boot.is_empty()).then(|| fact("boot parameters", &machine.boot.join(" ")));
        let kernel = fact("kernel", known(&machine.kernel));
        let rest = [
            fact("processor", known(&machine.processor)),
            fact("CPUs", known(&cpus)),
            fact("memory", known(&memory)),
            fact("clocks", &format!("{} for loops, {clocksource} for the kernel", machine.counter)),
            fact("hypervisor", machine.hypervisor.as_deref().unwrap_or("none shows")),
            fact("container", if machine.container { "yes" } else { "none shows" }),
        ];
        [kernel].into_iter().chain(boot).chain(rest).collect()
    }

    fn rights(&self) -> Vec<(String, String)> {
        let user = match self.rights.user {
            DoctorUser::Root => "root",
            DoctorUser::Sudo => "root, by sudo",
            DoctorUser::Ordinary => "an ordinary user",
        };
        let limits = self.rights.limits.iter().map(|limit| limit.shown());
        let limits: Vec<String> = limits.collect();
        let user = fact("user", &format!("{user}; capabilities {}", self.rights.capabilities));
        vec![user, fact("limits", &limits.join(", "))]
    }

    fn defaults(&self) -> Block {
        if self.settings.is_empty() {
            return Block::Text("none".to_owned());
        }
        let setting = |setting: &ConfigSetting| {
            let command = if setting.command.is_empty() { String::new() } else { format!("[{}] ", setting.command) };
            let origin = setting.origin.as_deref().unwrap_or("by itself");
            fact(&format!("{command}{}", setting.option), &format!("{} ({origin})", setting.values.join(", ")))
        };
        Block::Facts(self.settings.iter().map(setting).collect())
    }

    fn last_error(&self) -> Block {
        self.last_error.as_ref().map_or_else(
            || Block::Text("none is kept".to_owned()),
            |error| {
                let when = format!("{}, by becalm {}", error.when, error.version);
                let facts = [("when", when.as_str()), ("command", &error.command), ("error", &error.error)];
                Block::Facts(facts.map(|(name, text)| fact(name, text)).to_vec())
            },
        )
    }
}

fn check(check: &DoctorCheck) -> Finding {
    let verdict = if check.state == DoctorState::Ok { "ok" } else { "not ok" };
    let advice = if check.advice.is_empty() { String::new() } else { format!(". To change that: {}", check.advice) };
    Finding { name: check.name.to_owned(), verdict, text: format!("{}{advice}", check.what) }
}

fn fact(name: &str, text: &str) -> (String, String) {
    (name.to_owned(), if text.is_empty() { "unknown" } else { text }.to_owned())
}
