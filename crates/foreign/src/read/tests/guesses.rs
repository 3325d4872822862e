//! The format of a file: recognized, or only named.

use super::*;

/// The description of a file, as a command line prints it.
fn missed(source: Source<'_>) -> Option<String> {
    near_miss(source).map(|what| what.shown(becalm_units::fault::option))
}

/// Two columns of numbers may be anything: only a title makes them detours.
#[test]
fn numbers_without_a_title_are_not_guessed() {
    for text in [
        "0.5 1.25\n2.5 0.5\n",
        "002337\t000001\n002557\t000001\n",
        "000000\t000000\t000000\n000001\t000003\t000000\n",
        "time,core1\n000000,000000\n000001,000003\n",
        "10 5\n20 3\n",
        // A histogram that starts and ends like LogGOPSim's files.
        "0\t0\n1\t500\n2\t17\n3\t0",
    ] {
        let source = Source { name: "file.txt", bytes: text.as_bytes() };
        assert_eq!(recognize(source), None, "{text}");
        let what = missed(source).unwrap();
        assert!(what.contains("--from selfish") && what.contains("--from cyclictest"), "{text}: {what}");
    }
    for (text, is_guessed) in [
        ("# offset duration\n10 5\n", true),
        ("# Start time [us], Length [us], CPU\n10 5\n20 5\n", true),
        ("# start_ns duration_ns\n10 5\n20 5\n", true),
        ("# detours of CPU 3\n10 5\n20 5\n", true),
        ("# Selfish Benchmark\n0.00\t9.63\n", false),
    ] {
        let source = Source { name: "file.txt", bytes: text.as_bytes() };
        assert_eq!(recognize(source), Some(Format::Selfish), "{text}");
        assert_eq!(guessed_by(Format::Selfish, source).is_some(), is_guessed, "{text}");
    }
    let closing =
        "cyclictest -q# /dev/cpu_dma_latency set to 0us\n000000 000001\n# Total: 000000001\n# Min Latencies: 00000\n";
    assert_eq!(recognize(Source { name: "", bytes: closing.as_bytes() }), Some(Format::Cyclictest));
    for text in
        ["Speed: 1000Mb/s\n", "# Histogram of my program\n1 2\n", "# Frequency of updates\n1 2\n", "Core:\tx86\n"]
    {
        assert_eq!(recognize(Source { name: "", bytes: text.as_bytes() }), None, "{text}");
    }
}

/// A file that is not read is called by its name, with the fix.
#[test]
fn near_misses_are_named() {
    let oslat = fs::read_to_string(folder().join("oslat/two-cores.txt")).unwrap();
    let prefixed = |text: &str, prefix: &str| text.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
    let rtla = fs::read_to_string(folder().join("rtla/osnoise-top.txt")).unwrap();
    let cases: [(Vec<u8>, &[&str]); 34] = [
        (b"".to_vec(), &["is empty"]),
        (b"\x1f\x8b\x08\0\0".to_vec(), &["gzip", "gunzip"]),
        (b"\x28\xb5\x2f\xfd\0\0".to_vec(), &["zstd", "unzstd"]),
        (b"\xfd7zXZ\0\0".to_vec(), &["xz", "unxz"]),
        (b"2ELIFREP\0\0\0\0".to_vec(), &["high byte first", "perf script --ns"]),
        (b"\xff\xfe#\0 \0".to_vec(), &["UTF-16", "iconv"]),
        (
            b"CPU COUNT      |      cur       min       avg       max\n".to_vec(),
            &["rtla timerlat top", "rtla timerlat hist"],
        ),
        (b"       Value     Percentile TotalCount 1/(1-Percentile)\n".to_vec(), &["HdrHistogram", ".hlog"]),
        (b"\"Value\",\"Percentile\",\"TotalCount\",\"1/(1-Percentile)\"\n".to_vec(), &["HdrHistogram"]),
        (b"hwlatdetect:  test duration 10 seconds\n".to_vec(), &["hwlatdetect", "rtla hwnoise"]),
        (
            b"max_cpus = 2\n       0:       0:      12\n       1:       0:       9\n".to_vec(),
            &["cyclictest -v", "--json"],
        ),
        (
            b"# tracer: irqsoff\n#\n# irqsoff latency trace v1.1.5 on 6.1\n".to_vec(),
            &["latency format", "nolatency-format"],
        ),
        (
            b"# tracer: function\n#\n  a-1 [000] d... 1.000001: do_idle <-cpu_startup_entry\n".to_vec(),
            &["sched_switch"],
        ),
        (b"<!DOCTYPE html><html>\n".to_vec(), &["page of the web"]),
        (b"{\"traceEvents\": []}\n".to_vec(), &["JSON"]),
        (
            b"redis  4735/4735  921.700317: sched:sched_switch: a:1 [120] S ==> b:0 [120]\n".to_vec(),
            &["without CPUs", "-a"],
        ),
        (prefixed(&oslat, "2026-03-03T10:11:12.123456789Z ").into(), &["1 word", "oslat", "sed"]),
        (prefixed(&oslat, "2026-03-03T10:11:12.123456789Z stdout F ").into(), &["3 words", "oslat"]),
        (prefixed(&oslat, "Mar  3 10:11:12 node7 oslat[77]: ").into(), &["5 words", "oslat"]),
        (prefixed(&oslat, "[2026-03-03 10:11:12,123] ").into(), &["2 words", "oslat"]),
        (prefixed(&oslat, "web-1  | ").into(), &["2 words", "oslat"]),
        (prefixed(&oslat, "2026-03-03T10:11:12Z\t").into(), &["1 word", "oslat"]),
        (prefixed(&oslat, "[pod/a/b] 2026-03-03T10:11:12.1Z ").into(), &["2 words", "oslat"]),
        (prefixed(&rtla, "2026-03-03T10:11:12Z ").into(), &["1 word", "rtla"]),
        (prefixed(&rtla, "Mar  3 10:11:12 node7 rtla[77]: ").into(), &["5 words", "rtla"]),
        (
            b"     usecs               : count     distribution\n         0 -> 1          : 12       |**      |\n".to_vec(),
            &["histogram", "bcc"],
        ),
        (b"@usecs:\n[1]                 100 |@@@@@@@|\n[2, 4)                5 |@      |\n".to_vec(), &["bpftrace"]),
        (
            b"Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n".to_vec(),
            &["sysbench"],
        ),
        (b"stress-ng: info:  [123] dispatching hogs: 2 cpu\n".to_vec(), &["stress-ng"]),
        (b"{\"log\":\"oslat V 2.40\\n\",\"stream\":\"stdout\"}\n".to_vec(), &["Docker", "jq"]),
        (b"# loop latency\n1 2.5\n2 2.6\n".to_vec(), &["without a title that says", "--from selfish"]),
        (
            b"redis  4735 [001]     sched:sched_switch: a:1 [120] S ==> b:0 [120]\n".to_vec(),
            &["without times", "perf script -F"],
        ),
        (b"oslat V 2.40\nTotal runtime: \t\t10 seconds\n".to_vec(), &["oslat", "no result"]),
        (b"17\n18\n19\n".to_vec(), &["--from fwq", "--from ftq-ticks"]),
    ];
    for (bytes, words) in cases {
        let source = Source { name: "file", bytes: &bytes };
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        // A kernel trace is recognized by its title, and its reader finds nothing.
        assert!(recognize(source).is_none_or(|format| format == Format::Ftrace), "{text}: {:?}", recognize(source));
        let what = missed(source).unwrap_or_else(|| panic!("{text} is not named"));
        assert!(words.iter().all(|word| what.contains(word)), "{text}: {what}");
    }
    assert_eq!(missed(Source { name: "", bytes: b"\x7fELF\x02\x01\0\0" }), None);
    assert_eq!(missed(Source { name: "", bytes: b"Dear diary,\nnothing happened today.\n" }), None);
}

/// A log's prefix before a trace's lines would become a part of threads' names, and hide marks of lost events.
#[test]
fn traces_behind_a_prefix_are_named() {
    for sample in ["ftrace/flags.txt", "ftrace/report.txt", "perf-script/nanoseconds.txt", "osnoise/rtla.txt"] {
        let format = Format::ALL.iter().find(|format| sample.starts_with(format.name())).unwrap();
        let text = fs::read_to_string(folder().join(sample)).unwrap();
        assert_eq!(recognize(Source { name: "trace", bytes: text.as_bytes() }), Some(*format), "{sample}");
        for (prefix, words) in [
            ("Mar  3 10:11:12 node7 x[77]: ", "5 words"),
            ("2026-03-03T10:11:12.123456789Z ", "1 word"),
            ("2026-03-03T10:11:12Z\t", "1 word"),
            ("[   12.345678] node7 x[77]: ", "4 words"),
            ("web-trace-1  | ", "2 words"),
        ] {
            let logged: String = text.lines().map(|line| format!("{prefix}{line}\n")).collect();
            let source = Source { name: "trace", bytes: logged.as_bytes() };
            assert_eq!(recognize(source), None, "{sample}, {prefix}");
            let what = missed(source).unwrap_or_default();
            assert!(what.contains(&format!("has {words} in front")), "{sample}, {prefix}: {what}");
            assert!(what.contains(&format!("the format {format},")), "{sample}, {prefix}: {what}");
        }
    }
}

/// The command that removes a log's prefix, as `near_miss` gives it, makes the file readable.
#[test]
fn prefixes_of_logs_are_removed_by_the_command_that_is_named() {
    let oslat = fs::read_to_string(folder().join("oslat/two-cores.txt")).unwrap();
    let logged: String = oslat.lines().map(|line| format!("Mar  3 10:11:12 node7 oslat[77]: {line}\n")).collect();
    let what = missed(Source { name: "log", bytes: logged.as_bytes() }).unwrap();
    let (_, command) = what.split_once("with sed -E '").unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &logged).unwrap();
    let script = command.strip_suffix('\'').unwrap();
    let plain = std::process::Command::new("sed").args(["-E", script]).arg(file.path()).output().unwrap();
    let Ok(Anything::Distribution(found)) = read(Format::Oslat, "oslat", &plain.stdout) else { panic!() };
    assert_eq!(found.series, series(Format::Oslat, "two-cores.txt"));
}

/// Titles with the words of detours inside other words, in another order, or next to columns of extents; and numbers that are no detours.
#[test]
fn other_columns_are_not_taken_for_detours() {
    let rising: String = (1..60).map(|row| format!("{} {}\n", row * 1_000, row % 7)).collect();
    for title in [
        "timestamp  queue_length",
        "Wavelength  Time",
        "file offset length",
        "offset length (bytes)",
        "start length sectors",
        "length start",
        "Message length [bytes] Time [us]",
        "sfdisk: start length",
        "duration of the test, start and end",
    ] {
        let text = format!("# {title}\n{rising}");
        let source = Source { name: "file.txt", bytes: text.as_bytes() };
        assert_eq!(recognize(source), None, "{title}");
        assert!(missed(source).unwrap().contains("--from selfish"), "{title}");
    }
    for rows in [
        "2048 2048\n4096 1048576\n1052672 30\n",
        "1000 4000\n2000 1\n",
        "3000 1\n2000 1\n",
        "10 5\n20 x\n",
        "10 5\n20\n",
    ] {
        let text = format!("# start length\n{rows}");
        assert_eq!(recognize(Source { name: "file.txt", bytes: text.as_bytes() }), None, "{rows}");
    }
    // The part of a file that is looked at may end within a number.
    let long: String = (1..9_000).map(|row| format!("{} 900\n", row * 1_000)).collect();
    let long = format!("# start length\n{long}");
    assert!(long.len() > recognize::LOOKED_AT && !long[..recognize::LOOKED_AT].ends_with('\n'));
    assert_eq!(recognize(Source { name: "file.txt", bytes: long.as_bytes() }), Some(Format::Selfish));
}
