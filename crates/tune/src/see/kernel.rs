//! The kernel's information: its trace, its symbols, its counters.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use becalm_linux::clock::{Source, choose};
use becalm_linux::file::{FileError, path_below};
use becalm_linux::ftrace::{self, CARRIED, MissingEvent, Tracefs, WANTED, discover};
use becalm_linux::identity::Identity;
use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_linux::procfs::kernel::kptr_restrict;
use becalm_linux::procfs::mountinfo::mounts;
use becalm_linux::procfs::softirqs::Softirqs;
use becalm_linux::procfs::stat::Stat;
use becalm_linux::procfs::status::Capability;
use becalm_linux::rights::Need;
use becalm_linux::sysfs::machine::Lockdown;
use becalm_model::audit::{Ability, Answer};
use becalm_units::{counted, plural};

/// Trace clocks that are a counter which the loops can read as well.
const COUNTER_CLOCKS: [&str; 2] = ["x86-tsc", "ppc-tb"];

/// Whether kernel events can be recorded, which of them, and on which clock. If the first check fails, the others are skipped.
pub(super) fn tracing(root: &Path, identity: &Identity) -> Vec<Answer> {
    if let Some(answer) = mounted_by_recordings(root, identity) {
        return vec![answer];
    }
    let (what, advice) = match usable(root, identity) {
        Ok(folder) => {
            let there = Answer::available(Ability::Tracing, format!("tracefs can be used at {}", folder.display()));
            let mut answers = vec![there];
            answers.extend(events(root, &folder));
            answers.push(clock(root, &folder));
            return answers;
        }
        Err(why) => why,
    };
    vec![Answer::missing(
        Ability::Tracing,
        what,
        "detours are recorded, but the kernel does not name their sources",
        advice,
    )]
}

/// The answer if tracefs is not mounted, but a recording by this process would mount it for its duration. Kernels with tracing create the directory.
fn mounted_by_recordings(root: &Path, identity: &Identity) -> Option<Answer> {
    let unmounted = !is_locked_down(root) && ftrace::mount_point(&mounts(root).ok()?).is_none();
    let can = identity.can(Capability::SysAdmin) && path_below(root, Path::new(Tracefs::MOUNT_POINT)).is_dir();
    (unmounted && can).then(|| {
        Answer::limited(
            Ability::Tracing,
            format!(
                "tracefs is not mounted; a recording mounts it at {} and takes it away again",
                Tracefs::MOUNT_POINT
            ),
            "which events the kernel has is not known before",
            "mount -t tracefs nodev /sys/kernel/tracing",
        )
    })
}

/// Whether the kernel is locked down against tracing.
fn is_locked_down(root: &Path) -> bool {
    Lockdown::read(root).is_ok_and(|lockdown| lockdown == Lockdown::Confidentiality)
}

/// The directory of tracefs, or why this process cannot use it and the fix.
fn usable(root: &Path, identity: &Identity) -> Result<PathBuf, (String, &'static str)> {
    if is_locked_down(root) {
        let what = "the kernel is locked down (confidentiality), which forbids tracing even to root";
        return Err((what.to_owned(), "boot with lockdown=none or lockdown=integrity"));
    }
    let become_root = if identity.in_container {
        "run becalm on the host, or in a privileged container with -v /sys/kernel/tracing:/sys/kernel/tracing"
    } else {
        Need::Trace.advice()
    };
    let mounts = mounts(root).map_err(|error| (error.to_string(), "mount proc at /proc"))?;
    let folder = ftrace::mount_point(&mounts).ok_or_else(|| {
        let advice = if identity.in_container { become_root } else { "mount -t tracefs nodev /sys/kernel/tracing" };
        ("tracefs is not mounted".to_owned(), advice)
    })?;
    // The innermost mount with this directory decides whether it is writable.
    let holder = mounts.iter().filter(|mount| folder.starts_with(&mount.point));
    if holder.max_by_key(|mount| mount.point.components().count()).is_some_and(|mount| mount.read_only) {
        let what = format!("tracefs at {} is mounted for reading only", folder.display());
        let advice = if identity.in_container { become_root } else { "mount -o remount,rw /sys/kernel/tracing" };
        return Err((what, advice));
    }
    let local = path_below(root, &folder);
    let enter = |path: &Path| {
        fs::metadata(path).map_err(|error| (format!("cannot look at {}: {error}", path.display()), become_root))
    };
    let may = identity.may_enter(&enter(&local)?) && {
        let instances = local.join("instances");
        identity.may_change(&enter(&instances)?)
    };
    if !may {
        // A user who sees a writable tracefs lacks only the right, even in a container.
        let advice = if identity.on_the_machine { Need::Trace.advice() } else { become_root };
        return Err((format!("tracefs at {} is not open to this user", folder.display()), advice));
    }
    // Security modules may deny what permissions allow.
    match ftrace::clocks(root, &folder) {
        Ok(_) => Ok(folder),
        Err(error) => Err((error.to_string(), become_root)),
    }
}

/// The wanted events that the kernel has, grouped by the information lost without them.
fn events(root: &Path, folder: &Path) -> Vec<Answer> {
    let folder = path_below(root, folder).join("events");
    let none = |what: String| {
        let advice = "use a kernel with CONFIG_FTRACE and CONFIG_EVENT_TRACING";
        let consequence = "detours are recorded, but the kernel does not name their sources";
        vec![Answer::missing(Ability::Events, what, consequence, advice)]
    };
    let found = match discover(&folder, std::env::consts::ARCH, &[WANTED, CARRIED]) {
        Ok(found) if found.present.is_empty() => {
            return none("the kernel has none of the events that becalm records".to_owned());
        }
        Ok(found) => found,
        Err(error) => return none(error.to_string()),
    };
    if found.missing.is_empty() {
        let what = format!("all kinds of kernel events are there ({} events)", found.present.len());
        return vec![Answer::available(Ability::Events, what)];
    }
    let mut lost: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for MissingEvent { event, unseen, .. } in found.missing {
        lost.entry(unseen).or_default().push(event);
    }
    let answer = |(unseen, names): (&str, Vec<String>)| {
        let what = format!("the kernel lacks {}", names.join(", "));
        Answer::limited(Ability::Events, what, format!("becalm cannot see {unseen}"), "use a kernel that has them")
    };
    lost.into_iter().map(answer).collect()
}

fn clock(root: &Path, folder: &Path) -> Answer {
    let clocks = match ftrace::clocks(root, folder) {
        Ok(clocks) => clocks,
        Err(error) => return Answer::missing(Ability::TraceClock, error.to_string(), "events cannot be timed", ""),
    };
    let offers = |name: &str| clocks.iter().any(|clock| clock == name);
    let native = choose(root).source == Source::Native;
    let same = if native { &COUNTER_CLOCKS[..] } else { &["mono_raw"] };
    match same.iter().find(|name| offers(name)) {
        Some(name) => Answer::available(Ability::TraceClock, format!("{name}, the counter that the loops read")),
        None if offers("mono_raw") => Answer::limited(
            Ability::TraceClock,
            "mono_raw; this kernel does not time events with the loops' own counter",
            "events are placed on the loops' axis through the counter's calibration, to within its error",
            "",
        ),
        None => Answer::missing(
            Ability::TraceClock,
            format!("neither the loops' counter nor mono_raw is among the trace clocks ({})", clocks.join(" ")),
            "events cannot be set against detours",
            "use a kernel of version 4.2 or later",
        ),
    }
}

/// Whether function addresses can be turned into names.
pub(super) fn symbols(root: &Path) -> Answer {
    let consequence = "work items and handlers are named by their addresses where the kernel prints only those";
    match Kallsyms::are_visible(root) {
        Ok(true) => Answer::available(Ability::Symbols, "kernel functions can be named from /proc/kallsyms"),
        Ok(false) => {
            let setting = kptr_restrict(root).ok().flatten();
            let setting = setting.map_or(String::new(), |value| format!(" (kernel.kptr_restrict is {value})"));
            let what = format!("the kernel hides its addresses{setting}");
            Answer::missing(Ability::Symbols, what, consequence, Need::Symbols.advice())
        }
        Err(error) => Answer::missing(Ability::Symbols, error.to_string(), consequence, ""),
    }
}

/// Whether the counters that bound the sources are readable.
pub(super) fn counters(root: &Path) -> Answer {
    let interrupts = Interrupts::read(root);
    let left_out = interrupts.as_ref().map_or_else(|_| Vec::new(), |read| read.left_out.clone());
    let results: [Result<(), FileError>; 3] =
        [interrupts.map(drop), Softirqs::read(root).map(drop), Stat::read(root).map(drop)];
    let count = results.len();
    let errors: Vec<String> = results.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    let advice = "mount proc at /proc, unmasked";
    match errors.len() {
        0 => {
            let there = "interrupts, softirqs and steal time can be counted from /proc";
            let lines = match left_out.len() {
                0 => String::new(),
                count => format!(
                    "; {} of /proc/interrupts {} no count for each CPU: {}",
                    counted(count as u64, "line", "lines"),
                    plural(count as u64, "has", "have"),
                    left_out.join(", ")
                ),
            };
            Answer::available(Ability::Counters, format!("{there}{lines}"))
        }
        all if all == count => {
            Answer::missing(Ability::Counters, errors.join("; "), "the sources are not even bounded", advice)
        }
        _ => Answer::limited(Ability::Counters, errors.join("; "), "these counters do not bound the sources", advice),
    }
}
