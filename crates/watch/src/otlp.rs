//! Sends the metrics to an OpenTelemetry collector by OTLP over HTTP, as JSON: repeatedly, all sums since the start.
//!
//! A separate thread sends, so nothing else waits for a collector: it reads the totals like a scraper, and holds no lock while it sends. It is
//! handwritten, because the crate for it (`opentelemetry-otlp`) brings an HTTP client with an async runtime, which has no place in a measuring
//! process. Failed messages are not repeated: sums since the start lose nothing by that.
//!
//! See `opentelemetry/proto/metrics/v1/metrics.proto`, and "JSON Protobuf Encoding" in the OTLP specification.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::alarm;
use becalm_linux::usage::Usage;
use becalm_model::Pid;
use becalm_units::{Nanos, printable};
use serde_json::{Value as Json, json};

use crate::exposition::{Family, Sample, Type, Value};
use crate::histogram::BUCKETS;
use crate::powerless_thread;
use crate::server::Shared;
use crate::totals::SendCounts;

/// The time limit for sending a message, except for resolving a name.
const DEADLINE: Duration = Duration::from_secs(5);

/// The maximum number of bytes read from a response.
const LARGEST_ANSWER: usize = 8 << 10;

/// The default port of collectors, and the path.
const PORT: u16 = 4_318;
const PATH: &str = "/v1/metrics";

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: sums since the start.
const CUMULATIVE: u32 = 2;

/// The address of a collector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collector {
    host: String,
    port: u16,
    path: String,
}

/// A text that names no collector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' names no collector: {why}; write one like http://127.0.0.1:{PORT}{PATH}", printable(text))]
pub struct ParseCollectorError {
    text: String,
    why: &'static str,
}

impl FromStr for Collector {
    type Err = ParseCollectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = |why| ParseCollectorError { text: text.to_owned(), why };
        if text.starts_with("https://") {
            return Err(err("encryption is not supported: send to a collector on this machine that forwards the data"));
        }
        let rest = text.strip_prefix("http://").ok_or_else(|| err("it does not start with http://"))?;
        let (authority, path) = rest.find('/').map_or((rest, PATH), |at| rest.split_at(at));
        let is_plain = |c: char| c.is_ascii_graphic() && c != '#';
        if !text.chars().all(is_plain) {
            return Err(err("an address has neither spaces nor # nor letters beyond ASCII"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            // An IPv6 address contains colons itself.
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(|| err("a [ is not closed"))?;
                (host, if port.is_empty() { None } else { port.strip_prefix(':').or(Some("")) })
            }
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(err("it has no host, or one with signs that no name has"));
        }
        let port = port.map_or(Ok(PORT), |port| port.parse().map_err(|_| err("its port is no number up to 65535")))?;
        let path = if path == "/" { PATH } else { path };
        Ok(Self { host: host.to_owned(), port, path: path.to_owned() })
    }
}

impl Collector {
    /// The host and the port, as in a URL.
    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

/// Interval and time limit.
#[derive(Clone, Copy, Debug)]
struct Pace {
    interval: Duration,
    deadline: Duration,
}

/// Starts the thread that sends a message per interval, and returns its thread ID. It ends with the process.
pub fn start(collector: Collector, interval: Nanos, host: String, shared: Arc<Shared>) -> io::Result<Pid> {
    start_at(collector, Pace { interval: interval.to_std(), deadline: DEADLINE }, host, shared)
}

fn start_at(collector: Collector, pace: Pace, host: String, shared: Arc<Shared>) -> io::Result<Pid> {
    shared.totals().sent = Some(SendCounts::default());
    powerless_thread::start("becalm-otlp", move || {
        let began_ns = alarm::wall_ns();
        loop {
            thread::sleep(pace.interval);
            let (usage, elapsed) = (Usage::now(), shared.elapsed());
            let families = shared.totals().families(&usage, elapsed);
            let body = message(&families, &host, began_ns, alarm::wall_ns()).to_string();
            let sent = post(&collector, body.as_bytes(), pace.deadline);
            let mut totals = shared.totals();
            let counts = totals.sent.get_or_insert_default();
            match sent {
                Ok(()) => counts.sent += 1,
                Err(why) => {
                    counts.failed += 1;
                    totals.unsent = Some(format!("{collector}: {why}"));
                }
            }
        }
    })
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Sends a message; the error says why the collector did not accept it.
fn post(collector: &Collector, body: &[u8], deadline: Duration) -> Result<(), String> {
    let until = Instant::now() + deadline;
    let words = |error: io::Error| match error.kind() {
        // The kernel reports a socket's time limit as "nothing there yet".
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!("no answer within {} s", deadline.as_secs_f64()),
        _ => error.to_string(),
    };
    let answer = exchange(collector, body, until).map_err(words)?;
    let (status, accepted) = understood(&answer).ok_or("what it answered is not HTTP")?;
    match (status, accepted) {
        (200..=299, None) => Ok(()),
        (200..=299, Some(refused)) => Err(format!("it took not all: {refused}")),
        _ => Err(format!("it answered with status {status}")),
    }
}

/// Sends the request, and reads the relevant part of the response.
fn exchange(collector: &Collector, body: &[u8], until: Instant) -> io::Result<Vec<u8>> {
    let mut refused = io::Error::other("its name has no address");
    let mut stream = None;
    for address in (collector.host.as_str(), collector.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(until)?) {
            Ok(connected) => {
                stream = Some(connected);
                break;
            }
            Err(error) => refused = error,
        }
    }
    let mut stream = stream.ok_or(refused)?;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        collector.path,
        collector.authority(),
        body.len()
    );
    for mut part in [head.as_bytes(), body] {
        while !part.is_empty() {
            stream.set_write_timeout(Some(left(until)?))?;
            let length = stream.write(part)?;
            part = &part[length..];
        }
    }
    let mut answer = Vec::new();
    let mut bytes = [0; 2_048];
    while answer.len() < LARGEST_ANSWER && !is_whole(&answer) {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut bytes)? {
            0 => break,
            length => answer.extend_from_slice(&bytes[..length]),
        }
    }
    Ok(answer)
}

/// The head and the body of a response; `None` until the head is complete.
fn parts(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((str::from_utf8(&answer[..end]).ok()?, &answer[end + 4..]))
}

fn is_whole(answer: &[u8]) -> bool {
    let Some((head, body)) = parts(answer) else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") { value.trim().parse::<usize>().ok() } else { None }
    });
    length.is_some_and(|length| body.len() >= length)
}

/// The status of a response, and the collector's message about rejected points. `None` if it is not HTTP.
fn understood(answer: &[u8]) -> Option<(u16, Option<String>)> {
    let (head, body) = parts(answer)?;
    let (version, rest) = head.split_once(' ')?;
    let status = rest.get(..3)?.parse().ok().filter(|_| version.starts_with("HTTP/1."))?;
    let said: Json = serde_json::from_slice(body).unwrap_or_default();
    let partial = &said["partialSuccess"];
    // In this form of JSON, 64-bit numbers are text, but some collectors write numbers.
    let rejected = &partial["rejectedDataPoints"];
    let rejected = rejected.as_str().and_then(|text| text.parse::<u64>().ok()).or(rejected.as_u64()).unwrap_or(0);
    let why = partial["errorMessage"].as_str().unwrap_or_default();
    let refused =
        || format!("{rejected} points were refused, {}", printable(&why.chars().take(200).collect::<String>()));
    Some((status, (rejected > 0).then(refused)))
}

/// `ExportMetricsServiceRequest` with all families. Sums start at `began_ns` of the wall clock, and the message is sent at `now_ns`.
fn message(families: &[Family], host: &str, began_ns: u64, now_ns: u64) -> Json {
    let instants = |kind| {
        let mut point = json!({"timeUnixNano": now_ns.to_string()});
        match kind {
            Type::Counter | Type::Histogram => point["startTimeUnixNano"] = json!(began_ns.to_string()),
            // The boot time is not known here.
            Type::SinceBoot | Type::Gauge => {}
        }
        point
    };
    let metrics: Vec<Json> = families
        .iter()
        .filter(|family| !family.samples.is_empty())
        .map(|family| {
            let points: Vec<Json> = family.samples.iter().map(|sample| point(sample, instants(family.kind))).collect();
            let unit = match family.name {
                name if name.ends_with("_seconds") => "s",
                name if name.ends_with("_bytes") => "By",
                _ => "1",
            };
            let mut metric = json!({"name": family.name, "description": family.help, "unit": unit});
            match family.kind {
                Type::Counter | Type::SinceBoot => {
                    metric["sum"] =
                        json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true});
                }
                Type::Gauge => metric["gauge"] = json!({"dataPoints": points}),
                Type::Histogram => {
                    metric["histogram"] = json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE});
                }
            }
            metric
        })
        .collect();
    let version = env!("CARGO_PKG_VERSION");
    let resource = [("service.name", "becalm"), ("service.version", version), ("host.name", host)].map(attribute);
    json!({"resourceMetrics": [{
        "resource": {"attributes": resource},
        "scopeMetrics": [{"scope": {"name": "becalm.watch", "version": version}, "metrics": metrics}],
    }]})
}

fn attribute((key, value): (&str, &str)) -> Json {
    json!({"key": key, "value": {"stringValue": value}})
}

/// One data point with given times. In this form of JSON, 64-bit numbers are text.
fn point(sample: &Sample, mut point: Json) -> Json {
    let attributes: Vec<Json> = sample.labels.iter().map(|(key, value)| attribute((key, value))).collect();
    if !attributes.is_empty() {
        point["attributes"] = json!(attributes);
    }
    match &sample.value {
        Value::Count(count) => point["asInt"] = json!(i64::try_from(*count).unwrap_or(i64::MAX).to_string()),
        Value::Time(time) => point["asDouble"] = json!(time.get() as f64 / 1e9),
        Value::Number(number) => point["asDouble"] = json!(number),
        Value::Lengths(lengths) => {
            let counts = lengths.classic().iter().map(u64::to_string).collect::<Vec<_>>();
            point["count"] = json!(lengths.count().to_string());
            point["sum"] = json!(lengths.total().get() as f64 / 1e9);
            point["bucketCounts"] = json!(counts);
            point["explicitBounds"] = json!(BUCKETS.map(|(ns, _)| ns as f64 / 1e9));
        }
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_units::Share;
    use proptest::prelude::*;
    use std::net::{SocketAddr, TcpListener};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;

    use crate::totals::Totals;

    #[test]
    fn collectors_are_understood() {
        for (text, shown) in [
            ("http://127.0.0.1:4318/v1/metrics", "http://127.0.0.1:4318/v1/metrics"),
            ("http://collector", "http://collector:4318/v1/metrics"),
            ("http://collector/", "http://collector:4318/v1/metrics"),
            ("http://[::1]:9/a?b=c", "http://[::1]:9/a?b=c"),
            ("http://[::1]", "http://[::1]:4318/v1/metrics"),
        ] {
            assert_eq!(text.parse::<Collector>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "127.0.0.1:4318",
            "https://collector",
            "http://",
            "http://:4318",
            "http://a:x",
            "http://a:70000",
            "http://a b",
            "http://[::1",
            "http://[::1]x",
            "http://user@host",
            "http://a/\r\nX: y",
            "http://é",
        ] {
            let error = text.parse::<Collector>().unwrap_err().to_string();
            assert!(error.contains("names no collector") && !error.contains('\n'), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_and_no_answer_is_a_panic(text in "(http://)?.{0,30}", answer in prop::collection::vec(any::<u8>(), 0..99)) {
            if let Ok(collector) = text.parse::<Collector>() {
                prop_assert_eq!(collector.to_string().parse::<Collector>().unwrap(), collector);
            }
            let _ = (understood(&answer), is_whole(&answer));
            let _ = understood(&[b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &answer].concat());
        }
    }

    /// A collector that handles each connection with `treat`, and its address.
    fn collector(mut treat: impl FnMut(TcpStream) + Send + 'static) -> (Collector, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || listener.incoming().for_each(|stream| treat(stream.unwrap())));
        (format!("http://{address}").parse().unwrap(), address)
    }

    /// Reads a complete request: its head and its body.
    fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
        let (mut bytes, mut some) = (Vec::new(), [0; 4_096]);
        while !is_whole(&bytes) {
            let length = stream.read(&mut some).unwrap();
            assert!(length > 0, "it ended early");
            bytes.extend_from_slice(&some[..length]);
        }
        let (head, body) = parts(&bytes).unwrap();
        (head.to_owned(), body.to_vec())
    }

    fn answer(stream: &mut TcpStream, status: &str, body: &str) {
        let length = body.len();
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    }

    fn shared() -> Arc<Shared> {
        Arc::new(Shared::new(Totals::new(Share::from_per_mille(1))))
    }

    const SOON: Pace = Pace { interval: Duration::from_millis(5), deadline: Duration::from_secs(30) };

    #[test]
    fn a_collector_gets_all_that_is_told_again_and_again() {
        let (sender, receiver) = mpsc::channel();
        let (collector, address) = collector(move |mut stream| {
            let asked = request(&mut stream);
            answer(&mut stream, "200 OK", "{\"partialSuccess\":{}}");
            let _ = sender.send(asked);
        });
        let shared = shared();
        start_at(collector, SOON, "n1".to_owned(), Arc::clone(&shared)).unwrap();
        let (head, _) = receiver.recv().unwrap();
        let (_, body) = receiver.recv().unwrap();
        assert!(
            head.starts_with("POST /v1/metrics HTTP/1.1\r\n") && head.contains(&format!("\r\nHost: {address}\r\n")),
            "{head}"
        );
        let sent: Json = serde_json::from_slice(&body).unwrap();
        let metrics = sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let told = shared.totals().families(&Usage::now(), Nanos::ZERO);
        let names = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            names(metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect()),
            names(told.iter().filter(|family| !family.samples.is_empty()).map(|family| family.name).collect())
        );
        assert_eq!(sent["resourceMetrics"][0]["resource"]["attributes"][2]["value"]["stringValue"], "n1");
        assert!(shared.totals().sent.is_some_and(|counts| counts.sent >= 1 && counts.failed == 0));
        if let Some(python) = published() {
            check_published(&python, &body);
        }
    }

    /// The program that knows the published schema, if it is installed.
    fn published() -> Option<std::path::PathBuf> {
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/python/bin/python");
        let has = Command::new(&python).args(["-c", "import opentelemetry.proto"]).stderr(Stdio::null()).status();
        if has.is_ok_and(|status| status.success()) {
            return Some(python);
        }
        becalm_testing::skip("the published schema of OTLP is not there; .ci/need python-packages installs it");
        None
    }

    /// Checks the body with the published schema's own JSON parser, which refuses unknown fields, and looks for some of the fields.
    fn check_published(python: &Path, body: &[u8]) {
        let program = "import sys
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
asked = json_format.Parse(sys.stdin.buffer.read(), ExportMetricsServiceRequest())
metrics = {metric.name: metric for metric in asked.resource_metrics[0].scope_metrics[0].metrics}
assert metrics['becalm_own_cpu_seconds'].sum.is_monotonic
assert metrics['becalm_own_cpu_seconds'].sum.aggregation_temporality == 2
assert metrics['becalm_own_cpu_seconds'].sum.data_points[0].as_double > 0
assert metrics['becalm_own_resident_bytes'].gauge.data_points[0].as_int > 1 << 16
point = metrics['becalm_detour_duration_seconds'].histogram.data_points[0]
assert len(point.bucket_counts) == len(point.explicit_bounds) + 1 == 21
assert 0 < point.start_time_unix_nano <= point.time_unix_nano
print(len(metrics))
";
        let mut child =
            Command::new(python).args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(body).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success() && String::from_utf8(ended.stdout).unwrap().trim().parse::<u32>().unwrap() > 20);
    }

    /// The reported error for a collector that handles a message with `treat`.
    fn refused(deadline: Duration, treat: impl FnMut(TcpStream) + Send + 'static) -> String {
        post(&collector(treat).0, &vec![b' '; 64 << 10], deadline).unwrap_err()
    }

    #[test]
    fn what_a_collector_does_wrong_is_told_and_no_longer_waited_for_than_allowed() {
        let (soon, long) = (Duration::from_millis(60), Duration::from_secs(60));
        let mut kept = Vec::new();
        // One accepts the connection and is silent, one does not read, one sends a byte at a time.
        assert_eq!(refused(soon, move |stream| kept.push(stream)), "no answer within 0.06 s");
        let drip = |mut stream: TcpStream| {
            while stream.write_all(b"H").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        };
        let said = refused(soon, drip);
        assert!(
            ["no answer within 0.06 s", "what it answered is not HTTP"].contains(&said.as_str())
                || said.contains("reset"),
            "{said}"
        );
        let status = refused(long, |mut stream| {
            request(&mut stream);
            answer(&mut stream, "503 Service Unavailable", "");
        });
        assert_eq!(status, "it answered with status 503");
        let partial = refused(long, |mut stream| {
            request(&mut stream);
            answer(
                &mut stream,
                "200 OK",
                "{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"too\\nold\"}}",
            );
        });
        assert_eq!(partial, "it took not all: 3 points were refused, too\u{fffd}old");
        let endless = refused(long, |mut stream| {
            request(&mut stream);
            while stream.write_all(&[b'x'; 4_096]).is_ok() {}
        });
        assert_eq!(endless, "what it answered is not HTTP");
        // One refuses the connection.
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let nobody: Collector = format!("http://{nobody}").parse().unwrap();
        assert!(post(&nobody, b"{}", long).unwrap_err().contains("refused"));
    }

    #[test]
    fn nobody_waits_for_a_collector_that_hangs() {
        let (sender, receiver) = mpsc::channel();
        let (collector, _) = collector(move |stream| sender.send(stream).unwrap());
        let shared = shared();
        start_at(collector, SOON, "n1".to_owned(), Arc::clone(&shared)).unwrap();
        // It received the request, and is silent for as long as this lives.
        let stream = receiver.recv().unwrap();
        assert_eq!(shared.totals().sent, Some(SendCounts::default()));
        assert!(shared.totals().families(&Usage::now(), Nanos::ZERO).len() > 20);
        drop(stream);
        // That one is counted, and sending continues.
        drop(receiver.recv().unwrap());
        let totals = shared.totals();
        assert!(totals.sent.is_some_and(|counts| counts.sent == 0 && counts.failed >= 1) && totals.unsent.is_some());
    }
}
