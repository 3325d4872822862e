//! What becalm says of itself to strangers, and the error that it keeps for that.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use becalm_testing::program::{becalm, path, run};
use serde_json::Value;

use crate::habits::only_its_owner_writes;

/// What must not be said, and where it is planted.
const SECRETS: [&str; 9] = [
    "hushuser",
    "hushhome",
    "hushtoken",
    "ghp_hush0123456789ABCDEFabcdef",
    "hushproject",
    "hushnode",
    "hushcommand",
    "hush.example.org",
    "192.0.2.77",
];

struct Person {
    folder: tempfile::TempDir,
}

impl Person {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("hushhome")).unwrap();
        Self { folder }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("hushhome")
    }

    fn becalm(&self, arguments: &[&str]) -> Command {
        let mut command = becalm(arguments);
        let config = self.folder.path().join("config");
        if !config.exists() {
            fs::write(&config, "[record]\nnode = hushnode\nduration = 3s\nfolder = /srv/hushproject\n").unwrap();
            only_its_owner_writes(&config);
        }
        command.env("BECALM_CONFIG", config).env("HOME", self.home()).env_remove("XDG_STATE_HOME");
        command.env("USER", "hushuser").env("LOGNAME", "hushuser").env("API_TOKEN", "hushtoken-12345678");
        command.env("GITHUB_TOKEN", "ghp_hush0123456789ABCDEFabcdef").env("BECALM_RECORD_MAX_NOISE", "1%");
        command
    }

    fn kept(&self) -> PathBuf {
        self.home().join(".local/state/becalm/last-error")
    }
}

/// Fails if any of the secrets, the name of this host or of its user is in the text.
fn expect_discreet(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(!text.contains("hush"), "{text}");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_said = |name: &str| text.split(|c| !is_word(c) && c != '-' && c != '.').any(|word| word == name);
    if !["localhost", "linux", "user", "becalm"].contains(&host.trim()) {
        assert!(!is_said(host.trim()), "the host's name in {text}");
    }
}

#[test]
fn doctor_holds_what_helps_and_no_secret() {
    let person = Person::new();
    let run_path = person.home().join("hushproject/run.becalm");
    let error = run(person.becalm(&["report", path(&run_path), "--node", "hushnode"]));
    error.expect(1, &["hushproject"]);
    let text = run(person.becalm(&["doctor"])).expect(0, &[]).stdout.clone();
    expect_discreet(&text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with("For bug reports. Contains "), "{text}");
    for words in [
        "Contains no names of hosts",
        concat!("becalm ", env!("CARGO_PKG_VERSION"), ", commit"),
        "becalm report RUN --node NODE",
        "[record] duration 3s (line 3 of a file)",
        "[record] node TEXT (line 2 of a file)",
        "[record] folder TEXT",
        "[record] max-noise 1% (BECALM_RECORD_MAX_NOISE)",
        "defaults ok 4 are set",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    let document = run(person.becalm(&["doctor", "--json"])).expect(0, &[]).stdout.clone();
    expect_discreet(&document);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["schema"], "becalm.doctor/1");
    assert_eq!(document["program"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(document["machine"]["cpus_online"].as_u64().unwrap() > 0);
    assert!(!document["findings"].as_array().unwrap().is_empty());
    assert!(document["last_error"]["error"].as_str().unwrap().contains("ARGUMENT"), "{document}");
    let names: Vec<&str> =
        document["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["defaults", "tuning", "programs", "becalm-mpi", "room", "last error"]);
}

#[test]
fn wrong_defaults_are_found_by_the_doctor() {
    let person = Person::new();
    fs::write(person.folder.path().join("config"), "[record]\nnod = hushnode\n").unwrap();
    let text = run(person.becalm(&["doctor"])).expect(0, &[]).stdout.clone();
    assert!(text.contains("  defaults    not ok   ") && text.contains("becalm config shows"), "{text}");
    expect_discreet(&text);
}

#[test]
fn an_error_is_kept_for_its_user_alone_and_without_secrets() {
    let person = Person::new();
    let fail = |arguments: &[&str]| run(person.becalm(arguments));
    fail(&["report", "/srv/hushproject/x.becalm"]).expect(1, &[]);
    let kept = fs::read_to_string(person.kept()).unwrap();
    expect_discreet(&kept);
    let found = fs::metadata(person.kept()).unwrap();
    assert_eq!((found.mode() & 0o777, found.len() < 4096), (0o600, true));
    let document: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(document["command"], "becalm report RUN");
    assert!(document["when"].as_str().unwrap().ends_with('Z'), "{document}");
    // Words that cannot be meant, what ends well, and what nobody is to keep, leave it as it is.
    for (arguments, code) in [
        (&["report"][..], 2),
        (&["record", "--duration", "0ms"], 2),
        (&["config", "path"], 0),
        (&["report", "/srv/other.becalm", "--no-last-error"], 1),
    ] {
        fail(arguments).expect(code, &[]);
        assert_eq!(fs::read_to_string(person.kept()).unwrap(), kept, "{arguments:?}");
    }
    let mut child = person.becalm(&["report", "/srv/other.becalm"]);
    child.env("BECALM_CONFIG", "");
    run(child).expect(1, &[]);
    assert_eq!(fs::read_to_string(person.kept()).unwrap(), kept, "a becalm tells of what it has started");
    fail(&["compare", "/srv/a.becalm", "/srv/b.becalm", "--cpus", "0-3"]).expect(1, &[]);
    let document: Value = serde_json::from_str(&fs::read_to_string(person.kept()).unwrap()).unwrap();
    let command = document["command"].as_str().unwrap();
    assert!(
        command.starts_with("becalm compare") && command.contains(" --cpus 0-3") && !command.contains("/srv"),
        "{document}"
    );
    // A place that others could have prepared is not written to; and that changes nothing.
    fs::remove_file(person.kept()).unwrap();
    let folder = person.kept().parent().unwrap().to_owned();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    fail(&["report", "/srv/hushproject/x.becalm"]).expect(1, &["cannot"]);
    assert!(!person.kept().exists());
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    // What is there is never followed.
    let target = person.folder.path().join("target");
    fs::write(&target, "kept").unwrap();
    std::os::unix::fs::symlink(&target, person.kept()).unwrap();
    fail(&["report", "/srv/hushproject/x.becalm"]).expect(1, &[]);
    assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
    assert!(fs::symlink_metadata(person.kept()).unwrap().is_file());
    // Without a home nothing is made.
    let mut homeless = person.becalm(&["report", "/srv/x.becalm"]);
    let gone = person.folder.path().join("gone");
    homeless.env("HOME", &gone);
    run(homeless).expect(1, &[]);
    assert!(!gone.exists());
}
