//! The units of `deploy/systemd`, and a socket that a service manager opens.

use std::fs;
use std::path::Path;
use std::process::Command;

use becalm_testing::program::{Running, executable, path, run};
use becalm_testing::{Need, machine_has};

use super::prometheus::deployed;
use super::{free_address, get};
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
    analyze(&["security", "--offline=true", "--threshold=45", "--no-pager", path(&service)]).expect(0, &[]);
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
