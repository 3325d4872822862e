//! Output that others try to lead elsewhere, readers that leave, and input that never ends or is made to take all memory.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use becalm_testing::program::{becalm, executable, path, run, run_becalm};
use becalm_testing::{Need, machine_has};
use tempfile::TempDir;

const NOBODY: u32 = 65_534;

/// A folder that everybody may write, with a run in it that was imported.
fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("selfish.txt"), "100 10\n2100 20\n").unwrap();
    run_in(&folder, &["import", "--from", "selfish", "selfish.txt", "-o", "run.becalm"]).expect(0, &[]);
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    folder
}

fn run_in(folder: &TempDir, arguments: &[&str]) -> becalm_testing::program::Ended {
    let mut command = becalm(arguments);
    command.current_dir(folder.path());
    run(command)
}

/// Plants a link of another user, as only root can.
fn plant(link: &Path, target: &Path) {
    symlink(target, link).unwrap();
    lchown(link, Some(NOBODY), None).unwrap();
}

#[test]
fn nothing_is_written_through_a_planted_link() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let folder = open_folder();
    let safe = tempfile::tempdir().unwrap();
    let kept = safe.path().join("kept");
    fs::write(&kept, "kept").unwrap();
    plant(&folder.path().join("file"), &kept);
    plant(&folder.path().join("way"), safe.path());
    let commands: &[&[&str]] = &[
        &["report", "run", "--html", "file"],
        &["report", "run", "--html", "way/new"],
        &["compare", "run", "run", "--html", "file"],
        &["export", "--to", "loggopsim", "run", "-o", "file"],
        &["import", "--from", "selfish", "selfish.txt", "-o", "way/run.becalm"],
        &["man", "way/pages"],
    ];
    // In a folder of everybody's, and in one that is the other user's own.
    for (owner, mode) in [(0, 0o1777), (NOBODY, 0o755)] {
        chown(folder.path(), Some(owner), None).unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        for command in commands {
            run_in(&folder, command).expect(1, &["is a link that belongs to user 65534", "give another name"]);
        }
    }
    assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
    assert_eq!(fs::read_dir(safe.path()).unwrap().count(), 1);
    // That user's links to that user's own folders change nothing.
    chown(safe.path(), Some(NOBODY), None).unwrap();
    run_in(&folder, &["export", "--to", "loggopsim", "run", "-o", "way/new"]).expect(0, &[]);
    assert!(safe.path().join("new").is_file());
    // One's own link is followed.
    fs::remove_file(folder.path().join("file")).unwrap();
    symlink(&kept, folder.path().join("file")).unwrap();
    run_in(&folder, &["export", "--to", "loggopsim", "run", "-o", "file"]).expect(0, &[]);
    assert!(fs::read_to_string(&kept).unwrap().starts_with("0\t0\n"));
}

#[test]
fn nothing_is_written_into_a_planted_pipe() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let folder = open_folder();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").args(["-m", "666"]).arg(&pipe).status().unwrap().success());
    chown(&pipe, Some(NOBODY), None).unwrap();
    // Without a reader, so that whoever opens it to write waits for ever.
    for command in [&["report", "run", "--html", "pipe"][..], &["export", "--to", "loggopsim", "run", "-o", "pipe"]] {
        run_in(&folder, command).expect(1, &["it is a pipe of user 65534", "give another name"]);
    }
}

#[test]
fn an_export_that_fails_leaves_what_was_there() {
    let folder = open_folder();
    fs::write(folder.path().join("noise.txt"), "before").unwrap();
    run_in(&folder, &["export", "--to", "loggopsim", "none", "-o", "noise.txt"]).expect(1, &["cannot open none"]);
    let mut limited =
        shell("ulimit -f 0; exec \"$0\" \"$@\"", &["export", "--to", "loggopsim", "run", "-o", "noise.txt"]);
    limited.current_dir(folder.path());
    run(limited).expect(1, &["noise.txt", "File too large"]);
    assert_eq!(fs::read_to_string(folder.path().join("noise.txt")).unwrap(), "before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "a draft was left");
}

/// A shell that runs a line with becalm as `$0` and these arguments.
fn shell(line: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).arg(executable()).args(arguments);
    command
}

#[test]
fn what_root_records_is_for_root_and_the_user_behind_sudo() {
    let folder = open_folder();
    if !machine_has(&[Need::Root]) {
        return;
    }
    let mut command = becalm(&["import", "--from", "selfish", "selfish.txt", "-o", "given.becalm"]);
    command.current_dir(folder.path()).env("SUDO_UID", "65534").env("SUDO_GID", "65533");
    run(command).expect(0, &[]);
    // Where that user could not have made anything, only what is plainly a bundle.
    let closed = tempfile::tempdir().unwrap();
    for (name, owner) in [("kept", 0), ("given.becalm", 65_534)] {
        let bundle = closed.path().join(name);
        let mut command = becalm(&["import", "--from", "selfish", "selfish.txt", "-o", path(&bundle)]);
        command.current_dir(folder.path()).env("SUDO_UID", "65534").env("SUDO_GID", "65533");
        run(command).expect(0, &[]);
        assert_eq!(fs::metadata(&bundle).unwrap().uid(), owner, "{name}");
        assert_eq!(fs::metadata(bundle.join("runs")).unwrap().uid(), owner, "{name}");
    }
    let mut left: Vec<PathBuf> = vec![folder.path().join("given.becalm"), folder.path().join("run.becalm")];
    let mut seen = 0;
    while let Some(path) = left.pop() {
        let found = fs::metadata(&path).unwrap();
        let mode = if found.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(found.mode() & 0o7777, mode, "{}", path.display());
        let owner = if path.starts_with(folder.path().join("given.becalm")) { (65_534, 65_533) } else { (0, 0) };
        assert_eq!((found.uid(), found.gid()), owner, "{}", path.display());
        if found.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        seen += 1;
    }
    assert!(seen > 8);
}

/// Runs becalm with a standard output whose reader has left.
fn without_reader(arguments: &[&str]) -> Output {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    becalm(arguments).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).output().unwrap()
}

#[test]
fn the_exit_code_tells_what_happened_when_the_reader_left() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, more: &[&str]| {
        let path = path(&folder.path().join(name)).to_owned();
        let output = without_reader(&[&["record", "--no-sources", "-o", &path], more].concat());
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
        output.status.code()
    };
    assert_eq!(run("limit", &["--duration", "300ms", "--max-noise", "0%"]), Some(3));
    assert_eq!(run("command", &["--", "sh", "-c", "sleep 0.2; exit 3"]), Some(1));
    assert_eq!(run("done", &["--duration", "100ms"]), Some(0));
    let done = folder.path().join("done");
    assert_eq!(without_reader(&["report", path(&done)]).status.code(), Some(0));
    assert_eq!(without_reader(&["report", path(&folder.path().join("none"))]).status.code(), Some(1));
}

#[test]
fn arguments_of_the_command_stay_secret_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("run");
    let command = ["--", "sh", "-c", "sleep 0.1 # secret-token"];
    let arguments = ["record", "--no-sources", "--no-argv", "--quiet", "-o", path(&bundle)];
    run_becalm(&[&arguments[..], &command[..]].concat()).expect(0, &[]);
    let document = becalm_testing::program::document(&bundle);
    assert_eq!(document["settings"]["command"], serde_json::json!(["sh"]));
    assert!(!document.to_string().contains("secret-token"));
}

#[test]
fn what_is_no_regular_file_is_not_read() {
    let folder = open_folder();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (file, what) in [(path(&pipe), "it is a pipe"), ("/dev/zero", "it is a device")] {
        run_in(&folder, &["import", "--from", "selfish", file, "-o", "x"]).expect(1, &["cannot read", what]);
        let direct = ["cost", "tick", "--from", "selfish.txt", "--direct", file];
        run_in(&folder, &direct).expect(1, &["cannot read", what]);
        run_in(&folder, &["watch", "--config", file]).expect(1, &["cannot read the configuration", what]);
        run_in(&folder, &["predict", "run", "--network", file]).expect(2, &[file, what]);
    }
    let segment = folder.path().join("run.becalm/detours/node=imported/0000.parquet");
    let document = folder.path().join("run.becalm/runs/node=imported.json");
    for file in [segment, document] {
        fs::remove_file(&file).unwrap();
        symlink(&pipe, &file).unwrap();
        run_in(&folder, &["report", "run"]).expect(1, &["cannot read", "it is a pipe, and not a regular file"]);
    }
    let document = folder.path().join("run.becalm/runs/node=imported.json");
    fs::remove_file(&document).unwrap();
    fs::File::create(&document).unwrap().set_len(300 << 20).unwrap();
    run_in(&folder, &["report", "run"]).expect(1, &["it is larger than 256 MiB"]);
}

#[test]
fn names_of_files_do_not_steer_the_terminal() {
    let folder = open_folder();
    fs::write(folder.path().join("run.becalm/runs/node=e\u{1b}[2J\nbecalm: FAKE.json"), "{}").unwrap();
    // The other node of the bundle is read, and this one told.
    let ended = run_in(&folder, &["report", "run"]);
    ended.expect(
        0,
        &["becalm: e\u{fffd}[2J\u{fffd}becalm: FAKE is left out", "node=e\u{fffd}[2J\u{fffd}becalm: FAKE.json"],
    );
    assert!(!ended.stderr.contains('\u{1b}') && ended.stderr.lines().count() == 1, "{ended:?}");
}

#[test]
fn a_limit_of_file_sizes_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("run");
    let arguments = ["record", "--no-sources", "--quiet", "--duration", "200ms", "-o", path(&bundle)];
    run(shell("ulimit -f 4; exec \"$0\" \"$@\"", &arguments)).expect(1, &["nothing was recorded", "File too large"]);
    // The programs that it starts do not inherit that.
    let arguments = ["record", "--no-sources", "--quiet", "-o", path(&bundle), "--", "sh", "-c", "kill -XFSZ $$"];
    run_becalm(&arguments).expect(1, &["signal 25"]);
}

/// No machine counts so far, but a document can say so.
#[test]
fn counts_at_their_limits_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("run.becalm");
    becalm_fixtures::write_named(&bundle, "a name");
    let file = becalm_testing::program::document_path(&bundle).unwrap();
    let mut document = becalm_testing::program::document(&bundle);
    for cpu in document["cpus"].as_array_mut().unwrap() {
        cpu["lost_events"] = u64::MAX.into();
        cpu["iterations"] = u64::MAX.into();
        cpu["t_min_ns"] = (i64::MAX / 2).into();
    }
    fs::write(file, document.to_string()).unwrap();
    let stored = path(&bundle);
    let compare = ["compare", stored, stored, "--cpus-a", "0", "--cpus-b", "1"];
    for words in [&["report", stored][..], &["report", stored, "--json"], &["report", "--sources", stored], &compare] {
        run_becalm(words).expect(0, &[]);
    }
}
