//! What is imported comes out again when it is exported.

use std::fs;
use std::path::Path;

use becalm_testing::program::becalm;

/// As another program measured it, in microseconds.
const SELFISH: &str = "# offset duration\n100 10\n2100.5 20.25\n4100 10\n";

#[test]
fn what_is_imported_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("selfish.txt"), SELFISH).unwrap();
    let run = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        let status = becalm(&arguments).current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{line}: {status}");
    };
    run("import --from selfish --unit us --length 10ms selfish.txt -o run.becalm");
    run("export --to loggopsim run -o noise.txt");
    let noise = fs::read_to_string(folder.path().join("noise.txt")).unwrap();
    assert_eq!(noise, "0\t0\n100000\t10000\n2100500\t20250\n4100000\t10000\n10000000\t0");
}

/// What is imported may be shorter than any statistics: a few detours within a few nanoseconds.
#[test]
fn short_imports_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 1_u64;
    let mut random = |limit: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % limit
    };
    let mut texts = vec!["1 2\n5 6\n".to_owned(), "4 2\n7 0\n".to_owned()];
    for _ in 0..60 {
        let (mut time, mut text) = (0, String::new());
        for _ in 0..=random(6) {
            let (gap, duration) = (random(12), random(5));
            text += &format!("{} {duration}\n", time + gap);
            time += gap + duration;
        }
        texts.push(text);
    }
    for (number, text) in texts.into_iter().enumerate() {
        fs::write(folder.path().join("short.txt"), &text).unwrap();
        let run = format!("run{number}.becalm");
        for line in [
            format!("import --from selfish short.txt -o {run}"),
            format!("report {run}"),
            format!("report --sources --json {run}"),
        ] {
            let arguments: Vec<&str> = line.split(' ').collect();
            let output = becalm(&arguments).current_dir(folder.path()).output().unwrap();
            assert!(output.status.success(), "{line}: {output:?}\n{text}");
        }
    }
}

/// Real traces, beside what a script of its own counted in them.
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../foreign/samples");

#[test]
fn traces_of_the_kernel_become_runs_that_every_command_reads() {
    let folder = tempfile::tempdir().unwrap();
    let run = |line: &str| {
        let line = line.replace("SAMPLES", SAMPLES);
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = becalm(&arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run("import SAMPLES/trace-dat/v7-local.dat -o all.becalm");
    run("import SAMPLES/trace-dat/v7-tsc.dat --rate 2.6GHz --cpus 0 -o one.becalm");
    run("import SAMPLES/trace-dat/v7-local.dat --pid 17878 -o thread.becalm");
    run("import --from perf-script SAMPLES/perf-script/microseconds.txt -o text.becalm");
    let report: serde_json::Value = serde_json::from_str(&run("report thread.becalm --json")).unwrap();
    let codes: Vec<&str> = report["warnings"].as_array().unwrap().iter().filter_map(|it| it["code"].as_str()).collect();
    assert!(codes.contains(&"missing_events") && codes.contains(&"clocks_differ"), "{codes:?}");
    assert_eq!((&report["schema"], &report["threads"][0]["name"]), (&"becalm.observed/1".into(), &"python3".into()));
    for line in [
        "report all",
        "report text",
        "report --sources all --json",
        "report thread",
        "detours all --longest 3",
        "predict all --ranks 64 --grain 1ms",
        "compare all text",
        "export --to loggopsim one -o noise.txt",
    ] {
        run(line);
    }
}

#[test]
fn one_of_two_files_is_not_enough() {
    let folder = tempfile::tempdir().unwrap();
    let halves = |prefix: &str| ["times", "counts"].map(|half| format!("{SAMPLES}/ftq-ticks/{prefix}_{half}.dat"));
    let ([times, counts], [_, others]) = (halves("serial_0"), halves("omp"));
    for prefix in ["run_1", "short"] {
        fs::copy(&times, folder.path().join(format!("{prefix}_times.dat"))).unwrap();
        fs::copy(&counts, folder.path().join(format!("{prefix}_counts.dat"))).unwrap();
    }
    fs::write(folder.path().join("short_counts.dat"), "1\n2\n").unwrap();
    for (line, why) in [
        (format!("{times} --rate 2GHz"), "give the counts as well"),
        (format!("{counts} --rate 2GHz"), "it is one of two files"),
        (format!("{times} {others} --rate 2GHz"), "give the counts as well"),
        (format!("{times} {counts}"), "say it with --rate"),
        ("run_1_times.dat run_1_counts.dat --rate 2GHz".to_owned(), "it is of thread 1"),
        ("short_counts.dat short_times.dat --rate 2GHz".to_owned(), "it has 120 times, and there are 2 counts"),
    ] {
        let line = format!("import {line} -o out.becalm");
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = becalm(&arguments).current_dir(folder.path()).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && message.contains(why), "{line}: {message}");
        assert!(!folder.path().join("out.becalm").exists(), "{line} left something");
    }
}

#[test]
fn traces_that_cannot_be_read_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(format!("{SAMPLES}/trace-dat/v7-local.dat")).unwrap();
    fs::write(folder.path().join("cut.dat"), &whole[..whole.len() - 2_000]).unwrap();
    fs::write(folder.path().join("text.txt"), "app 7 [000] 1.000001: irq:softirq_entry: ve\n").unwrap();
    let samples = |line: &str| line.replace("LOCAL", &format!("{SAMPLES}/trace-dat/v7-local.dat"));
    for (line, code, why) in [
        ("import cut.dat", 1, "byte "),
        ("import --from perf-script text.txt", 1, "line 1: irq:softirq_entry has no readable vec"),
        ("import LOCAL --comm nobody", 2, "no thread of the trace is called 'nobody'"),
        ("import LOCAL --pid 999999", 2, "no thread or process of the trace has the number 999999"),
        ("import LOCAL --pid 17878 --cpus 1", 2, "--cpus is for interruptions of CPUs"),
        ("import LOCAL --cpus 7", 2, "the trace holds CPUs 0-1"),
        ("import LOCAL --length 1s", 2, "--length is not for traces"),
        ("import LOCAL cut.dat", 2, "a trace is one file"),
    ] {
        let line = format!("{} -o out.becalm", samples(line));
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = becalm(&arguments).current_dir(folder.path()).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {message}");
        assert!(message.contains(why), "{line}: {message}");
        assert!(!folder.path().join("out.becalm").exists(), "{line} left something");
    }
    let tsc = format!("import {SAMPLES}/trace-dat/v7-tsc.dat -o out.becalm");
    let arguments: Vec<&str> = tsc.split(' ').collect();
    let output = becalm(&arguments).current_dir(folder.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("give --rate"), "{output:?}");
}

/// Each file of another program is recognized, and shown by `report`, also as JSON.
#[test]
fn files_of_other_programs_are_imported_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../foreign/samples");
    let mut number = 0;
    for format in fs::read_dir(samples).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for file in fs::read_dir(&format).unwrap().map(|entry| entry.unwrap().path()) {
            number += 1;
            let (name, run) = (format.file_name().unwrap().to_str().unwrap(), format!("run{number}.becalm"));
            let mut import = vec!["import", file.to_str().unwrap(), "--rate", "2.5GHz", "-o", &run];
            // Times go with their counts.
            let other = import[1].replace("_times.dat", "_counts.dat");
            if name == "ftq-ticks" && import[1].ends_with("_counts.dat") {
                continue;
            } else if name == "ftq-ticks" && other != import[1] {
                import.insert(1, &other);
            }
            for arguments in [&import[..], &["report", &run], &["report", "--json", &run]] {
                let output = becalm(arguments).current_dir(folder.path()).output().unwrap();
                assert!(output.status.success(), "{arguments:?}: {output:?}");
                if arguments[0] == "import" {
                    let told = String::from_utf8(output.stderr).unwrap();
                    // Where no title decides, it says what does.
                    let plain = told.split_once(", because its ").map_or(told.trim_end(), |(plain, _)| plain);
                    assert_eq!(plain, format!("becalm: this is read as {name}"), "{}", file.display());
                }
            }
        }
    }
    assert!(number >= 20, "{number} files");
}

/// A bundle with sources, with others beside it.
fn bundles() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_all(folder.path());
    folder
}

const STREAMS: [&str; 6] = ["csv", "perfetto", "chrome", "hdrhistogram", "folded", "pprof"];

#[test]
fn every_stream_is_the_same_in_a_file_and_on_standard_output() {
    let folder = bundles();
    for format in STREAMS.into_iter().chain(["loggopsim --cpus 1", "simgrid --cpus 1", "csv --table activities"]) {
        let run = |output: &str| {
            let line = format!("export --to {format} busy -o {output}");
            let arguments: Vec<&str> = line.split(' ').collect();
            let run = becalm(&arguments).current_dir(folder.path()).output().unwrap();
            assert!(run.status.success() && run.stderr.is_empty(), "{line}: {run:?}");
            run.stdout
        };
        let shown = run("-");
        assert!(run("file").is_empty());
        assert!(!shown.is_empty());
        assert!(fs::read(folder.path().join("file")).unwrap() == shown, "{format}");
    }
}

#[test]
fn all_cpus_go_into_a_folder_and_come_back() {
    let folder = bundles();
    let run = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        let status = becalm(&arguments).current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{line}: {status}");
    };
    run("export --to loggopsim pair -o noise/");
    run("export --to simgrid pair -o noise/");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder.path().join("noise")).unwrap().map(name).collect();
    names.sort();
    let expected = ["node1.cpu0", "node1.cpu1", "node2.cpu0", "node2.cpu1"];
    let expected: Vec<String> =
        expected.iter().flat_map(|name| [format!("{name}.profile"), format!("{name}.txt")]).collect();
    assert_eq!(names, expected);
    // What is imported and exported again is the same, byte for byte.
    for node in ["node1", "node2"] {
        run(&format!(
            "import --from loggopsim noise/{node}.cpu0.txt noise/{node}.cpu1.txt --node {node} -o back.becalm"
        ));
    }
    run("export --to loggopsim back -o again/");
    for name in expected.iter().filter(|name| name.ends_with(".txt")) {
        let text = |of: &str| fs::read_to_string(folder.path().join(of).join(name)).unwrap();
        assert!(text("noise").len() > 1_000 && text("noise") == text("again"), "{name}");
    }
}

/// A log of HdrHistogram says of lengths what the run says, as it is read back.
#[test]
fn an_exported_log_is_imported() {
    let folder = bundles();
    let run = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = becalm(&arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    run("export --to hdrhistogram busy -o busy.hlog");
    run("import --from hdr busy.hlog -o lengths.becalm");
    let report = run("report lengths");
    for cpu in ["node1/cpu0", "node1/cpu1"] {
        let row = report.lines().find(|line| line.contains(cpu)).unwrap();
        assert!(row.contains("10.0s  2,500  250/s"), "{row}");
    }
}

/// Names that programs choose for themselves, one of them about as long as a bundle may hold, which is 4 KiB.
#[test]
fn hostile_names_are_exported() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x;\u{1b}[2J \"',\r\n\u{0}".repeat(300);
    for (at, name) in ["a;b 12", "\u{1b}]0;title\u{7}", "\"=1+1\",x\r\n", " 7", &long].into_iter().enumerate() {
        let path = folder.path().join(format!("{at}.becalm"));
        becalm_fixtures::write_named(&path, name);
        for format in STREAMS.into_iter().chain(["csv --table activities"]) {
            let line = format!("export --to {format} {at} -o -");
            let arguments: Vec<&str> = line.split(' ').collect();
            let run = becalm(&arguments).current_dir(folder.path()).output().unwrap();
            assert!(run.status.success(), "{line}: {run:?}");
            let is_text = !["perfetto", "pprof"].contains(&format);
            let steers = |byte: &u8| *byte < b' ' && *byte != b'\n';
            assert!(!(is_text && run.stdout.iter().any(steers)), "{line}: {}", String::from_utf8_lossy(&run.stdout));
        }
    }
}

#[test]
fn what_cannot_be_written_leaves_nothing() {
    let folder = bundles();
    let files = |name: &str| fs::read_dir(folder.path().join(name)).map_or(0, Iterator::count);
    for line in [
        "export --to chrome truncated -o broken/x.json",
        "export --to csv truncated -o broken/x.csv",
        "export --to loggopsim truncated -o broken/",
        "export --to simgrid truncated -o broken/",
    ] {
        fs::create_dir_all(folder.path().join("broken")).unwrap();
        let arguments: Vec<&str> = line.split(' ').collect();
        let run = becalm(&arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!(run.status.code(), Some(1), "{line}: {run:?}");
        assert!(String::from_utf8_lossy(&run.stderr).contains("0000.parquet"), "{line}: {run:?}");
        assert_eq!(files("broken"), 0, "{line}");
    }
}
