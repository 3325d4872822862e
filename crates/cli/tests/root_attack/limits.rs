//! `becalm record` where there is too little: of the disk, of what `ulimit` gives, of a memory cgroup. It measures, or says what
//! is missing, and leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use becalm_testing::attack::{Tries, attack};
use becalm_testing::cgroup::ControlGroup;
use becalm_testing::machine::{Bench, Mounted};
use becalm_testing::program::{
    Ended, becalm, document, document_path, path, public_program, report, run, run_becalm, warning_codes,
};
use becalm_testing::{Need, machine_has, skip};
use tempfile::TempDir;

fn bench() -> Option<Bench> {
    machine_has(&[Need::Tracefs, Need::Program("setpriv"), Need::Program("bash")]).then(Bench::new).flatten()
}

/// A short recording in many segments, with the kernel's trace.
fn recording(bundle: &Path) -> Command {
    let words = ["record", "--quiet", "--duration", "500ms", "--segment", "100ms", "-o", path(bundle)];
    becalm(&words)
}

/// It is done, or failed with a message; what is stored is whole, and no draft is among it.
#[track_caller]
fn is_said(ended: &Ended, bundle: &Path) {
    let said = ended.stderr.lines().any(|line| line.starts_with("becalm: ") && line.len() > 20);
    assert!(ended.code == 0 || (ended.code == 1 && said), "{ended:#?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:#?}");
    assert_eq!(damaged(bundle), Vec::<PathBuf>::new(), "{ended:#?}");
    assert_eq!(ended.code == 0, bundle.exists() && report(bundle)["nodes"][0]["ended"] == "duration", "{ended:#?}");
}

/// Files of a bundle that are neither documents nor tables.
fn damaged(bundle: &Path) -> Vec<PathBuf> {
    let (mut left, mut found) = (vec![bundle.to_owned()], Vec::new());
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = path.extension().and_then(|kind| kind.to_str());
            match kind {
                _ if path.is_dir() => left.push(path),
                Some("json" | "parquet") => {}
                _ => found.push(path),
            }
        }
    }
    found
}

#[test]
fn disks_that_are_full() {
    let Some(bench) = bench() else { return };
    let row = "full tmpfs of 4k, 16k, 64k, 128k, 256k, 512k: refused, or FAILED with what was stored; no drafts left";
    attack(row, Tries { all: 6, few: 6 }, |number, _| {
        let size = 4 << [0, 2, 4, 5, 6, 7][number as usize];
        let disk = Mounted::tmpfs(&format!("size={size}k"));
        let bundle = disk.path().join("run");
        // What is left of the disk would be enough for a quiet machine.
        if size > 64 {
            fs::write(disk.path().join("others"), vec![0; (size - 48) << 10]).unwrap();
        }
        let ended = run(recording(&bundle));
        if ended.code != 0 {
            ended.expect(1, &["No space left on device"]);
        }
        assert_eq!(damaged(&bundle), Vec::<PathBuf>::new());
        if document_path(&bundle).is_some() {
            report(&bundle);
        }
        bench.is_untouched(&format!("{size} KiB"), &[]);
    });
}

/// The program with arguments, under a limit; `of` is what `ulimit` is given.
fn limited(of: &str, program: &Path, command: &Command) -> Command {
    // Other shells than this one lack some of its limits.
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("ulimit -c 0; ulimit {of} && exec \"$@\""), "bash"]).arg(program);
    shell.args(command.get_args());
    shell
}

#[test]
fn limits_of_the_shell() {
    // As root, and from here on as nobody.
    const NOBODY: usize = 14;
    const LIMITS: [&str; 17] = [
        "-v 120000",
        "-v 400000",
        "-v 1500000",
        "-l 0",
        "-l 64",
        "-n 5",
        "-n 9",
        "-n 20",
        "-f 0",
        "-f 4",
        "-f 64",
        "-u 1",
        "-s 64",
        "-s 1024",
        "-u 1",
        "-u 4",
        "-l 0",
    ];
    let Some(bench) = bench() else { return };
    let folder = TempDir::new().unwrap();
    let program = public_program(folder.path());
    let row = "ulimit -v -l -n -f -u -s, as root and as nobody: a result or a clear message, no instance left";
    attack(row, Tries { all: 17, few: 17 }, |number, _| {
        let number = number as usize;
        let bundle = folder.path().join("run");
        let mut command = limited(LIMITS[number], &program, &recording(&bundle));
        if number >= NOBODY {
            let mut nobody = Command::new("setpriv");
            nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
            nobody.arg(command.get_program()).args(command.get_args());
            command = nobody;
        }
        let ended = run(command);
        is_said(&ended, &bundle);
        if bundle.exists() {
            let document = document(&bundle);
            if document["node"] == "localhost" {
                assert!(warning_codes(&document).contains(&"no_host_name"), "{document:#}");
            }
            fs::remove_dir_all(&bundle).unwrap();
        }
        bench.is_untouched(LIMITS[number], &[]);
    });
}

/// Where no thread can be started, what needs none works, and the rest says so.
#[test]
fn no_threads() {
    let Some(bench) = bench() else { return };
    let folder = TempDir::new().unwrap();
    let program = public_program(folder.path());
    let output = folder.path().join("run");
    let commands: [&[&str]; 8] = [
        &["record", "--no-sources", "--quiet", "--duration", "100ms", "-o", path(&output)],
        &["work", "--quiet", "--duration", "100ms", "-o", path(&output)],
        &["top", "--iterations", "1", "--interval", "200ms"],
        &["inject", "--signal", "--interval", "1ms", "--detour", "10us", "--", "true"],
        &["cost", "clock", "-o", path(&output)],
        &["predict", "periodic:interval=1ms,detour=50us", "--ranks", "64", "--phases", "100"],
        &["predict", "poisson:rate=10Hz,detour=50us", "--ranks", "128Ki", "--phases", "2", "--collective", "barrier"],
        &["tune", "plan", "--cpus", bench.cpu()],
    ];
    attack("ulimit -u 1 as nobody: a result or a clear message", Tries { all: 8, few: 8 }, |number, _| {
        let inner = limited("-u 1", &program, &becalm(commands[number as usize]));
        let mut nobody = Command::new("setpriv");
        nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
        nobody.arg(inner.get_program()).args(inner.get_args());
        let ended = run(nobody);
        let said = ended.stderr.lines().any(|line| line.starts_with("becalm: ") && line.len() > 20);
        assert!(ended.code == 0 || (ended.code == 1 && said), "{ended:#?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:#?}");
        assert!(number < 5 || ended.code == 0, "{ended:#?}");
        let _ = fs::remove_dir_all(&output);
        bench.is_untouched("without threads", &[]);
    });
}

/// A stack that is too small is an error before anything is begun; a small one is enough for all commands.
#[test]
fn small_stacks() {
    let Some(bench) = bench() else { return };
    let folder = TempDir::new().unwrap();
    becalm_fixtures::write_named(&folder.path().join("run.becalm"), "a name");
    attack("ulimit -s 32 to 4096: a clear message, or every command works", Tries { all: 32, few: 8 }, |number, _| {
        let size = 32_u32 << (number % 8);
        let stored = path(&folder.path().join("run.becalm")).to_owned();
        let [page, new, pages] = ["page.html", "new", "pages"].map(|name| folder.path().join(name));
        let commands: [&[&str]; 8] = [
            &["record", "--quiet", "--duration", "100ms", "--cpus", "0", "-o", path(&new)],
            &["report", &stored],
            &["report", &stored, "--json"],
            &["report", &stored, "--html", path(&page)],
            &["predict", &stored, "--ranks", "64", "--phases", "100", "--blame"],
            &["tune", "audit"],
            &["tune", "plan", "--cpus", bench.cpu()],
            &["man", path(&pages)],
        ];
        for words in &commands[if number < 8 { 0..8 } else { 0..3 }] {
            let command = becalm(words);
            let ended = run(limited(&format!("-s {size}"), Path::new(command.get_program()), &command));
            if size < 1024 {
                ended.expect(1, &[&format!("a stack of {size} KiB"), "ulimit -s"]);
            } else {
                ended.expect(0, &[]);
            }
            let _ = fs::remove_dir_all(&new);
        }
        bench.is_untouched(&format!("{size} KiB"), &[]);
    });
}

#[test]
fn memory_groups() {
    let Some(bench) = bench() else { return };
    if ControlGroup::with_memory(64).is_none() {
        return skip("no memory cgroup can be made");
    }
    let row = "memory cgroup of 4, 8, 16, 32, 64, 128 MiB: done or killed; no instance, no process left";
    attack(row, Tries { all: 6, few: 6 }, |number, _| {
        let mebibytes = 4 << number;
        let folder = TempDir::new().unwrap();
        let bundle = folder.path().join("run");
        let group = ControlGroup::with_memory(mebibytes).unwrap();
        let ended = run(group.inside(&recording(&bundle)));
        drop(group);
        let killed = ended.code == 128 + 9;
        assert!([0, 1].contains(&ended.code) || killed, "{ended:#?}");
        assert!(mebibytes < 128 || ended.code == 0, "{ended:#?}");
        if !killed {
            is_said(&ended, &bundle);
        } else if document_path(&bundle).is_some() {
            run_becalm(&["report", path(&bundle)]).expect(0, &[]);
        }
        bench.is_untouched(&format!("{mebibytes} MiB"), &[]);
    });
}
