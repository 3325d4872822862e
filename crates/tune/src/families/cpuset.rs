//! A cpuset for the CPUs, out of the scheduler's load balancing and closed to other tasks.
//!
//! With control groups version 2 it is a partition: `isolated` if the kernel supports it (6.1 and later), else `root`, within which the scheduler
//! balances. With version 1 balancing is turned off for the CPUs, and a second group keeps it for the others. If systemd owns the tree, its interface
//! is used to narrow its slices' CPUs and to create a slice.

use std::path::{Path, PathBuf};

use becalm_linux::file::path_below;
use becalm_linux::procfs::mountinfo::mounts;

use crate::draft::{PlanDraft, Wish, noise};
use crate::machine::Machine;
use crate::{Knob, Known, NoiseSource};

/// The group of the quiet CPUs.
const GROUP: &str = "becalm";
/// The group that keeps balancing for the other CPUs, with version 1.
const REST: &str = "becalm.rest";
/// The slice of the quiet CPUs, if systemd owns the tree.
const SLICE: &str = "becalm.slice";
/// The systemd units that contain everything else.
const UNITS: [&str; 3] = ["init.scope", "system.slice", "user.slice"];

/// The hierarchy that has the cpuset controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Hierarchy {
    /// Version 1, with its mount point.
    One { folder: PathBuf },
    /// Version 2, with its mount point; `systemd` tells whether systemd owns the tree.
    Two { folder: PathBuf, systemd: bool },
}

/// The hierarchy with cpusets; `None` if the kernel has none, or they are not mounted.
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

/// The place of a command on the quiet CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CpusetPlace {
    /// It runs on the CPUs, but without its own group.
    Cpus,
    /// It joins this control group, by its `cgroup.procs`.
    Group(PathBuf),
    /// It runs in a scope of this systemd slice.
    Slice(&'static str),
}

impl CpusetPlace {
    /// The place after a plan was applied: its group, if it created one.
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

/// Adds a change that requires the previous one. A file created by an earlier change does not exist yet.
fn chained(draft: &mut PlanDraft<'_>, absent: &str, wish: Wish<'_>) {
    let knob = wish.knob.clone();
    let present = crate::value::read(draft.machine, &knob).ok().flatten();
    let from = present.map_or_else(|| absent.to_owned(), |value| value.trim().to_owned());
    draft.change_from(from, wish);
    if let Some(last) = draft.last().filter(|last| last.knob == knob) {
        last.after = true;
    }
}

/// The work of the load balancer, and the tasks that it moves in.
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

/// Turns a group with CPUs into a partition.
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
    for (name, cpus, what) in [(REST, &rest, "a group for all other tasks"), (GROUP, &cpus, "a group for the CPUs")] {
        let group = folder.join(name);
        let file = |name: &str| Knob::cpu_list(group.join(name));
        chained(draft, "absent", wish(Knob::Group { path: group.clone() }, "there", what));
        // CPUs and memory first: a group needs both to contain tasks.
        chained(draft, "", wish(file("cpuset.cpus"), cpus, "the group's CPUs"));
        chained(draft, "", wish(file("cpuset.mems"), &mems, "the group's memory nodes"));
    }
    let balance = |group: &Path| Knob::word(group.join("cpuset.sched_load_balance"));
    chained(draft, "1", wish(balance(&folder.join(GROUP)), "0", "the scheduler does not balance the group's CPUs"));
    let wish = Wish {
        removes: balancing(),
        risk: Some("the threads of a program that does not bind them all stay on one of these CPUs"),
        ..wish(balance(folder), "0", "the scheduler balances only the housekeeping group")
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

/// The balanced groups directly below the top that contain one of the CPUs.
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
