//! The audit on fake machines.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use becalm_linux::file::path_below;
use becalm_linux::ftrace::{CARRIED, WANTED};
use becalm_linux::rights::Need;
use becalm_model::audit::{Answer, Availability};
use becalm_model::node::Rung;

use super::*;

const ROOT: &str = "Uid: 0 0 0 0\nGid: 0 0 0 0\nGroups:\nCapEff: 000001ffffffffff\n";
const USER: &str = "Uid: 4242 4242 4242 4242\nGid: 4242 4242 4242 4242\nGroups: 4243\nCapEff: 0000000000000000\n";
const TRACEFS: &str = "1 2 0:1 / /sys/kernel/tracing rw - tracefs none rw\n";

/// A machine of two CPUs on which everything is available.
fn machine(status: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let switches = "voluntary_ctxt_switches: 0\nnonvoluntary_ctxt_switches: 0\n";
    write_tree(
        root.path(),
        &[
            ("proc/self/status", &format!("{status}Cpus_allowed_list: 0-1\n{switches}")),
            ("proc/self/uid_map", "0 0 4294967295\n"),
            ("proc/self/limits", "Max realtime priority 0 0\nMax locked memory 8388608 8388608 bytes\n"),
            ("proc/self/mountinfo", TRACEFS),
            ("proc/cpuinfo", "model name : X\nflags : tsc constant_tsc nonstop_tsc\n"),
            ("proc/interrupts", "CPU0 CPU1\nLOC: 1 2 Local timer interrupts\n"),
            ("proc/softirqs", "CPU0 CPU1\nRCU: 1 2\n"),
            ("proc/stat", "cpu0 1 2 3 4 5 6 7 8\n"),
            ("proc/kallsyms", "ffffffff81000000 T _text\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
            ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ("proc/sys/kernel/kptr_restrict", "1\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("sys/kernel/tracing/trace_clock", "[local] mono_raw x86-tsc ppc-tb\n"),
            ("sys/kernel/tracing/instances/.keep", ""),
        ],
    );
    for wanted in WANTED.iter().chain(CARRIED) {
        // An entry without names asks for the pairs in its directory.
        let events = if wanted.events.is_empty() { &["x_entry", "x_exit"] } else { wanted.events };
        for event in events {
            let file = format!("sys/kernel/tracing/events/{}/{event}/format", wanted.system);
            write_tree(root.path(), &[(&file, "")]);
        }
    }
    let tracing = root.path().join("sys/kernel/tracing");
    for folder in [tracing.clone(), tracing.join("instances")] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    root
}

fn write_tree(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = path_below(root, name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn audit(root: &Path) -> Audit {
    look(root)
}

fn worst(audit: &Audit, ability: Ability) -> &Answer {
    audit.answers.iter().filter(|answer| answer.ability == ability).max_by_key(|answer| answer.access).unwrap()
}

#[test]
fn root_on_bare_metal_has_everything() {
    let root = machine(ROOT);
    let audit = audit(root.path());
    assert!(audit.answers.iter().all(|answer| answer.access == Availability::Available), "{:#?}", audit.answers);
    assert_eq!((audit.rung(), audit.measurable.to_string()), (Rung::Tracepoints, "0-1".to_owned()));
    let commands: Vec<String> = audit.first_steps.into_iter().map(|step| step.command).collect();
    assert_eq!(commands, ["becalm record", "becalm top", "becalm tune audit --cpus 1", "becalm bench -- COMMAND"]);
}

#[test]
fn an_unprivileged_user() {
    let root = machine(USER);
    write_tree(root.path(), &[("proc/kallsyms", "0000000000000000 T _text\n")]);
    let audit = audit(root.path());
    assert_eq!(audit.rung(), Rung::Proc);
    assert!(worst(&audit, Ability::Tracing).what.contains("not open to this user"));
    assert_eq!(worst(&audit, Ability::Tracing).advice, Need::Trace.advice());
    assert_eq!(audit.access(Ability::Events), None);
    assert_eq!(audit.access(Ability::Realtime), Some(Availability::Missing));
    assert_eq!(worst(&audit, Ability::Memory).what, "8192 KiB of memory can be locked");
    assert_eq!(worst(&audit, Ability::Symbols).what, "the kernel hides its addresses (kernel.kptr_restrict is 1)");
    assert_eq!(audit.access(Ability::Cpus), Some(Availability::Available));
}

#[test]
fn a_user_whom_the_administrator_let_in() {
    let root = machine(USER);
    let tracing = root.path().join("sys/kernel/tracing");
    for folder in [tracing.clone(), tracing.join("instances")] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o707)).unwrap();
    }
    write_tree(
        root.path(),
        &[("proc/self/limits", "Max realtime priority 50 50\nMax locked memory unlimited unlimited bytes\n")],
    );
    let audit = audit(root.path());
    assert_eq!(audit.rung(), Rung::Tracepoints);
    assert_eq!(worst(&audit, Ability::Realtime).what, "real-time priorities up to 50 can be taken");
    assert_eq!(audit.access(Ability::Memory), Some(Availability::Available));
}

#[test]
fn a_container_is_told_what_it_lacks() {
    // All but CAP_SYS_ADMIN.
    let root = machine(&ROOT.replace("000001ffffffffff", "000001ffffdfffff"));
    write_tree(
        root.path(),
        &[
            (".dockerenv", ""),
            ("proc/interrupts", ""),
            ("proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup ro - cgroup2 none rw\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cpuset.cpus.effective", "1\n"),
            ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
            ("sys/devices/system/cpu/isolated", "1\n"),
        ],
    );
    let audit = audit(root.path());
    assert_eq!((audit.rung(), audit.measurable.to_string()), (Rung::Proc, "1".to_owned()));
    let tracing = worst(&audit, Ability::Tracing);
    assert_eq!(tracing.what, "tracefs is not mounted");
    assert!(tracing.advice.contains("on the host"), "{}", tracing.advice);
    let cpus: Vec<&str> =
        audit.answers.iter().filter(|f| f.ability == Ability::Cpus).map(|answer| answer.what.as_str()).collect();
    assert_eq!(
        cpus,
        [
            "CPUs 1 can be measured (1 isolated); the control group does not allow 0",
            "the control group /sys/fs/cgroup may use 0.50 CPUs, in periods of 100ms",
        ]
    );
    assert_eq!(audit.access(Ability::Counters), Some(Availability::Limited));
    assert!(worst(&audit, Ability::Counters).what.contains("/proc/interrupts: text was expected"));
    assert!(audit.first_steps[1].command.contains("--cpus 1 --sched fifo:80"));
}

#[test]
fn capabilities_of_a_user_namespace_do_not_reach_the_machine() {
    let root = machine(ROOT);
    write_tree(root.path(), &[("proc/self/uid_map", "0 1000 1\n")]);
    let tracing = root.path().join("sys/kernel/tracing");
    std::fs::set_permissions(tracing, std::fs::Permissions::from_mode(0o000)).unwrap();
    let audit = audit(root.path());
    assert_eq!(audit.rung(), Rung::Proc);
    assert_eq!(audit.access(Ability::Realtime), Some(Availability::Missing));
    // Lets a tester who is not root remove the directory.
    let tracing = root.path().join("sys/kernel/tracing");
    std::fs::set_permissions(tracing, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_kernel_without_some_events_or_clocks() {
    let root = machine(ROOT);
    let tracing = root.path().join("sys/kernel/tracing");
    std::fs::remove_dir_all(tracing.join("events/nmi")).unwrap();
    let with_two = audit(root.path());
    assert_eq!(with_two.rung(), Rung::Tracepoints);
    // Other architectures do not have this event and are not missing it.
    if cfg!(target_arch = "x86_64") {
        assert_eq!(worst(&with_two, Ability::Events).what, "the kernel lacks nmi/nmi_handler");
        assert!(worst(&with_two, Ability::Events).consequence.starts_with("becalm cannot see "));
    }

    write_tree(root.path(), &[("sys/kernel/tracing/trace_clock", "[local] mono_raw\n")]);
    assert_eq!(audit(root.path()).access(Ability::TraceClock), Some(Availability::Limited));
    write_tree(root.path(), &[("sys/kernel/tracing/trace_clock", "[local] global\n")]);
    assert_eq!(audit(root.path()).rung(), Rung::Proc);
    std::fs::remove_dir_all(tracing.join("events")).unwrap();
    assert_eq!(audit(root.path()).access(Ability::Events), Some(Availability::Missing));
}

#[test]
fn under_lockdown_nothing_is_traced() {
    let root = machine(ROOT);
    write_tree(root.path(), &[("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")]);
    assert_eq!(audit(root.path()).rung(), Rung::Tracepoints);
    write_tree(root.path(), &[("sys/kernel/security/lockdown", "none integrity [confidentiality]\n")]);
    let strict = audit(root.path());
    assert_eq!(strict.rung(), Rung::Proc);
    assert!(worst(&strict, Ability::Tracing).what.contains("confidentiality"));
}

#[test]
fn a_virtual_machine_with_throttling_and_slow_sleep() {
    let root = machine(ROOT);
    let cpu = "sys/devices/system/cpu/cpu1";
    write_tree(
        root.path(),
        &[
            ("proc/cpuinfo", "flags : tsc hypervisor\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            (&format!("{cpu}/cpufreq/scaling_governor"), "powersave\n"),
            (&format!("{cpu}/cpufreq/scaling_driver"), "intel_pstate\n"),
            (&format!("{cpu}/cpuidle/state0/name"), "C6\n"),
            (&format!("{cpu}/cpuidle/state0/latency"), "133\n"),
            (&format!("{cpu}/cpuidle/state0/disable"), "0\n"),
            (&format!("{cpu}/topology/thread_siblings_list"), "0-1\n"),
        ],
    );
    let audit = audit(root.path());
    assert!(worst(&audit, Ability::Realtime).consequence.contains("lose 50ms at a time"));
    assert!(worst(&audit, Ability::Hypervisor).consequence.contains("unseen"));
    assert!(worst(&audit, Ability::Cpus).what.contains("share cores, as CPUs 0-1 do"));
    assert_eq!(audit.answers.iter().filter(|answer| answer.ability == Ability::Power).count(), 2);
    if cfg!(target_arch = "x86_64") {
        // Neither the counter nor the trace clock is an obstacle, because the loops can read mono_raw as well.
        assert_eq!(audit.access(Ability::TraceClock), Some(Availability::Available));
        assert_eq!(audit.access(Ability::Counter), Some(Availability::Limited));
    }
    // Whether or not root bypasses the limit: only the budget of a v1 group forbids it.
    assert_eq!(audit.access(Ability::Realtime), Some(Availability::Limited));
    // Since Linux 6.12 the fair server gives other threads the same time, even without the limit.
    for (runtime, config, advised) in [
        ("-1\n", "CONFIG_RT_GROUP_SCHED=y\n", &["fair_server/cpu0/runtime"][..]),
        ("950000\n", "CONFIG_HZ=250\n", &["fair_server/cpu0/runtime"]),
        ("950000\n", "CONFIG_RT_GROUP_SCHED=y\n", &["sched_rt_runtime_us=-1", "fair_server/cpu0/runtime"]),
    ] {
        write_tree(
            root.path(),
            &[
                ("proc/sys/kernel/osrelease", "6.18.1\n"),
                ("boot/config-6.18.1", config),
                ("proc/sys/kernel/sched_rt_runtime_us", runtime),
            ],
        );
        let answers = super::look(root.path()).answers;
        let advice: Vec<&str> = answers
            .iter()
            .filter(|answer| answer.ability == Ability::Realtime)
            .map(|answer| answer.advice.as_str())
            .collect();
        assert_eq!(advice.len(), advised.len(), "{advice:?}");
        assert!(advice.iter().zip(advised).all(|(advice, part)| advice.contains(part)), "{advice:?}");
    }
}

#[test]
fn a_machine_of_which_nothing_can_be_read_has_an_audit() {
    let root = tempfile::tempdir().unwrap();
    let audit = audit(root.path());
    assert_eq!(audit.rung(), Rung::Loop);
    assert!(audit.measurable.is_empty() && audit.first_steps.is_empty());
    assert_eq!(audit.access(Ability::Cpus), Some(Availability::Missing));
    for answer in audit.answers.iter().filter(|answer| answer.access > Availability::Available) {
        assert!(!answer.what.is_empty() && !answer.consequence.is_empty(), "{answer:?}");
    }
}

/// No file of a control group (v2) shows that its threads may not be real-time; the kernel reports it only on an attempt.
#[test]
fn a_denied_real_time_priority_is_lacking_whatever_rights_there_are() {
    let root = machine(ROOT);
    let identity = Identity::read(root.path());
    let realtime = |attempt| cpus::realtime(root.path(), &identity, &"0-1".parse().unwrap(), attempt).remove(0);
    assert_eq!(realtime(Some(Ok(()))).access, Availability::Available);
    let denied = realtime(Some(Err(std::io::ErrorKind::PermissionDenied.into())));
    assert_eq!(denied.access, Availability::Missing);
    assert!(denied.what.contains("denies real-time priorities"), "{}", denied.what);
}

/// A recording mounts tracefs itself if it may, and then names the sources.
#[test]
fn a_tracefs_that_a_recording_mounts_is_not_lacking() {
    let unmounted = |status: &str| {
        let root = machine(status);
        write_tree(root.path(), &[("proc/self/mountinfo", "1 2 0:1 / / rw - ext4 none rw\n")]);
        root
    };
    let root = audit(unmounted(ROOT).path());
    assert_eq!((root.access(Ability::Tracing), root.rung()), (Some(Availability::Limited), Rung::Tracepoints));
    assert!(worst(&root, Ability::Tracing).what.contains("a recording mounts it"), "{:?}", root.answers);
    let user = audit(unmounted(USER).path());
    assert_eq!((user.access(Ability::Tracing), user.rung()), (Some(Availability::Missing), Rung::Proc));
    // A kernel without tracing has no directory for it.
    let folder = unmounted(ROOT);
    std::fs::remove_dir_all(folder.path().join("sys/kernel/tracing")).unwrap();
    assert_eq!(audit(folder.path()).access(Ability::Tracing), Some(Availability::Missing));
}
