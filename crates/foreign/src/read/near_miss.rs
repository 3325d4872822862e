//! Describes files that cannot be read, as far as possible, and how becalm can still get their data.

use becalm_units::fault::Wording;

use super::recognize::{LOOKED_AT, is_number};
use super::{Format, Source, ftrace_text, perf_script, recognize};

/// First bytes of compressed files, the compression, and the program that unpacks it.
const COMPRESSED: [(&[u8], &str, &str); 6] = [
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"\xfd7zXZ\0", "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\x04\x22\x4d\x18", "lz4", "unlz4"),
    (b"PK\x03\x04", "zip", "unzip"),
];

/// First bytes of other binary files, and their descriptions.
const BINARY: [(&[u8], &str); 5] = [
    (
        b"2ELIFREP",
        "is a perf.data of a machine that has the high byte first, which is not read: 'perf script --ns' prints it as text, which is",
    ),
    (
        b"PERFFILE",
        "is a perf.data of a perf before version 3.8, which is not read: 'perf script --ns' prints it as text, which is",
    ),
    (
        b"\xc1\x1f\xfc\xc1",
        "is a trace in the Common Trace Format, as of LTTng, which is not read: record with trace-cmd or perf instead",
    ),
    (b"\xff\xfe", "is text in UTF-16: convert it with 'iconv -f UTF-16 -t UTF-8'"),
    (b"\xfe\xff", "is text in UTF-16: convert it with 'iconv -f UTF-16 -t UTF-8'"),
];

type IsOfProgram = fn(&str) -> bool;

/// Lines that only one program prints: a test for such a line, and the description of the file.
const LINES: [(IsOfProgram, &str); 10] = [
    (
        |line| line.contains("Timer Latency") || line.starts_with("CPU COUNT"),
        "is a table of 'rtla timerlat top', which holds no distribution: run 'rtla timerlat hist' instead",
    ),
    (
        |line| ["Value", "Percentile", "TotalCount"].iter().all(|word| line.contains(word)),
        "is a table of percentiles of HdrHistogram (.hgrm, wrk2), which is not read: import the log (.hlog) from which it was made",
    ),
    (
        |line| {
            line.contains("distribution") && (line.contains("count") || line.starts_with("value"))
                || line.starts_with('[') && line.ends_with('|') && line.contains(')') && line.matches('|').count() == 2
        },
        "is a histogram of bcc, bpftrace or sysbench, which is not read: the file does not say what it counts",
    ),
    (|line| line.starts_with("oslat V "), "starts like oslat's output and has no result: let oslat end by itself"),
    (
        |line| line.starts_with("stress-ng: "),
        "is what stress-ng prints, which makes load and measures no noise: record with becalm meanwhile",
    ),
    (
        |line| line.starts_with("{\"log\":\""),
        "is a log of Docker as JSON: print its text with 'jq -j .log', and import that",
    ),
    (
        |line| line.starts_with("hwlatdetect:"),
        "is what hwlatdetect prints, which is not read: run 'rtla hwnoise -q' instead",
    ),
    (
        |line| {
            let words: Vec<&str> = line.split(':').map(str::trim).collect();
            words.len() == 3 && words.iter().all(|word| !word.is_empty() && is_number(word)) && line.contains(": ")
        },
        "is what 'cyclictest -v' prints, which is not read: run cyclictest with -h 1000 or --json=FILE instead",
    ),
    (
        ftrace_text::is_of_latency,
        "is a trace in the kernel's latency format, which is not read: write 'nolatency-format' to trace_options in tracefs and read the \
         trace again",
    ),
    (
        |line| {
            line.to_ascii_lowercase().starts_with("<!doctype html") || line.to_ascii_lowercase().starts_with("<html")
        },
        "is a page of the web and no file of measurements",
    ),
];

/// Describes a file in no known format, to follow its name in a sentence; `None` if it is not recognized.
pub fn near_miss(source: Source<'_>) -> Option<Wording> {
    let head = &source.bytes[..source.bytes.len().min(LOOKED_AT)];
    if head.is_empty() {
        return Some("is empty".into());
    }
    if let Some((_, name, unpack)) = COMPRESSED.iter().find(|(begin, ..)| head.starts_with(begin)) {
        return Some(format!("is compressed with {name}: unpack it with {unpack}").into());
    }
    if let Some((_, what)) = BINARY.iter().find(|(begin, _)| head.starts_with(begin)) {
        return Some((*what).into());
    }
    let text = String::from_utf8_lossy(head);
    if text.contains('\0') {
        return None;
    }
    let lines = || text.lines().map(str::trim);
    if let Some((_, what)) = LINES.iter().find(|(is_such, _)| lines().any(is_such)) {
        return Some((*what).into());
    }
    if perf_script::lacks_cpus(&text) {
        return Some(
            "is text of perf script without CPUs, on which all depends: record with 'perf record -a', or print them with \
             'perf script -F comm,tid,cpu,time,event,trace'"
                .into(),
        );
    }
    if perf_script::lacks_times(&text) {
        return Some(
            "is text of perf script without times: print them with 'perf script -F comm,tid,cpu,time,event,trace'"
                .into(),
        );
    }
    if let Some(what) = describe_prefix(&text, source.name) {
        return Some(what.into());
    }
    if text.starts_with(ftrace_text::TRACER) {
        return Some(
            "is a trace of the kernel as text, without an event that tells who had a CPU: enable events of irq, irq_vectors, \
             sched_switch and workqueue, with a trace clock that counts time, as 'mono' does"
                .into(),
        );
    }
    let begin = text.trim_start();
    if begin.starts_with('{') || begin.starts_with("[{") || begin.starts_with("[\n") {
        return Some(
            "is JSON of a program that is not known; that of cyclictest and oslat (--json=FILE) is read, if it is whole".into(),
        );
    }
    describe_numbers(&text)
}

/// Describes a prefix, such as a log's time stamp, in front of each line of a known format.
fn describe_prefix(text: &str, name: &str) -> Option<String> {
    /// The most words before a line of a log.
    const MOST: usize = 6;
    (1..=MOST).find_map(|words| {
        let rests: Vec<&str> = text.lines().map(|line| without_words(line, words)).collect();
        let rest = rests.join("\n");
        let format = recognize(Source { name, bytes: rest.as_bytes() })?;
        // A trace's lines are recognized even with a word more or less before them.
        let rests = || rests.iter().filter(|rest| !rest.is_empty());
        let more =
            (0..MOST - words).take_while(|more| rests().all(|rest| is_of_log(without_words(rest, *more)))).count();
        let words = words + more;
        Some(format!(
            "has {} in front of each line of the format {format}, such as a log's time stamp: remove that prefix with \
             sed -E 's/^([^[:blank:]]+[[:blank:]]+){{{words}}}//'",
            becalm_units::counted(words as u64, "word", "words")
        ))
    })
}

/// True if the first word ends like a log's prefix, and unlike any thread's name.
fn is_of_log(line: &str) -> bool {
    line.split_whitespace().next().is_some_and(|word| word.ends_with([':', '|']))
}

/// A line without this many first words.
fn without_words(line: &str, words: usize) -> &str {
    const BLANKS: [char; 2] = [' ', '\t'];
    (0..words).fold(line, |rest, _| rest.split_once(BLANKS).map_or("", |(_, rest)| rest.trim_start_matches(BLANKS)))
}

/// Describes plain columns of numbers without titles.
fn describe_numbers(text: &str) -> Option<Wording> {
    let numbers = |line: &str| {
        let words = line.split(|sign: char| sign == ',' || sign.is_whitespace()).filter(|word| !word.is_empty());
        let words: Vec<&str> = words.collect();
        words.iter().all(|word| is_number(word)).then_some(words.len())
    };
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let columns: Vec<usize> = lines.iter().filter_map(|line| numbers(line)).collect();
    if columns.len() * 2 <= lines.len() {
        return None;
    }
    let columns = columns.into_iter().max().unwrap_or(0);
    Some(if columns < 2 {
        let text = Wording::new(
            "holds numbers without a title that says what they are: they may be samples of FWQ ({from=}) or one of ftq's two files \
             ({from=}): name the format with {from}",
        );
        text.with(Format::Fwq).with(Format::FtqTicks)
    } else {
        let text = Wording::new(
            "holds columns of numbers without a title that says what they are: they may be detours ({from=}), windows of ftq \
             ({from=}, {from=}) or a histogram of cyclictest ({from=}): name the format with {from}",
        );
        text.with(Format::Selfish).with(Format::Ftq).with(Format::FtqTicks).with(Format::Cyclictest)
    })
}
