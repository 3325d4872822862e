//! `becalm watch` beside noise that is planted: it is told, raises an alert, and is kept; and the watch survives what
//! administrators do to it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use becalm_testing::PATIENCE;
use becalm_testing::program::{Running, becalm, path, report, run};
use becalm_testing::watched::{free_address, get, value};
use serde_json::Value;

use crate::robust::alone;

mod observation;
mod prometheus;
mod service;
mod soak;
mod survival;

/// A collector of OpenTelemetry that takes all that it is sent, which comes out at the other end.
fn collector() -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let head: Vec<String> =
                stream.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let length = head.iter().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok()).unwrap();
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
            let _ = sender.send(serde_json::from_slice(&body).unwrap());
        }
    });
    (address, receiver)
}

/// The bundles of a ring that hold such a thing, in order.
fn kept(ring: &Path, holds: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(ring).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut names: Vec<PathBuf> = names.filter(|path| path.to_string_lossy().ends_with(holds)).collect();
    names.sort();
    names
}

#[test]
fn planted_noise_is_told_and_kept_and_nothing_ends_the_watch_but_a_signal() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (ring, config) = (folder.path().join("ring"), folder.path().join("watch.conf"));
    let address = free_address();
    let (collector, collected) = collector();
    let settings = format!(
        "cpus = 1\ninterval = 500ms\nwindow = 200ms\nalert = 300ms\nbudget = 90%\nbusy = 100%\nlisten = {address}\noutput = {}\n\
         trigger = detour>1500us\notlp = http://{collector}\notlp-interval = 1s\n",
        path(&ring)
    );
    fs::write(&config, &settings).unwrap();
    let noise = Running::start(becalm(&["inject", "--interval", "20ms", "--detour", "2ms", "--cpus", "1"]));
    let watch = || becalm(&["watch", "--config", path(&config)]);
    // Started from a terminal that it is to outlive: it reads its configuration again all the same.
    let mut outliving = Command::new("nohup");
    outliving.arg(watch().get_program()).args(watch().get_args());
    let start = || Running::start(watch());
    let mut watch = Running::start(outliving);
    let planted = r#"becalm_source_seconds_total{kind="task",source="becalm-inject"}"#;
    watch.wait_until("the planted noise is told", || value(address, planted).is_some_and(|seconds| seconds > 0.01));
    watch.wait_until("an alert is kept with what came after it", || {
        !kept(&ring, "-alert.becalm").is_empty() && !kept(&ring, "-after.becalm").is_empty()
    });
    let sent = |body: &Value| {
        let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let sources = metrics.iter().find(|metric| metric["name"] == "becalm_source_seconds").unwrap();
        sources.to_string().contains("becalm-inject")
    };
    let mut bodies = std::iter::from_fn(|| collected.recv_timeout(PATIENCE).ok()).take(20);
    assert!(bodies.any(|body| sent(&body)), "the collector did not get the planted noise");
    assert!(value(address, r#"becalm_otlp_exports_total{result="sent"}"#) > Some(0.0));
    // A tenth of the CPU was planted; what else runs on the machine comes on top.
    let ratio = value(address, r#"becalm_noise_ratio{cpu="1"}"#).expect("a ratio");
    assert!((0.05..=1.0).contains(&ratio), "{ratio}");
    let alert = report(&kept(&ring, "-alert.becalm")[0]);
    assert!(alert["cpus"][0]["max_ns"].as_i64().is_some_and(|longest| longest > 1_500_000), "{alert:#}");
    // A configuration with an error changes nothing; a right one holds.
    fs::write(&config, "budget = much\n").unwrap();
    watch.signal("HUP");
    let reloads = |result: &str| value(address, &format!(r#"becalm_config_reloads_total{{result="{result}"}}"#));
    watch.wait_until("the wrong configuration is refused", || reloads("refused") == Some(1.0));
    fs::write(&config, settings.replace("90%", "80%")).unwrap();
    watch.signal("HUP");
    watch.wait_until("the right configuration is taken", || value(address, "becalm_own_cpu_budget_ratio") == Some(0.8));
    assert!(get(address, "/healthz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")));
    noise.signal("INT");
    noise.end();
    // The end checks that neither process nor trace instance remains.
    watch.signal("KILL");
    assert_eq!(watch.end().code, 128 + 9);
    let numbers = |ring: &Path| fs::read_dir(ring).unwrap().count();
    let before = numbers(&ring);
    let mut again = start();
    again.wait_until("windows go on in the same folder", || numbers(&ring) > before);
    again.signal("TERM");
    again.end().expect(0, &["watching; metrics are at", "watched for"]);
}

#[test]
fn an_address_in_use_and_a_configuration_with_an_error_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    run(becalm(&["watch", "--listen", &address])).expect(1, &["cannot listen at", &address]);
    let config = folder.path().join("watch.conf");
    fs::write(&config, "budget = 0.1%\nwindow = soon\n").unwrap();
    run(becalm(&["watch", "--config", path(&config)])).expect(2, &["watch.conf", "line 2"]);
}
