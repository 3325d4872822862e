//! What `deploy/` holds is read by the programs that it is for.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use becalm_testing::program::{path, run};
use becalm_testing::{Need, machine_has, skip, wait_until};
use becalm_watch::WatchConfig;

/// The files of a folder of `deploy`.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = root().join("deploy").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn scripts_have_nothing_that_shellcheck_objects_to() {
    if !machine_has(&[Need::Program("shellcheck")]) {
        return;
    }
    let mut command = Command::new("shellcheck");
    command.args(["--external-sources", "--source-path=SCRIPTDIR"]);
    command.args(files("slurm").iter().filter(|file| !file.ends_with("becalm.conf"))).args(files("ssh"));
    run(command).expect(0, &[]);
}

/// The file with the settings has each with the value that holds without it.
#[test]
fn settings_for_slurm_are_those_that_hold_without_them() {
    let settings = |name: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(root().join("deploy/slurm").join(name)).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("BECALM"));
        let words = lines.flat_map(|line| line.split(" BECALM").collect::<Vec<_>>());
        words.map(|word| word.trim_start_matches("BECALM").trim_end_matches("''").to_owned()).collect()
    };
    assert_eq!(settings("becalm.conf"), settings("becalm-common.sh"));
}

/// The file that packages install has each setting that the unit leaves open, with the value that holds without it.
#[test]
fn settings_of_the_service_are_those_that_hold_without_them() {
    let text = fs::read_to_string(root().join("deploy/systemd/watch.conf")).unwrap();
    assert_eq!(WatchConfig::parse(&text).unwrap(), WatchConfig::default());
    // Remarks have a space behind the sign.
    let settings = text.lines().filter_map(|line| line.strip_prefix('#')).filter(|line| !line.starts_with(' '));
    let said = WatchConfig::parse(&settings.collect::<Vec<_>>().join("\n")).unwrap();
    let WatchConfig {
        cpus: Some(_),
        window: Some(_),
        alert: Some(_),
        budget: Some(_),
        interval: Some(_),
        busy: Some(_),
        listen: Some(_),
        allow_host: _,
        otlp: Some(_),
        otlp_interval: Some(_),
        output: None,
        keep: Some(_),
        triggers: _,
        sources: Some(_),
        trace: Some(_),
    } = said.clone()
    else {
        panic!("{said:?}")
    };
    assert_eq!((said.triggers.len(), said.allow_host.len()), (2, 1));
    // These say something where they stand.
    let rest = WatchConfig { cpus: None, otlp: None, triggers: Vec::new(), allow_host: Vec::new(), ..said };
    assert_eq!(rest.settle().unwrap(), WatchConfig::default().settle().unwrap());
}

#[test]
fn manifests_hold_against_the_published_schemas_of_kubernetes() {
    let validator = root().join(".cache/python/bin/kubernetes-validate");
    if !validator.exists() {
        return skip("there is no validator of manifests; .ci/need python-packages installs it");
    }
    let folder = tempfile::tempdir().unwrap();
    let is_manifest = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "yaml");
    let manifests: Vec<PathBuf> = files("kubernetes").into_iter().filter(is_manifest).collect();
    assert_eq!(manifests.len(), 2, "{manifests:?}");
    let validated = |change: &dyn Fn(&str) -> String, version: &str| {
        let mut command = Command::new(&validator);
        command.args(["--strict", "--kubernetes-version", version]);
        for manifest in &manifests {
            let copy = folder.path().join(manifest.file_name().unwrap());
            // The validator wants a name, which the server makes.
            let text = fs::read_to_string(manifest).unwrap().replace("generateName: becalm-", "name: becalm-x7x7x");
            fs::write(&copy, change(&text)).unwrap();
            command.arg(copy);
        }
        run(command)
    };
    for version in ["1.30", "1.37"] {
        let ended = validated(&str::to_owned, version);
        ended.expect(0, &[]);
        assert_eq!(ended.stdout.matches("passed for resource").count(), 3, "{ended:?}");
    }
    // It does find what is wrong.
    assert_ne!(validated(&|text| text.replace("hostPID:", "hostPid:"), "1.37").code, 0);
    assert_ne!(validated(&|text| text.replace("runAsUser: 0", "runAsUser: root"), "1.37").code, 0);
}

/// A restart mends nothing that one failed window told of, and loses what was counted: whether the pod lives is asked of its socket, and
/// what the last window came to is for whoever routes by readiness.
#[test]
fn a_failed_window_restarts_no_pod() {
    let text = fs::read_to_string(root().join("deploy/kubernetes/becalm-watch.yaml")).unwrap();
    let probe = |name: &str| {
        let (_, behind) = text.split_once(&format!("{name}:\n")).expect("a probe");
        let depth = behind.len() - behind.trim_start().len();
        let is_within = |line: &&str| line.len() - line.trim_start().len() >= depth;
        behind.lines().take_while(is_within).collect::<Vec<_>>().join("\n")
    };
    let (lives, ready) = (probe("livenessProbe"), probe("readinessProbe"));
    assert!(lives.contains("tcpSocket: { port: metrics }") && !lives.contains("httpGet"), "{lives}");
    assert!(ready.contains("path: /healthz"), "{ready}");
}

/// Copies what comes for slurmd into a folder, with settings of its own.
fn deploy(folder: &Path, settings: &str) {
    for file in files("slurm") {
        fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
    fs::write(folder.join("becalm.conf"), settings).unwrap();
}

fn write_program(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Whatever becalm does, jobs and nodes are left alone: the scripts succeed, within their time.
#[test]
fn scripts_for_slurmd_succeed_whatever_becalm_does() {
    let folder = tempfile::tempdir().unwrap();
    let (hangs, rebels) = (folder.path().join("hangs"), folder.path().join("rebels"));
    write_program(&hangs, "#!/bin/sh\nwhile :; do sleep 0.1; done\n");
    write_program(&rebels, "#!/bin/sh\ntrap '' TERM INT\nwhile :; do sleep 0.1; done\n");
    let (own, nowhere) = (path(folder.path()).to_owned(), "/proc/none".to_owned());
    for (becalm, place, more) in [
        ("/bin/false", &own, ""),
        ("/nowhere/becalm", &own, ""),
        (path(&hangs), &own, ""),
        (path(&rebels), &own, ""),
        ("/bin/true", &nowhere, ""),
        ("/bin/false", &own, "if ("),
    ] {
        deploy(
            folder.path(),
            &format!(
                "BECALM={becalm}\nBECALM_FOLDER={place}\nBECALM_PATIENCE=0.3\nBECALM_JOB_CPUS=1\nBECALM_BESIDE_JOBS=yes\nBECALM_DRAIN=yes\n{more}\n"
            ),
        );
        for name in ["becalm-prolog", "becalm-epilog", "becalm-health"] {
            let mut command = Command::new(folder.path().join(name));
            command.env("SLURM_JOB_ID", "7").env("SLURMD_NODENAME", "n00");
            let status = command.status().unwrap();
            assert!(status.success(), "{name} with {becalm}: {status}");
        }
    }
}

/// A step of another job has its job in its title. Steps of the same job and processes that slurmd starts for plugins do not count.
#[test]
fn a_node_is_checked_unless_a_step_of_another_job_runs() {
    for (running, is_checked) in [
        ("true", true),
        ("echo '101 slurmstepd: [7.batch]'", true),
        ("echo '102 /usr/sbin/slurmstepd spank prolog'", true),
        ("echo '103 slurmstepd'", true),
        ("echo '104 slurmstepd: [77.batch]'", false),
        ("echo '105 slurmstepd: [8+1.0]'", false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write_program(&folder.path().join("pgrep"), &format!("#!/bin/sh\n{running}\n"));
        let own = path(folder.path());
        deploy(folder.path(), &format!("PATH={own}:$PATH\nBECALM=/bin/true\nBECALM_FOLDER={own}\n"));
        let mut command = Command::new(folder.path().join("becalm-prolog"));
        assert!(command.env("SLURM_JOB_ID", "7").env("SLURMD_NODENAME", "n00").status().unwrap().success());
        let log = fs::read_to_string(folder.path().join("n00/log")).unwrap();
        assert_eq!(!log.contains("as other jobs run here"), is_checked, "{running}: {log}");
    }
}

/// The reason for which a node is drained is that of its own check, also where the next one has begun meanwhile: it was empty then.
#[test]
fn a_node_is_drained_for_what_its_own_check_found() {
    let folder = tempfile::tempdir().unwrap();
    let (becalm, scontrol) = (folder.path().join("becalm"), folder.path().join("scontrol"));
    // The first check fails; the second one still runs when the node is drained for the first.
    let finds = "mkdir \"$0.failed\" 2>/dev/null && { echo 'becalm: CPU 1 lost 5 % of its time' >&2; exit 3; }";
    write_program(&becalm, &format!("#!/bin/sh\n{finds}\ntouch \"$0.again\"\nsleep 2\n"));
    let shows = format!("while [ ! -e {}.again ]; do sleep 0.05; done; echo State=IDLE", path(&becalm));
    write_program(
        &scontrol,
        &format!("#!/bin/sh\ncase \"$*\" in\n*show*) {shows} ;;\n*update*) echo \"$*\" >\"$0.update\" ;;\nesac\n"),
    );
    let own = path(folder.path());
    let settings = format!(
        "PATH={own}:$PATH\nBECALM={own}/becalm\nBECALM_FOLDER={own}\nBECALM_BESIDE_JOBS=yes\nBECALM_DRAIN=yes\nBECALM_DRAIN_AFTER=1\n"
    );
    deploy(folder.path(), &settings);
    let health = || Command::new(folder.path().join("becalm-health")).env("SLURMD_NODENAME", "n00").spawn().unwrap();
    let mut checks = vec![health()];
    wait_until("a check fails", || folder.path().join("becalm.failed").exists());
    // It gives up at once while the first still holds the lock.
    wait_until("a second check starts", || {
        let has_started = folder.path().join("becalm.again").exists();
        if !has_started {
            checks.push(health());
            std::thread::sleep(Duration::from_millis(200));
        }
        has_started
    });
    assert!(checks.iter_mut().all(|check| check.wait().unwrap().success()));
    let update = fs::read_to_string(folder.path().join("scontrol.update")).expect("the node is drained");
    assert_eq!(update, "update NodeName=n00 State=DRAIN Reason=becalm: CPU 1 lost 5 % of its time\n");
}

/// Names of threads come from any user. They write no line of their own into the logs and into the reason of a drain, in any shell, and
/// run nothing.
#[test]
fn a_hostile_name_stays_within_its_line() {
    let hostile = "x\\nJan 1 forged\\c\u{1b}[31m\u{7}$(touch pwned)`touch pwned`'\"; touch pwned #";
    for shell in ["dash", "bash"] {
        if becalm_testing::find_program(shell).is_none() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let (becalm, scontrol) = (folder.path().join("becalm"), folder.path().join("scontrol"));
        let finding = folder.path().join("finding");
        let line = |name: &str| format!("becalm: CPU 1 lost 5 % of its time; 90 % of that is task {name}\n");
        for (name, most) in [(hostile, 300), ("-n", 100), (&"y".repeat(9_000), 300)] {
            fs::write(&finding, line(name)).unwrap();
            write_program(&becalm, &format!("#!/bin/sh\ncat {} >&2\nexit 3\n", path(&finding)));
            write_program(
                &scontrol,
                "#!/bin/sh\ncase \"$*\" in *show*) printf '%s\\n' 'State=IDLE a\\nState=DRAIN' ;; *) printf '%s|' \"$@\" >\"$0.update\" ;; esac\n",
            );
            let own = path(folder.path());
            let settings = format!(
                "PATH={own}:$PATH\nBECALM={own}/becalm\nBECALM_FOLDER={own}/kept\nBECALM_BESIDE_JOBS=yes\nBECALM_DRAIN=yes\nBECALM_DRAIN_AFTER=1\n"
            );
            deploy(folder.path(), &settings);
            let mut health = Command::new(shell);
            health.arg(folder.path().join("becalm-health")).env("SLURMD_NODENAME", "n00").current_dir(folder.path());
            assert!(health.status().unwrap().success());
            let log = fs::read_to_string(folder.path().join("kept/n00/log")).expect("there is a log");
            let dated = |line: &str| line.len() > 21 && line.starts_with("20") && line[..21].ends_with("Z ");
            assert!(log.lines().all(dated) && !log.contains('\u{1b}') && !log.contains('\u{7}'), "{shell}: {log}");
            let update = folder.path().join("scontrol.update");
            let reason = fs::read_to_string(&update).expect("the node is drained");
            let arguments: Vec<&str> = reason.split('|').collect();
            assert_eq!(arguments[..2], ["update", "NodeName=n00"]);
            assert!(arguments[3].starts_with("Reason=becalm: CPU 1 lost 5 %") && arguments.len() == 5, "{reason}");
            assert!(!reason.contains(char::is_control) && reason.len() <= most, "{shell}: {reason}");
            assert!(!folder.path().join("pwned").exists(), "{shell}: a name was run");
            fs::remove_file(update).unwrap();
            fs::remove_dir_all(folder.path().join("kept")).unwrap();
        }
    }
}

/// Root's scripts write through no link that another user has placed, and into no directory in which others could place one.
#[test]
fn scripts_of_root_write_into_no_directory_of_others() {
    use std::os::unix::fs::{chown, lchown, symlink};
    const ANOTHER: u32 = 65_534;
    if !machine_has(&[Need::Root]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scripts = folder.path().join("scripts");
    fs::create_dir(&scripts).unwrap();
    let (theirs, victim) = (folder.path().join("theirs"), folder.path().join("victim"));
    let refuses = |place: &Path, says: bool| {
        deploy(&scripts, &format!("BECALM=/bin/true\nBECALM_FOLDER={}\nBECALM_BESIDE_JOBS=yes\n", path(place)));
        let status = Command::new(scripts.join("becalm-health")).env("SLURMD_NODENAME", "n00").status().unwrap();
        assert!(status.success());
        assert_eq!(!place.join("n00/log").exists(), says, "{}", place.display());
    };
    let prepare = || {
        for each in [&theirs, &victim] {
            let _ = fs::remove_dir_all(each);
            fs::create_dir(each).unwrap();
        }
    };
    // A directory that another user owns, also further up, and one that all may write.
    prepare();
    refuses(&theirs, false);
    prepare();
    chown(&theirs, Some(ANOTHER), None).unwrap();
    refuses(&theirs, true);
    refuses(&theirs.join("below"), true);
    prepare();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o777)).unwrap();
    refuses(&theirs.join("below"), true);
    // A link that another user placed: of the directory, and of the node's in a directory of root's.
    prepare();
    let link = folder.path().join("link");
    symlink(&victim, &link).unwrap();
    lchown(&link, Some(ANOTHER), None).unwrap();
    refuses(&link, true);
    symlink(&victim, theirs.join("n00")).unwrap();
    lchown(theirs.join("n00"), Some(ANOTHER), None).unwrap();
    refuses(&theirs, true);
    assert!(fs::read_dir(&victim).unwrap().next().is_none(), "nothing is written through a link");
    // The service's directory is none of those into which root writes.
    let unit = fs::read_to_string(root().join("deploy/systemd/becalm-watch.service")).unwrap();
    let state = unit.lines().find_map(|line| line.strip_prefix("StateDirectory=")).expect("it has one");
    let scripts = fs::read_to_string(root().join("deploy/slurm/becalm-common.sh")).unwrap();
    assert!(scripts.contains("BECALM_FOLDER=/var/lib/becalm/") && state != "becalm" && !state.starts_with("becalm/"));
}

/// What the book shows for CI systems is YAML, and every command line in it is one.
#[test]
fn snippets_for_ci_are_read() {
    let python = root().join(".cache/python/bin/python");
    if !python.exists() {
        return skip("there is no reader of YAML; .ci/need python-packages installs it");
    }
    let page = fs::read_to_string(root().join("docs/src/how-to/ci.md")).unwrap();
    let mut found = 0;
    for snippet in page.split("```yaml\n").skip(1) {
        let (yaml, _) = snippet.split_once("```").expect("a snippet ends");
        let script = "import sys, yaml; print(yaml.safe_load(sys.argv[1]))";
        let mut command = Command::new(&python);
        command.args(["-c", script, yaml]);
        let ended = run(command);
        ended.expect(0, &[]);
        assert!(ended.stdout.contains("becalm check --max-noise 0.1%"), "{ended:#?}");
        let lines = yaml.lines().filter_map(|line| line.split_once("becalm check ").map(|(_, words)| words));
        for words in lines {
            // What is wrong comes before the help that is asked for.
            let words: Vec<&str> = ["check"].into_iter().chain(words.split(' ')).chain(["--help"]).collect();
            run(becalm_testing::program::becalm(&words)).expect(0, &[]);
            found += 1;
        }
    }
    assert_eq!(found, 2, "command lines in snippets");
}
