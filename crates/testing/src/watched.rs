//! A `becalm watch` under test, and its responses.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use crate::program::{Ended, Running, becalm};
use crate::{PATIENCE, wait_until};

/// An unused address of this machine.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("it has an address")
}

/// A server's response to these bytes, as far as it arrives.
pub fn ask(address: SocketAddr, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The response for that path.
pub fn get(address: SocketAddr, what: &str) -> Option<String> {
    ask(address, &format!("GET {what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
}

/// The value of a series, given by name and labels, in a text of metrics.
pub fn value_in(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

/// The current value of a series.
pub fn value(address: SocketAddr, series: &str) -> Option<f64> {
    value_in(&get(address, "/metrics")?, series)
}

/// A watch, with its address.
pub struct WatchProcess {
    /// The program.
    pub running: Running,
    address: SocketAddr,
}

impl WatchProcess {
    /// Starts one that measures continuously, with little work per window.
    pub fn start(more: &[&str]) -> Self {
        Self::with_options(
            &[&["--interval", "100ms", "--busy", "100%", "--window", "20ms", "--budget", "100%"], more].concat(),
        )
    }

    /// Starts one with these options.
    pub fn with_options(options: &[&str]) -> Self {
        Self::with_start(options, Running::start)
    }

    /// The same, with another way to start it.
    pub fn with_start(options: &[&str], start: impl FnOnce(Command) -> Running) -> Self {
        let address = free_address();
        let listen = address.to_string();
        Self { running: start(becalm(&[&["watch", "--listen", &listen], options].concat())), address }
    }

    /// The current value of a series; 0 if there is none.
    pub fn value(&self, series: &str) -> f64 {
        value(self.address, series).unwrap_or(0.0)
    }

    /// Its address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// The number of windows with this result.
    pub fn windows(&self, result: &str) -> f64 {
        self.value(&format!(r#"becalm_windows_total{{result="{result}"}}"#))
    }

    /// Waits until `windows` further windows are measured.
    #[track_caller]
    pub fn goes_on(&mut self, windows: u32) {
        let before = self.windows("measured");
        self.until("windows go on", |watched| watched.windows("measured") >= before + f64::from(windows));
        assert!(get(self.address, "/healthz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")));
    }

    /// Waits for a condition on it.
    #[track_caller]
    pub fn until(&mut self, what: &str, happened: impl Fn(&Self) -> bool) {
        wait_until(what, || {
            let has_ended = self.running.has_ended();
            let happened = happened(self);
            assert!(happened || !has_ended, "it ended before {what}: {:#?}", self.running.take_end());
            happened
        });
    }

    /// Ends it regularly, and checks that it leaves nothing behind.
    #[track_caller]
    pub fn end(self) -> Ended {
        self.running.signal("TERM");
        let ended = self.running.end();
        ended.expect(0, &["watched for"]);
        ended
    }
}
