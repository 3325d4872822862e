//! Files that are cut short, damaged, or have lines and numbers that no program prints.

use super::*;

#[test]
fn wrong_files_are_refused_with_the_line() {
    for (format, text, place, why) in [
        (Format::Hiccups, "cpu threshold_ns hiccups pct99_ns pct999_ns max_ns\n0 1 2 3\n", Place::Line(2), "4 columns"),
        (Format::Hiccups, "nonsense\n", Place::All, "nothing that hiccups prints"),
        (Format::Hiccups, "0 1 2 3 4 5\n", Place::Line(1), "title"),
        (
            Format::Hiccups,
            "cpu threshold_ns hiccups pct99_ns pct999_ns max_ns\n0 1 NaN 3 4 5\n",
            Place::Line(2),
            "'NaN'",
        ),
        (Format::Sysjitter, "core_i: 0 1\nint_n: 5\n", Place::Line(2), "1 value for 2 cores"),
        (Format::Sysjitter, "core_i: 0\nint_n: 99999999999999999999\n", Place::Line(2), "does not fit"),
        (Format::Cyclictest, "# Histogram\n000000 1\n000000 1\n", Place::Line(3), "does not follow"),
        (Format::Cyclictest, "# Histogram\n000000 1\n000001 1 2\n", Place::Line(3), "2 counts"),
        (Format::Cyclictest, "# Histogram\n000000 1\n# Total: 7\n# Min Latencies: 0\n", Place::All, "adds up"),
        (Format::Oslat, "{\"rt_test_version:\": \"2\",\n\"thread\": [", Place::Line(2), "column"),
        (Format::Rtla, "hello\n", Place::All, "no table"),
        (Format::Hdr, "0.1,1.0,1.0,####\n", Place::Line(1), "base64"),
        (Format::Ftq, "# Frequency 1000\n5 1\n4 1\n", Place::Line(3), "before the previous one"),
        (Format::Netgauge, "0 5\n", Place::Line(1), "no comment"),
        (Format::Fwq, "12x\n", Place::Line(1), "no whole number"),
    ] {
        let error = read(format, "file", text.as_bytes()).unwrap_err();
        let fits = error.place == place && error.why.contains(why);
        assert!(fits || why == "adds up" && error.why.contains("add up"), "{format}: {error}");
    }
}

/// A file that ends too early, after a line or within one, is refused, or a warning says what is unknown, or nothing is missing.
#[test]
fn a_file_that_was_cut_is_refused_or_told_or_whole() {
    let (mut refused, mut told) = (0, 0);
    for (format, name, bytes) in all_samples() {
        let whole = read(format, &name, &bytes).unwrap();
        for cut in cuts(&bytes) {
            match read(format, &name, &bytes[..cut]) {
                Err(_) => refused += 1,
                Ok(found) if found == whole => {}
                // The importer refuses files without a sample.
                Ok(Anything::Samples(lists)) if lists.iter().all(|list| list.samples.is_empty()) => refused += 1,
                Ok(found) => {
                    told += 1;
                    assert!(says_its_end(warnings(&found)), "{name} cut at byte {cut} is taken for a whole file");
                }
            }
        }
    }
    assert!(refused > 1_000 && told > 1_000, "{refused} refused, {told} told");
}

#[test]
fn a_trace_that_was_cut_is_refused_or_told() {
    for format in [Format::PerfScript, Format::Ftrace, Format::Osnoise] {
        for entry in fs::read_dir(folder().join(format.name())).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            for cut in cuts(&bytes) {
                let (source, told) = (Source { name: "", bytes: &bytes[..cut] }, &mut |_| {});
                let warnings = match format {
                    Format::Osnoise => {
                        let mut lines = osnoise::read(source, told).unwrap();
                        lines.by_ref().all(|event| event.is_ok()).then(|| lines.warnings())
                    }
                    _ => {
                        let reader = if format == Format::Ftrace { ftrace_text::read } else { perf_script::read };
                        let mut lines = reader(source, told).unwrap();
                        lines.by_ref().all(|event| event.is_ok()).then(|| lines.warnings())
                    }
                };
                assert!(warnings.is_none_or(|warnings| says_its_end(&warnings)), "{format} cut at byte {cut}");
            }
        }
    }
    for format in [Format::PerfData, Format::TraceDat] {
        for entry in fs::read_dir(folder().join(format.name())).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            for cut in (0..bytes.len()).step_by(bytes.len() / 200) {
                let source = Source { name: "", bytes: &bytes[..cut] };
                let is_whole = match format {
                    Format::PerfData => {
                        perf_data::read(source).is_ok_and(|file| file.each(&mut |_| {}, &mut |_| Ok(())).is_ok())
                    }
                    _ => trace_dat::read(source)
                        .is_ok_and(|file| file.cpus.iter().all(|pages| is_readable(pages.cursor()))),
                };
                assert!(!is_whole, "{} cut at byte {cut}", path.display());
            }
        }
    }
}

/// Places to cut a file: after lines, and within them.
fn cuts(bytes: &[u8]) -> impl Iterator<Item = usize> {
    const MOST: usize = 400;
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').map(|at| at + 1).collect();
    let begins = std::iter::once(0).chain(ends.iter().copied());
    let middles: Vec<usize> =
        begins.zip(&ends).flat_map(|(begin, end)| [begin + 1, (begin + end) / 2, end - 1]).collect();
    let all: std::collections::BTreeSet<usize> = ends.into_iter().chain(middles).collect();
    // The last ones are those that mark the end of a program's output.
    let skipped = all.len().saturating_sub(MOST);
    let step = (skipped / MOST).max(1);
    let kept: Vec<usize> =
        all.into_iter().enumerate().filter(|(at, _)| *at >= skipped || at % step == 0).map(|(_, cut)| cut).collect();
    kept.into_iter()
}

fn says_its_end(warnings: &[Warning]) -> bool {
    warnings.iter().any(|warning| ["imported_cut", "imported_end_unknown"].contains(&warning.code.as_str()))
}

/// The samples end as their programs end, so none is reported as cut.
#[test]
fn whole_samples_are_not_said_to_be_cut() {
    for (format, name, bytes) in all_samples() {
        let found = read(format, &name, &bytes).unwrap();
        assert!(
            !warnings(&found).iter().any(|warning| warning.code == "imported_cut"),
            "{name}: {:?}",
            warnings(&found)
        );
    }
}

/// Lines that a format does not have are left out and counted, anywhere in a file.
#[test]
fn unknown_lines_are_left_out_and_counted() {
    for (format, name) in [
        (Format::Hiccups, "two-cpus.txt"),
        (Format::Osjitter, "two-cpus.txt"),
        (Format::Sysjitter, "two-cores.txt"),
        (Format::Cyclictest, "histogram.txt"),
        (Format::Fwq, "two-threads.dat"),
        (Format::Ftq, "one-thread_0.dat"),
        (Format::Netgauge, "fwq.txt"),
        (Format::Netgauge, "ftq.txt"),
        (Format::Selfish, "netgauge.txt"),
        (Format::Oslat, "two-cores.txt"),
    ] {
        let text = fs::read_to_string(folder().join(format.name()).join(name)).unwrap();
        let whole = read(format, name, text.as_bytes()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.len() - 1;
        let noisy = [&lines[..at], &["WARN: something is odd: 17 times"], &lines[at..], &[""]].concat().join("\n");
        let found = read(format, name, noisy.as_bytes()).unwrap_or_else(|error| panic!("{format}: {error}"));
        let said = warnings(&found).iter().find(|warning| warning.code == "imported_lines_left_out");
        let said = said.unwrap_or_else(|| panic!("{format} does not say that it left out a line"));
        assert!(
            said.message.starts_with("1 line was left out") && said.message.contains(&format!("line {}", at + 1)),
            "{said:?}"
        );
        let (found, whole) = (without_warnings(found), without_warnings(whole));
        assert_eq!(found, whole, "{format}");
    }
}

fn without_warnings(found: Anything) -> Anything {
    match found {
        Anything::Detours(list) => Anything::Detours(DetourList { warnings: Vec::new(), ..list }),
        Anything::Samples(mut lists) => {
            lists.iter_mut().for_each(|list| list.warnings.clear());
            Anything::Samples(lists)
        }
        Anything::Distribution(found) => Anything::Distribution(DistributionDoc { warnings: Vec::new(), ..found }),
    }
}

/// Numbers that are too large for their use are refused at their line, and not when all is stored.
#[test]
fn numbers_that_cannot_be_are_refused_with_the_line() {
    let hiccups = "cpu threshold_ns hiccups pct99_ns pct999_ns max_ns\n";
    let many = "9".repeat(15);
    for (format, text) in [
        (Format::Hiccups, format!("{hiccups}1048576 1 2 3 4 5\n")),
        (Format::Hiccups, format!("{hiccups}0 1 {many} 3 4 5\n")),
        (Format::Sysjitter, format!("core_i: 0\nint_n: 5\nint_mean(ns): {}\n", "9".repeat(300))),
        (Format::Cyclictest, format!("# Histogram\n000000 {many}\n")),
        (Format::Oslat, format!("Core:\t 0\n001 (us):\t {many}\n")),
        (Format::Rtla, format!("# RTLA osnoise histogram\nIndex   CPU-000\n5 {many}\n")),
    ] {
        let error = read(format, "file", text.as_bytes()).unwrap_err();
        assert!(matches!(error.place, Place::Line(_)), "{format}: {error}");
    }
    let json = |count: u64| {
        format!("{{\"rt_test_version:\": \"2\", \"thread\": {{\"0\": {{\"cycles\": {count}, \"histogram\": {{}}}}}}}}")
    };
    assert!(read(Format::Cyclictest, "file", json(5).as_bytes()).is_ok());
    assert!(read(Format::Cyclictest, "file", json(1 << 50).as_bytes()).unwrap_err().why.contains("more than can be"));
}

/// Whether all pages of a CPU can be read.
fn is_readable(mut cursor: trace_dat::PageCursor<'_>) -> bool {
    loop {
        match cursor.next_page() {
            Ok(Some(_)) => {}
            end => return end.is_ok(),
        }
    }
}
