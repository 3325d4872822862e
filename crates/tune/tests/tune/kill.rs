//! Killed with SIGKILL at every moment of applying and of restoring: restoring always brings back what was.

use std::cell::Cell;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fake::{Fake, Groups, machine, snapshot};
use becalm_tune::{Folder, Moment, Owner, Profile, Request, RestoreOptions, apply, plan, restore};
use rustix::process::{Signal, getpid, kill_process};

/// In the environment of a process that is to be killed: what it does, at which moment it dies, and where.
const VICTIM: &str = "BECALM_TEST_VICTIM";

/// Kills this process when it is told of a moment for the last time.
fn killer(at: usize) -> impl FnMut(Moment) {
    let left = Cell::new(at);
    move |_| {
        left.set(left.get().saturating_sub(1));
        if left.get() == 0 {
            kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
        }
    }
}

/// The process that is killed; as a test of its own it does nothing.
#[test]
fn victim() {
    let Ok(task) = env::var(VICTIM) else { return };
    let mut words = task.split('|');
    let mut next = || words.next().expect("the task is whole");
    let (what, at, place) = (next(), next().parse().expect("a number"), PathBuf::from(next()));
    let groups = if next() == "one" { Groups::One } else { Groups::Two };
    assert_eq!(groups == Groups::One, place.join("root/sys/fs/cgroup/cpuset").exists());
    let (fake, folder) = (Fake::new(&place.join("root")), Folder::new(place.join("journal")));
    let mut observer = killer(at);
    if what == "apply" {
        let request = Request { cpus: "1,3".parse().expect("a list"), profile: Profile::Rt, ..Request::default() };
        let plan = plan(&fake, &request).expect("a plan can be made");
        let owner = Owner::this_process(&fake, false).expect("the process is there");
        apply(&fake, &folder, &plan, &owner, &mut observer).expect("it can be applied");
    } else {
        restore(&fake, &folder, RestoreOptions::default(), &mut observer).expect("it can be restored");
    }
}

/// Runs a victim; tells whether it was killed, and not done before.
fn killed(what: &str, at: usize, place: &Path, groups: Groups) -> bool {
    let groups = if groups == Groups::One { "one" } else { "two" };
    let status = Command::new(env::current_exe().expect("this test is a program"))
        .args(["--exact", "kill::victim"])
        .env(VICTIM, format!("{what}|{at}|{}|{groups}", place.display()))
        .stdout(Stdio::null())
        .status()
        .expect("it can be started");
    assert!(status.success() || status.code().is_none(), "{what} failed at moment {at}: {status}");
    !status.success()
}

fn fresh(groups: Groups) -> tempfile::TempDir {
    let place = crate::bench::place();
    machine(&place.path().join("root"), 8, true, groups);
    place
}

fn restore_now(place: &Path) {
    let fake = Fake::new(&place.join("root"));
    if let Some(restored) =
        restore(&fake, &Folder::new(place.join("journal")), RestoreOptions::default(), &mut |_| ()).unwrap()
    {
        assert!(restored.is_complete(), "{restored:?}");
    }
}

/// The whole of `becalm-tune`'s promise.
fn at_every_moment(groups: Groups) {
    let place = fresh(groups);
    let root = place.path().join("root");
    let before = snapshot(&root);
    let mut moments = 0;
    while killed("apply", moments + 1, place.path(), groups) {
        moments += 1;
        restore_now(place.path());
        assert!(snapshot(&root) == before, "after apply was killed at moment {moments}");
    }
    // Some twenty changes of three moments each.
    assert!(moments > 60, "only {moments}");
    // The last one was applied to its end.
    let mut restore_moments = 0;
    while killed("restore", restore_moments + 1, place.path(), groups) {
        restore_moments += 1;
        restore_now(place.path());
        assert!(snapshot(&root) == before, "after restore was killed at moment {restore_moments}");
        assert!(!killed("apply", usize::MAX, place.path(), groups));
    }
    assert!(restore_moments > 40, "only {restore_moments}");
    assert!(snapshot(&root) == before);
    // Applying killed, and then restoring again and again, each time a little later.
    for at in (1..=moments).step_by(7) {
        assert!(killed("apply", at, place.path(), groups));
        for later in 1..=4 {
            killed("restore", later, place.path(), groups);
        }
        restore_now(place.path());
        assert!(snapshot(&root) == before, "after apply was killed at {at}, and restore four times");
    }
}

#[test]
fn with_control_groups_of_version_1() {
    at_every_moment(Groups::One);
}

#[test]
fn with_control_groups_of_version_2() {
    at_every_moment(Groups::Two);
}
