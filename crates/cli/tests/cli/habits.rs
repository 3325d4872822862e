//! What users and sites set once: defaults in files and variables, colors, widths, and the program that shows long texts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use becalm_testing::program::{Ended, becalm, forget_looks, path, run};
use becalm_testing::{Need, machine_has};
use serde_json::Value;

/// A command whose text does not depend on the machine, and is longer than the terminals here are high.
const LAW: &[&str] =
    &["predict", "--law", "--grain", "1ms,10ms", "--delay", "10us,20us,30us,40us,50us", "--rate", "1Hz,10Hz,100Hz"];

/// A folder for one user's files.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        only_its_owner_writes(&file);
        file
    }

    /// becalm with the user's own files; what the machine's file says, it says too.
    fn becalm(&self, arguments: &[&str]) -> Command {
        let mut command = becalm(arguments);
        command.env_remove("BECALM_CONFIG").env_remove("XDG_CONFIG_HOME").env("HOME", self.0.path());
        command.env("XDG_STATE_HOME", self.path("state"));
        command
    }

    /// becalm with this file alone.
    fn with_file(&self, text: &str, arguments: &[&str]) -> Command {
        let mut command = self.becalm(arguments);
        command.env("BECALM_CONFIG", self.write("named", text));
        command
    }
}

/// As it is where the umask leaves files to their group.
pub fn only_its_owner_writes(file: &Path) {
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.expect(0, &[]).stdout).unwrap()
}

/// The numbers of ranks that a law was asked for.
fn ranks(mut command: Command) -> Vec<u64> {
    let document = json(&run(std::mem::replace(&mut command, Command::new("true"))));
    let mut ranks: Vec<u64> =
        document["rows"].as_array().unwrap().iter().filter_map(|row| row["ranks"].as_u64()).collect();
    ranks.dedup();
    ranks
}

#[test]
fn defaults_come_from_files_and_variables_below_the_command_line() {
    let home = Home::new();
    let law = ["predict", "--law", "--grain", "1ms", "--delay", "10us", "--rate", "10Hz", "--json"];
    home.write(".config/becalm/config", "[predict]\nranks = 2,4\n");
    assert_eq!(ranks(home.becalm(&law)), [2, 4]);
    home.write("elsewhere/becalm/config", "[predict]\nranks = 8\n");
    let mut command = home.becalm(&law);
    command.env("XDG_CONFIG_HOME", home.path("elsewhere"));
    assert_eq!(ranks(command), [8]);
    let mut command = home.becalm(&law);
    command.env("BECALM_PREDICT_RANKS", "16");
    assert_eq!(ranks(command), [16]);
    let mut command = home.becalm(&[&law[..], &["--ranks", "32"]].concat());
    command.env("BECALM_PREDICT_RANKS", "16");
    assert_eq!(ranks(command), [32]);
    assert_eq!(ranks(home.with_file("[predict]\nranks = 64 # a few\n", &law)), [64]);
    // No default at all.
    for mut off in [home.becalm(&law), home.becalm(&[&law[..], &["--no-config"]].concat())] {
        if off.get_args().all(|word| word != "--no-config") {
            off.env("BECALM_CONFIG", "");
        }
        off.env("BECALM_PREDICT_RANKS", "16");
        assert_eq!(ranks(off), [64, 1 << 10, 16 << 10]);
    }
    // A default that is on is switched off again.
    run(home.with_file("no-last-error = yes\n", &[&law[..], &["--last-error"]].concat())).expect(0, &[]);
}

#[test]
fn wrong_defaults_are_refused_with_their_place() {
    let home = Home::new();
    for (text, said) in [
        ("\n[predict]\nrank = 1\n", "named:3: [predict] has no option 'rank'; did you mean ranks?"),
        ("[predict]\nranks = many\n", "named:2: ranks = many: "),
        ("colors = never\n", "named:1: no option that all commands have is 'colors'; did you mean color?"),
        ("color = sometimes\n", "named:1: color = sometimes: it is one of auto, always, never"),
        ("[tune apply]\nprofile = hpc\n", "named:1: [tune apply] can have no defaults"),
        ("width = 10\n", "named:1: width = 10: 10 is not in 40..=65535"),
    ] {
        let ended = run(home.with_file(text, LAW));
        ended.expect(2, &[said]);
        assert_eq!(ended.stdout, "", "{text}");
        // What says what is wrong, and help, are not in the way of that.
        run(home.with_file(text, &["config", "path"])).expect(0, &[]);
        run(home.with_file(text, &["config"])).expect(2, &[said]);
        run(home.with_file(text, &["predict", "--law", "--help"])).expect(0, &[]);
        let document: Value = serde_json::from_str(&run(home.with_file(text, &["config", "--json"])).stdout).unwrap();
        assert!(document["error"].as_str().unwrap().contains(said), "{document}");
    }
    let mut command = home.becalm(LAW);
    command.env("BECALM_CONFIG", "/no/such/file");
    run(command)
        .expect(2, &["cannot read the settings in /no/such/file: there is no such file; BECALM_CONFIG names it"]);
    let mut command = home.becalm(LAW);
    command.env("BECALM_CONFIG", home.0.path());
    run(command).expect(2, &["it is no regular file"]);
    let mut command = home.with_file("", LAW);
    command.env("BECALM_NO_LAST_ERROR", "perhaps");
    run(command).expect(2, &["BECALM_NO_LAST_ERROR: 'perhaps' is neither yes nor no"]);
}

#[test]
fn config_shows_what_is_set_and_where() {
    let home = Home::new();
    let text = "color = never\n[record]\nduration = 5s\nno-argv = yes\n[predict]\nranks = 1,2 # b\n";
    let mut command = home.with_file(text, &["config", "--json"]);
    command.env("BECALM_RECORD_SCHED", "rr:1");
    let document = json(&run(command));
    assert_eq!(
        (&document["schema"], &document["off"], &document["error"]),
        (&"becalm.config/1".into(), &false.into(), &Value::Null)
    );
    let settings = document["settings"].as_array().unwrap();
    let named = path(&home.path("named")).to_owned();
    let of = |command: &str, option: &str| {
        let found = settings.iter().find(|set| set["command"] == command && set["option"] == option);
        let found = found.unwrap_or_else(|| panic!("{option} in {settings:?}"));
        (found["values"].clone(), found["origin"].as_str().unwrap().to_owned())
    };
    assert_eq!(of("", "color"), (serde_json::json!(["never"]), format!("{named}:1")));
    assert_eq!(of("record", "duration"), (serde_json::json!(["5s"]), format!("{named}:3")));
    assert_eq!(of("record", "no-argv"), (serde_json::json!(["yes"]), format!("{named}:4")));
    assert_eq!(of("record", "sched"), (serde_json::json!(["rr:1"]), "BECALM_RECORD_SCHED".to_owned()));
    assert_eq!(of("predict", "ranks"), (serde_json::json!(["1,2"]), format!("{named}:6")));
    assert_eq!(settings.len(), 5);
    // What the text shows is a file that says the same.
    let shown = run(home.with_file(text, &["config"])).expect(0, &[]).stdout.clone();
    let again = run(home.with_file(&shown, &["config"])).expect(0, &[]).stdout.clone();
    let values = |text: &str| {
        text.lines().map(|line| line.split("  #").next().unwrap().trim_end().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(values(&shown), values(&again));
    // All that there can be is shown as a file that is read, too.
    let all = run(home.with_file(text, &["config", "--all"])).expect(0, &[]).stdout.clone();
    assert!(all.lines().count() > 50 && all.contains("buffer = 4096"), "{all}");
    run(home.with_file(&all, &["config"])).expect(0, &[]);
    let files = run(home.becalm(&["config", "path"])).expect(0, &[]).stdout.clone();
    let user = home.path(".config/becalm/config");
    let lines: Vec<&str> = files.lines().collect();
    assert!(lines[0].starts_with("/etc/becalm/config ") && lines.len() == 2, "{files}");
    assert!(lines[1].starts_with(path(&user)) && lines[1].ends_with("  not there"), "{files}");
    let example = run(home.becalm(&["config", "example"])).expect(0, &[]).stdout.clone();
    assert!(run(home.with_file(&example, &["config"])).expect(0, &[]).stdout.starts_with("# no defaults are set"));
}

#[test]
fn recordings_without_a_name_lie_in_the_folder_of_a_default() {
    let home = Home::new();
    let record = ["record", "--duration", "1ms", "--no-sources", "--quiet"];
    run(home.with_file("[record]\nfolder = ~/noise\n", &record)).expect(0, &[]);
    let found: Vec<_> = fs::read_dir(home.path("noise")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(found.len() == 1 && found[0].to_str().unwrap().ends_with(".becalm"), "{found:?}");
    let named = home.path("named.becalm");
    let record = [&record[..], &["-o", path(&named)]].concat();
    run(home.with_file("[record]\nfolder = ~/noise\n", &record)).expect(0, &[]);
    assert!(named.is_dir() && fs::read_dir(home.path("noise")).unwrap().count() == 1);
}

/// Each place that starts this program does so through the one that leaves the defaults out.
#[test]
fn becalm_starts_itself_without_defaults() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let mut folders: Vec<_> = sources.filter(|sources| sources.is_dir()).collect();
    let mut places = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let text = fs::read_to_string(&entry).unwrap();
            if text.split("#[cfg(test)]").next().unwrap().contains("current_exe") {
                places.push(entry.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    places.sort();
    // The doctor looks where the program lies.
    assert_eq!(places, ["child.rs", "doctor.rs"]);
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ssh/becalm-hosts")).unwrap();
    assert!(text.contains("record --no-config "));
}

#[test]
fn colors_are_asked_for_or_not_there() {
    let home = Home::new();
    let plain = run(home.with_file("", LAW)).expect(0, &[]).stdout.clone();
    assert!(!plain.contains('\u{1b}'));
    let always = [LAW, &["--color", "always"]].concat();
    let colored = run(home.with_file("", &always)).expect(0, &[]).stdout.clone();
    assert!(colored.contains("\u{1b}[1m"), "{colored}");
    let mut stripped = String::new();
    for part in colored.split('\u{1b}') {
        stripped += part.strip_prefix('[').and_then(|part| part.split_once('m')).map_or(part, |(_, text)| text);
    }
    assert_eq!(stripped, plain);
    assert_eq!(run(home.with_file("color = always\n", LAW)).stdout, colored);
    let mut command = home.with_file("", LAW);
    command.env("CLICOLOR_FORCE", "1");
    assert_eq!(run(command).stdout, colored);
    let mut command = home.with_file("", LAW);
    command.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1");
    assert_eq!(run(command).stdout, plain);
    // A setting of becalm's own is over that of all programs.
    let mut command = home.with_file("color = always\n", LAW);
    command.env("NO_COLOR", "1");
    assert_eq!(run(command).stdout, colored);
    let never = [LAW, &["--color=never"]].concat();
    let mut command = home.with_file("color = always\n", &never);
    command.env("CLICOLOR_FORCE", "1");
    assert_eq!(run(command).stdout, plain);
    // Documents have none; errors and what the parser says do as asked.
    let document = run(home.with_file("", &[&always[..], &["--json"]].concat()));
    assert!(!document.expect(0, &[]).stdout.contains('\u{1b}'));
    for (arguments, color) in [
        (&["report", "/no/such", "--color", "always"][..], true),
        (&["report", "/no/such"], false),
        (&["report", "--no-such", "--color", "always"], true),
        (&["report", "--no-such", "--color", "never"], false),
        (&["--color", "always", "report"], true),
    ] {
        let ended = run(home.with_file("", arguments));
        assert_ne!(ended.code, 0);
        assert_eq!(ended.stderr.contains('\u{1b}'), color, "{arguments:?}: {ended:?}");
    }
}

#[test]
fn texts_are_as_wide_as_was_asked() {
    let home = Home::new();
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
    let free = run(home.with_file("", LAW)).expect(0, &[]).stdout.clone();
    assert!(widest(&free) > 60, "{free}");
    for ask in [&["--width", "60"][..], &["--width=60"]] {
        let text = run(home.with_file("", &[LAW, ask].concat())).expect(0, &[]).stdout.clone();
        assert!(widest(&text) <= 60, "{text}");
    }
    let narrow = run(home.with_file("width = 60\n", LAW)).stdout;
    assert!(widest(&narrow) <= 60);
    let mut command = home.with_file("width = 60\n", LAW);
    command.env("COLUMNS", "200");
    assert_eq!(run(command).stdout, narrow, "a setting of becalm's own is over that of all programs");
    let mut command = home.with_file("", LAW);
    command.env("COLUMNS", "60");
    assert_eq!(run(command).stdout, narrow);
}

/// Runs words of a shell on a terminal of 10 lines and 100 columns; gives what came there, and how it ended.
fn on_terminal(home: &Home, words: &str, variables: &[(&str, &str)]) -> (String, Option<i32>) {
    let mut script = Command::new("timeout");
    let errors = home.path("errors");
    let line = format!("stty rows 10 cols 100; {{ {words}; }} 2>{}", path(&errors));
    script.args(["60", "script", "-qec", &line, "/dev/null"]).stdin(Stdio::null());
    script.env("BECALM_CONFIG", home.write("named", "")).env("TERM", "xterm").env("HOME", home.0.path());
    script.env("XDG_STATE_HOME", home.path("state"));
    forget_looks(&mut script);
    script.envs(variables.iter().copied());
    let output = script.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    (fs::read_to_string(&errors).unwrap() + &shown, output.status.code())
}

/// The words of a shell that run a command here.
fn words(arguments: &[&str]) -> String {
    format!("{} {}", env!("CARGO_BIN_EXE_becalm"), arguments.join(" "))
}

#[test]
fn long_texts_go_through_the_pager_of_the_user() {
    if !machine_has(&[Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    let seen = home.path("seen");
    let to_file = format!("cat > {}", path(&seen));
    let law = words(&[LAW, &["--color", "never"]].concat());
    let (shown, code) = on_terminal(&home, &law, &[("PAGER", &to_file)]);
    assert_eq!((shown.as_str(), code), ("", Some(0)));
    let text = fs::read_to_string(&seen).unwrap();
    assert!(text.lines().count() > 10, "{text}");
    let (direct, code) = on_terminal(&home, &format!("{law} --no-pager"), &[("PAGER", &to_file)]);
    assert_eq!((direct.as_str(), code), (text.as_str(), Some(0)));
    for none in ["cat", ""] {
        assert_eq!(on_terminal(&home, &law, &[("PAGER", none)]).0, text);
        assert_eq!(on_terminal(&home, &law, &[("PAGER", &to_file), ("BECALM_PAGER", none)]).0, text);
    }
    // becalm's own setting is over that of all programs.
    fs::remove_file(&seen).unwrap();
    let own = format!("sed s/^/own:/ > {}", path(&seen));
    on_terminal(&home, &law, &[("PAGER", "false"), ("BECALM_PAGER", &own)]);
    assert!(fs::read_to_string(&seen).unwrap().starts_with("own:"));
    // Help is a long text, too; a short one is not, unless that is asked for.
    fs::remove_file(&seen).unwrap();
    on_terminal(&home, &words(&["record", "--help"]), &[("PAGER", &to_file)]);
    assert!(fs::read_to_string(&seen).unwrap().contains("--until-stopped"));
    fs::remove_file(&seen).unwrap();
    let (shown, _) = on_terminal(&home, &words(&["config", "path"]), &[("PAGER", &to_file)]);
    assert!(shown.contains("named") && !seen.exists(), "{shown}");
    on_terminal(&home, &words(&["config", "path", "--paginate"]), &[("PAGER", &to_file)]);
    assert!(fs::read_to_string(&seen).unwrap().contains("named"));
    // Nothing is held back where nobody looks, whatever is asked for.
    let (shown, _) = on_terminal(&home, &format!("{law} --paginate | cat"), &[("PAGER", "false")]);
    assert!(shown.lines().count() > 10);
}

#[test]
fn a_pager_that_leaves_or_is_missing_changes_no_exit_code() {
    if !machine_has(&[Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    let law = words(&[LAW, &["--color", "never"]].concat());
    let (text, _) = on_terminal(&home, &format!("{law} --no-pager"), &[]);
    // Not even its first line is read.
    let (shown, code) = on_terminal(&home, &law, &[("PAGER", "true")]);
    assert_eq!((shown.as_str(), code), ("", Some(0)));
    let (shown, code) = on_terminal(&home, &law, &[("PAGER", "head -n 1")]);
    assert_eq!((Some(shown.trim_end()), code), (text.lines().next(), Some(0)));
    // A failure of the pager is not one of the command.
    assert_eq!(on_terminal(&home, &law, &[("PAGER", "cat >/dev/null; exit 9")]).1, Some(0));
    let (shown, code) = on_terminal(&home, &law, &[("PAGER", "/no/such/pager -x")]);
    assert!(shown.contains("cannot start the pager /no/such/pager -x: ") && shown.ends_with(&text), "{shown}");
    assert_eq!(code, Some(0));
    // A shell says that itself.
    let (shown, code) = on_terminal(&home, &law, &[("PAGER", "/no/such/pager '-x'")]);
    assert!(shown.ends_with(&text) && code == Some(0), "{shown}");
    // Without less the text is there all the same.
    let empty = home.path("bin");
    fs::create_dir_all(&empty).unwrap();
    let (shown, code) = on_terminal(&home, &format!("PATH={} {law}", path(&empty)), &[]);
    assert_eq!((shown, code), (text.clone(), Some(0)));
    // A command that fails is as if there were none.
    let (shown, code) = on_terminal(&home, &words(&["report", "/no/such"]), &[("PAGER", "cat >/dev/null")]);
    assert!(shown.contains("becalm:") && code == Some(1), "{shown}");
}

/// Ctrl-C is for the pager: becalm waits for it.
#[test]
fn keys_that_end_programs_are_the_pagers() {
    if !machine_has(&[Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    let pager = "trap 'echo caught' INT; kill -INT 0; cat >/dev/null; echo over";
    let pager = home.write("pager.sh", pager);
    let line = format!("setsid -w {}", words(LAW));
    let (shown, code) = on_terminal(&home, &line, &[("PAGER", &format!("sh {}", path(&pager)))]);
    assert!(shown.contains("caught") && shown.trim_end().ends_with("over"), "{shown}");
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn a_terminal_has_colors_unless_it_is_dumb() {
    if !machine_has(&[Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    let law = words(&[LAW, &["--no-pager"]].concat());
    assert!(on_terminal(&home, &law, &[]).0.contains("\u{1b}[1m"));
    for off in [("TERM", "dumb"), ("NO_COLOR", "1")] {
        assert!(!on_terminal(&home, &law, &[off]).0.contains('\u{1b}'), "{off:?}");
    }
    // Nor is a text held back on such a terminal.
    let (shown, _) = on_terminal(&home, &words(LAW), &[("TERM", "dumb"), ("PAGER", "cat >/dev/null")]);
    assert!(shown.lines().count() > 10);
}

/// The verdict scrolls off with the first lines.
#[test]
fn the_verdict_is_repeated_below_a_text_higher_than_the_terminal() {
    if !machine_has(&[Need::Program("script")]) {
        return;
    }
    let home = Home::new();
    becalm_fixtures::write_all(home.0.path());
    let report = words(&["report", path(&home.path("busy")), "--no-pager", "--color", "never"]);
    let verdicts = |text: &str| text.lines().filter(|line| line.starts_with("NOISY ")).count();
    let (shown, code) = on_terminal(&home, &report, &[]);
    assert_eq!((code, verdicts(&shown)), (Some(0), 2), "{shown}");
    assert!(shown.trim_end().lines().last().is_some_and(|line| line.starts_with("NOISY ")), "{shown}");
    let (piped, code) = on_terminal(&home, &format!("{report} | cat"), &[]);
    assert_eq!((code, verdicts(&piped)), (Some(0), 1), "{piped}");
}

#[test]
fn a_page_is_opened_by_the_program_of_the_desktop() {
    let home = Home::new();
    becalm_fixtures::write_all(home.0.path());
    let (page, opened) = (home.path("page.html"), home.path("opened"));
    let opener = home.write("bin/xdg-open", &format!("#!/bin/sh\ncp \"$1\" '{}'\n", path(&opened)));
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let report = |programs: &str| {
        let mut command = home.becalm(&["report", path(&home.path("busy")), "--html", path(&page), "--open"]);
        command.env("PATH", programs);
        run(command)
    };
    report(&format!("{}:/usr/bin:/bin", path(&home.path("bin")))).expect(0, &["the page is"]);
    assert_eq!(fs::read(&opened).unwrap(), fs::read(&page).unwrap());
    report(path(&home.path("nowhere"))).expect(0, &["the page was not opened: xdg-open is not installed"]);
}

#[test]
fn an_unknown_command_is_answered_by_the_list() {
    let home = Home::new();
    let ended = run(home.becalm(&["bogus"]));
    ended.expect(2, &["unrecognized subcommand 'bogus'", "Measure", "  record", "Research"]);
    let nested = run(home.becalm(&["tune", "bogus"]));
    nested.expect(2, &["unrecognized subcommand 'bogus'"]);
    assert!(!nested.stderr.contains("Research"), "{nested:?}");
}
