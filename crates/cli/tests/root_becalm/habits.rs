//! Defaults and what is kept where root runs becalm; and what becalm says of a machine with a name.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use becalm_testing::program::{Ended, becalm, executable, path, run};
use becalm_testing::{Need, machine_has};

/// Somebody who is not root.
const USER: u32 = 65_534;

const LAW: &[&str] = &["predict", "--law", "--grain", "1ms", "--delay", "10us", "--rate", "10Hz", "--json"];

/// As `sudo` does it where it keeps the user's home.
#[test]
fn root_does_not_read_what_a_user_could_have_written() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/becalm");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config");
    fs::write(&file, "pager = touch /tmp/becalm-was-here\n[predict]\nranks = 3\n").unwrap();
    let law = || {
        let mut command = becalm(LAW);
        command.env_remove("BECALM_CONFIG").env_remove("XDG_CONFIG_HOME").env("HOME", home.path());
        command
    };
    let of_three = |text: &str| text.contains("\"ranks\": 3,");
    assert!(of_three(&run(law()).expect(0, &[]).stdout));
    for (mode, owner, why) in
        [(0o644, USER, "it belongs to user 65534"), (0o666, 0, "others may write it (its mode is 0666)")]
    {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        chown(&file, Some(owner), None).unwrap();
        let ended = run(law());
        ended.expect(0, &["are not read: becalm runs as root, and ", why]);
        assert!(!of_three(&ended.stdout), "{ended:?}");
        // One that is named is meant.
        let mut named = law();
        named.env("BECALM_CONFIG", &file);
        run(named).expect(2, &["cannot read the settings in ", why]);
        let mut shown = becalm(&["config", "path"]);
        shown.env_remove("BECALM_CONFIG").env_remove("XDG_CONFIG_HOME").env("HOME", home.path());
        let shown = run(shown);
        assert!(shown.expect(0, &[]).stdout.contains("refused: becalm runs as root, and "), "{shown:?}");
    }
}

/// As of `sudo -u USER`, which keeps the home of root.
#[test]
fn settings_that_a_user_may_not_read_are_passed_over_and_told() {
    if !machine_has(&[Need::Root, Need::Program("setpriv")]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/becalm");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config");
    fs::write(&file, "[predict]\nranks = 3\n").unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let law = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(executable()).args(LAW);
        command.env_remove("BECALM_CONFIG").env_remove("XDG_CONFIG_HOME").env("HOME", home.path());
        command
    };
    let ended = run(law());
    ended.expect(0, &["the settings in ", "config are not read: Permission denied"]);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let mut named = law();
    named.env("BECALM_CONFIG", &file);
    run(named).expect(2, &["cannot read the settings in ", "Permission denied"]);
}

/// A root folder that holds the program and the libraries that it is linked with, and neither /proc nor /sys.
fn without_proc_and_sys(root: &Path, uid: u32, words: &str) -> Ended {
    let script = "set -e
        cd \"$1\"
        for folder in lib lib64 usr/lib; do
            if test -d /$folder; then mkdir -p $folder; mount --bind -o ro /$folder $folder; fi
        done
        mkdir -p tmp && chmod 1777 tmp
        cp \"$2\" becalm
        exec chroot --userspec=$3:$3 . /becalm $4";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--", "sh", "-c", script, "sh"])
        .arg(root)
        .arg(executable())
        .arg(uid.to_string())
        .arg(words);
    command.env("HOME", "/nowhere").env_remove("BECALM_CONFIG").env_remove("XDG_CONFIG_HOME");
    run(command)
}

/// What cannot be read is not taken for what is not there.
#[test]
fn without_proc_and_sys_becalm_asks_the_kernel_and_the_processor() {
    if !machine_has(&[Need::Root, Need::Program("unshare"), Need::Program("chroot")]) {
        return;
    }
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap();
    let is_invariant = flags.contains(" constant_tsc") && flags.contains(" nonstop_tsc");
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    for uid in [0, USER] {
        let root = tempfile::tempdir().unwrap();
        let inside = |words: &str| without_proc_and_sys(root.path(), uid, words);
        let seen = inside("");
        seen.expect(0, &[]);
        assert!(!seen.stdout.contains("nothing can be measured"), "{seen:?}");
        assert!(seen.stdout.contains("can be measured") && seen.stdout.contains(release.trim()), "{seen:?}");
        assert!(!seen.stdout.contains("no constant_tsc in /proc/cpuinfo"), "{seen:?}");
        if flags.contains(" hypervisor") {
            assert!(!seen.stdout.contains("runs on bare metal"), "{seen:?}");
        }
        let recorded = inside("record --quiet --duration 100ms -o /tmp/run.becalm");
        recorded.expect(0, &[]);
        let report = inside("report /tmp/run.becalm");
        report.expect(0, &[]);
        assert!(!report.stdout.contains("CPUs online ,") && !report.stdout.contains("Linux ,"), "{report:?}");
        let clock = inside("report /tmp/run.becalm --json");
        assert_eq!(clock.expect(0, &[]).stdout.contains("\"counter\": \"tsc\""), is_invariant, "{clock:?}");
        let doctor = inside("doctor");
        doctor.expect(0, &[]);
        if is_invariant {
            assert!(doctor.stdout.contains("the processor's own, of constant rate"), "{doctor:?}");
        }
        assert!(!doctor.stdout.contains("0 online") && !doctor.stdout.contains("0.0 GiB"), "{doctor:?}");
    }
}

/// Root writes into no folder that a user could have prepared.
#[test]
fn root_keeps_its_error_in_no_folder_of_others() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let empty = home.path().join("empty");
    fs::write(&empty, "").unwrap();
    let state = home.path().join(".local/state/becalm");
    fs::create_dir_all(&state).unwrap();
    let fail = || {
        let mut command = becalm(&["report", "/no/such.becalm"]);
        command.env("BECALM_CONFIG", &empty).env_remove("XDG_STATE_HOME").env("HOME", home.path());
        for name in ["SUDO_UID", "SUDO_GID"] {
            command.env_remove(name);
        }
        run(command).expect(1, &[]);
        state.join("last-error").exists()
    };
    chown(&state, Some(USER), None).unwrap();
    assert!(!fail());
    chown(&state, Some(0), None).unwrap();
    let victim = home.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::remove_dir(&state).unwrap();
    std::os::unix::fs::symlink(&victim, &state).unwrap();
    std::os::unix::fs::lchown(&state, Some(USER), None).unwrap();
    assert!(!fail() && fs::read_dir(&victim).unwrap().next().is_none());
    fs::remove_file(&state).unwrap();
    assert!(fail());
}

/// Whoever may run becalm as root may not run everything as root: the environment's pager is theirs.
#[test]
fn the_pager_of_the_environment_is_not_run_as_root_for_another_user() {
    if !machine_has(&[Need::Root, Need::Program("script")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (empty, ran_as) = (folder.path().join("empty"), folder.path().join("ran-as"));
    fs::write(&empty, "").unwrap();
    let pager = format!("cat >/dev/null; id -u >{}", path(&ran_as));
    let ran = |caller: &[(&str, &str)], variable: &str| {
        let _ = fs::remove_file(&ran_as);
        let line = format!("stty rows 10; {} {}", path(&executable()), LAW[..LAW.len() - 1].join(" "));
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("BECALM_CONFIG", &empty).env("TERM", "xterm");
        for name in ["SUDO_UID", "SUDO_GID", "PKEXEC_UID", "DOAS_USER", "PAGER", "BECALM_PAGER"] {
            script.env_remove(name);
        }
        let ended = run({
            script.envs(caller.iter().copied()).env(variable, &pager);
            script
        });
        assert_eq!(ended.code, 0, "{ended:?}");
        let ran_as = fs::read_to_string(&ran_as).ok().map(|user| user.trim().to_owned());
        assert_eq!(ran_as.is_none(), ended.stdout.contains("Ranks") || ended.stdout.contains("ranks"), "{ended:?}");
        ran_as
    };
    let another = USER.to_string();
    for variable in ["PAGER", "BECALM_PAGER"] {
        assert_eq!(ran(&[], variable).as_deref(), Some("0"));
        assert_eq!(ran(&[("SUDO_UID", "0"), ("SUDO_GID", "0")], variable).as_deref(), Some("0"));
        assert_eq!(ran(&[("SUDO_UID", &another), ("SUDO_GID", &another)], variable).as_ref(), Some(&another));
        // Too little is known to become that user.
        assert_eq!(ran(&[("SUDO_UID", &another)], variable), None);
        assert_eq!(ran(&[("PKEXEC_UID", "1000")], variable), None);
        assert_eq!(ran(&[("DOAS_USER", "somebody")], variable), None);
    }
}

#[test]
fn doctor_does_not_name_its_machine() {
    if !machine_has(&[Need::Root, Need::Program("unshare")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let script = "echo hushhost.example.org >/proc/sys/kernel/hostname && \"$0\" report \"hushhost.becalm\"; \"$0\" doctor; \"$0\" doctor --json";
    let mut command = Command::new("unshare");
    command.args(["--uts", "sh", "-c", script, path(&executable())]);
    command.env("BECALM_CONFIG", &empty).env("XDG_STATE_HOME", folder.path()).env("HOME", folder.path());
    let ended = run(command);
    let text = &ended.expect(0, &["hushhost.becalm"]).stdout;
    assert!(text.contains("becalm report RUN") && text.contains("becalm.doctor/1"), "{text}");
    assert!(!text.contains("hush") && !text.contains("example.org"), "{text}");
}

/// Each noise of a sweep is a command of its own.
#[test]
fn a_sweep_makes_noises_as_the_command_line_says() {
    if !machine_has(&[Need::Root]) {
        return;
    }
    let ended = run(becalm(&[
        "inject",
        "--rate",
        "10Hz,20Hz",
        "--detour",
        "2ms",
        "--duration",
        "200ms",
        "--cpus",
        "0",
        "--seed",
        "7",
        "--json",
    ]));
    let text = &ended.expect(0, &[]).stdout;
    assert!(text.contains("becalm.inject-sweep/1") && text.contains("\"seed\": 7"), "{text}");
}
