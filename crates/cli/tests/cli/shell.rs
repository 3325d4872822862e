//! What packagers and shells take from becalm: completions and manual pages; and `becalm top` where it has no terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use becalm_testing::program::{self, forget_looks, path, run_becalm};
use becalm_testing::{Need, machine_has};

const PROGRAM: &str = env!("CARGO_BIN_EXE_becalm");

#[test]
fn bash_completes_commands_and_options() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("becalm");
    let ended = run_becalm(&["completions", "bash"]);
    fs::write(&script, &ended.expect(0, &[]).stdout).unwrap();
    if !machine_has(&[Need::Program("bash")]) {
        return;
    }
    // As the shell does it: the function that the script names is called with the words so far.
    let complete = |line: &str| {
        let source = "set -eu; source \"$0\"; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); \
                      set +eu; _becalm becalm \"${COMP_WORDS[$COMP_CWORD]}\" becalm; echo \"${COMPREPLY[@]}\"";
        let output = Command::new("bash").args(["--norc", "-c", source, path(&script), line]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("becalm rec"), "record");
    assert_eq!(complete("becalm top --inter"), "--interval");
    assert_eq!(complete("becalm completions z"), "zsh");
}

#[test]
fn every_shell_takes_its_script() {
    for (shell, check) in [("zsh", Some("-n")), ("fish", Some("--no-execute")), ("elvish", None), ("powershell", None)]
    {
        let ended = run_becalm(&["completions", shell]);
        let script = &ended.expect(0, &[]).stdout;
        assert!(script.contains("becalm") && script.contains("record"), "{shell}: {script}");
        let Some(check) = check else { continue };
        if !machine_has(&[Need::Program(shell)]) {
            continue;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), script).unwrap();
        let output = Command::new(shell).arg(check).arg(file.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    run_becalm(&["completions", "command.com"]).expect(2, &["possible values"]);
}

#[test]
fn fish_completes_commands_and_options() {
    if !machine_has(&[Need::Program("fish")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("becalm.fish");
    fs::write(&script, &run_becalm(&["completions", "fish"]).expect(0, &[]).stdout).unwrap();
    let complete = |line: &str| {
        let source = format!("source {}; complete --do-complete '{line}'", path(&script));
        let mut fish = Command::new("fish");
        fish.args(["--no-config", "-c", &source]).env("HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path());
        let output = fish.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        // Each is followed by what it is for.
        text.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(complete("becalm rec"), ["record"]);
    assert_eq!(complete("becalm top --inter"), ["--interval"]);
    assert_eq!(complete("becalm compare --fail"), ["--fail-if-worse"]);
}

#[test]
fn zsh_completes_commands_and_options() {
    if !machine_has(&[Need::Program("zsh")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("_becalm"), &run_becalm(&["completions", "zsh"]).expect(0, &[]).stdout).unwrap();
    // Completion lives in the line editor: a shell on a terminal of its own, in which the key is pressed.
    let source = r#"
        zmodload zsh/zpty
        zpty shell 'TERM=xterm zsh -f -i'
        zpty -w shell "PS1=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -d $1/dump; echo rea''dy"
        zpty -r -m shell out '*ready*'
        zpty -w -n shell "$2"$'\t'
        for try in {1..150}; do
            while zpty -r -t shell part; do all+=$part; done
            [[ $all == *$3* ]] && break
            sleep 0.1
        done
        print -r -- $all
        zpty -d shell
    "#;
    let complete = |typed: &str, expected: &str| {
        let mut zsh = Command::new("timeout");
        zsh.args(["30", "zsh", "-f", "-c", source, "zsh", path(folder.path()), typed, expected]);
        let output = zsh.env("HOME", folder.path()).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(expected), "{typed}: {output:?}");
    };
    complete("becalm rec", "becalm record");
    complete("becalm top --inter", "becalm top --interval");
    complete("becalm completions z", "becalm completions zsh");
}

/// What a packager does, with a program that stands where the build would put it.
#[test]
fn make_installs_below_a_prefix() {
    if !machine_has(&[Need::Program("make")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // cargo build --release is not what is tested, and would take minutes.
    let build = folder.path().join("build/release");
    fs::create_dir_all(&build).unwrap();
    fs::copy(PROGRAM, build.join("becalm")).unwrap();
    let cargo = folder.path().join("cargo");
    fs::write(&cargo, "#!/bin/sh\n[ \"$*\" = 'build --release --package becalm' ]\n").unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let destination = folder.path().join("package");
    let mut make = Command::new("make");
    make.arg("install").arg("PREFIX=/usr").arg(format!("DESTDIR={}", path(&destination)));
    make.env("CARGO_TARGET_DIR", folder.path().join("build")).current_dir(root).stdin(Stdio::null());
    make.env("PATH", format!("{}:{}", path(folder.path()), std::env::var("PATH").unwrap()));
    let output = make.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for file in [
        "bin/becalm",
        "share/man/man1/becalm.1",
        "share/man/man1/becalm-compare.1",
        "share/bash-completion/completions/becalm",
        "share/zsh/site-functions/_becalm",
        "share/fish/vendor_completions.d/becalm.fish",
        "share/becalm/config",
    ] {
        let file = destination.join("usr").join(file);
        assert!(fs::metadata(&file).is_ok_and(|file| file.is_file() && file.len() > 100), "{file:?}");
    }
    let version = Command::new(destination.join("usr/bin/becalm")).arg("--version").output().unwrap();
    assert!(version.status.success());
}

#[test]
fn manual_pages_render_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    run_becalm(&["man", path(&pages)]).expect(0, &[]);
    let mut names: Vec<String> =
        fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    for name in ["becalm.1", "becalm-record.1", "becalm-top.1", "becalm-predict.1"] {
        assert!(names.iter().any(|other| other == name), "no {name} in {names:?}");
    }
    let record = fs::read_to_string(pages.join("becalm-record.1")).unwrap();
    assert_eq!(run_becalm(&["man", "--page", "record"]).stdout, record);
    run_becalm(&["man", "--page", "play"]).expect(2, &["'play' is no command", "record"]);
    if !machine_has(&[Need::Program("groff")]) {
        return;
    }
    for name in names {
        let output =
            Command::new("groff").args(["-man", "-Tutf8", "-ww", "-P-cbou"]).arg(pages.join(&name)).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        for section in ["NAME", "SYNOPSIS", "OPTIONS"] {
            assert!(text.contains(section), "{name} has no {section}:\n{text}");
        }
    }
}

#[test]
fn a_view_needs_a_terminal() {
    run_becalm(&["top"]).expect(2, &["standard output is not a terminal", "becalm record", "--iterations"]);
    run_becalm(&["top", "--interval", "1ms", "--iterations", "1"]).expect(2, &["--interval", "100ms"]);
    run_becalm(&["top", "--json"]).expect(2, &["--iterations"]);
    run_becalm(&["top", "--iterations", "0"]).expect(2, &["--iterations"]);
}

#[test]
fn a_view_as_text_has_the_figures() {
    let arguments = ["top", "--no-sources", "--cpus", "0", "--iterations", "2", "--interval", "300ms"];
    let ended = run_becalm(&arguments);
    ended.expect(0, &[]);
    assert_eq!(ended.stdout.matches("becalm top: observed").count(), 2, "{}", ended.stdout);
    for title in ["CPUs", "Longest detours", "noise", "Kernel counters that grew"] {
        assert!(ended.stdout.contains(title), "no {title} in {}", ended.stdout);
    }
    // The first update has a whole interval, although preparing the loops takes a part of the time, and counters from its start on.
    let ended = run_becalm(&["top", "--no-sources", "--iterations", "1", "--interval", "400ms"]);
    ended.expect(0, &[]);
    assert!(ended.stdout.contains("Kernel counters that grew") && !ended.stdout.contains("observed 0"), "{ended:?}");
    let ended = run_becalm(&["top", "--no-sources", "--iterations", "3", "--interval", "400ms", "--json"]);
    ended.expect(0, &[]);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let mut before = 0;
    for (number, update) in document["updates"].as_array().unwrap().iter().enumerate() {
        let observed = update["observed_ns"].as_i64().unwrap();
        assert!(observed >= 400_000_000 * (number as i64 + 1) && observed > before, "{number}: {observed}");
        before = observed;
        assert!(!update["sources"].as_array().unwrap().is_empty(), "{number}: {update:#}");
    }
    // A CPU that does not exist is found before anything is shown.
    run_becalm(&["top", "--no-sources", "--cpus", "99999", "--iterations", "1"]).expect(2, &["99999"]);
}

/// What a command writes on a terminal of its own, as the terminal gets it.
fn on_terminal(line: &str, environment: &[(&str, &str)], folder: &Path) -> String {
    let mut script = Command::new("script");
    script.args(["-qec", line, "/dev/null"]).current_dir(folder).stdin(Stdio::null()).env("TERM", "xterm");
    forget_looks(&mut script);
    script.envs(environment.iter().copied());
    let output = script.output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn colors_are_only_where_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    let help = format!("{} report --help", PROGRAM);
    if !machine_has(&[Need::Program("script")]) {
        return;
    }
    let colored = on_terminal(&help, &[], folder.path());
    assert!(colored.contains("\u{1b}["), "help has colors on a terminal: {colored:?}");
    for environment in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
        let plain = on_terminal(&help, &[environment], folder.path());
        assert!(!plain.contains('\u{1b}') && plain.contains("Usage"), "{environment:?}: {plain:?}");
    }
    // Of results titles and verdicts do.
    for command in ["report busy", "compare busy quieter", "predict busy --ranks 64 --grain 1ms"] {
        let text = on_terminal(&format!("{} {command}", PROGRAM), &[], folder.path());
        assert!(text.contains("\u{1b}[1m") && text.lines().count() > 3, "{command}: {text:?}");
        for environment in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
            let text = on_terminal(&format!("{} {command}", PROGRAM), &[environment], folder.path());
            assert!(!text.contains("\u{1b}[1m") && text.lines().count() > 3, "{environment:?}, {command}: {text:?}");
        }
    }
    let view = format!("{} top; true", PROGRAM);
    let refused = on_terminal(&view, &[("TERM", "dumb")], folder.path());
    assert!(refused.contains("TERM is dumb") && !refused.contains('\u{1b}'), "{refused:?}");
}

/// What takes longer than a second has progress with the time left on a terminal, and never anywhere else. It is made to take that long by
/// being stopped in between, which is no work.
#[test]
fn what_takes_long_says_how_long_it_will_still_take() {
    if !machine_has(&[Need::Program("script")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let write = |lines: u64| {
        let text: String = (0..lines).map(|line| format!("{} {}\n", 1_000 * line, 100 + line % 300)).collect();
        fs::write(folder.path().join("long.txt"), text).unwrap();
    };
    let import = |name: &str| format!("{PROGRAM} import --from selfish long.txt -o {name}");
    let in_shell = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(folder.path());
        program::run(command)
    };
    // As many lines as this machine reads and stores in one second and a half, of which it reads for more than half.
    write(50_000);
    let taken = ["a", "b", "c"].map(|name| {
        let begun = Instant::now();
        in_shell(&import(name)).expect(0, &[]);
        begun.elapsed().as_secs_f64()
    });
    let mut lines = (50_000.0 * 1.5 / taken.into_iter().fold(f64::INFINITY, f64::min)) as u64;
    let stopped = |name: &str| {
        let import = import(name);
        format!("{import} & job=$!; sleep 0.25; kill -s STOP $job; sleep 1.2; kill -s CONT $job; wait $job")
    };
    // What ran beside the first ones may have ended meanwhile.
    let shown = loop {
        write(lines);
        let begun = Instant::now();
        let shown = on_terminal(&stopped("long"), &[], folder.path());
        if begun.elapsed().as_secs_f64() > 2.2 || lines > 10_000_000 {
            break shown;
        }
        lines *= 2;
        fs::remove_dir_all(folder.path().join("long")).unwrap();
    };
    for word in ["reading ", "storing ", "%, ", "left"] {
        assert!(shown.contains(word), "no '{word}' in {shown:?}");
    }
    // One that is not at a terminal says nothing, nor one at a terminal that cannot place its cursor.
    let piped = in_shell(&stopped("piped"));
    piped.expect(0, &[]);
    assert_eq!((piped.stdout.as_str(), piped.stderr.as_str()), ("", ""));
    let dumb = on_terminal(&stopped("dumb"), &[("TERM", "dumb")], folder.path());
    assert_eq!(dumb, "");
    // What was imported is all there.
    let report = in_shell(&format!("{PROGRAM} report long --json"));
    let document: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(document["cpus"][0]["detours"], lines);
}

/// Every line of standard output fits the width, but for a word that is longer.
#[track_caller]
fn fits(arguments: &[&str], folder: &Path, width: usize) {
    let mut command = program::becalm(arguments);
    command.current_dir(folder).env("COLUMNS", width.to_string());
    let ended = program::run(command);
    ended.expect(0, &[]);
    assert!(ended.stdout.lines().count() > 5, "{ended:?}");
    assert!(!ended.stdout.contains('\u{1b}'), "no colors in a pipe");
    for line in ended.stdout.lines() {
        // What would be wrong when copied is not broken: commands, and single words such as paths.
        let whole = line.trim_start().starts_with("becalm ") || line.split_whitespace().count() == 1;
        let length = line.chars().count();
        assert!(length <= width || whole, "{length} characters at a width of {width}: {line}\n{}", ended.stdout);
    }
}

#[test]
fn results_fit_narrow_terminals() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    becalm_fixtures::pages::write_all(folder.path());
    let folder = folder.path();
    // One thread for each width.
    std::thread::scope(|scope| {
        for width in [60, 80, 100] {
            scope.spawn(move || results_fit(folder, width));
        }
    });
}

/// Results of all commands that make tables.
fn results_fit(folder: &Path, width: usize) {
    for run in ["busy.becalm", "plain.becalm", "pair.becalm", "killed.becalm"] {
        fits(&["report", run], folder, width);
        fits(&["report", "--sources", run], folder, width);
    }
    // More CPUs than are listed take seconds to read: by turns.
    match width {
        60 => fits(&["report", "many.becalm"], folder, width),
        80 => fits(&["report", "--sources", "many.becalm"], folder, width),
        _ => (),
    }
    let pairs: [&[&str]; 5] = [
        &["busy", "quieter"],
        &["livelier", "busy"],
        &["killed", "open"],
        &["busy", "right", "--cpus-a", "0,1", "--cpus-b", "3"],
        &["pair", "pair", "--node-a", "node1", "--node-b", "node2"],
    ];
    for (number, pair) in pairs.into_iter().enumerate() {
        // By turns, as a comparison takes long: whole at two widths of three, or only what differs.
        let more: &[&str] =
            if (number + width / 20).is_multiple_of(3) { &[] } else { &["--full", "--fail-if-worse", "100%"] };
        fits(&[&["compare"], pair, more].concat(), folder, width);
    }
    fits(&["report", "--sources", "busy.becalm", "--per-cpu"], folder, width);
    fits(&["detours", "busy.becalm", "--longest", "3"], folder, width);
    let periodic = "periodic:interval=1ms,detour=50us";
    fits(&["predict", periodic, "--ranks", "64,1Ki,16Ki", "--grain", "1ms"], folder, width);
    fits(
        &["predict", "--law", "--grain", "1ms", "--delay", "50us", "--rate", "10Hz", "--ranks", "64,1Ki,16Ki"],
        folder,
        width,
    );
    fits(&[], folder, width);
}
