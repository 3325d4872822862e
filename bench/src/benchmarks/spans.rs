//! A million spans, explained: time and memory of `becalm explain` by the format of their file; and the cost of a span to a program in C.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use becalm_fixtures::observed::{ORIGIN, UPTIME, write_observed};
use becalm_linux::sched;
use becalm_units::protobuf::Message;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::programs;

const SPANS: u64 = 1_000_000;
/// The recorded time of the fixture that all spans share, in nanoseconds.
const RECORDED: u64 = 500_000_000;

/// The promised time and memory for them.
const SECONDS: f64 = 5.0;
const MEGABYTES: f64 = 500.0;
/// The promised cost of a span to a program in C, in nanoseconds.
const SPAN_NS: f64 = 100.0;

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Spans: a million, explained, and what one costs", effort);
    if let Err(error) = explained(&mut claims, effort) {
        claims.fail("a million spans", &error.to_string());
    }
    if let Err(error) = written(&mut claims) {
        claims.fail("a span of a program in C", &error.to_string());
    }
    claims.end()
}

fn explained(claims: &mut Claims, effort: Effort) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    write_observed(folder.path());
    let count = effort.share(SPANS);
    let formats = [
        ("csv", table(count).into_bytes()),
        ("json of Chrome", trace(count).into_bytes()),
        ("slices of Perfetto", slices(count)),
    ];
    for (name, bytes) in formats {
        let file = folder.path().join("spans");
        fs::write(&file, bytes)?;
        let mut command = Command::new(programs::becalm());
        command.arg("explain").arg(folder.path().join("observed")).arg("--spans").arg(&file).args(["--by", "name"]);
        let cost = programs::cost(&mut command, sched::allowed_cpus().map_err(io::Error::other)?.iter().last())?;
        if !cost.success {
            return Err(io::Error::other(format!("becalm explain fails for {name}")));
        }
        let what = format!("{count} spans in {name}");
        claims.at_most(&what, Figure::seconds(cost.cpu.as_secs_f64()), SECONDS);
        claims.at_most(&format!("{what}: memory"), Figure::megabytes(cost.peak_bytes), MEGABYTES);
    }
    Ok(())
}

/// Start and length of each span: they follow each other.
fn spans(count: u64) -> impl Iterator<Item = (u64, u64)> {
    let length = RECORDED / count;
    (0..count).map(move |number| (number * length, length - 1))
}

fn table(count: u64) -> String {
    let mut text = "# clock: monotonic\ntid,start,duration,name\n".to_owned();
    for (number, (start, length)) in spans(count).enumerate() {
        let _ = writeln!(text, "4242,{},{length},s{}", UPTIME + start, number % 5);
    }
    text
}

fn trace(count: u64) -> String {
    let mut text = r#"{"baseTimeNanoseconds":0,"traceEvents":["#.to_owned();
    let micros = |ns: u64| format!("{}.{:03}", ns / 1_000, ns % 1_000);
    for (number, (start, length)) in spans(count).enumerate() {
        let (comma, name) = (if number == 0 { "" } else { "," }, number % 5);
        let (ts, dur) = (micros(ORIGIN + start), micros(length));
        let event = format!(r#"{comma}{{"ph":"X","pid":4242,"tid":4242,"ts":{ts},"dur":{dur},"name":"s{name}"}}"#);
        text += &event;
    }
    text + "]}"
}

/// A trace of Perfetto. Each packet has its time, track and name, like those of its library for C++.
fn slices(count: u64) -> Vec<u8> {
    const TRACK: u64 = 9;
    const MONOTONIC: u64 = 3;
    let mut trace = Message::default();
    trace.message(1, |packet| {
        packet.message(6, |snapshot| {
            snapshot.number(2, MONOTONIC);
        });
    });
    trace.message(1, |packet| {
        packet.message(60, |track| {
            track.number(1, TRACK).message(4, |thread| {
                thread.number(1, 4242).number(2, 4242);
            });
        });
    });
    for (number, (start, length)) in spans(count).enumerate() {
        let name = format!("s{}", number % 5);
        for (kind, time) in [(1, start), (2, start + length)] {
            trace.message(1, |packet| {
                packet.number(8, UPTIME + time).number(10, 1).message(11, |event| {
                    event.number(9, kind).number(11, TRACK);
                    if kind == 1 {
                        event.bytes(23, name.as_bytes());
                    }
                });
            });
        }
    }
    trace.into_bytes()
}

/// A program in C writes spans, and prints the time of each, writing included.
fn written(claims: &mut Claims) -> io::Result<()> {
    const PROGRAM: &str = r#"#include "becalm_spans.h"
int main(void) {
    double least = 1e9;
    for (int round = 0; round < 7; round++) {
        uint64_t start = becalm_span_begin();
        for (int i = 0; i < 1000000; i++) becalm_span_end("cost", becalm_span_begin());
        double each = (double)(becalm_span_begin() - start) / 1e6;
        if (each < least) least = each;
    }
    printf("%.2f\n", least);
    return 0;
}
"#;
    let folder = tempfile::tempdir()?;
    let (source, program) = (folder.path().join("spans.c"), folder.path().join("spans"));
    fs::write(&source, PROGRAM)?;
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/explain/include");
    let compiled =
        Command::new("cc").args(["-O2", "-pthread", "-I"]).arg(header).arg("-o").arg(&program).arg(&source).status()?;
    if !compiled.success() {
        return Err(io::Error::other("the header cannot be compiled"));
    }
    let cpu = sched::allowed_cpus().map_err(io::Error::other)?.iter().last().unwrap_or_default();
    let ended = programs::output(Command::new(&program).current_dir(folder.path()), cpu)?;
    let text = String::from_utf8_lossy(&ended.stdout).trim().to_owned();
    let ns = text.parse().map_err(|_| io::Error::other(format!("the program printed '{text}'")))?;
    claims.at_most("a span of a program in C, with its file", Figure::ns(ns), SPAN_NS);
    Ok(())
}
