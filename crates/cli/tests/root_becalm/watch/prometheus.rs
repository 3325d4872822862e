//! A real Prometheus beside `becalm watch`: it scrapes, answers what the dashboard asks, and its alerts come and go with planted noise.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use becalm_testing::program::{Running, becalm, path, run};
use becalm_testing::watched::{free_address, get, value};
use becalm_testing::{Need, PATIENCE, machine_has, wait_until};
use serde_json::Value;

use crate::robust::alone;

/// What is deployed, below `deploy/`.
pub fn deployed(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file)
}

/// A Prometheus that scrapes one address every second, with the rules as they are deployed.
struct Prometheus {
    address: SocketAddr,
    running: Running,
}

impl Prometheus {
    fn start(folder: &Path, scraped: SocketAddr, more: &[&str]) -> Self {
        let rules = deployed("prometheus/becalm.rules.yml").canonicalize().unwrap();
        let config = folder.join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\n\
             scrape_configs:\n  - job_name: becalm\n    static_configs:\n      - targets: ['{scraped}']\n",
            path(&rules)
        );
        fs::create_dir_all(folder).unwrap();
        fs::write(&config, text).unwrap();
        let address = free_address();
        let mut command = Command::new("prometheus");
        command.args(more);
        command.args([
            format!("--config.file={}", path(&config)),
            format!("--storage.tsdb.path={}", path(&folder.join("tsdb"))),
            format!("--web.listen-address={address}"),
            "--log.level=warn".to_owned(),
        ]);
        Self { address, running: Running::start(command) }
    }

    /// Data that a path of its interface answers; nothing while it starts.
    fn ask(&self, what: &str) -> Option<Value> {
        let mut stream = TcpStream::connect_timeout(&self.address, PATIENCE).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        // Of the older version, so that the answer comes in one piece.
        write!(stream, "GET /api/v1/{what} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        (body["status"] == "success").then(|| body["data"].clone())
    }

    /// The samples that answer a query now.
    fn query(&self, expression: &str) -> Vec<Value> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let data = self.ask(&format!("query?query={encoded}"));
        data.and_then(|data| data["result"].as_array().cloned()).unwrap_or_default()
    }

    /// Whether an alert fires for CPU 1.
    fn fires(&self, alert: &str) -> bool {
        let labels = |found: &Value| found["labels"]["alertname"] == alert && found["labels"]["cpu"] == "1";
        let data = self.ask("alerts").unwrap_or_default();
        let mut alerts = data["alerts"].as_array().into_iter().flatten();
        alerts.any(|found| labels(found) && found["state"] == "firing")
    }
}

/// Each query of the dashboard with its variables replaced as Grafana does it where all machines are chosen.
fn queries_of_the_dashboard() -> Vec<String> {
    let text = fs::read_to_string(deployed("grafana/becalm.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().replace("$instance", ".*")).collect()
}

/// Whether there is a sample with a value that is a number, or a native histogram.
fn has_data(samples: &[Value]) -> bool {
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    let is_data = |sample: &Value| sample["value"][1].as_str().is_some_and(is_number) || sample["histogram"].is_array();
    samples.iter().any(is_data)
}

/// A Prometheus that takes native histograms, which it gets in protobuf, has them finer than the classic ones, and all that the
/// dashboard asks for.
fn check_native(native: &Prometheus) {
    let data = |query: &str| has_data(&native.query(query));
    assert_eq!(native.query(r#"up{job="becalm"}"#)[0]["value"][1], "1");
    // Detours of 8 ms were planted, and what is native has no classes by name.
    let planted = "histogram_quantile(1, sum(increase(becalm_detour_duration_seconds[1m])))";
    wait_until("a quantile of the native histogram has the planted noise", || data(&format!("{planted} > 0.008")));
    assert!(!data("becalm_detour_duration_seconds_bucket"), "classic classes were taken, too");
    let parts = "histogram_fraction(0, +Inf, becalm_detour_duration_seconds) == 1";
    wait_until("the whole histogram is within its bounds", || data(parts));
    let counts = "histogram_count(becalm_detour_duration_seconds) > 100 and histogram_sum(becalm_detour_duration_seconds) > 0.05";
    wait_until("it has what was counted", || data(counts));
    for query in queries_of_the_dashboard() {
        wait_until(&query, || data(&query));
    }
}

#[test]
fn a_prometheus_scrapes_it_answers_the_dashboard_and_fires_on_planted_noise() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::TwoCpus, Need::Program("prometheus")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let listen = address.to_string();
    let mut watch = Running::start(becalm(&[
        "watch",
        "--cpus",
        "1",
        "--interval",
        "500ms",
        "--window",
        "300ms",
        "--budget",
        "90%",
        "--busy",
        "100%",
        "--listen",
        &listen,
        "--trigger",
        "detour>5ms",
    ]));
    watch.wait_until("it answers", || get(address, "/metrics").is_some());
    let mut prometheus = Prometheus::start(&folder.path().join("classic"), address, &[]);
    let flag = "--enable-feature=native-histograms";
    let mut native = Prometheus::start(&folder.path().join("native"), address, &[flag]);
    let data = |prometheus: &Prometheus, query: &str| has_data(&prometheus.query(query));
    let watched = r#"rate(becalm_watched_seconds_total{cpu="1"}[1m]) > 0"#;
    let asked = prometheus.address;
    prometheus.running.wait_until("it listens", || get(asked, "/-/ready").is_some());
    let asked = native.address;
    native.running.wait_until("the one with native histograms listens", || get(asked, "/-/ready").is_some());
    wait_until("windows are scraped", || data(&prometheus, watched));
    assert_eq!(prometheus.query(r#"up{job="becalm"}"#)[0]["value"][1], "1");
    // More than the rule's 5 ms at once, and more than its 5 % in all.
    let noise = Running::start(becalm(&["inject", "--interval", "40ms", "--detour", "8ms", "--cpus", "1"]));
    let alerts = ["BecalmNoisyCpu", "BecalmLongDetour"];
    wait_until("the alerts fire on planted noise", || alerts.iter().all(|alert| prometheus.fires(alert)));
    let planted = r#"increase(becalm_source_seconds_total{source="becalm-inject"}[1m]) > 0"#;
    wait_until("the planted source is told", || data(&prometheus, planted));
    for query in queries_of_the_dashboard() {
        wait_until(&query, || data(&prometheus, &query));
    }
    check_native(&native);
    wait_until("the rule that records has a value", || data(&prometheus, "cpu:becalm_noise:ratio > 0.01"));
    assert_eq!(value(address, "becalm_healthy"), Some(1.0));
    noise.signal("INT");
    noise.end();
    // What others do on the machine may be noise of its own.
    let above = |series: &str| data(&prometheus, &format!(r#"max_over_time({series}{{cpu="1"}}[5s]) > 0.005"#));
    wait_until("an alert ends with the noise", || {
        !prometheus.fires(alerts[1]) || above("becalm_longest_detour_seconds")
    });
    for running in [prometheus.running, native.running, watch] {
        running.signal("TERM");
        running.end().expect(0, &[]);
    }
}

/// What a panel has to show of series that grow by so much per second of a process, given by promtool.
const SHOWN: [(&str, u64, &str, f64); 10] = [
    ("becalm_noise_seconds_total{cpu=\"1\", instance=\"n1\"}", 1, "{cpu=\"1\", instance=\"n1\"}", 0.025),
    ("becalm_watched_seconds_total{cpu=\"1\", instance=\"n1\"}", 0, "", 0.1),
    (
        "becalm_source_seconds_total{kind=\"task\", source=\"a\", instance=\"n1\"}",
        3,
        "{kind=\"task\", source=\"a\"}",
        0.02,
    ),
    ("becalm_own_cpu_seconds_total{instance=\"n1\"}", 7, "{instance=\"n1\"}", 0.05),
    ("becalm_own_part_seconds_total{part=\"windows\", instance=\"n1\"}", 7, "{part=\"windows\"}", 0.03),
    ("becalm_context_switches_total{instance=\"n1\"}", 8, "{instance=\"n1\"}", 1_000.0),
    ("becalm_softirqs_total{softirq=\"TIMER\", instance=\"n1\"}", 8, "{softirq=\"TIMER\"}", 100.0),
    (
        "becalm_traced_source_seconds_total{kind=\"irq\", source=\"b\", instance=\"n1\"}",
        9,
        "{kind=\"irq\", source=\"b\"}",
        0.2,
    ),
    ("becalm_traced_seconds_total{cpu=\"1\", instance=\"n1\"}", 10, "{instance=\"n1\"}", 0.8),
    ("becalm_up_seconds{instance=\"n1\"}", 0, "", 1.0),
];

/// A share is one of the time that there was, whether the process has run for two minutes, for two days, or was started anew.
#[test]
fn the_panels_divide_by_the_time_observed() {
    if !machine_has(&[Need::Program("promtool")]) {
        return;
    }
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(deployed("grafana/becalm.json")).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let queries = |id: u64| {
        let panel = panels.iter().find(|panel| panel["id"] == id).unwrap();
        panel["targets"].as_array().unwrap().iter().map(|target| target["expr"].as_str().unwrap())
    };
    // Whatever asks for a stretch of time is tested, but for counts, which are shown as they are.
    let tested: Vec<u64> = SHOWN.iter().map(|(_, id, ..)| *id).collect();
    for id in panels.iter().map(|panel| panel["id"].as_u64().unwrap()) {
        let divides = |query: &str| query.contains(" / ") || query.contains("rate(");
        assert!(tested.contains(&id) || !queries(id).any(divides), "panel {id}");
    }
    // Readings every 15 s from 5 s after the start on. While it is not running for a minute, the kernel goes on counting.
    let runs = [("two minutes", vec![9_u32]), ("two days", vec![11_520]), ("started anew", vec![100, 20])];
    let mut text = "evaluation_interval: 15s\ntests:\n".to_owned();
    for (name, readings) in &runs {
        text += &format!("  - name: {name}\n    interval: 15s\n    input_series:\n");
        let mut at = 0;
        for (series, _, _, rate) in SHOWN {
            let goes_on = series.contains("switches") || series.contains("softirqs");
            let mut values = Vec::new();
            at = 0;
            for count in readings {
                let first = if goes_on { 1e6 + f64::from(at) * 15.0 * rate } else { 5.0 * rate };
                values.push(format!("{first}+{}x{} _x4", 15.0 * rate, count - 1));
                at += count + 4;
            }
            text += &format!("      - {{series: '{series}', values: '{}'}}\n", values.join(" "));
        }
        text += "    promql_expr_test:\n";
        for (series, id, labels, rate) in SHOWN.into_iter().filter(|(_, id, ..)| *id > 0) {
            let metric = series.split('{').next().unwrap();
            let query = queries(id).find(|query| query.contains(metric)).unwrap().replace("$instance", ".*");
            // Noise and its sources are shares of the watched time, sources between the windows of the traced one.
            let of = match id {
                1 | 3 => 0.1,
                9 => 0.8,
                _ => 1.0,
            };
            text += &format!(
                "      - expr: 'round({query}, 0.001)'\n        eval_time: {}s\n        exp_samples: [{{labels: '{labels}', value: {}}}]\n",
                (at - 5) * 15,
                (rate / of * 1_000.0).round() / 1_000.0
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("panels.yml");
    fs::write(&file, text).unwrap();
    let mut command = Command::new("promtool");
    command.args(["test", "rules", path(&file)]);
    run(command).expect(0, &[]);
}

#[test]
fn promtool_accepts_metrics_and_rules_and_the_rules_hold_for_as_long_as_they_say() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("promtool")]) {
        return;
    }
    let promtool = |words: &[&str]| {
        let mut command = Command::new("promtool");
        command.args(words);
        run(command)
    };
    promtool(&["check", "rules", path(&deployed("prometheus/becalm.rules.yml"))]).expect(0, &[]);
    promtool(&["test", "rules", path(&deployed("prometheus/becalm.rules.test.yml"))]).expect(0, &[]);
    let address = free_address();
    let listen = address.to_string();
    let mut watch = Running::start(becalm(&[
        "watch",
        "--interval",
        "200ms",
        "--window",
        "20ms",
        "--budget",
        "90%",
        "--busy",
        "100%",
        "--listen",
        &listen,
    ]));
    watch.wait_until("a window is told", || value(address, r#"becalm_windows_total{result="measured"}"#) > Some(0.0));
    let answer = get(address, "/metrics").unwrap();
    let mut check = Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).spawn().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    check.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    assert!(check.wait().unwrap().success());
    watch.signal("TERM");
    watch.end().expect(0, &[]);
}
