//! The server of metrics: one thread, with a limited number of connections, limited bytes and a deadline for each.
//!
//! It is handwritten, because it takes a page of code, and other servers bring thread pools or an async runtime, which have no place in a measuring
//! process. With 64 connections of at most 8 KiB and shared responses, it uses less than 1 MiB for any number of clients: a new connection replaces
//! the oldest.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::clock::thread_time;
use becalm_linux::sockets::{Await, set_backlog, wait_ready};
use becalm_linux::usage::{self, Usage};
use becalm_model::Pid;
use becalm_units::Nanos;

use crate::exposition;
use crate::host::Hosts;
use crate::request::{self, Format, LARGEST, Reading, Refusal, Request};
use crate::schedule::AnswerAllowance;
use crate::totals::Totals;
use crate::{powerless_thread, protobuf};

/// The maximum number of simultaneous connections.
const MOST: usize = 64;

/// The number of connections that may wait to be accepted, in the kernel's memory.
const BACKLOG: i32 = 1_024;

/// The time limit of a connection.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long a response is reused before it is written again.
const FRESH: Duration = Duration::from_millis(500);

/// The same if responses have used most of their allowance: the default interval between reads of the kernel's counters.
const STALE: Duration = Duration::from_secs(10);

/// The page at `/`.
const ROOT: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>becalm watch</title>
<h1>becalm watch</h1>
<p>becalm watch measures the operating-system noise of this machine.</p>
<ul>
<li><a href=\"/metrics\">/metrics</a>: the measurements, for Prometheus and OpenMetrics scrapers</li>
<li><a href=\"/healthz\">/healthz</a>: 200 if the last window was measured, 503 if not</li>
</ul>
</html>
";

/// The pause after a failure to accept.
const RESPITE: Duration = Duration::from_millis(100);

/// State that the measuring and the answering threads share.
#[derive(Debug)]
pub struct Shared {
    totals: Mutex<Totals>,
    began: Instant,
    /// Skipped time that nothing waited for, in nanoseconds.
    skipped: AtomicI64,
}

impl Shared {
    /// Starts now.
    pub fn new(totals: Totals) -> Self {
        Self { totals: Mutex::new(totals), began: Instant::now(), skipped: AtomicI64::new(0) }
    }

    pub fn totals(&self) -> MutexGuard<'_, Totals> {
        // A panic while holding it leaves sums that are at worst incomplete.
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Nanos {
        let waited = i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX);
        Nanos::new(waited.saturating_add(self.skipped.load(Ordering::Relaxed)))
    }

    /// CPU time of the process for everything except responses.
    pub fn observing(&self) -> Nanos {
        let answers = self.totals().parts.answers;
        usage::cpu_time() - answers
    }

    /// Skips this much time.
    pub fn skip(&self, time: Nanos) {
        self.skipped.fetch_add(time.get(), Ordering::Relaxed);
    }
}

/// A response: its head followed by its body.
#[derive(Clone, Debug)]
struct Answer {
    bytes: Arc<[u8]>,
    head: usize,
}

impl Answer {
    fn new(status: &str, kind: &str, body: &[u8]) -> Self {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        Self { head: head.len(), bytes: [head.as_bytes(), body].concat().into() }
    }

    const fn plain(status: &'static str) -> (&'static str, &'static str) {
        (status, "text/plain; charset=utf-8")
    }
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    since: Instant,
    asked: Vec<u8>,
    reply: Option<Reply>,
}

/// A response being sent to a client.
#[derive(Debug)]
struct Reply {
    answer: Answer,
    /// Its end, exclusive.
    end: usize,
    /// The number of bytes that were sent.
    sent: usize,
}

/// Sleeps until one of the descriptors is ready, like [`wait_ready`].
type Wait = fn(&[(BorrowedFd<'_>, Await)], Option<Duration>) -> io::Result<Vec<bool>>;

/// The server's state, used by one thread.
#[derive(Debug)]
pub struct Server {
    wait: Wait,
    listener: TcpListener,
    shared: Arc<Shared>,
    connections: Vec<Connection>,
    /// The accepted host names.
    hosts: Hosts,
    allowance: AnswerAllowance,
    /// The last responses by format, and when they were written.
    written: [Option<(Instant, Answer)>; 3],
    respite: Option<Instant>,
}

impl Server {
    /// Starts the thread that answers, and returns its thread ID. It ends with the process. Fails if the system cannot create another thread, or the
    /// listener cannot be used.
    pub(crate) fn start(listener: TcpListener, shared: Arc<Shared>, hosts: Hosts) -> io::Result<Pid> {
        Self::start_waiting(listener, shared, hosts, wait_ready)
    }

    fn start_waiting(listener: TcpListener, shared: Arc<Shared>, hosts: Hosts, wait: Wait) -> io::Result<Pid> {
        listener.set_nonblocking(true)?;
        // With a shorter backlog, simultaneous clients are still served, only later.
        let _ = set_backlog(&listener, BACKLOG);
        let mut server = Self {
            wait,
            listener,
            shared,
            connections: Vec::with_capacity(MOST),
            hosts,
            allowance: AnswerAllowance::new(),
            written: [None, None, None],
            respite: None,
        };
        powerless_thread::start("becalm-server", move || {
            loop {
                if server.turn().is_err() {
                    // Like for lack of memory: clients reconnect, and it may work then.
                    server.connections.clear();
                    thread::sleep(RESPITE);
                }
                server.rest();
            }
        })
    }

    /// Waits for something to do, and does it.
    fn turn(&mut self) -> io::Result<()> {
        let now = Instant::now();
        self.connections.retain(|connection| connection.since + DEADLINE > now);
        self.respite = self.respite.filter(|until| *until > now);
        let deadlines = self.connections.iter().map(|connection| connection.since + DEADLINE);
        let next = deadlines.chain(self.respite).min();
        let mut fds: Vec<_> = self
            .connections
            .iter()
            .map(|connection| {
                let what = if connection.reply.is_some() { Await::Writable } else { Await::Readable };
                (connection.stream.as_fd(), what)
            })
            .collect();
        if self.respite.is_none() {
            fds.push((self.listener.as_fd(), Await::Readable));
        }
        // One millisecond more, so the awaited time has passed.
        let patience = next.map(|next| next.saturating_duration_since(now) + Duration::from_millis(1));
        let ready = (self.wait)(&fds, patience)?;
        let count = self.connections.len();
        let mut at = 0;
        let mut connections = std::mem::take(&mut self.connections);
        connections.retain_mut(|connection| {
            at += 1;
            !ready[at - 1] || self.serve(connection).unwrap_or(false)
        });
        self.connections = connections;
        if ready.get(count) == Some(&true) {
            self.accept();
        }
        Ok(())
    }

    /// Sleeps until the allowance has paid for the responses, if they exceeded it. Clients wait meanwhile.
    fn rest(&mut self) {
        let taken = thread_time();
        let mut totals = self.shared.totals();
        totals.parts.answers = taken;
        let Some(rest) = self.allowance.rest(totals.budget, taken, Instant::now()) else { return };
        totals.answer_rests += 1;
        drop(totals);
        thread::sleep(rest);
        self.connections.iter_mut().for_each(|connection| connection.since += rest);
    }

    fn accept(&mut self) {
        for _ in 0..MOST {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    if self.connections.len() >= MOST {
                        self.connections.remove(0);
                    }
                    self.connections.push(Connection { stream, since: Instant::now(), asked: Vec::new(), reply: None });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Either no descriptor is left, and closing the oldest connection may free one, or the client has already gone.
                Err(_) => {
                    if !self.connections.is_empty() {
                        self.connections.remove(0);
                    }
                    self.respite = Some(Instant::now() + RESPITE);
                    return;
                }
            }
        }
    }

    /// Continues with a connection; returns whether to keep it.
    fn serve(&mut self, connection: &mut Connection) -> io::Result<bool> {
        if connection.reply.is_none() {
            let mut bytes = [0; 2_048];
            let most = bytes.len().min(LARGEST + 1 - connection.asked.len());
            match connection.stream.read(&mut bytes[..most]) {
                Ok(0) => return Ok(false),
                Ok(length) => connection.asked.extend_from_slice(&bytes[..length]),
                Err(error) if is_to_be_tried_again(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
            let Reading::Whole(asked) = request::read(&connection.asked, &self.hosts) else { return Ok(true) };
            connection.asked = Vec::new();
            let (answer, with_body) = self.answer(asked);
            let end = if with_body { answer.bytes.len() } else { answer.head };
            connection.reply = Some(Reply { answer, end, sent: 0 });
        }
        let Some(Reply { answer, end, sent }) = &mut connection.reply else { return Ok(false) };
        while sent < end {
            match connection.stream.write(&answer.bytes[*sent..*end]) {
                Ok(0) => return Ok(false),
                Ok(length) => *sent += length,
                Err(error) if is_to_be_tried_again(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        connection.stream.shutdown(Shutdown::Write)?;
        Ok(false)
    }

    fn answer(&mut self, asked: Result<Request, Refusal>) -> (Answer, bool) {
        match asked {
            Ok(Request::Metrics(format, body)) => (self.metrics(format), body),
            Ok(Request::Health(body)) => {
                let is_healthy = self.shared.totals().is_healthy();
                let status = if is_healthy { "200 OK" } else { "503 Service Unavailable" };
                let (status, kind) = Answer::plain(status);
                (
                    Answer::new(
                        status,
                        kind,
                        if is_healthy { b"healthy\n" } else { b"the last window could not be measured\n" },
                    ),
                    body,
                )
            }
            Ok(Request::Root(body)) => (Answer::new("200 OK", "text/html; charset=utf-8", ROOT.as_bytes()), body),
            Err(refusal) => {
                let (status, kind) = Answer::plain(refusal.status());
                let why: &[u8] = match refusal {
                    Refusal::Host => b"this server does not answer to that host name; allow it with --allow-host\n",
                    _ => b"becalm watch serves /, /metrics and /healthz; use GET\n",
                };
                (Answer::new(status, kind, why), true)
            }
        }
    }

    fn metrics(&mut self, format: Format) -> Answer {
        let fresh = if self.allowance.is_scarce() { STALE } else { FRESH };
        let place = &mut self.written[format as usize];
        if let Some((_, answer)) = place.as_ref().filter(|(written, _)| written.elapsed() < fresh) {
            return answer.clone();
        }
        let kind = match format {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        };
        let (usage, elapsed) = (Usage::now(), self.shared.elapsed());
        let families = self.shared.totals().families(&usage, elapsed);
        let body = match format {
            Format::Protobuf => protobuf::delimited(&families),
            Format::OpenMetrics | Format::Prometheus => exposition::text(&families, format).into_bytes(),
        };
        let answer = Answer::new("200 OK", kind, &body);
        *place = Some((Instant::now(), answer.clone()));
        answer
    }
}

fn is_to_be_tried_again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::program::allow_descriptors;
    use becalm_units::Share;
    use std::net::SocketAddr;

    use crate::totals::Miss;

    fn started_with(totals: Totals, wait: Wait) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let hosts = Hosts::new(address.ip(), "", &[]);
        Server::start_waiting(listener, Arc::new(Shared::new(totals)), hosts, wait).unwrap();
        address
    }

    fn started() -> SocketAddr {
        started_with(Totals::new(Share::from_per_mille(1)), wait_ready)
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A thousand simultaneous connections that have sent this.
    fn thousand(address: SocketAddr, request: &[u8]) -> Vec<TcpStream> {
        // This process has both ends of each connection that the server keeps.
        assert!(allow_descriptors(4_096) >= 2_048);
        let connect = |_| {
            let mut stream = TcpStream::connect(address).unwrap();
            // It may already have been replaced by a newer one.
            let _ = stream.write_all(request);
            stream
        };
        (0..1_000).map(connect).collect()
    }

    #[test]
    fn it_answers_whoever_else_is_slow_or_many() {
        let address = started();
        let before = Usage::now().resident_bytes;
        // Far more than the limit: some have sent half a request, others a complete one and do not read the response.
        let asked: [&[u8]; 3] = [b"GET /metrics HTT", b"GET /metrics HTTP/1.1\r\n\r\n", &[b'x'; LARGEST - 1]];
        for request in asked {
            let all = thousand(address, request);
            let answer = ask(address, "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n");
            assert!(
                answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text")
                    && answer.ends_with("# EOF\n")
            );
            drop(all);
        }
        assert!(Usage::now().resident_bytes < before + (4 << 20));
    }

    #[test]
    fn a_thousand_that_ask_at_once_are_answered_but_for_those_who_gave_way() {
        let address = started();
        let all = thousand(address, b"GET /healthz HTTP/1.1\r\n\r\n");
        let is_answered = |mut stream: TcpStream| {
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            !answer.is_empty()
        };
        let answered = all.into_iter().map(is_answered).filter(|answered| *answered).count();
        assert!(answered >= 500, "{answered}");
    }

    #[test]
    fn it_goes_on_where_the_kernel_did_not_let_it_wait() {
        static REFUSALS: AtomicI64 = AtomicI64::new(0);
        let address = started_with(Totals::new(Share::from_per_mille(1)), |fds, timeout| {
            if REFUSALS.fetch_add(1, Ordering::Relaxed) < 3 {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            wait_ready(fds, timeout)
        });
        assert!(ask(address, "GET /healthz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 OK"));
        assert!(REFUSALS.load(Ordering::Relaxed) > 3);
    }

    #[test]
    fn a_failed_window_is_told_to_who_asks_for_health_and_metrics_are_served() {
        let mut totals = Totals::new(Share::from_per_mille(1));
        totals.miss(Miss::Failed);
        let address = started_with(totals, wait_ready);
        assert!(ask(address, "GET /healthz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
        assert!(ask(address, "GET /metrics HTTP/1.1\r\n\r\n").contains("\nbecalm_healthy 0\n"));
    }

    #[test]
    fn what_is_asked_wrongly_is_refused() {
        let address = started();
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(LARGEST));
        for (request, status) in [
            ("GET /../etc/passwd HTTP/1.1\r\n\r\n", "404 "),
            ("DELETE /metrics HTTP/1.1\r\n\r\n", "405 "),
            ("\u{1}\u{2}\r\n\r\n", "400 "),
            ("GET /healthz HTTP/1.0\r\n\r\n", "200 OK"),
        ] {
            assert!(ask(address, request).starts_with(&format!("HTTP/1.1 {status}")), "{request}");
        }
        let root = ask(address, "GET / HTTP/1.1\r\n\r\n");
        assert!(root.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"), "{root}");
        assert!(["/metrics", "/healthz"].iter().all(|path| root.contains(&format!("href=\"{path}\""))), "{root}");
        let head = ask(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length") && head.ends_with("\r\n\r\n"));
        let mut stream = TcpStream::connect(address).unwrap();
        // It may be refused before it was sent completely.
        let _ = stream.write_all(long.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "));
    }
}
