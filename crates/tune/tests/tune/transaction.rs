//! Plans, applied and restored, on machines made of files: everything is as it was, whatever the kernel refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::fake::{EBUSY, EINVAL, EIO, EROFS, Fake, Groups, snapshot};
use becalm_model::Kind;
use becalm_model::remedy::{Known, NoiseSource};
use becalm_tune::{
    Change, CpusetPlace, Family, Foreign, Knob, Outcome, Plan, PlanError, Profile, Request, RestoreOptions, TuneError,
    apply, extend, plan, restore,
};
use becalm_units::Named;
use becalm_units::fault::Fault;
use proptest::prelude::*;

use crate::bench::{Bench, request};

fn step<'a>(plan: &'a Plan, path: &str) -> &'a Change {
    plan.steps.iter().find(|step| step.knob.to_string() == path).unwrap_or_else(|| panic!("{path} is in the plan"))
}

#[test]
fn every_family_goes_and_comes_back_on_every_kind_of_machine() {
    for groups in [Groups::None, Groups::One, Groups::Two, Groups::Systemd] {
        for profile in Profile::ALL.iter().copied() {
            for siblings in [false, true] {
                let bench = Bench::new(8, siblings, groups);
                let before = snapshot(&bench.root());
                let plan = bench.plan(&Request { profile, ..request("1,3") });
                let applied = bench.apply(&plan);
                let refused: Vec<_> = applied.refused().collect();
                assert!(refused.is_empty(), "{groups:?} {profile}: {refused:?}");
                assert_eq!(applied.count(Outcome::Changed), applied.changes.len(), "{applied:?}");
                assert!(applied.changes.len() >= 10);
                assert_ne!(snapshot(&bench.root()), before);
                assert!(bench.folder.read().unwrap().unwrap().applied);
                let restored = bench.restore(Foreign::Leave);
                assert!(restored.is_complete(), "{groups:?} {profile}: {restored:?}");
                assert_eq!(snapshot(&bench.root()), before, "{groups:?} {profile} siblings {siblings}");
                assert!(bench.folder.read().unwrap().is_none() && bench.folder.last().exists());
            }
        }
    }
}

#[test]
fn what_is_planned_is_what_a_quiet_cpu_wants() {
    let bench = Bench::new(8, true, Groups::Two);
    let plan = bench.plan(&Request { profile: Profile::Rt, ..request("1") });
    assert_eq!((plan.siblings.to_string(), plan.housekeeping.to_string()), ("5".to_owned(), "0,2-4,6-7".to_owned()));
    assert_eq!(step(&plan, "/proc/irq/5/smp_affinity_list").to, "0,2-4,6-7");
    // An interrupt of that CPU alone goes to any other.
    assert_eq!(step(&plan, "/proc/irq/6/smp_affinity_list").to, "0,2-4,6-7");
    assert!(
        step(&plan, "/proc/irq/5/smp_affinity_list").removes.iter().any(|noise| noise.matches(Kind::Irq, "nvme0q1"))
    );
    assert_eq!(step(&plan, "/proc/irq/default_smp_affinity").to, "000000dd");
    assert_eq!(step(&plan, "/proc/sys/kernel/sched_rt_runtime_us").to, "-1");
    assert_eq!(step(&plan, "/sys/devices/system/cpu/cpu5/online").to, "0");
    let partition = step(&plan, "/sys/fs/cgroup/becalm/cpuset.cpus.partition");
    assert_eq!((partition.to.as_str(), &partition.or_else[..]), ("isolated", &["root".to_owned()][..]));
    // Interrupts and threads leave before the sibling goes, and that before the partition is made.
    assert!(plan.steps.is_sorted_by_key(|step| step.family));
    // Untouched: an interrupt elsewhere, threads elsewhere, of the kernel, and bound on purpose.
    for untouched in ["/proc/irq/7/smp_affinity_list", "CPUs of elsewhere (101)", "CPUs of ksoftirqd/1 (14)"] {
        assert!(!plan.steps.iter().any(|step| step.knob.to_string() == untouched), "{untouched}");
    }
    let notes = plan.notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>().join("\n");
    assert!(notes.contains("1 kernel thread belongs") && notes.contains("pinned here"), "{notes}");
    assert!(plan.command_line().starts_with("nohz_full=1,5 rcu_nocbs=1,5 isolcpus=managed_irq,domain,1,5 "));
}

#[test]
fn what_plans_remove_is_what_the_catalogue_says() {
    let mut removed = BTreeSet::new();
    for groups in [Groups::One, Groups::Two, Groups::Systemd] {
        for profile in Profile::ALL.iter().copied() {
            let bench = Bench::new(8, true, groups);
            bench.fake.set("/proc/sys/kernel/timer_migration", "0\n");
            let tree = crate::fake::Tree { root: bench.root() };
            tree.file("/sys/kernel/debug/sched/fair_server/cpu1/runtime", "50000000\n");
            for change in bench.plan(&Request { profile, ..request("1,3") }).steps {
                for noise in change.removes {
                    let fits = |known: &Known| {
                        let (row, own) = (known.remedy(), NoiseSource::from(*known));
                        row.fix.families.contains(&change.family)
                            && (own == noise || own.matches(noise.kind, &noise.source))
                    };
                    let rows: Vec<Known> = Known::ALL.iter().copied().filter(fits).collect();
                    assert!(!rows.is_empty(), "{} of {} is in no row", noise.source, change.knob);
                    removed.extend(rows.into_iter().map(|known| format!("{known:?} {}", change.family)));
                }
            }
        }
    }
    for known in Known::ALL {
        for family in known.remedy().fix.families {
            assert!(removed.contains(&format!("{known:?} {family}")), "{known:?} is removed by no change of {family}");
        }
    }
}

#[test]
fn nothing_but_what_the_plan_names_is_touched() {
    let bench = Bench::new(8, true, Groups::Two);
    let before = snapshot(&bench.root());
    let plan = bench.plan(&request("1"));
    bench.apply(&plan);
    let mut named: Vec<std::path::PathBuf> = Vec::new();
    for change in &plan.steps {
        match &change.knob {
            Knob::File { path, .. } | Knob::Group { path } => named.push(path.clone()),
            Knob::Controller { path, .. } => named.push(path.join("cgroup.subtree_control")),
            Knob::Affinity { tid, .. } => {
                named.push(format!("/proc/{tid}/status").into());
                named.push(format!("/proc/{tid}/task/{tid}/status").into());
            }
            other => panic!("{other}"),
        }
    }
    // A thread that is bound to a quiet CPU cannot stay there when a partition takes it.
    named.extend(["/proc/99/status".into(), "/proc/99/task/99/status".into()]);
    // The kernel's own list of what is online follows.
    named.push("/sys/devices/system/cpu/online".into());
    for (path, text) in snapshot(&bench.root()) {
        let path = Path::new("/").join(path.strip_prefix(bench.root()).unwrap());
        let same = before.get(&bench.root().join(path.strip_prefix("/").unwrap())) == Some(&text);
        let in_group = path.starts_with("/sys/fs/cgroup/becalm");
        assert!(same || in_group || named.contains(&path), "{} was touched", path.display());
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let bench = Bench::new(8, true, Groups::Two);
    let error = |request: &Request| plan(&bench.fake, request).unwrap_err();
    assert!(matches!(error(&request("")), PlanError::NoCpus));
    assert!(matches!(error(&request("1,9")), PlanError::NotOnline { missing, .. } if missing.to_string() == "9"));
    assert!(matches!(error(&request("0-7")), PlanError::NoHousekeeping { .. }));
    // One thread of each core: the others would go offline.
    let all_cores = error(&request("0-3"));
    assert!(all_cores.to_string().contains("siblings 4-7 offline") && all_cores.is_usage(), "{all_cores}");
    let without = Request { skip: [Family::Smt].into(), ..request("0-3") };
    assert_eq!(bench.plan(&without).housekeeping.to_string(), "4-7");
    assert!(matches!(error(&Request { leave_idle: 2, ..request("2-3") }), PlanError::AllIdle { .. }));
    let idle = bench.plan(&Request { leave_idle: 1, ..request("2-3") });
    assert_eq!((idle.cpus.to_string(), idle.left_idle.to_string()), ("2".to_owned(), "3".to_owned()));
    assert!(idle.housekeeping.contains(becalm_units::CpuId::new(3)));
}

#[test]
fn families_are_chosen() {
    let bench = Bench::new(4, false, Groups::Two);
    let families = |request: &Request| {
        let mut families: Vec<Family> = bench.plan(request).steps.iter().map(|step| step.family).collect();
        families.dedup();
        families
    };
    let only = Request { only: [Family::Irq, Family::Throttling].into(), ..request("1") };
    assert_eq!(families(&only), [Family::Irq, Family::Throttling]);
    let skip = Request { skip: [Family::Irq].into(), ..only };
    assert_eq!(families(&skip), [Family::Throttling]);
    assert!(!families(&request("1")).contains(&Family::Throttling));
    assert!(families(&Request { realtime: true, ..request("1") }).contains(&Family::Throttling));
}

#[test]
fn refusals_are_told_and_leave_no_trace() {
    let mut bench = Bench::new(8, true, Groups::Two);
    let before = snapshot(&bench.root());
    let plan = bench.plan(&Request { profile: Profile::Rt, ..request("1") });
    let faults = [
        ("/proc/irq/5/smp_affinity_list", EIO),
        ("/proc/sys/vm/stat_interval", EROFS),
        ("/sys/devices/system/cpu/cpu5/online", EBUSY),
        ("/proc/sys/kernel/sched_rt_runtime_us", EINVAL),
    ];
    for (path, error) in faults {
        bench.fake.faults.insert(path.into(), error);
    }
    let applied = bench.apply(&plan);
    let refused: Vec<String> = applied.refused().map(|(change, why)| format!("{}: {why}", change.knob)).collect();
    assert_eq!(refused.len(), faults.len(), "{refused:?}");
    assert!(
        refused.iter().any(|text| text.contains("smp_affinity_list") && text.contains("os error 5")),
        "{refused:?}"
    );
    let restored = bench.restore(Foreign::Leave);
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn a_partition_that_is_invalid_falls_back_and_says_why() {
    for (rounded, works) in [("isolated invalid (Cpu list in cpuset.cpus not exclusive)\n", false), ("root\n", true)] {
        let mut bench = Bench::new(4, false, Groups::Two);
        let before = snapshot(&bench.root());
        let plan = bench.plan(&request("1"));
        let path = "/sys/fs/cgroup/becalm/cpuset.cpus.partition";
        bench.fake.rounds.insert(path.into(), rounded.to_owned());
        let applied = bench.apply(&plan);
        let made = applied.changes.iter().find(|made| made.change.knob.to_string() == path).unwrap();
        match (made.outcome, &made.why) {
            (Outcome::Changed, None) => assert!(works && made.after == "root"),
            (Outcome::Refused, Some(why)) => assert!(!works && why.contains("cpuset.cpus not exclusive"), "{why}"),
            other => panic!("{other:?}"),
        }
        let restored = bench.restore(Foreign::Leave);
        assert!(restored.is_complete(), "{restored:?}");
        assert_eq!(snapshot(&bench.root()), before);
    }
}

#[test]
fn what_needs_a_change_that_failed_is_left_out() {
    let mut bench = Bench::new(4, false, Groups::One);
    let before = snapshot(&bench.root());
    let plan = bench.plan(&request("1"));
    // Without the group for the rest, turning the balancing off at the top would turn it off for all.
    bench.fake.faults.insert("/sys/fs/cgroup/cpuset/becalm.rest".into(), EBUSY);
    let applied = bench.apply(&plan);
    assert_eq!(bench.fake.text("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance"), "1");
    assert!(applied.count(Outcome::LeftOut) > 0);
    let restored = bench.restore(Foreign::Leave);
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn what_others_change_is_theirs() {
    let bench = Bench::new(4, false, Groups::Two);
    let before = snapshot(&bench.root());
    bench.apply(&bench.plan(&request("1")));
    let (theirs, back) = ("/proc/irq/5/smp_affinity_list", "/proc/sys/vm/stat_interval");
    bench.fake.set(theirs, "2\n");
    // Somebody put the original back already.
    bench.fake.set(back, "1\n");
    let restored = bench.restore(Foreign::Leave);
    let outcome = |path: &str| {
        let attempt = restored.changes.iter().find(|attempt| attempt.change.knob.to_string() == path);
        attempt.map(|attempt| (attempt.outcome, attempt.after.as_str()))
    };
    assert_eq!(outcome(theirs), Some((Outcome::Foreign, "2")));
    assert_eq!(outcome(back), Some((Outcome::Unchanged, "1")));
    assert!(!restored.is_complete());
    assert_eq!(bench.fake.text(theirs), "2");
    // The journal stays, and only that is left of it.
    let again = bench.restore(Foreign::Leave);
    assert_eq!((again.changes.len(), again.is_complete()), (1, false));
    assert!(matches!(
        apply(&bench.fake, &bench.folder, &bench.plan(&request("1")), &bench.owner(), &mut |_| ()),
        Err(TuneError::AlreadyTuned { .. })
    ));
    assert!(bench.restore(Foreign::Force).is_complete());
    assert_eq!(snapshot(&bench.root()), before);
    assert_eq!(restore(&bench.fake, &bench.folder, RestoreOptions::default(), &mut |_| ()).unwrap(), None);
}

#[test]
fn a_second_plan_refuses_or_extends() {
    let bench = Bench::new(8, false, Groups::Two);
    let before = snapshot(&bench.root());
    bench.apply(&bench.plan(&request("1")));
    let more = bench.plan(&request("1-2"));
    let refused = apply(&bench.fake, &bench.folder, &more, &bench.owner(), &mut |_| ()).unwrap_err();
    assert!(matches!(refused, TuneError::AlreadyTuned { .. }), "{refused}");
    let applied = extend(&bench.fake, &bench.folder, &more, &bench.owner(), &mut |_| ()).unwrap();
    assert!(applied.refused().next().is_none());
    assert_eq!(bench.fake.text("/proc/irq/5/smp_affinity_list"), "0,3-7");
    assert_eq!(bench.folder.read().unwrap().unwrap().plans.len(), 2);
    let restored = bench.restore(Foreign::Leave);
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn a_command_in_the_group_is_let_out_of_it() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&request("1")));
    let CpusetPlace::Group(group) = CpusetPlace::find(&bench.fake) else { panic!("there is a group") };
    assert_eq!(group, Path::new("/sys/fs/cgroup/becalm"));
    bench.fake.set("/sys/fs/cgroup/becalm/cgroup.procs", "4711\n");
    let restored = bench.restore(Foreign::Leave);
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(bench.fake.text("/sys/fs/cgroup/cgroup.procs"), "4711");
    assert_eq!(CpusetPlace::find(&bench.fake), CpusetPlace::Cpus);
}

#[test]
fn threads_that_end_and_threads_that_begin() {
    let bench = Bench::new(4, false, Groups::None);
    let plan = bench.plan(&request("1"));
    let gone = bench.root().join("proc/100");
    fs::remove_dir_all(&gone).unwrap();
    let applied = bench.apply(&plan);
    let outcome =
        |name: &str| applied.changes.iter().find(|made| made.change.knob.to_string() == name).map(|made| made.outcome);
    assert_eq!(outcome("CPUs of sshd (100)"), Some(Outcome::Gone));
    // The number is given to another thread, which nobody moved; and a moved one starts a third.
    let tree = crate::fake::Tree { root: bench.root() };
    tree.thread(1, "another", 0, 900, "0,2-3").thread(500, "child", 0, 901, "0,2-3").thread(501, "own", 0, 902, "2");
    let restored = bench.restore(Foreign::Leave);
    assert!(restored.is_complete());
    let cpus = |tid: i32| bench.fake.text(&format!("/proc/{tid}/status"));
    assert_eq!(cpus(500), "Cpus_allowed_list:\t0-3");
    assert_eq!(cpus(501), "Cpus_allowed_list:\t2");
    let names: Vec<&str> = restored.heirs.widened.iter().map(|heir| heir.name.as_str()).collect();
    assert_eq!(names, ["another (1)", "child (500)"]);
}

#[test]
fn what_others_changed_may_stay_so_for_good() {
    let bench = Bench::new(4, false, Groups::Two);
    bench.apply(&bench.plan(&request("1")));
    let theirs = "/proc/irq/5/smp_affinity_list";
    bench.fake.set(theirs, "2\n");
    let restored = bench.restore(Foreign::Keep);
    assert!(restored.is_complete(), "{restored:?}");
    assert!(restored.changes.iter().any(|attempt| attempt.outcome == Outcome::Kept));
    assert_eq!((bench.fake.text(theirs).as_str(), bench.fake.text("/proc/sys/vm/stat_interval").as_str()), ("2", "1"));
    assert!(bench.folder.read().unwrap().is_none());
}

/// Of threads that began meanwhile on just the CPUs to which others were moved, those that a moved one started are heirs, also over
/// several generations; one whose maker runs elsewhere was put there.
#[test]
fn heirs_are_told_by_who_started_them() {
    let bench = Bench::new(4, false, Groups::None);
    bench.apply(&bench.plan(&request("1")));
    let tree = crate::fake::Tree { root: bench.root() };
    tree.child(600, "shell", 900, "0,2-3", 100).child(601, "make", 901, "0,2-3", 600);
    tree.child(602, "elsewhere", 902, "2", 600).child(603, "pinned", 903, "0,2-3", 602);
    let restored = bench.restore(Foreign::Leave);
    let names: Vec<&str> = restored.heirs.widened.iter().map(|heir| heir.name.as_str()).collect();
    assert_eq!(
        (names, &restored.heirs.left[..]),
        (vec!["shell (600)", "make (601)"], &["pinned (603)".to_owned()][..])
    );
    assert_eq!(bench.fake.text("/proc/603/status"), "Cpus_allowed_list:\t0,2-3");
}

/// Started by a moved shell on just its CPUs: what a launcher started, and what that starts, stays; the child beside it is an heir.
#[test]
fn what_a_launcher_started_is_no_heir() {
    let bench = Bench::new(4, false, Groups::None);
    bench.apply(&bench.plan(&request("1")));
    let tree = crate::fake::Tree { root: bench.root() };
    tree.child(600, "sleep", 900, "0,2-3", 100)
        .child(601, "worker", 901, "0,2-3", 600)
        .child(602, "sleep", 902, "0,2-3", 100);
    tree.child(603, "sudo", 903, "0,2-3", 100).child(604, "make", 904, "0,2-3", 603);
    tree.file("/proc/600/environ", "_=/usr/bin/taskset\0").file("/proc/602/environ", "_=/usr/bin/sleep\0");
    tree.file("/proc/603/cmdline", "sudo\0taskset\0-c\0");
    let restored = bench.restore(Foreign::Leave);
    let names: Vec<&str> = restored.heirs.widened.iter().map(|heir| heir.name.as_str()).collect();
    assert_eq!(names, ["sleep (602)", "sudo (603)"]);
    assert_eq!(restored.heirs.left, ["sleep (600)", "worker (601)", "make (604)"]);
    assert_eq!(bench.fake.text("/proc/600/status"), "Cpus_allowed_list:\t0,2-3");
}

/// Threads that had different CPUs were moved to the same one: an heir gets what its maker had.
#[test]
fn heirs_get_what_their_makers_had() {
    let bench = Bench::new(4, false, Groups::None);
    let tree = crate::fake::Tree { root: bench.root() };
    tree.thread(110, "other", 0, 60, "0,3");
    bench.apply(&bench.plan(&request("1,3")));
    let cpus = |tid: i32| bench.fake.text(&format!("/proc/{tid}/status"));
    assert_eq!([cpus(102), cpus(110)], ["Cpus_allowed_list:\t0"; 2]);
    tree.child(800, "child", 900, "0", 102).child(801, "child", 901, "0", 110);
    bench.restore(Foreign::Leave);
    assert_eq!([cpus(800), cpus(801)], ["Cpus_allowed_list:\t0-1", "Cpus_allowed_list:\t0,3"]);
}

/// A thread that began while others were moved, and was moved after them, gets back what it had, with a partition and without.
#[test]
fn threads_that_were_moved_late_come_back() {
    for groups in [Groups::None, Groups::One, Groups::Two] {
        let mut bench = Bench::new(4, false, groups);
        // Each starts another one just before it is given other CPUs, which has those that its maker had: the second one when all other
        // threads were moved.
        bench.fake.forks = [(100, 700), (700, 701)].into();
        let applied = bench.apply(&bench.plan(&request("1")));
        let late = applied.changes.iter().find(|made| made.change.knob.to_string() == "CPUs of child (701)");
        assert_eq!(late.map(|made| made.outcome), Some(Outcome::Changed), "{groups:?}");
        let before = late.map(|made| made.change.from.clone()).unwrap();
        let restored = bench.restore(Foreign::Leave);
        assert!(restored.is_complete(), "{groups:?}: {restored:?}");
        assert_eq!(bench.fake.text("/proc/701/status"), format!("Cpus_allowed_list:\t{before}"), "{groups:?}");
    }
}

/// A CPU that others took offline meanwhile is given back as well: the kernel keeps it for when it is online again.
#[test]
fn threads_get_back_a_cpu_that_is_offline() {
    let bench = Bench::new(4, false, Groups::None);
    bench.apply(&bench.plan(&request("1")));
    assert_eq!(bench.fake.text("/proc/100/status"), "Cpus_allowed_list:\t0,2-3");
    bench.fake.set("/sys/devices/system/cpu/online", "0,2-3\n");
    let restored = bench.restore(Foreign::Leave);
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(bench.fake.text("/proc/100/status"), "Cpus_allowed_list:\t0-3");
}

/// Threads go on starting others while they are put back, and so do their heirs: none of these stays behind.
#[test]
fn heirs_that_begin_while_their_makers_are_put_back_follow() {
    let mut bench = Bench::new(4, false, Groups::None);
    bench.apply(&bench.plan(&request("1")));
    bench.fake.forks = [(100, 700), (700, 701), (701, 702)].into();
    let restored = bench.restore(Foreign::Leave);
    assert!(restored.is_complete());
    let cpus: Vec<String> = (700..703).map(|tid| bench.fake.text(&format!("/proc/{tid}/status"))).collect();
    assert_eq!(cpus, ["Cpus_allowed_list:\t0-3"; 3]);
    assert_eq!(restored.heirs.widened.len(), 3, "{:?}", restored.heirs);
}

#[test]
fn four_thousand_cpus_and_32_siblings() {
    let bench = Bench::new(4096, false, Groups::Two);
    let siblings: String = (0..32).map(|thread| format!("{},", 1 + thread * 128)).collect();
    let tree = crate::fake::Tree { root: bench.root() };
    let path = "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list";
    tree.file(path, siblings.trim_end_matches(','));
    let before = snapshot(&bench.root());
    let plan = bench.plan(&request("1"));
    assert_eq!((plan.siblings.len(), plan.housekeeping.len()), (31, 4096 - 32));
    let applied = bench.apply(&plan);
    assert!(applied.refused().next().is_none());
    assert!(bench.fake.text("/sys/devices/virtual/workqueue/cpumask").contains("fffffffd,"));
    assert!(bench.fake.text("/proc/irq/5/smp_affinity_list").starts_with("0,2-128,130-"));
    let restored = bench.restore(Foreign::Leave);
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn a_machine_that_has_next_to_nothing() {
    let place = tempfile::tempdir().unwrap();
    let tree = crate::fake::Tree { root: place.path().join("root") };
    tree.file("/sys/devices/system/cpu/online", "0-1\n")
        .file("/proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-000000000001\n");
    let fake = Fake::new(&tree.root);
    let plan = plan(&fake, &request("1")).unwrap();
    assert!(plan.steps.is_empty());
    assert!(plan.notes.iter().any(|note| note.text.contains("no cpusets")), "{:?}", plan.notes);
}

#[test]
fn a_folder_that_cannot_be_listed_is_said() {
    let bench = Bench::new(4, false, Groups::Two);
    let whole = bench.plan(&request("1"));
    // Root lists every folder, so that a link to itself stands for one that cannot be listed.
    let folder = bench.root().join("proc/irq");
    fs::remove_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&folder, &folder).unwrap();
    let plan = bench.plan(&request("1"));
    let said = |plan: &Plan| {
        plan.notes.iter().any(|note| note.family == Family::Irq && note.text.contains("what it holds is left alone"))
    };
    assert!(said(&plan) && !said(&whole), "{:?}", plan.notes);
    assert!(!plan.steps.iter().any(|step| step.family == Family::Irq));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is asked for and whatever the kernel refuses: there is a CPU for everything else, and all comes back.
    #[test]
    fn any_request_comes_back(
        asked in proptest::collection::btree_set(0_u32..8, 1..8),
        siblings: bool,
        groups in 0_usize..4,
        profile in 0_usize..4,
        faulty in proptest::collection::vec((0_usize..60, prop_oneof![Just(EIO), Just(EBUSY), Just(EINVAL)]), 0..6),
    ) {
        let groups = [Groups::None, Groups::One, Groups::Two, Groups::Systemd][groups];
        let mut bench = Bench::new(8, siblings, groups);
        let before = snapshot(&bench.root());
        let cpus = asked.into_iter().map(becalm_units::CpuId::new).collect();
        let request = Request { cpus, profile: Profile::ALL[profile], ..Request::default() };
        let planned = plan(&bench.fake, &request);
        let Ok(planned) = planned else {
            let none_left = matches!(planned.unwrap_err(), PlanError::NoHousekeeping { .. });
            prop_assert!(none_left);
            return Ok(());
        };
        prop_assert!(!planned.housekeeping.is_empty());
        prop_assert!(planned.housekeeping.intersection(&planned.cpus).is_empty());
        let paths: Vec<_> = planned.steps.iter().filter_map(|step| match &step.knob {
            Knob::File { path, .. } | Knob::Group { path } => Some(path.clone()),
            _ => None,
        }).collect();
        for (at, error) in faulty {
            bench.fake.faults.insert(paths[at % paths.len()].clone(), error);
        }
        bench.apply(&planned);
        bench.fake.faults.clear();
        let restored = bench.restore(Foreign::Leave);
        prop_assert!(restored.is_complete(), "{restored:?}");
        prop_assert_eq!(snapshot(&bench.root()), before);
    }
}
