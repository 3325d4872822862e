//! A cpuset for the CPUs, out of the scheduler's balancing, which no other task gets onto.
//!
//! With control groups of version 2 it is a partition: `isolated` where the kernel can (6.1 and later), else `root`, which the
//! scheduler balances within. With version 1 the balancing is turned off for the CPUs, and a second group keeps it for the
//! rest. Where systemd owns the tree, the CPUs of its slices are narrowed and a slice is made through its own interface.

use std::path::{Path, PathBuf};

use becalm_linux::file::path_below;
use becalm_linux::procfs::mountinfo::mounts;

use crate::draft::{PlanDraft, Wish, noise};
use crate::machine::Machine;
use crate::{Knob, Known, NoiseSource};

/// The group of the quiet CPUs.
const GROUP: &str = "becalm";
/// The group that keeps the balancing for the others, with version 1.
const REST: &str = "becalm.rest";
/// The slice of the quiet CPUs, where systemd owns the tree.
const SLICE: &str = "becalm.slice";
/// The units in which systemd keeps everything else.
const UNITS: [&str; 3] = ["init.scope", "system.slice", "user.slice"];

/// The hierarchy that has the cpuset controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Hierarchy {
    /// Version 1, mounted at `folder`.
    One { folder: PathBuf },
    /// Version 2, mounted at `folder`; `systemd` says whether systemd owns the tree.
    Two { folder: PathBuf, systemd: bool },
}

/// Where cpusets are; `None` if the kernel has none, or they are not mounted.
pub(crate) fn hierarchy(machine: &dyn Machine) -> Option<Hierarchy> {
    let mounts = mounts(machine.root()).ok()?;
    for mount in mounts.iter().rev() {
        let has = |name: &str| {
            let text = machine.read(&mount.point.join(name)).unwrap_or_default();
            text.split_whitespace().any(|controller| controller == "cpuset")
        };
        match mount.kind.as_str() {
            "cgroup2" if has("cgroup.controllers") => {
                let systemd = path_below(machine.root(), "/run/systemd/system").is_dir();
                return Some(Hierarchy::Two { folder: mount.point.clone(), systemd });
            }
            "cgroup" if mount.has_option("cpuset") => return Some(Hierarchy::One { folder: mount.point.clone() }),
            _ => {}
        }
    }
    None
}

/// Where a command is put so that it runs on the quiet CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CpusetPlace {
    /// It runs on the CPUs, but in no group of its own.
    Cpus,
    /// It joins this control group, by its `cgroup.procs`.
    Group(PathBuf),
    /// It runs in a scope of this slice of systemd.
    Slice(&'static str),
}

impl CpusetPlace {
    /// After a plan was applied: in its group, if it made one.
    pub fn find(machine: &dyn Machine) -> Self {
        let (folder, place) = match hierarchy(machine) {
            None => return Self::Cpus,
            Some(Hierarchy::One { folder } | Hierarchy::Two { folder, systemd: false }) => {
                (folder.join(GROUP), Self::Group(folder.join(GROUP)))
            }
            Some(Hierarchy::Two { folder, systemd: true }) => (folder.join(SLICE), Self::Slice(SLICE)),
        };
        if machine.has_folder(&folder) { place } else { Self::Cpus }
    }
}

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    match hierarchy(draft.machine) {
        None => draft.note("the kernel has no cpusets, or none are mounted; the CPUs stay in its balancing".to_owned()),
        Some(Hierarchy::One { folder }) => version_1(draft, &folder),
        Some(Hierarchy::Two { folder, systemd: false }) => version_2(draft, &folder),
        Some(Hierarchy::Two { folder, systemd: true }) => systemd(draft, &folder),
    }
}

/// One change of a chain, in which each needs the one before. A file that an earlier one brings about is not there yet.
fn chained(draft: &mut PlanDraft<'_>, absent: &str, wish: Wish<'_>) {
    let knob = wish.knob.clone();
    let present = crate::value::read(draft.machine, &knob).ok().flatten();
    let from = present.map_or_else(|| absent.to_owned(), |value| value.trim().to_owned());
    draft.change_from(from, wish);
    if let Some(last) = draft.last().filter(|last| last.knob == knob) {
        last.after = true;
    }
}

/// The load balancer's work, and the tasks that it brings.
fn balancing() -> Vec<NoiseSource> {
    noise(&[Known::Balancing, Known::Migration, Known::Task])
}

fn version_2(draft: &mut PlanDraft<'_>, folder: &Path) {
    let group = folder.join(GROUP);
    let controller = Knob::Controller { path: folder.to_owned(), name: "cpuset".to_owned() };
    let wish = |knob, to: &str, reason| Wish { knob, to: to.to_owned(), reason, risk: None, removes: Vec::new() };
    chained(draft, "off", wish(controller, "on", "groups may have cpusets"));
    chained(draft, "absent", wish(Knob::Group { path: group.clone() }, "there", "a group for the CPUs"));
    let cpus = draft.division.cpus.to_string();
    chained(draft, "", wish(Knob::cpu_list(group.join("cpuset.cpus")), &cpus, "the group's CPUs"));
    partition(draft, &group);
}

/// Makes a group with CPUs a partition.
fn partition(draft: &mut PlanDraft<'_>, group: &Path) {
    let knob = Knob::word(group.join("cpuset.cpus.partition"));
    let wish = Wish {
        knob: knob.clone(),
        to: "isolated".to_owned(),
        reason: "no other task gets onto the CPUs, and the scheduler does not balance them",
        risk: Some("the threads of a program that does not bind them all stay on one of these CPUs"),
        removes: balancing(),
    };
    chained(draft, "member", wish);
    if let Some(last) = draft.last().filter(|last| last.knob == knob) {
        last.or_else = vec!["root".to_owned()];
    }
}

fn systemd(draft: &mut PlanDraft<'_>, folder: &Path) {
    let wish = |knob, to: &str, reason| Wish { knob, to: to.to_owned(), reason, risk: None, removes: Vec::new() };
    let property = |unit: &str| Knob::Property { unit: unit.to_owned(), name: "AllowedCPUs".to_owned() };
    let (cpus, rest) = (draft.division.cpus.to_string(), draft.division.housekeeping.to_string());
    for unit in UNITS {
        draft.change(Wish {
            removes: noise(&[Known::Task]),
            ..wish(property(unit), &rest, "what systemd runs keeps off the CPUs")
        });
    }
    chained(draft, "inactive", wish(Knob::Unit { unit: SLICE.to_owned() }, "active", "a slice for the CPUs"));
    chained(draft, "", wish(property(SLICE), &cpus, "the slice's CPUs"));
    partition(draft, &folder.join(SLICE));
}

fn version_1(draft: &mut PlanDraft<'_>, folder: &Path) {
    let (cpus, rest) = (draft.division.cpus.to_string(), draft.division.housekeeping.to_string());
    let mems = draft.read(folder.join("cpuset.mems")).unwrap_or_else(|| "0".to_owned());
    let wish = |knob, to: &str, reason| Wish { knob, to: to.to_owned(), reason, risk: None, removes: Vec::new() };
    let others = other_groups(draft, folder);
    for (name, cpus, what) in [(REST, &rest, "a group for everything else"), (GROUP, &cpus, "a group for the CPUs")] {
        let group = folder.join(name);
        let file = |name: &str| Knob::cpu_list(group.join(name));
        chained(draft, "absent", wish(Knob::Group { path: group.clone() }, "there", what));
        // CPUs and memory first: without both a group can hold no task.
        chained(draft, "", wish(file("cpuset.cpus"), cpus, "the group's CPUs"));
        chained(draft, "", wish(file("cpuset.mems"), &mems, "the group's memory nodes"));
    }
    let balance = |group: &Path| Knob::word(group.join("cpuset.sched_load_balance"));
    chained(draft, "1", wish(balance(&folder.join(GROUP)), "0", "the scheduler does not balance the group's CPUs"));
    let wish = Wish {
        removes: balancing(),
        risk: Some("the threads of a program that does not bind them all stay on one of these CPUs"),
        ..wish(balance(folder), "0", "only groups are balanced: the rest, and not the quiet CPUs")
    };
    chained(draft, "1", wish);
    if !others.is_empty() {
        let count = others.len();
        let first = others[0].display();
        draft.note(format!(
            "{count} other cpusets, such as {first}, hold the CPUs and have them balanced as long as they do so"
        ));
    }
}

/// The groups right below the top that hold one of the CPUs and are balanced.
fn other_groups(draft: &mut PlanDraft<'_>, folder: &Path) -> Vec<PathBuf> {
    let names = draft.entries(folder);
    let groups = names.into_iter().filter(|name| name != GROUP && name != REST).map(|name| folder.join(name));
    let groups: Vec<PathBuf> = groups.filter(|group| draft.machine.has_folder(group)).collect();
    let mut others = Vec::new();
    for group in groups {
        let held = draft.read(group.join("cpuset.cpus")).and_then(|held| held.parse::<becalm_units::CpuList>().ok());
        let balanced = draft.read(group.join("cpuset.sched_load_balance")).as_deref() == Some("1");
        if balanced && held.is_some_and(|held| !held.intersection(&draft.division.cpus).is_empty()) {
            others.push(group);
        }
    }
    others
}
