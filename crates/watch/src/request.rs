//! A scraper's request in HTTP/1.0 or 1.1. Paths never become file names: only three are known.

use crate::host::Hosts;

/// The most bytes of a request's head.
pub const LARGEST: usize = 8 << 10;

/// The format of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `OpenMetrics` 1.0 text.
    OpenMetrics,
    /// Prometheus text format, version 0.0.4.
    Prometheus,
    /// Length-delimited protobuf messages; the only format with native histograms.
    Protobuf,
}

impl Format {
    /// The response format for an `Accept` field: the first of the most preferred ones. If none is known, the older text format, which all scrapers
    /// read.
    fn accepted(list: &str) -> Self {
        let mut best = (0.0, Self::Prometheus);
        for item in list.split(',') {
            let mut words = item.split(';').map(|word| word.trim().to_ascii_lowercase());
            let name = words.next().unwrap_or_default();
            let rest: Vec<String> = words.map(|word| word.replace(' ', "")).collect();
            let says = |word: &str| rest.iter().any(|said| said == word);
            let quality = rest.iter().find_map(|word| word.strip_prefix("q=")?.parse::<f64>().ok()).unwrap_or(1.0);
            let format = match name.as_str() {
                "application/openmetrics-text" => Self::OpenMetrics,
                "application/vnd.google.protobuf"
                    if says("proto=io.prometheus.client.metricfamily") && says("encoding=delimited") =>
                {
                    Self::Protobuf
                }
                "text/plain" => Self::Prometheus,
                _ => continue,
            };
            if quality > best.0 {
                best = (quality, format);
            }
        }
        best.1
    }
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// `/metrics`, and whether the body is wanted (`GET`, not `HEAD`).
    Metrics(Format, bool),
    /// `/healthz`.
    Health(bool),
    /// `/`.
    Root(bool),
}

/// The reason for refusing a request, as an HTTP status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is not HTTP.
    Malformed,
    /// Unknown path.
    NotFound,
    /// A method other than GET or HEAD.
    Method,
    /// It is for another host.
    Host,
    /// It is too long.
    TooLarge,
}

impl Refusal {
    /// The status code and its text.
    pub const fn status(self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::Method => "405 Method Not Allowed",
            Self::Host => "421 Misdirected Request",
            Self::TooLarge => "431 Request Header Fields Too Large",
        }
    }
}

/// The state of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Its head is incomplete.
    More,
    /// It is complete.
    Whole(Result<Request, Refusal>),
}

/// Parses the bytes received so far, for a server with these host names.
pub fn read(bytes: &[u8], hosts: &Hosts) -> Reading {
    let Some(end) = end_of_head(bytes) else {
        return if bytes.len() >= LARGEST { Reading::Whole(Err(Refusal::TooLarge)) } else { Reading::More };
    };
    Reading::Whole(if end > LARGEST { Err(Refusal::TooLarge) } else { head(&bytes[..end], hosts) })
}

/// The end of the head: after its last line, before the empty one.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut begin = 0;
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        let line = &bytes[begin..at];
        if begin > 0 && (line.is_empty() || line == b"\r") {
            return Some(begin);
        }
        begin = at + 1;
    }
    None
}

fn head(bytes: &[u8], hosts: &Hosts) -> Result<Request, Refusal> {
    let text = str::from_utf8(bytes).map_err(|_| Refusal::Malformed)?;
    let mut lines = text.lines();
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else { return Err(Refusal::Malformed) };
    if !matches!(version, "HTTP/1.0" | "HTTP/1.1") || !target.starts_with('/') || method.is_empty() {
        return Err(Refusal::Malformed);
    }
    let mut format = Format::Prometheus;
    // Programs other than browsers may omit it.
    let mut host = None;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(Refusal::Malformed)?;
        // Some parsers treat `Host :` as `Host`, others do not (RFC 9112, 5.1).
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Refusal::Malformed);
        }
        if name.eq_ignore_ascii_case("accept") {
            format = Format::accepted(value);
        } else if name.eq_ignore_ascii_case("host") && host.replace(value).is_some() {
            return Err(Refusal::Malformed);
        }
    }
    if host.is_some_and(|host| !hosts.allow(host)) {
        return Err(Refusal::Host);
    }
    let body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return Err(Refusal::Method),
    };
    match target.split('?').next() {
        Some("/metrics") => Ok(Request::Metrics(format, body)),
        Some("/healthz") => Ok(Request::Health(body)),
        Some("/") => Ok(Request::Root(body)),
        _ => Err(Refusal::NotFound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scrapers_are_understood() {
        let hosts = Hosts::new([127, 0, 0, 1].into(), "x", &[]);
        let get = |head: &str| read(format!("{head}\r\n\r\n").as_bytes(), &hosts);
        let metrics = |format, body| Reading::Whole(Ok(Request::Metrics(format, body)));
        assert_eq!(get("GET /metrics HTTP/1.1\r\nHost: x"), metrics(Format::Prometheus, true));
        assert_eq!(
            get("GET /metrics?a=b HTTP/1.0\r\naccept: application/openmetrics-text;version=1.0.0"),
            metrics(Format::OpenMetrics, true)
        );
        assert_eq!(get("HEAD /healthz HTTP/1.1"), Reading::Whole(Ok(Request::Health(false))));
        assert_eq!(get("GET / HTTP/1.1"), Reading::Whole(Ok(Request::Root(true))));
        for (head, refusal) in [
            ("GET /etc/passwd HTTP/1.1", Refusal::NotFound),
            ("GET /metrics/../etc HTTP/1.1", Refusal::NotFound),
            ("POST /metrics HTTP/1.1", Refusal::Method),
            ("GET /metrics", Refusal::Malformed),
            ("GET /metrics HTTP/2.0", Refusal::Malformed),
            ("GET metrics HTTP/1.1", Refusal::Malformed),
            ("GET /metrics HTTP/1.1\r\nno field", Refusal::Malformed),
            ("GET /metrics HTTP/1.1\r\nHost : y", Refusal::Malformed),
            ("GET /metrics HTTP/1.1\r\nHost: y", Refusal::Host),
            ("GET /healthz HTTP/1.1\r\nhost: x\r\nHOST: y", Refusal::Malformed),
        ] {
            assert_eq!(get(head), Reading::Whole(Err(refusal)), "{head}");
        }
    }

    #[test]
    fn what_is_preferred_most_is_served() {
        // Requests of Prometheus 2.42, with and without native histograms, and of Prometheus 3.
        let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        let text = "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,\
            text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (list, format) in [
            (format!("{protobuf},{text}"), Format::Protobuf),
            (text.to_owned(), Format::OpenMetrics),
            (
                format!("{protobuf};q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5"),
                Format::Protobuf,
            ),
            (format!("text/plain, {protobuf}; q=0.9"), Format::Prometheus),
            (format!("{protobuf};q=0"), Format::Prometheus),
            // Messages of another type, or not delimited.
            ("application/vnd.google.protobuf;proto=other;encoding=delimited".to_owned(), Format::Prometheus),
            (protobuf.replace("delimited", "text"), Format::Prometheus),
            ("text/html,*/*;q=0.8".to_owned(), Format::Prometheus),
            (";;,q=,;q=x,text/plain;q=nan".to_owned(), Format::Prometheus),
        ] {
            assert_eq!(Format::accepted(&list), format, "{list}");
        }
    }

    proptest! {
        #[test]
        fn how_the_bytes_come_makes_no_difference(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200)) {
            let hosts = Hosts::all();
            let whole = read(&bytes, &hosts);
            // Once complete it stays so, whatever follows.
            if let Some(first) = (0..=bytes.len()).find(|length| read(&bytes[..*length], &hosts) != Reading::More) {
                prop_assert_eq!(read(&bytes[..first], &hosts), whole);
            }
        }

        #[test]
        fn no_request_is_larger_than_the_bound(bytes in prop::collection::vec(any::<u8>(), LARGEST..LARGEST + 9)) {
            prop_assert_ne!(read(&bytes, &Hosts::all()), Reading::More);
        }
    }
}
