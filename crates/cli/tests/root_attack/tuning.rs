//! `becalm tune`, signalled, raced, orphaned and kept from restoring: the settings are back in the end, or it is said that they
//! are not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use becalm_testing::attack::{Tries, attack};
use becalm_testing::machine::Bench;
use becalm_testing::program::{Ended, Running, path, public_program, run};
use becalm_testing::{Need, machine_has, wait_until};
use becalm_tune::sealed;
use serde_json::Value;

use crate::injecting::threads;

const INTERVAL: &str = "/proc/sys/vm/stat_interval";

/// A command, run by a shell that does something before, without files of memory for those that die of a signal.
fn after_shell(line: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -c 0; {line} exec \"$@\""), "sh"]).arg(command.get_program());
    shell.args(command.get_args());
    shell
}

#[test]
fn signals_at_any_moment() {
    const SIGNALS: [&str; 9] = ["INT", "TERM", "HUP", "QUIT", "ALRM", "USR1", "XCPU", "SEGV", "ABRT"];
    let Some(mut bench) = Bench::new() else { return };
    let row = "INT TERM HUP QUIT ALRM USR1 XCPU SEGV ABRT to tune run";
    attack(row, Tries { all: 72, few: 5 }, |number, random| {
        bench.see_threads();
        // A few tries begin anywhere in the list.
        let signal = SIGNALS[(number as usize + random.below(9)) % 9];
        let delay = random.time(Duration::from_millis(900));
        let command = bench.tune(&["run", "--quiet", "--cpus", bench.cpu(), "--", "sleep", "0.3"]);
        let running = Running::start(after_shell("", &command));
        thread::sleep(delay);
        running.signal(signal);
        running.end();
        bench.is_untouched(&format!("SIG{signal} after {delay:?}"), &[]);
    });
}

#[test]
fn two_at_once() {
    let Some(mut bench) = Bench::new() else { return };
    let row = "two tune apply at once: one makes its changes; then two tune restore at once: all is as it was";
    attack(row, Tries { all: 30, few: 2 }, |_, random| {
        bench.see_threads();
        let both = |words: &[&str], delay: Duration| -> [Ended; 2] {
            let first = Running::start(bench.tune(words));
            thread::sleep(delay);
            let second = Running::start(bench.tune(words));
            [first.end(), second.end()]
        };
        let delay = random.time(Duration::from_millis(60));
        let applied = both(&["apply", "--cpus", bench.cpu(), "--only", "vmstat,memory,workqueue,watchdog"], delay);
        assert_eq!(applied.iter().filter(|ended| ended.code == 0).count(), 1, "after {delay:?}: {applied:#?}");
        let refused = applied.iter().find(|ended| ended.code != 0).expect("one of two");
        refused.expect(1, &["becalm"]);
        assert_eq!(fs::read_to_string(INTERVAL).unwrap(), "120\n");
        let restored = both(&["restore"], random.time(Duration::from_millis(60)));
        // One that comes while the other is at it may say so; one that comes after has nothing to do.
        for ended in &restored {
            let words: &[&str] = if ended.code == 0 { &[] } else { &["at this moment"] };
            ended.expect(ended.code.min(1), words);
        }
        assert!(restored.iter().any(|ended| ended.code == 0), "{restored:#?}");
        bench.is_untouched("after two restored", &[]);
    });
}

/// Whatever becomes of the terminal, the parent and the command.
#[test]
fn left_alone() {
    let Some(mut bench) = Bench::new() else { return };
    if !machine_has(&[Need::Program("script")]) {
        return;
    }
    let row = "tune run: terminal gone, parent killed, command that cannot start (2) or dies of SIGSEGV";
    attack(row, Tries { all: 5, few: 5 }, |number, _| {
        bench.see_threads();
        let ready = bench.place().join("ready");
        let of = |command: &[&str]| bench.tune(&[&["run", "--quiet", "--cpus", bench.cpu(), "--"], command].concat());
        let lasting = format!("trap '' HUP; : > {}; sleep 1", path(&ready));
        match number {
            0 => {
                // The terminal goes with the program that holds its other end.
                let inner = of(&["sh", "-c", &lasting]);
                let words: Vec<_> = std::iter::once(inner.get_program()).chain(inner.get_args()).collect();
                let quoted = words.iter().map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
                let mut terminal = Command::new("script");
                terminal.args(["-qc", &quoted.collect::<Vec<_>>().join(" "), "/dev/null"]);
                let mut running = Running::start(terminal);
                running.wait_until("the command runs", || ready.exists());
                running.signal("KILL");
                running.end();
            }
            1 => {
                let mut shell = Command::new("sh");
                let inner = of(&["sh", "-c", &lasting]);
                shell.args(["-c", "\"$@\" & wait", "sh"]).arg(inner.get_program()).args(inner.get_args());
                let mut running = Running::start(shell);
                running.wait_until("the command runs", || ready.exists());
                running.signal("KILL");
                // becalm ends with its command, which takes as long as the machine takes for it.
                wait_until("everything is restored", || !bench.journal().exists());
                running.end();
            }
            2 => {
                run(of(&["/proc/no/such/program"])).expect(1, &["there is no such program"]);
            }
            3 => {
                let text = bench.place().join("text");
                fs::write(&text, "#!/no/such/interpreter\n").unwrap();
                fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
                run(of(&[path(&text)])).expect(1, &["cannot start"]);
                fs::remove_file(text).unwrap();
            }
            _ => {
                run(after_shell("", &of(&["sh", "-c", "kill -s SEGV $$"]))).expect(128 + 11, &[]);
            }
        }
        let _ = fs::remove_file(&ready);
        bench.is_untouched("after its end", &[]);
    });
}

fn document(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:#?}"))
}

/// A journal whose settings a reboot has undone says nothing about this boot's.
#[test]
fn journals_of_another_boot() {
    let Some(mut bench) = Bench::new() else { return };
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let row = "journal of another boot: named by status, ignored by restore, replaced by apply";
    attack(row, Tries { all: 3, few: 3 }, |number, _| {
        bench.see_threads();
        let apply = || run(bench.tune(&["apply", "--cpus", bench.cpu(), "--only", "vmstat"]));
        apply().expect(0, &[]);
        let ours = fs::read_to_string(bench.journal()).unwrap();
        let (first, rest) = ours.split_once('\n').unwrap();
        let record = format!("{{\"{}", &first[first.find("record").unwrap()..]);
        let theirs = record.replace(boot.trim(), "01234567-89ab-cdef-0123-456789abcdef");
        assert_ne!(record, theirs);
        let theirs = format!("{}\n{rest}", sealed(1, &theirs));
        fs::write(bench.journal(), theirs).unwrap();
        match number {
            0 => {
                let status = document(run(bench.tune(&["status", "--json"])).expect(0, &[]));
                assert_eq!(status["state"], "earlier_boot");
            }
            1 => {
                let ended = run(bench.tune(&["restore"]));
                assert!(ended.expect(0, &[]).stdout.contains("from an earlier boot"), "{ended:#?}");
                assert!(!bench.journal().exists());
                assert_eq!(fs::read_to_string(INTERVAL).unwrap(), "120\n");
            }
            _ => {
                apply().expect(0, &[]);
                assert!(!fs::read_to_string(bench.journal()).is_ok_and(|text| text.contains("01234567-89ab")));
            }
        }
        fs::write(bench.journal(), &ours).unwrap();
        run(bench.tune(&["restore"])).expect(0, &[]);
        bench.is_untouched("after the right journal", &[]);
    });
}

/// A byte of the journal is another one: nothing gets a value that it never had, and success is said of nothing else.
#[test]
fn journals_with_a_damaged_byte() {
    let Some(mut bench) = Bench::new() else { return };
    let row = "journal with one byte damaged: everything restored that the other lines say, exit code 1";
    attack(row, Tries { all: 400, few: 6 }, |number, random| {
        bench.see_threads();
        let families = "vmstat,memory,workqueue,watchdog,affinity";
        run(bench.tune(&["apply", "--cpus", bench.cpu(), "--only", families])).expect(0, &[]);
        let tuned = becalm_testing::machine::knobs();
        let ours = fs::read(bench.journal()).unwrap();
        // Each second one is damaged in the value of a setting, where a wrong one would be easiest to take for right.
        let values: Vec<usize> = (0..ours.len()).filter(|at| ours[*at..].starts_with(b"\"value\":\"")).collect();
        let at = if number % 2 == 0 { random.one(&values) + 9 } else { random.below(ours.len()) };
        let mut damaged = ours.clone();
        damaged[at] = if number % 2 == 0 { b'0' + random.below(10) as u8 } else { random.below(256) as u8 };
        let was_damaged = damaged != ours;
        fs::write(bench.journal(), damaged).unwrap();
        let ended = run(bench.tune(&["restore"]));
        let (now, is_kept) = (becalm_testing::machine::knobs(), bench.journal().exists());
        // Before anything else, so that a failure leaves nothing changed.
        fs::write(bench.journal(), &ours).unwrap();
        run(bench.tune(&["restore"])).expect(0, &[]);
        let is_end = at + 1 == ours.len();
        let what = format!("byte {at} of {} damaged", ours.len());
        if was_damaged && !is_end {
            ended.expect(1, &["of the journal ", "is damaged"]);
            let has_value = |(path, now): (&PathBuf, &Vec<u8>)| *now == bench.originals()[path] || *now == tuned[path];
            assert!(is_kept && now.iter().all(has_value), "{what}: {ended:#?}");
        } else {
            ended.expect(0, &[]);
            assert_eq!(&now, bench.originals(), "{what}");
        }
        bench.is_untouched(&what, &[]);
    });
}

/// Each thread is moved, and back: in many steps of the journal, none of which is lost.
#[test]
fn many_threads() {
    if !machine_has(&[Need::Program("cc")]) {
        return;
    }
    let Some(mut bench) = Bench::new() else { return };
    let program = threads(bench.place());
    attack("tune run beside 10,000 sleeping threads: all are moved, and all back", Tries { all: 2, few: 1 }, |_, _| {
        let count = if becalm_testing::attack::is_full() { 10_000 } else { 2_000 };
        let mut command = Command::new(&program);
        command.args(["sleep", &count.to_string()]);
        let mut sleepers = Running::start(command);
        let folder = format!("/proc/{}/task", sleepers.pid());
        sleepers.wait_until("all threads run", || fs::read_dir(&folder).unwrap().count() == count + 1);
        bench.see_threads();
        let narrow = format!("grep -h Cpus_allowed_list {folder}/*/status | sort | uniq -c | sort -rn | head -1");
        let words = ["run", "--quiet", "--cpus", bench.cpu(), "--only", "affinity", "--", "sh", "-c", &narrow];
        let ended = run(bench.tune(&words));
        ended.expect(0, &[]);
        let most = ended.stdout.trim();
        assert!(
            most.starts_with(&format!("{} ", count + 1)) && !most.ends_with(&format!("-{}", bench.cpu())),
            "{ended:#?}"
        );
        bench.is_as_before("after all threads are back");
        sleepers.signal("KILL");
        sleepers.end();
        bench.is_untouched("after they have ended", &["threads"]);
    });
}

/// What cannot be written at the moment keeps nothing else from being restored, and is restored later.
#[test]
fn settings_that_cannot_be_written() {
    let Some(mut bench) = Bench::new() else { return };
    let row = "setting read-only at restore: the others restored, exit code 1; all of them by the second";
    attack(row, Tries { all: 2, few: 2 }, |number, _| {
        bench.see_threads();
        let families = "vmstat,memory,workqueue,watchdog";
        run(bench.tune(&["apply", "--cpus", bench.cpu(), "--only", families])).expect(0, &[]);
        let stuck = [INTERVAL, "/sys/devices/virtual/workqueue/cpumask"][number as usize];
        let line = format!("mount -o bind {stuck} {stuck} && mount -o remount,bind,ro {stuck} &&");
        let inner = after_shell(&line, &bench.tune(&["restore"]));
        let mut apart = Command::new("unshare");
        apart.arg("-m").arg(inner.get_program()).args(inner.get_args());
        let ended = run(apart);
        ended.expect(1, &[]);
        assert!(ended.stdout.contains("1 was not"), "{ended:#?}");
        let now = becalm_testing::machine::knobs();
        let other: Vec<_> = now.iter().filter(|(path, text)| bench.originals()[*path] != **text).collect();
        assert!(other.len() == 1 && other[0].0 == Path::new(stuck), "{other:?}");
        run(bench.tune(&["restore"])).expect(0, &[]);
        bench.is_untouched("after the second restore", &[]);
    });
}

#[test]
fn without_rights() {
    let Some(mut bench) = Bench::new() else { return };
    if !machine_has(&[Need::Program("setpriv"), Need::Program("unshare")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = public_program(folder.path());
    let row = "tune apply and run as nobody, and as root of a user namespace: refused with the missing rights";
    attack(row, Tries { all: 4, few: 4 }, |number, _| {
        bench.see_threads();
        let journal = folder.path().join("journal");
        let mut command = if number < 2 {
            let mut nobody = Command::new("setpriv");
            nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
            nobody
        } else {
            let mut inside = Command::new("unshare");
            inside.args(["--user", "--map-root-user", "--"]);
            inside
        };
        command.arg(&program).args(["tune", ["apply", "run"][number as usize % 2], "--journal", path(&journal)]);
        command.args(["--cpus", bench.cpu()]).args(if number % 2 == 1 { &["--", "echo", "ran"][..] } else { &[] });
        let ended = run(command);
        ended.expect(1, &["CAP_SYS_ADMIN"]);
        assert_eq!(ended.stdout, "");
        assert!(!journal.exists());
        bench.is_untouched("after a refusal", &[]);
    });
}
