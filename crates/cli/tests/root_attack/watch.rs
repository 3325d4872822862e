//! A running `becalm watch`: flooded, deafened, lied to. It goes on observing, and says and counts what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::sched::pin_current_thread;
use becalm_testing::attack::{Tries, attack};
use becalm_testing::program::{Ended, INSTANCES, Running, becalm, full_pipe, instances_of, path, run_within};
use becalm_testing::wait_until;
use becalm_testing::watched::{WatchProcess, ask, get, value_in};
use becalm_units::CpuId;

use crate::stuck::state;
use crate::trace::{WAYS, bench};

/// Longer than anything of this takes, and much shorter than for ever.
const SOON: Duration = Duration::from_secs(15);

/// One that only traces: the first window is due after minutes.
const TRACING: [&str; 6] = ["--interval", "100ms", "--budget", "100%", "--window", "60s"];

/// A text of metrics. A connection may have given way to newer ones.
#[track_caller]
fn metrics(address: SocketAddr, accept: &str) -> String {
    let request = format!("GET /metrics HTTP/1.1\r\nAccept: {accept}\r\n\r\n");
    let mut text = None;
    wait_until("metrics are answered", || {
        text = ask(address, &request).filter(|text| text.starts_with("HTTP/1.1 200 ") && text.contains("becalm_build"));
        text.is_some()
    });
    text.unwrap()
}

/// The sum of all series of a family.
fn sum_of(text: &str, family: &str) -> f64 {
    series_of(text, family).values().sum()
}

/// The series of a family, by their labels.
fn series_of<'a>(text: &'a str, family: &str) -> BTreeMap<&'a str, f64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(family)?.strip_prefix('{')?.rsplit_once("} "));
    lines.map(|(labels, value)| (labels, value.parse().unwrap())).collect()
}

/// For how long CPUs were observed, and how long it has run.
fn observed(text: &str) -> (f64, f64) {
    let observed = ["becalm_traced_seconds_total", "becalm_watched_seconds_total"].map(|family| sum_of(text, family));
    (observed.iter().sum(), value_in(text, "becalm_up_seconds").unwrap())
}

/// Traced CPU seconds grow from now on.
#[track_caller]
fn traces_on(watched: &mut WatchProcess) {
    let seconds =
        |watched: &WatchProcess| sum_of(&metrics(watched.address(), "text/plain"), "becalm_traced_seconds_total");
    let before = seconds(watched);
    watched.until("CPUs are traced", |watched| seconds(watched) > before);
}

/// Asks all at once, again and again, and tells what was answered: how many answers, and when the texts of metrics were written.
///
/// Each request takes the server almost a millisecond, for a long list of accepted formats: with many short ones the packets would
/// be most of the work, and the trace would rest for their events.
fn flood(address: SocketAddr, number: usize, connections: usize, ended: &AtomicBool) -> (usize, BTreeSet<String>) {
    const REQUESTS: [&str; 5] = [
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n",
        "GET /healthz HTTP/1.1\r\nConnection: keep-alive\r\n",
        "GET /metrics HTTP/1.0\r\n",
        "GET /unknown/%2e%2e/path?x=1 HTTP/1.1\r\nConnection: close\r\n",
        // This one waits for more.
        "GET /metrics HTTP/1.1\r\nX-",
    ];
    let list = format!("Accept: {}\r\n\r\n", ",".repeat(7_900));
    let (mut answers, mut texts) = (0, BTreeSet::new());
    while !ended.load(Ordering::Relaxed) {
        let mut streams = Vec::new();
        for at in 0..connections {
            let Ok(mut stream) = TcpStream::connect(address) else { continue };
            let request = REQUESTS[(at + number) % REQUESTS.len()];
            let is_whole = request.ends_with('\n');
            let list = if is_whole { &list } else { "" };
            if stream.write_all(format!("{request}{list}").as_bytes()).is_ok() {
                streams.push((stream, is_whole));
            }
        }
        for (stream, _) in streams.iter_mut().filter(|(_, is_whole)| *is_whole) {
            let mut text = String::new();
            if stream.read_to_string(&mut text).is_ok() && !text.is_empty() {
                answers += 1;
                let written = text.lines().find(|line| line.starts_with("becalm_up_seconds "));
                texts.extend(written.map(str::to_owned));
            }
        }
    }
    (answers, texts)
}

#[test]
fn floods_of_requests() {
    let Some(bench) = bench() else { return };
    attack("requests to watch without pause: it observes as before", Tries { all: 6, few: 1 }, |number, _| {
        // As many as there is room for, or far more.
        let connections = if number % 2 == 0 { 24 } else { 200 };
        let mut watched = WatchProcess::with_options(&["--interval", "100ms", "--budget", "10%", "--window", "60s"]);
        let address = watched.address();
        traces_on(&mut watched);
        let (text, openmetrics) = ("text/plain", "application/openmetrics-text");
        let first = metrics(address, text);
        thread::sleep(Duration::from_secs(3));
        let before = metrics(address, text);
        let ended = AtomicBool::new(false);
        let ask = |number| flood(address, number, connections, &ended);
        let (during, answered) = thread::scope(|scope| {
            let floods: Vec<_> = (0..2).map(|number| scope.spawn(move || ask(number))).collect();
            thread::sleep(Duration::from_secs(5));
            ended.store(true, Ordering::Relaxed);
            // Nothing has asked for this format yet, so it is written now.
            let during = metrics(address, openmetrics);
            (during, floods.into_iter().map(|flood| flood.join().unwrap()).collect::<Vec<_>>())
        });
        let rate = |from: &str, to: &str| {
            let ((from, begin), (to, end)) = (observed(from), observed(to));
            (to - from) / (end - begin)
        };
        let rates = (rate(&first, &before), rate(&before, &during));
        assert!(rates.1 > 0.5 * rates.0, "CPU seconds observed per second before and during it: {rates:?}");
        // It was more than is answered: clients waited, and got what others had got.
        let rests = |text: &str| value_in(text, "becalm_answer_rests_total").unwrap();
        assert!(rests(&during) > rests(&before));
        let answers = |text: &str| value_in(text, r#"becalm_own_part_seconds_total{part="answers"}"#).unwrap();
        let allowed = 0.5 + 0.1 * (observed(&during).1 - observed(&before).1);
        assert!(answers(&during) - answers(&before) < allowed + 0.2, "{} of {allowed}", answers(&during));
        for (answers, texts) in &answered {
            assert!(*answers > 50 && texts.len() <= 4, "{answers} answers: {texts:?}");
        }
        watched.end();
        bench.is_untouched("after its end", &[]);
    });
}

/// Waits for an end that a full pipe must not keep off.
#[track_caller]
fn ends_soon(running: Running, code: i32) {
    let pid = running.pid().to_string();
    let begin = Instant::now();
    while state(&pid) != 'Z' {
        assert!(begin.elapsed() < SOON, "it does not end");
        thread::sleep(Duration::from_millis(10));
    }
    running.end().expect(code, &[]);
}

#[test]
fn full_pipes() {
    let Some(bench) = bench() else { return };
    attack("watch whose messages nothing reads: it observes, and ends", Tries { all: 10, few: 2 }, |number, _| {
        let (reader, writer) = full_pipe();
        let on_pipe = |command| Running::start_on(command, &writer);
        if number % 2 == 1 {
            let file = bench.place().join("file");
            File::create(&file).unwrap();
            let watched = WatchProcess::with_start(&["-o", path(&file.join("ring"))], on_pipe);
            ends_soon(watched.running, 1);
            fs::remove_file(&file).unwrap();
        } else {
            let mut watched = WatchProcess::with_start(&TRACING, on_pipe);
            traces_on(&mut watched);
            let dropped = |watched: &WatchProcess| watched.value("becalm_dropped_messages_total");
            // Each has a message; soon no more may wait.
            watched.until("messages are dropped", |watched| {
                watched.running.signal("HUP");
                dropped(watched) > 0.0
            });
            let before = dropped(&watched);
            for instance in instances_of(watched.pid()) {
                fs::write(Path::new(INSTANCES).join(instance).join("tracing_on"), "0").unwrap();
            }
            watched.until("the change is noticed", |watched| watched.value("becalm_trace_disturbed_total") > 0.0);
            assert!(dropped(&watched) > before);
            traces_on(&mut watched);
            assert!(get(watched.address(), "/healthz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")));
            watched.running.signal("TERM");
            ends_soon(watched.running, 0);
        }
        drop(reader);
        bench.is_untouched("after its end", &[]);
    });
}

/// The time by source.
const FAMILY: &str = "becalm_source_seconds_total";

/// Adds up how far each series has grown since it was first seen, as Prometheus does: a smaller value means that it started from 0.
#[derive(Default)]
struct Reader {
    last: BTreeMap<String, f64>,
    increase: f64,
}

impl Reader {
    fn read(&mut self, text: &str) {
        for (labels, now) in series_of(text, FAMILY) {
            if let Some(before) = self.last.insert(labels.to_owned(), now) {
                self.increase += if now < before { now } else { now - before };
            }
        }
    }
}

/// Wakes up and renames itself until it is enough.
fn rename(enough: &AtomicBool, renamed: &AtomicUsize) {
    pin_current_thread(CpuId::new(0)).unwrap();
    for number in 0..1_000_000 {
        if enough.load(Ordering::Relaxed) {
            break;
        }
        fs::write("/proc/thread-self/comm", format!("renamed-{number}")).unwrap();
        renamed.store(number, Ordering::Relaxed);
        thread::sleep(Duration::from_micros(50));
    }
}

#[test]
fn names_without_end() {
    let Some(bench) = bench() else { return };
    const NAMES: usize = 10_000;
    attack("a thread with 10,000 names: few series, and no time is lost", Tries { all: 5, few: 1 }, |_, _| {
        let mut watched = WatchProcess::start(&["--cpus", "0"]);
        watched.goes_on(1);
        let (address, mut reader, mut shown) = (watched.address(), Reader::default(), BTreeSet::new());
        let first = metrics(address, "text/plain");
        let mut read = |reader: &mut Reader| {
            let text = metrics(address, "text/plain");
            reader.read(&text);
            let series = series_of(&text, FAMILY);
            assert!(series.len() <= 21, "{series:?}");
            shown.extend(series.into_keys().filter(|labels| labels.contains("renamed-")).map(str::to_owned));
            text
        };
        reader.read(&first);
        let resident = |text: &str| value_in(text, "becalm_own_resident_bytes").unwrap();
        let (enough, renamed, mut early) = (AtomicBool::new(false), AtomicUsize::new(0), None);
        let windows = |text: &str| value_in(text, r#"becalm_windows_total{result="measured"}"#).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| rename(&enough, &renamed));
            // Each window sees one of its names, and there are more than series.
            wait_until("many names were seen", || {
                let (text, names) = (read(&mut reader), renamed.load(Ordering::Relaxed));
                if names > NAMES / 4 {
                    early.get_or_insert(resident(&text));
                }
                names >= NAMES && windows(&text) >= windows(&first) + 40.0
            });
            enough.store(true, Ordering::Relaxed);
        });
        // A new series starts at 0, and the server renders metrics again after half a second.
        let mut last = String::new();
        wait_until("all that was lost on the CPU is in the series", || {
            last = read(&mut reader);
            let noise = sum_of(&last, "becalm_noise_seconds_total");
            (sum_of(&first, FAMILY) + reader.increase - noise).abs() < 1e-6
        });
        let others = |text: &str| series_of(text, FAMILY).get(r#"kind="other",source="other""#).copied();
        assert!(others(&last) > others(&first).or(Some(0.0)) && !shown.is_empty(), "{shown:?}: {last}");
        let (early, late) = (early.unwrap(), resident(&last));
        assert!(late < early + f64::from(8 << 20), "{early} bytes of memory, and {late} in the end");
        watched.end();
        bench.is_untouched("after its end", &[]);
    });
}

/// Header lines that may ask for metrics; PORT is that of the watch.
const ALLOWED: [&str; 8] = [
    "",
    "Host: localhost\r\n",
    "HOST:LocalHost.:PORT\r\n",
    "host:\t127.0.0.1:PORT \r\n",
    "Host: [::1]:PORT\r\n",
    "Host: [::ffff:127.0.0.1]\r\n",
    "Host: METRICS.example.ORG\r\n",
    "Host: metrics.example.org.:PORT\r\n",
];

/// Hosts for which it does not answer.
const FOREIGN: [&str; 22] = [
    "evil.org",
    "EVIL.ORG",
    "evil.org.",
    "evil.org:PORT",
    "localhost.evil.org",
    "127.0.0.1.evil.org:PORT",
    "127.0.0.1:PORT.evil.org",
    "[::1].evil.org",
    "[::1]@evil.org",
    "[evil.org]:PORT",
    "localhost@evil.org",
    "localhost:PORT@evil.org",
    "localhost, evil.org",
    "localhost/evil.org",
    "http://localhost",
    "localhost..",
    "*",
    "",
    ":",
    ".",
    "[::1",
    "x.metrics.example.org",
];

/// Header lines that another parser could read as another host.
const MALFORMED: [&str; 7] = [
    "Host: localhost\r\nHost: evil.org\r\n",
    "Host: evil.org\r\nhOST: localhost\r\n",
    "Host: localhost\r\nHost: localhost\r\n",
    "Host : evil.org\r\n",
    "Host\t: evil.org\r\n",
    " Host: evil.org\r\n",
    "Host\r\n",
];

#[test]
fn names_of_hosts() {
    let Some(bench) = bench() else { return };
    let watched = WatchProcess::with_options(&["--no-trace", "--allow-host", "Metrics.example.org."]);
    let address = watched.address();
    wait_until("it answers", || get(address, "/healthz").is_some());
    let foreign = FOREIGN.map(|host| (format!("Host: {host}\r\n"), "421 "));
    let given = |lines: &[&str], status| lines.iter().map(|lines| ((*lines).to_owned(), status)).collect::<Vec<_>>();
    let rows = [given(&ALLOWED, "200 "), foreign.into(), given(&MALFORMED, "400 ")].concat();
    let count = rows.len() as u32;
    attack(
        "foreign Host fields in odd spellings: refused, with nothing told",
        Tries { all: count, few: count },
        |number, _| {
            let (lines, status) = &rows[number as usize];
            let lines = lines.replace("PORT", &address.port().to_string());
            let request = format!("GET /metrics HTTP/1.1\r\n{lines}Connection: close\r\n\r\n");
            let answer = ask(address, &request).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{lines:?}: {answer}");
            assert_eq!(answer.contains("becalm_"), *status == "200 ", "{lines:?}: {answer}");
        },
    );
    watched.end();
    bench.is_untouched("after its end", &[]);
}

#[test]
fn configurations_that_are_no_files() {
    let Some(bench) = bench() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(at("socket")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    symlink(at("pipe"), at("link")).unwrap();
    symlink(at("link of its own"), at("link of its own")).unwrap();
    let kinds = [
        (at("pipe"), "it is a pipe"),
        (at("link"), "it is a pipe"),
        (at("socket"), "cannot read the configuration"),
        (at("directory"), "directory"),
        (at("link of its own"), "symbolic links"),
        ("/dev/zero".into(), "it is a device"),
        ("/dev/tty".into(), "cannot read the configuration"),
        ("/proc/self/fd".into(), "directory"),
    ];
    let count = kinds.len() as u32;
    attack(
        "a configuration of watch that is no file: refused at once",
        Tries { all: count, few: count },
        |number, _| {
            let (file, why) = &kinds[number as usize];
            let ended = run_within(becalm(&["watch", "--config", path(file)]), SOON).expect("it does not wait");
            ended.expect(1, &["cannot read the configuration", path(file), why]);
            assert_eq!(ended.stderr.lines().count(), 1, "{ended:#?}");
        },
    );
    bench.is_untouched("after all", &[]);
}

/// Names as those of recordings that a watch keeps, with numbers that none of them has.
const OUT_OF_RANGE: [&str; 5] = [
    "1000000000000-before.becalm",
    "18446744073709551614-window.becalm",
    "18446744073709551615-window.becalm",
    "18446744073709551616-alert.becalm",
    "99999999999999999999999999999999999999999-after.becalm",
];

/// Names that are almost like theirs.
const ODD: [&str; 8] = [
    "1-window.becalm",
    "000000000001-window.becalm",
    "-1-window.becalm",
    "+5-window.becalm",
    "00000001-windows.becalm",
    "1e3-window.becalm",
    "\u{ff11}0000001-window.becalm",
    "00000001-window.becalm.becalm",
];

/// Puts something of a kind there.
fn plant(at: &Path, kind: usize, elsewhere: &Path) {
    match kind {
        0 => fs::create_dir(at).and_then(|()| fs::write(at.join("mine"), "mine")).unwrap(),
        1 => fs::write(at, "mine").unwrap(),
        2 => symlink(elsewhere, at).unwrap(),
        _ => assert!(Command::new("mkfifo").arg(at).status().unwrap().success()),
    }
}

/// The type and the content of a planted entry.
fn planted(at: &Path) -> (bool, bool, Option<String>) {
    let about = at.symlink_metadata().unwrap_or_else(|error| panic!("{}: {error}", at.display()));
    let file = if about.is_dir() || about.is_symlink() { at.join("mine") } else { at.to_owned() };
    let text = file.is_file().then(|| fs::read_to_string(&file).unwrap());
    (about.is_dir(), about.is_symlink(), text)
}

#[test]
fn names_in_its_directory() {
    let Some(bench) = bench() else { return };
    attack(
        "names with huge and odd numbers where watch keeps recordings: left alone",
        Tries { all: 20, few: 1 },
        |_, random| {
            let folder = tempfile::tempdir().unwrap();
            let (ring, elsewhere) = (folder.path().join("ring"), folder.path().join("elsewhere"));
            [&ring, &elsewhere].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
            fs::write(elsewhere.join("mine"), "mine").unwrap();
            let (early, late): (Vec<_>, Vec<_>) =
                OUT_OF_RANGE.iter().chain(&ODD).map(|name| ring.join(name)).partition(|_| random.once_in(2));
            let mut known = BTreeMap::new();
            let mut add = |paths: &[PathBuf]| {
                for path in paths {
                    plant(path, random.below(4), &elsewhere);
                    known.insert(path.clone(), planted(path));
                }
            };
            add(&early);
            // The largest number that counts: those after it begin with 1 again.
            plant(&ring.join("999999999999-alert.becalm"), 2, &elsewhere);
            let mut start = |late: &[PathBuf]| {
                let mut watched = WatchProcess::start(&["-o", path(&ring), "--keep", "64KiB"]);
                watched.goes_on(2);
                add(late);
                watched.goes_on(3);
                (watched.value("becalm_store_failures_total"), watched.end())
            };
            let named = |ended: &Ended, paths: &mut dyn Iterator<Item = &PathBuf>| {
                let is_named = |name: &&PathBuf| OUT_OF_RANGE.iter().any(|known| name.ends_with(known));
                let mut paths: Vec<_> = paths.filter(is_named).collect();
                paths.sort();
                let Some(first) = paths.first() else { return };
                let others = match paths.len() {
                    1 => " stay as they are".to_owned(),
                    2 => " and 1 other entry stay as they are".to_owned(),
                    all => format!(" and {} other entries stay as they are", all - 1),
                };
                ended.expect(0, &[&format!("{}{others}", path(first))]);
            };
            let (failures, ended) = start(&late);
            assert_eq!(failures, 0.0);
            named(&ended, &mut early.iter());
            let (failures, ended) = start(&[]);
            assert_eq!(failures, 0.0);
            named(&ended, &mut early.iter().chain(&late));
            for (path, was) in &known {
                assert_eq!(planted(path), *was, "{}", path.display());
            }
            assert!(elsewhere.join("mine").exists());
            let kept = fs::read_dir(&ring)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| !known.contains_key(path));
            let kept: Vec<_> = kept.collect();
            assert!(!kept.is_empty() && kept.iter().all(|path| path.join("runs").is_dir()), "{kept:?}");
            bench.is_untouched("after its end", &[]);
        },
    );
}

#[test]
fn watches_whose_trace_others_change() {
    let Some(bench) = bench() else { return };
    let few = WAYS.len() as u32;
    let mut watched = WatchProcess::with_options(&TRACING);
    traces_on(&mut watched);
    let mut files = Vec::new();
    attack(
        "trace of watch changed by others: named, counted, set up again",
        Tries { all: 3 * few, few },
        |number, _| {
            let (file, change) = WAYS[number as usize % WAYS.len()];
            let told = |watched: &WatchProcess| watched.value("becalm_trace_disturbed_total");
            // After a reload `watch` repeats its messages.
            watched.running.signal("HUP");
            traces_on(&mut watched);
            let before = told(&watched);
            let instances = instances_of(watched.pid());
            assert_eq!(instances.len(), 1, "{instances:?}");
            change(&Path::new(INSTANCES).join(&instances[0]));
            files.push(file);
            watched.until("the change is noticed", |watched| told(watched) > before);
            traces_on(&mut watched);
        },
    );
    let ended = watched.end();
    let said: Vec<_> =
        ended.stderr.lines().filter(|line| line.contains("another program changed becalm's trace")).collect();
    assert_eq!(said.len(), files.len(), "{ended:#?}");
    for (file, said) in files.iter().zip(said) {
        // A reset turns off the tracer first, and the watch may see it half done.
        assert!(said.contains(file) || *file == WAYS[0].0 && said.contains("current_tracer"), "{file}: {said}");
    }
    bench.is_untouched("after its end", &[]);
}
