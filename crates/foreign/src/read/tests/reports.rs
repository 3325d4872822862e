//! Reports that follow each other in one file.

use super::*;

fn assert_second_report(found: Result<Anything, ReadError>, first: &str, what: &str) {
    let error = found.err().unwrap_or_else(|| panic!("{what}: both were read as one"));
    let lines = first.lines().count();
    assert!(error.why.contains("second report"), "{what}: {error}");
    assert!(matches!(error.place, Place::Line(line) if line > lines), "{what}, {lines} lines: {error}");
}

/// becalm neither drops nor mixes reports that a shell appended to one file.
#[test]
fn reports_that_follow_each_other_are_refused() {
    let mut refused = 0;
    for (format, name, bytes) in all_samples() {
        // Bare numbers have no title that could repeat, and LogGOPSim's files no end of line.
        if ["serial_", "omp_", "exported."].iter().any(|begin| name.starts_with(begin)) {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        assert_second_report(read(format, &name, text.repeat(2).as_bytes()), &text, &name);
        refused += 1;
    }
    assert!(refused >= 20, "{refused} were refused");
    // Also the kernel's traces: lines of a second one would be booked on the wrong times.
    for name in ["ftrace/flags.txt", "osnoise/rtla.txt", "osnoise/timerlat.txt"] {
        let text = fs::read_to_string(folder().join(name)).unwrap();
        let (both, told) = (text.repeat(2), &mut |_: u64| {});
        let source = Source { name, bytes: both.as_bytes() };
        let error = if name.starts_with("osnoise") {
            osnoise::read(source, told).unwrap().find_map(Result::err)
        } else {
            ftrace_text::read(source, told).unwrap().find_map(Result::err)
        };
        assert_second_report(Err(error.unwrap()), &text, name);
    }
    // Also if they are of different programs.
    let tables = [
        (Format::Sysjitter, "two-cores.txt"),
        (Format::Hiccups, "two-cpus.txt"),
        (Format::Osjitter, "two-cpus.txt"),
        (Format::Oslat, "two-cores.txt"),
        (Format::Cyclictest, "histogram.txt"),
        (Format::Rtla, "osnoise-hist.txt"),
    ]
    .map(|(format, name)| (format, fs::read_to_string(folder().join(format.name()).join(name)).unwrap()));
    for (format, first) in &tables[..4] {
        for (other, second) in tables.iter().filter(|(other, _)| other != format) {
            let both = format!("{first}{second}");
            assert_second_report(read(*format, "log", both.as_bytes()), first, &format!("{format}, {other}"));
        }
    }
}

/// rtla prints its table repeatedly if it may clear the terminal, and one run's table follows another's if it may not.
#[test]
fn tables_of_one_run_of_rtla_are_told_from_those_of_two() {
    let frame = |begin: &str, runtime: u64| {
        format!(
            "{begin}Operating System Noise\nduration:   0 00:00:05 | time is in us\n\
             CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ      Softirq       Thread\n\
             \x20 0 #41         {runtime}     100    99.20200     17     8         5            0          50            0          1\n"
        )
    };
    let first = frame("\u{1b}c", 1_000_000);
    let two = format!("{first}{}", frame("\u{1b}c", 2_000_000));
    let Ok(Anything::Distribution(found)) = read(Format::Rtla, "top", two.as_bytes()) else { panic!() };
    assert_eq!(found.series[0].observed_ns, Some(2_000_000_000));
    for second in [frame("\u{1b}c", 999_999), frame("", 2_000_000)] {
        assert_second_report(read(Format::Rtla, "top", format!("{first}{second}").as_bytes()), &first, &second);
    }
    // A histogram before or after a table.
    let histogram = fs::read_to_string(folder().join("rtla/osnoise-hist.txt")).unwrap();
    for (first, second) in [(&first, &histogram), (&histogram, &first)] {
        assert_second_report(read(Format::Rtla, "log", format!("{first}{second}").as_bytes()), first, second);
    }
}
