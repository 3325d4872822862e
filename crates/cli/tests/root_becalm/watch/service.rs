//! The units of `deploy/systemd`, alone and under a systemd of their own, and a socket that a service manager opens.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use becalm_testing::program::{INSTANCES, Running, executable, path, run};
use becalm_testing::watched::{free_address, get, value};
use becalm_testing::{Need, machine_has, skip, wait_until};

use super::prometheus::deployed;
use crate::robust::alone;

#[test]
fn the_units_are_valid_and_leave_little_exposed() {
    if !machine_has(&[Need::Program("systemd-analyze")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unit = |name: &str| {
        let text = fs::read_to_string(deployed("systemd").join(name)).unwrap();
        let there = folder.path().join(name);
        // Where the program is installed nothing may be.
        fs::write(&there, text.replace("/usr/bin/becalm", path(&executable()))).unwrap();
        there
    };
    let (service, socket) = (unit("becalm-watch.service"), unit("becalm-watch.socket"));
    let analyze = |words: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        command.args(words);
        run(command)
    };
    let verified = analyze(&["verify", "--man=no", path(&service), path(&socket)]);
    verified.expect(0, &[]);
    assert_eq!((verified.stdout.as_str(), verified.stderr.as_str()), ("", ""));
    // Of 10, in tenths: what it may do to the machine by its capabilities and what it may see.
    analyze(&["security", "--offline=true", "--threshold=25", "--no-pager", path(&service)]).expect(0, &[]);
}

#[test]
fn a_socket_that_a_service_manager_opened_is_served() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("systemd-socket-activate")]) {
        return;
    }
    let address = free_address();
    let mut command = Command::new("systemd-socket-activate");
    command.args(["-l", &address.to_string(), path(&executable()), "watch", "--listen", "127.0.0.1:1"]);
    let mut watch = Running::start(command);
    // Nothing runs before somebody asks, and who asked first is answered, too.
    let is_becalm = |pid: u32| {
        let name = fs::read_link(Path::new("/proc").join(pid.to_string()).join("exe"));
        name.is_ok_and(|name| name.ends_with(executable().file_name().unwrap()))
    };
    let is_answered = || get(address, "/healthz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"));
    watch.wait_until("the first who asks is answered", is_answered);
    assert!(
        is_becalm(watch.pid()) && get(address, "/metrics").is_some_and(|answer| answer.contains("becalm_up_seconds"))
    );
    watch.signal("TERM");
    watch.end().expect(0, &[&format!("metrics are at http://{address}/metrics"), "watched for"]);
}

/// A systemd that is process 1 of namespaces of its own, with our units and nothing else.
struct Systemd {
    outer: Child,
    _folder: tempfile::TempDir,
}

impl Systemd {
    const PROGRAM: &str = "/lib/systemd/systemd";

    fn start(address: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root_becalm/watch/systemd.sh");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", path(&script), path(folder.path()), path(&executable())]);
        command.arg(deployed("systemd").canonicalize().unwrap()).arg(address.to_string());
        Self { outer: command.spawn().unwrap(), _folder: folder }
    }

    /// Its number here: the child of what made its namespaces, which is a child of the script.
    fn number(&self) -> Option<String> {
        let child = |pid: &str| {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            Some(children.split_whitespace().next()?.to_owned())
        };
        child(&child(&self.outer.id().to_string())?)
    }

    /// What `systemctl` within says.
    fn control(&self, words: &[&str]) -> String {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--pid", "--root", "--wd", "--target"]).arg(self.number().unwrap());
        let ended = run({
            command.arg("systemctl").args(words);
            command
        });
        ended.expect(0, &[]);
        ended.stdout.trim().to_owned()
    }

    fn show(&self, property: &str) -> String {
        self.control(&["show", "--value", "--property", property, "becalm-watch.service"])
    }

    /// The trace instances of becalms within.
    fn instances(&self) -> Vec<PathBuf> {
        let namespace = fs::read_link(format!("/proc/{}/ns/pid", self.number().unwrap())).unwrap();
        let number: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        let all = fs::read_dir(INSTANCES).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.to_string_lossy().contains(&format!("-{number}-"))).collect()
    }

    #[track_caller]
    fn until(&mut self, what: &str, happened: impl Fn(&Self) -> bool) {
        wait_until(what, || {
            assert!(self.outer.try_wait().unwrap().is_none(), "it ended before {what}");
            happened(self)
        });
    }

    /// Ends it as one ends a container; the script then removes what it made.
    fn halt(&mut self) -> bool {
        if let Some(pid) = self.number() {
            let _ = Command::new("kill").args(["-s", "RTMIN+3", &pid]).status();
        }
        self.outer.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        if self.outer.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.halt();
        }
    }
}

#[test]
fn a_systemd_of_its_own_starts_reloads_restarts_and_activates_it() {
    let Some(_alone) = alone() else { return };
    if !Path::new(Systemd::PROGRAM).exists() || !machine_has(&[Need::Program("nsenter"), Need::Program("unshare")]) {
        return skip("there is no systemd here; the package systemd has it");
    }
    let address = free_address();
    let mut systemd = Systemd::start(address);
    let is_healthy = |_: &Systemd| get(address, "/healthz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200"));
    systemd.until("it answers", is_healthy);
    // With the rights that the unit leaves it, it records with the kernel's trace, traces between, and keeps what it records.
    let told = |series: &str| value(address, series).unwrap_or(-1.0);
    systemd.until("it records with the kernel's trace", |_| {
        told("becalm_rung") == 2.0 && told("becalm_ring_bundles") > 0.0
    });
    systemd.until("it traces in between", |_| told(r#"becalm_trace_events_total{result="read"}"#) > 0.0);
    systemd.until("it names functions of the kernel", |_| {
        get(address, "/metrics").is_some_and(|answer| answer.contains(r#"kind="workqueue",source="kworker:"#))
    });
    let reloads = r#"becalm_config_reloads_total{result="taken"}"#;
    systemd.control(&["reload", "becalm-watch.service"]);
    systemd.until("it read its configuration again", |_| told(reloads) == 1.0);
    // Everything of it at once, also the process that guards the trace.
    let traces = systemd.instances();
    assert!(!traces.is_empty());
    systemd.control(&["kill", "--signal=KILL", "becalm-watch.service"]);
    systemd.until("it was started again", |systemd| systemd.show("NRestarts") == "1" && told(reloads) == 0.0);
    systemd.until("what was left went", |_| traces.iter().all(|trace| !trace.exists()));
    systemd.control(&["stop", "becalm-watch.service"]);
    assert!(systemd.instances().is_empty());
    assert_eq!((systemd.show("ActiveState"), systemd.show("Result")), ("inactive".to_owned(), "success".to_owned()));
    // Whoever asks starts it again, by the socket that stayed.
    systemd.until("it is started by who asks", is_healthy);
    assert_eq!(systemd.show("ActiveState"), "active");
    assert!(systemd.halt());
}
