//! A journal that cannot grow, as on a full disk: everything comes back all the same.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bench::{Bench, request};
use crate::fake::{Fake, Groups, Tree, snapshot};
use becalm_tune::{Folder, Profile, Request, RestoreOptions, restore};
use rustix::process::{Resource, Rlimit, setrlimit};

/// In the environment of a process that restores with a journal that cannot grow: by how many bytes it can, and where.
const VICTIM: &str = "BECALM_TEST_FULL";

/// The process whose files are limited; as a test of its own it does nothing.
#[test]
fn victim() {
    let Ok(task) = env::var(VICTIM) else { return };
    let (room, place) = task.split_once('|').expect("the task is whole");
    let (fake, folder) = (Fake::new(&Path::new(place).join("root")), Folder::new(Path::new(place).join("journal")));
    let len = fs::metadata(folder.journal()).expect("there is a journal").len();
    let most = Some(len + room.parse::<u64>().expect("a number"));
    setrlimit(Resource::Fsize, Rlimit { current: most, maximum: most }).expect("a limit can be lowered");
    let restored = restore(&fake, &folder, RestoreOptions::default(), &mut |_| ()).expect("it can be restored");
    assert!(restored.as_ref().expect("there is a journal").is_complete(), "{restored:?}");
}

/// With a partition the threads that were started meanwhile are noted before anything is put back, in one long line.
#[test]
fn everything_comes_back_although_not_all_can_be_noted() {
    for (room, lines_are_noted) in [(0, false), (4096, true)] {
        let bench = Bench::new(8, true, Groups::Two);
        let mut before = snapshot(&bench.root());
        bench.apply(&bench.plan(&Request { profile: Profile::Rt, ..request("1") }));
        let open = bench.folder.read().unwrap().unwrap().in_force().len();
        let tree = Tree { root: bench.root() };
        for tid in 1000..1120 {
            // The kernel gives it all CPUs when the partition goes.
            tree.thread(tid, "late", 0, 900, "0");
            before.extend(snapshot(&bench.root().join(format!("proc/{tid}"))));
            before.insert(bench.root().join(format!("proc/{tid}")), Vec::new());
        }
        // Without a handler a limit would end the process. What it prints goes through a pipe: a file would be limited, too.
        let victim = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
            .arg(env::current_exe().unwrap())
            .args(["--exact", "full::victim"])
            .env(VICTIM, format!("{room}|{}", bench.place.path().display()))
            .output()
            .unwrap();
        assert!(victim.status.success(), "with {room} bytes: {victim:?}");
        assert!(snapshot(&bench.root()) == before, "with {room} bytes");
        let last = fs::read_to_string(bench.folder.last()).unwrap();
        let lines = last.lines().filter(|line| line.contains("\"record\":\"restored\"")).count();
        assert_eq!(lines, if lines_are_noted { open } else { 0 }, "with {room} bytes");
    }
}
