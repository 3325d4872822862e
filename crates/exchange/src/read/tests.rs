//! The samples of real programs, whole, damaged, and with other line ends; and what each of them says.

use std::fs;
use std::path::{Path, PathBuf};

use becalm_model::Document;
use becalm_model::distribution::{DistributionDoc, Quantity, SCHEMA, Series};
use becalm_model::node::{Fixed, Warning};
use becalm_units::{CpuId, Named, Nanos};

use super::ftq_ticks::Part;
use super::*;
use crate::write::loggopsim::NoiseFile;

/// What any file becomes.
#[derive(PartialEq, Debug)]
enum Anything {
    Detours(DetourList),
    Samples(Vec<SampleList>),
    Distribution(Distribution),
}

fn read(format: Format, name: &str, bytes: &[u8]) -> Result<Anything, ReadError> {
    let (source, told) = (Source { name, bytes }, &mut |_| {});
    let known = Known { unit: None, rate_hz: Some(2.596e9) };
    match format.form() {
        Form::Detours => detours(format, source, known, told).map(Anything::Detours),
        // Of two files, with another one that fits.
        Form::Samples if format == Format::FtqTicks && ftq_ticks::part(name) != Part::Both => {
            let ftq_ticks::Column { numbers: column, warnings } = ftq_ticks::column(source, told)?;
            let (ones, numbers) = (vec![1; column.len()], (0..column.len() as i64).collect());
            let (prefix, times, counts) = match ftq_ticks::part(name) {
                Part::Counts(prefix) => (prefix, numbers, column),
                Part::Times(prefix) => (prefix, column, ones),
                Part::Both => unreachable!(),
            };
            let mut lists = ftq_ticks::joined(prefix, &times, &counts, known.rate_hz)?;
            lists.iter_mut().for_each(|list| list.warnings.clone_from(&warnings));
            Ok(Anything::Samples(lists))
        }
        Form::Samples => samples(format, source, known, told).map(Anything::Samples),
        Form::Distribution => distribution(format, source, known, told).map(Anything::Distribution),
        // What is in a trace is found out by whoever attributes it.
        Form::Trace => unreachable!("{format} is a trace"),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// Each file that the real programs made, with its format and its name.
fn all_samples() -> Vec<(Format, String, Vec<u8>)> {
    let mut found = Vec::new();
    for format in Format::ALL.iter().copied().filter(|format| format.form() != Form::Trace) {
        for entry in fs::read_dir(folder().join(format.name())).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            found.push((format, name, fs::read(&path).unwrap()));
        }
    }
    found
}

fn sample(format: Format, name: &str) -> Anything {
    let bytes = fs::read(folder().join(format.name()).join(name)).unwrap();
    read(format, name, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn series(format: Format, name: &str) -> Vec<Series> {
    let Anything::Distribution(found) = sample(format, name) else { panic!("{name} is a distribution") };
    found.series
}

fn document(found: &Distribution) -> DistributionDoc {
    DistributionDoc {
        schema: SCHEMA.to_owned(),
        node: "n".to_owned(),
        program: String::new(),
        format: String::new(),
        tool: found.tool.clone(),
        command: None,
        kernel: None,
        begun: None,
        ended: None,
        quantity: found.quantity,
        loop_subtracted: None,
        series: found.series.clone(),
        warnings: Vec::new(),
    }
}

/// Nothing that was read contradicts what its form promises.
fn check(found: &Anything, name: &str) {
    match found {
        Anything::Detours(list) => {
            assert!(list.detours.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{name}");
        }
        Anything::Samples(lists) => {
            for list in lists {
                assert!(
                    list.samples.windows(2).all(|pair| pair[0].start + pair[0].duration <= pair[1].start),
                    "{name}"
                );
            }
        }
        Anything::Distribution(found) => assert_eq!(document(found).check(), Ok(()), "{name}"),
    }
}

#[test]
fn samples_are_recognized_and_read_with_either_line_end() {
    let samples = all_samples();
    assert!(samples.len() >= 20, "{} samples", samples.len());
    for (format, name, bytes) in samples {
        let source = Source { name: &name, bytes: &bytes };
        assert_eq!(recognize(source), Some(format), "{name}");
        let found = read(format, &name, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(&found, &name);
        let text = String::from_utf8(bytes).unwrap().replace('\n', "\r\n");
        // LogGOPSim takes a line end at the end for one more event, and so its files have none.
        assert_eq!(read(format, &name, text.as_bytes()), Ok(found), "{name}");
    }
}

/// However a file is cut off or a byte of it changed, it is refused, or what is read is still sound.
#[test]
fn damaged_samples_are_refused_or_sound() {
    let (mut refused, mut taken) = (0, 0);
    for (format, name, bytes) in all_samples() {
        let step = (bytes.len() / 150).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut changed = bytes.clone();
            changed[at] = [b'9', b'-', b'\n', b' ', b'#', 0xff][at / step % 6];
            for damaged in [&bytes[..at], &changed] {
                let _ = recognize(Source { name: &name, bytes: damaged });
                match read(format, &name, damaged) {
                    Ok(found) => {
                        taken += 1;
                        check(&found, &name);
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        let empty = read(format, &name, b"");
        assert!(empty.is_err() || format.form() != Form::Distribution, "{name}");
    }
    assert!(refused > 500 && taken > 500, "{refused} refused, {taken} taken");
}

/// What the library's own tests find in its logs. They add them up in a histogram of three digits, where buckets from 2^30 on are 2^20 wide.
#[test]
fn logs_of_hdr_histogram_add_up() {
    for (name, total, p999, max) in [
        ("version-0.hlog", 61_256, 1_510_998_015, 1_569_718_271),
        ("version-1.hlog", 65_964, 1_829_765_119, 1_888_485_375),
        ("version-2.hlog", 48_761, 1_745_879_039, 1_796_210_687),
    ] {
        let series = series(Format::Hdr, name).remove(0);
        assert_eq!(series.count, Some(total), "{name}");
        let wanted = (total as f64 * 0.999).ceil() as u64;
        let mut sum = 0;
        let at = series.buckets.iter().find(|bucket| {
            sum += bucket.count;
            sum >= wanted
        });
        assert_eq!(at.unwrap().from_ns + (1 << 20) - 1, p999, "{name}");
        assert_eq!(series.buckets.last().unwrap().from_ns + (1 << 20) - 1, max, "{name}");
    }
    let tags = series(Format::Hdr, "tags.hlog");
    assert_eq!(tags.iter().map(|series| series.name.as_str()).collect::<Vec<_>>(), ["log", "tag A"]);
    let [log, tag] = tags.as_slice() else { panic!() };
    assert!(log.count == Some(32_290 / 2) && log.buckets == tag.buckets, "both hold the same");
}

/// What the library's own reader finds in a log of decimal fractions, which are seconds here. Each interval was of another range.
#[test]
fn logs_of_decimal_fractions_add_up() {
    let bytes = fs::read(folder().join("hdr/fractions.hlog")).unwrap();
    let known = Known { unit: Some(TimeUnit::S), rate_hz: None };
    let found = distribution(Format::Hdr, Source { name: "log", bytes: &bytes }, known, &mut |_| {}).unwrap();
    assert_eq!(document(&found).check(), Ok(()));
    let [log, tag] = found.series.as_slice() else { panic!("{found:?}") };
    assert_eq!((log.count, tag.count, log.observed_ns), (Some(2_000), Some(800), Some(4_000_000_000)));
    // Quantiles with the bounds of their places, in nanoseconds.
    for (series, levels) in [
        (log, [(0.5, 30_905.0, 30_934.8), (0.9, 1_358_032.2, 1_358_985.9), (0.999, 11_489_868.2, 11_497_497.6)]),
        (tag, [(0.5, 44_882.3, 44_912.1), (0.9, 52_899.1, 52_928.9), (0.999, 54_895.9, 54_925.7)]),
    ] {
        for (ratio, from, below) in levels {
            let wanted = (series.count.unwrap() as f64 * ratio).ceil() as u64;
            let mut sum = 0;
            let at = series.buckets.iter().find(|bucket| {
                sum += bucket.count;
                sum >= wanted
            });
            let at = at.unwrap();
            let off = (at.from_ns as f64 - from).abs().max((at.below_ns as f64 - below).abs());
            assert!(off <= 0.6, "{}: {ratio}: {at:?}", series.name);
        }
    }
    // As nanoseconds they are all below one, and one value.
    let series = series(Format::Hdr, "fractions.hlog");
    assert_eq!(series[0].buckets.iter().map(|bucket| (bucket.from_ns, bucket.count)).collect::<Vec<_>>(), [(0, 2_000)]);
}

/// A histogram that would unpack to gigabytes is refused, in little memory.
#[test]
fn what_unpacks_to_more_than_can_be_is_refused() {
    use base64::Engine;
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(&vec![0_u8; 65 << 20], 1);
    let mut bytes = 0x1c84_9314_u32.to_be_bytes().to_vec();
    bytes.extend((packed.len() as u32).to_be_bytes());
    bytes.extend(packed);
    let line = format!("0.0,1.0,1.0,{}\n", base64::engine::general_purpose::STANDARD.encode(bytes));
    let error = read(Format::Hdr, "log", line.as_bytes()).unwrap_err();
    assert_eq!(error.place, Place::Line(1));
    assert!(error.why.contains("unpacks to more"), "{error}");
}

#[test]
fn statistics_say_what_they_say_and_nothing_else() {
    let hiccups = series(Format::Hiccups, "two-cpus.txt");
    let first = &hiccups[0];
    assert_eq!((first.cpu, first.threshold_ns, first.count), (Some(CpuId::new(0)), Some(160), Some(19)));
    assert_eq!((first.max_ns, first.quantiles.len()), (Some(553_286_438), 2));
    assert_eq!((first.observed_ns, first.asked_ns, first.total_ns, first.mean_ns), (None, None, None, None));
    let osjitter = series(Format::Osjitter, "two-cpus.txt");
    assert_eq!(
        (osjitter[1].loop_ns, osjitter[1].total_ns, osjitter[1].observed_ns),
        (Some(20), Some(1_449_487_440), None)
    );
    assert_eq!(osjitter[1].asked_ns, Some(1_000_000_000));
    let sysjitter = series(Format::Sysjitter, "two-cores.txt");
    assert_eq!((sysjitter[0].observed_ns, sysjitter[0].count), (Some(1_038_868_434), Some(78)));
    assert_eq!((sysjitter[1].threshold_ns, sysjitter[1].quantiles.len()), (Some(300), 6));
}

#[test]
fn wake_ups_are_no_stolen_time() {
    for name in ["histogram.txt", "histogram-sum.txt", "statistics.txt", "live.txt", "threads.json"] {
        let Anything::Distribution(found) = sample(Format::Cyclictest, name) else { panic!() };
        assert_eq!((found.quantity, found.loop_subtracted), (Quantity::Wakeup, None), "{name}");
    }
    let sum = series(Format::Cyclictest, "histogram-sum.txt");
    assert_eq!(sum.iter().map(|series| series.name.as_str()).collect::<Vec<_>>(), ["thread 0", "thread 1"]);
    assert_eq!((sum[0].count, sum[0].min_ns, sum[0].max_ns), (Some(1_927 + 35), Some(27_000), Some(6_847_000)));
    assert_eq!(sum[1].above.map(|above| (above.from_ns, above.count)), Some((100_000, 11)));
    let json = series(Format::Cyclictest, "threads.json");
    assert!(json.iter().all(|series| series.in_histogram() == series.count.unwrap()), "{json:?}");
}

#[test]
fn of_oslat_all_steps_are_counted() {
    let json = series(Format::Oslat, "one-core.json").remove(0);
    assert_eq!((json.cpu, json.observed_ns, json.max_ns), (Some(CpuId::new(0)), Some(2_005_000_000), Some(24_041_000)));
    let first = json.buckets[0];
    assert_eq!((first.from_ns, first.below_ns, first.count), (0, 1_000, 69_844_223));
    assert_eq!(json.above.map(|above| (above.from_ns, above.count)), Some((31_000, 208)));
    let shifted = series(Format::Oslat, "zeros-left-out.txt").remove(0);
    assert_eq!(
        shifted.above.map(|above| (above.from_ns, above.count)),
        Some((16_000, 414)),
        "the last one holds all longer"
    );
    let text = series(Format::Oslat, "two-cores.txt");
    assert_eq!((text.len(), text[1].buckets[0].count, text[1].mean_ns), (2, 1_196_550, None));
}

#[test]
fn interruptions_of_sysjitter_end_at_their_time_stamps() {
    let Anything::Detours(raw) = sample(Format::SysjitterRaw, "raw.0") else { panic!() };
    assert_eq!((raw.cpu, raw.threshold), (Some(CpuId::new(0)), Some(Nanos::new(20_000))));
    assert_eq!((raw.detours[0], raw.detours.len()), ((Nanos::new(286_850 - 21_935), Nanos::new(21_935)), 36));
    assert_eq!(raw.length, Some(Nanos::new(995_370_805)));
    let Anything::Detours(sorted) = sample(Format::SysjitterRaw, "sorted.1") else { panic!() };
    assert!(sorted.detours.is_sorted() && sorted.detours.len() == 18);
    let none = read(Format::SysjitterRaw, "r.7", b"# cpu_mhz: 2597\n# threshold: 900ns\n# n_interruptions: 0\n");
    assert!(matches!(none, Ok(Anything::Detours(list)) if list.cpu == Some(CpuId::new(7)) && list.detours.is_empty()));
    let cut = read(Format::SysjitterRaw, "r.7", b"# n_interruptions: 2\n 100 0 9 5\n").unwrap_err();
    assert_eq!(cut.to_string(), "it says 2 interruptions, and holds 1");
}

#[test]
fn loggopsim_reads_what_is_exported() {
    let detours = [(40, 10), (90, 5)].map(|(start, duration)| (Nanos::new(start), Nanos::new(duration)));
    let mut file = NoiseFile::begin(Vec::new()).unwrap();
    detours.iter().for_each(|(start, duration)| file.detour(*start, *duration).unwrap());
    let file = file.end(Nanos::new(100)).unwrap();
    assert_eq!(recognize(Source { name: "noise.txt", bytes: &file }), Some(Format::Loggopsim));
    let Anything::Detours(list) = read(Format::Loggopsim, "noise.txt", &file).unwrap() else { panic!() };
    assert_eq!((list.detours.as_slice(), list.length), (detours.as_slice(), Some(Nanos::new(100))));
    for text in ["", "0\t0", "#\n"] {
        assert!(read(Format::Loggopsim, "noise.txt", text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn samples_of_work_keep_what_is_fixed() {
    let Anything::Samples(ftq) = sample(Format::Ftq, "one-thread_0.dat") else { panic!() };
    let list = &ftq[0];
    assert_eq!((list.fixed, list.grain, list.cpu), (Fixed::Time, Some(Nanos::from_millis(1)), None));
    assert!(list.has_starts && list.samples.len() == 99, "the last window's length is not known");
    let Anything::Samples(fwq) = sample(Format::Fwq, "two-threads.dat") else { panic!() };
    assert_eq!(fwq.iter().map(|list| list.cpu.unwrap().get()).collect::<Vec<_>>(), [0, 1]);
    // 118,819 ticks at 2.596055 GHz.
    assert_eq!((fwq[0].samples[0].duration, fwq[0].has_starts), (Nanos::new(45_769), false));
    let unknown = samples(Format::Fwq, Source { name: "x", bytes: b"100\n" }, Known::default(), &mut |_| {});
    assert!(unknown.unwrap_err().why.contains("how fast"));
    let fixed = "# Benchmark Method: fwq\n# Compute-Cycle Duration: 1000 usec\n# Fixed Work Quantum Benchmark\n0   1003\n1   1000\n";
    let Anything::Samples(lists) = read(Format::Netgauge, "n", fixed.as_bytes()).unwrap() else { panic!() };
    assert_eq!((lists[0].fixed, lists[0].samples[1].start), (Fixed::Work, Nanos::from_micros(1_003)));
}

#[test]
fn windows_in_ticks_are_put_together_from_two_files() {
    let column = |name: &str| {
        let bytes = fs::read(folder().join("ftq-ticks").join(name)).unwrap();
        ftq_ticks::column(Source { name, bytes: &bytes }, &mut |_| {}).unwrap().numbers
    };
    let join = |prefix: &str, hz| {
        let [times, counts] = ["times", "counts"].map(|half| column(&format!("{prefix}_{half}.dat")));
        ftq_ticks::joined(prefix, &times, &counts, hz)
    };
    // Windows of 2^20 ticks of a counter of 2445.404 MHz.
    let lists = join("serial_0", Some(2.445_404e9)).unwrap();
    let [list] = lists.as_slice() else { panic!("{lists:?}") };
    assert_eq!((list.samples.len(), list.fixed, list.has_starts, list.cpu), (119, Fixed::Time, true, None));
    let mut lengths: Vec<i64> = list.samples.iter().map(|sample| sample.duration.get()).collect();
    lengths.sort_unstable();
    let window = (1_048_576_f64 / 2.445_404).round() as i64;
    assert!((lengths[60] - window).abs() < 50, "the median is {}, and not {window}", lengths[60]);
    let (times, counts) = (column("serial_0_times.dat"), column("serial_0_counts.dat"));
    let second = (times[1] - times[0]) as f64 / 2.445_404;
    let row = list.samples[1];
    assert_eq!((row.start, row.work), (Nanos::new(second.round() as i64), counts[1] as u64));
    // The two threads of the OpenMP variant stand one after another.
    let threads = join("omp", Some(2.445_404e9)).unwrap();
    assert_eq!(threads.iter().map(|list| list.samples.len()).collect::<Vec<_>>(), [59, 59]);
    assert_eq!(threads[1].samples[1].work, 19_287);

    let refused = |of: Result<Vec<SampleList>, ReadError>, why: &str| {
        let error = of.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(join("serial_0", None), "--rate");
    refused(ftq_ticks::joined("run_1", &[1], &[1], Some(1e9)), "thread 1");
    refused(ftq_ticks::joined("run", &[1, 2], &[1], Some(1e9)), "2 times, and there are 1");
    refused(ftq_ticks::joined("run", &[1, 2], &[1, -1], Some(1e9)), "count 2 is below zero");
    refused(ftq_ticks::joined("run", &[0, i64::MAX], &[1, 1], Some(1e-3)), "--rate right");
    let falling: Vec<i64> = (0..5_000).rev().collect();
    refused(ftq_ticks::joined("run", &falling, &falling, Some(1e9)), "no begins");
    refused(
        samples(Format::FtqTicks, Source { name: "a_times.dat", bytes: b"1\n" }, Known::default(), &mut |_| {}),
        "one of two",
    );
}

#[test]
fn ranks_of_a_csv_are_lists() {
    let Anything::Samples(ranks) = sample(Format::FtqTicks, "mpi.csv") else { panic!() };
    assert_eq!(ranks.len(), 2);
    let bytes = fs::read_to_string(folder().join("ftq-ticks/mpi.csv")).unwrap();
    let last: Vec<&str> = bytes.lines().rev().nth(1).unwrap().split(',').collect();
    for (rank, list) in ranks.iter().enumerate() {
        // The file says how fast the counter was, and how often windows came.
        assert_eq!((list.samples.len(), list.grain), (99, Some(Nanos::from_millis(5))));
        let row = list.samples.last().unwrap();
        assert_eq!(row.start.get(), (last[0].parse::<f64>().unwrap() / 2.4454).round() as i64);
        // The upper half of the eight bytes is no part of a count.
        assert_eq!(row.work, last[1 + rank].parse::<u64>().unwrap() - (31 << 32));
    }
    for (text, why) in [("0,1,2\n5,1\n", "line 2: it has 2 numbers, and not 3"), ("0,1\n5,x\n", "'x'")] {
        let error = read(Format::FtqTicks, "csv", text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn tables_and_histograms_of_rtla_are_told_apart() {
    let top = "duration:   0 00:00:10 | time is in us\n\
               CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW          NMI          IRQ      Softirq       Thread\n  \
               3 #60       60000000         8120    99.98646         512          88          14            0        60211         900           7\n";
    let Anything::Distribution(found) = read(Format::Rtla, "top", top.as_bytes()).unwrap() else { panic!() };
    let of = &found.series[0];
    assert_eq!((found.tool.as_str(), found.quantity), ("rtla osnoise top", Quantity::Stolen));
    assert_eq!((of.observed_ns, of.total_ns, of.max_ns), (Some(60_000_000_000), Some(8_120_000), Some(88_000)));
    assert_eq!((of.count, of.counts.len()), (None, 6));
    assert_eq!(recognize(Source { name: "top", bytes: top.as_bytes() }), Some(Format::Rtla));
    let hist = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:05\n\
                Index   IRQ-000   Thr-000\n0            10         0\n10            2         9\n30            0         3\n\
                over:         0         1\ncount:       12        13\nmin:          1         -\navg:          2        20\nmax:         11       400\n\
                ALL:        IRQ       Thr\ncount:       12        13\n";
    let Anything::Distribution(found) = read(Format::Rtla, "hist", hist.as_bytes()).unwrap() else { panic!() };
    assert_eq!(found.quantity, Quantity::Wakeup);
    let [irq, thread] = found.series.as_slice() else { panic!("{found:?}") };
    assert_eq!((irq.name.as_str(), thread.name.as_str(), thread.min_ns), ("CPU 0 irq", "CPU 0 thread", None));
    assert_eq!((irq.buckets[0].below_ns, irq.asked_ns), (10_000, Some(5_000_000_000)), "buckets are of 10 us");
    assert_eq!(irq.observed_ns, None, "that is how long the tool ran");
    assert_eq!(thread.above.map(|above| (above.from_ns, above.count)), Some((40_000, 1)));
    let headless = "0            10         0\nover: 0 0\n";
    assert!(read(Format::Rtla, "hist", headless.as_bytes()).is_err());
}

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
        (Format::Ftq, "# Frequency 1000\n5 1\n4 1\n", Place::Line(3), "before the one in front"),
        (Format::Netgauge, "0 5\n", Place::Line(1), "no remark"),
        (Format::Fwq, "12x\n", Place::Line(1), "no whole number"),
    ] {
        let error = read(format, "file", text.as_bytes()).unwrap_err();
        let fits = error.place == place && error.why.contains(why);
        assert!(fits || why == "adds up" && error.why.contains("add up"), "{format}: {error}");
    }
}

/// A file that ends too early, after a line or within one, is refused, or a warning says what is not known, or nothing is missing.
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
                        .is_ok_and(|file| file.cpus.iter().all(|pages| pages.each(&mut |_, _| Ok(true)).is_ok())),
                };
                assert!(!is_whole, "{} cut at byte {cut}", path.display());
            }
        }
    }
}

/// Where a file is cut: after lines, and within them.
fn cuts(bytes: &[u8]) -> impl Iterator<Item = usize> {
    const MOST: usize = 400;
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').map(|at| at + 1).collect();
    let begins = std::iter::once(0).chain(ends.iter().copied());
    let middles: Vec<usize> =
        begins.zip(&ends).flat_map(|(begin, end)| [begin + 1, (begin + end) / 2, end - 1]).collect();
    let all: std::collections::BTreeSet<usize> = ends.into_iter().chain(middles).collect();
    // The last ones are those where a program says that it ended.
    let skipped = all.len().saturating_sub(MOST);
    let step = (skipped / MOST).max(1);
    let kept: Vec<usize> =
        all.into_iter().enumerate().filter(|(at, _)| *at >= skipped || at % step == 0).map(|(_, cut)| cut).collect();
    kept.into_iter()
}

fn warnings(found: &Anything) -> &[Warning] {
    match found {
        Anything::Detours(list) => &list.warnings,
        Anything::Samples(lists) => lists.first().map_or(&[], |list| &list.warnings),
        Anything::Distribution(found) => &found.warnings,
    }
}

fn says_its_end(warnings: &[Warning]) -> bool {
    warnings.iter().any(|warning| ["imported_cut", "imported_end_unknown"].contains(&warning.code.as_str()))
}

/// The samples end as their programs end, so that none is said to be cut.
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

/// Two columns of numbers may be anything: only a title makes detours of them.
#[test]
fn numbers_without_a_title_are_not_guessed() {
    for text in [
        "0.5 1.25\n2.5 0.5\n",
        "002337\t000001\n002557\t000001\n",
        "000000\t000000\t000000\n000001\t000003\t000000\n",
        "time,core1\n000000,000000\n000001,000003\n",
        "10 5\n20 3\n",
        // A histogram that begins and ends as LogGOPSim's files do.
        "0\t0\n1\t500\n2\t17\n3\t0",
    ] {
        let source = Source { name: "file.txt", bytes: text.as_bytes() };
        assert_eq!(recognize(source), None, "{text}");
        let what = near_miss(source).unwrap();
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

/// A file that is not read is called by its name, with what to do.
#[test]
fn near_misses_are_named() {
    let oslat = fs::read_to_string(folder().join("oslat/two-cores.txt")).unwrap();
    let behind = |text: &str, prefix: &str| text.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
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
        (behind(&oslat, "2026-03-03T10:11:12.123456789Z ").into(), &["1 word", "oslat", "sed"]),
        (behind(&oslat, "2026-03-03T10:11:12.123456789Z stdout F ").into(), &["3 words", "oslat"]),
        (behind(&oslat, "Mar  3 10:11:12 node7 oslat[77]: ").into(), &["5 words", "oslat"]),
        (behind(&oslat, "[2026-03-03 10:11:12,123] ").into(), &["2 words", "oslat"]),
        (behind(&oslat, "web-1  | ").into(), &["2 words", "oslat"]),
        (behind(&oslat, "2026-03-03T10:11:12Z\t").into(), &["1 word", "oslat"]),
        (behind(&oslat, "[pod/a/b] 2026-03-03T10:11:12.1Z ").into(), &["2 words", "oslat"]),
        (behind(&rtla, "2026-03-03T10:11:12Z ").into(), &["1 word", "rtla"]),
        (behind(&rtla, "Mar  3 10:11:12 node7 rtla[77]: ").into(), &["5 words", "rtla"]),
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
        // What the kernel traced is recognized by its title, and its reader finds nothing.
        assert!(recognize(source).is_none_or(|format| format == Format::Ftrace), "{text}: {:?}", recognize(source));
        let what = near_miss(source).unwrap_or_else(|| panic!("{text} is not named"));
        assert!(words.iter().all(|word| what.contains(word)), "{text}: {what}");
    }
    assert_eq!(near_miss(Source { name: "", bytes: b"\x7fELF\x02\x01\0\0" }), None);
    assert_eq!(near_miss(Source { name: "", bytes: b"Dear diary,\nnothing happened today.\n" }), None);
}

/// A log's prefix in front of a trace's lines would become a part of threads' names, and hide marks of lost events.
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
            let what = near_miss(source).unwrap_or_default();
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
    let what = near_miss(Source { name: "log", bytes: logged.as_bytes() }).unwrap();
    let (_, command) = what.split_once("with sed -E '").unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &logged).unwrap();
    let script = command.strip_suffix('\'').unwrap();
    let plain = std::process::Command::new("sed").args(["-E", script]).arg(file.path()).output().unwrap();
    let Ok(Anything::Distribution(found)) = read(Format::Oslat, "oslat", &plain.stdout) else { panic!() };
    assert_eq!(found.series, series(Format::Oslat, "two-cores.txt"));
}

/// What rtla prints behind a histogram, and the largest number as the shortest of a CPU on which nothing came, are no rows and no values.
#[test]
fn sentences_and_impossible_values_behind_a_histogram_are_left_out() {
    let plain = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:05\n\
                 Index   Thr-000   Thr-001\n1            10         0\n2             2         0\n3             1         0\n\
                 over:         0         0\ncount:       13         0\nmin:          1         0\navg:          1         0\nmax:          3         0\n";
    let Ok(Anything::Distribution(wanted)) = read(Format::Rtla, "hist", plain.as_bytes()) else { panic!() };
    assert_eq!(wanted.series[1].count, Some(0));
    assert_eq!((wanted.series[1].min_ns, wanted.series[1].max_ns), (None, None));
    let odd = plain.replace("min:          1         0", "min:          1         18446744073709551615");
    for sentence in [
        "rtla timerlat hit stop tracing\n",
        "2 events\n",
        "12 3 events missed\n",
        "## CPU 1 hit stop tracing, analyzing it ##\n",
        "ALL:        IRQ       Thr\ncount:       12        13\n",
        "3 4\n5 6 7\n",
    ] {
        let text = format!("{odd}{sentence}");
        let found = read(Format::Rtla, "hist", text.as_bytes()).unwrap_or_else(|error| panic!("{sentence}: {error}"));
        assert_eq!(found, Anything::Distribution(wanted.clone()), "{sentence}");
    }
    // With sentences between the rows as well.
    let between = odd.replace("over:", "5 of 17 samples were late\nover:");
    assert_eq!(read(Format::Rtla, "hist", between.as_bytes()), Ok(Anything::Distribution(wanted)));
    let damaged = plain.replace("2             2         0", "2             2");
    assert_eq!(read(Format::Rtla, "hist", damaged.as_bytes()).unwrap_err().place, Place::Line(6));
}

#[test]
fn a_run_in_which_rtla_saw_nothing_is_a_result() {
    for figures in ["over:\ncount:\nmin:\navg:\nmax:\n", "over: 0\ncount: 0\nmin: 0\navg: 0\nmax: 0\n"] {
        let text = format!(
            "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:01:05\nIndex\n{figures}"
        );
        let Anything::Distribution(found) = read(Format::Rtla, "hist", text.as_bytes()).unwrap() else { panic!() };
        let [all] = found.series.as_slice() else { panic!("{found:?}") };
        assert_eq!((all.count, all.asked_ns, all.max_ns), (Some(0), Some(65_000_000_000), None));
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    }
}

/// The width of buckets is in no file: it is never taken to be narrower than the values that a bucket holds.
#[test]
fn buckets_of_rtla_hold_their_values() {
    let text = |tool: &str, rows: &str, max: &str| {
        let sum: u64 = rows.lines().filter_map(|row| row.split_whitespace().nth(1)?.parse::<u64>().ok()).sum();
        format!(
            "# RTLA {tool} histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:05\nIndex   CPU-000\n{rows}over: 0\ncount: {sum}\n\
             min: {}\navg: 0\nmax: {max}\n",
            rows.split_whitespace().next().unwrap()
        )
    };
    for (rows, max, widths, code) in [
        ("0 5\n10 3\n20 1\n", "25", &[10_000_i64, 10_000, 10_000][..], None),
        // Two rows allow for any divisor of ten: the widest is right for each.
        ("0 5\n10 3\n", "12", &[10_000, 10_000], Some("imported_width_unknown")),
        // One at 0 allows for any width.
        ("0 5\n", "7", &[], Some("imported_width_unknown")),
        // Buckets cannot be wider than ten, and the longest lies beyond.
        ("0 5\n10 3\n20 1\n", "35", &[], Some("imported_width_unknown")),
        // Nor narrower than one.
        ("0 5\n1 3\n2 1\n", "58", &[1_000, 1_000, 1_000], Some("imported_rows_missing")),
    ] {
        let text = text("timerlat", rows, max).replace("CPU-000", "Thr-000");
        let Anything::Distribution(found) = read(Format::Rtla, "hist", text.as_bytes()).unwrap() else { panic!() };
        let of = &found.series[0];
        let found_widths: Vec<i64> = of.buckets.iter().map(|bucket| bucket.below_ns - bucket.from_ns).collect();
        assert_eq!(found_widths, widths, "{rows}");
        assert_eq!(of.in_histogram(), of.count.unwrap(), "{rows}");
        assert_eq!(found.warnings.first().map(|warning| warning.code.as_str()), code, "{rows}: {:?}", found.warnings);
    }
}

/// Lines that a format does not have are left out and counted, wherever they stand.
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
        Anything::Distribution(found) => Anything::Distribution(Distribution { warnings: Vec::new(), ..found }),
    }
}

/// Numbers that are too large for what is made of them are refused where they stand, and not when all is stored.
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
        assert!(near_miss(source).unwrap().contains("--from selfish"), "{title}");
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
    // The begin that is looked at may end within a number.
    let long: String = (1..9_000).map(|row| format!("{} 900\n", row * 1_000)).collect();
    let long = format!("# start length\n{long}");
    assert!(long.len() > recognize::LOOKED_AT && !long[..recognize::LOOKED_AT].ends_with('\n'));
    assert_eq!(recognize(Source { name: "file.txt", bytes: long.as_bytes() }), Some(Format::Selfish));
}

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
        // Bare numbers have no title that comes again, and LogGOPSim's files no end of line.
        if ["serial_", "omp_", "exported."].iter().any(|begin| name.starts_with(begin)) {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        assert_second_report(read(format, &name, text.repeat(2).as_bytes()), &text, &name);
        refused += 1;
    }
    assert!(refused >= 20, "{refused} were refused");
    // Also the kernel's traces: lines of a second one would be booked on times that they are not of.
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

/// rtla prints its table again and again if it may clear the terminal, and one run's table follows another's if it may not.
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
    // A histogram in front of or behind a table.
    let histogram = fs::read_to_string(folder().join("rtla/osnoise-hist.txt")).unwrap();
    for (first, second) in [(&first, &histogram), (&histogram, &first)] {
        assert_second_report(read(Format::Rtla, "log", format!("{first}{second}").as_bytes()), first, second);
    }
}

/// oslat's text with rows of a label and a count for CPU 1.
fn oslat_text(head: &str, rows: &[(&str, u64)], max: &str) -> String {
    let mut text = format!("{head}\n        Core:\t 1\nCounter Freq:\t 2600 (MHz)\n");
    for (at, (label, count)) in rows.iter().enumerate() {
        let rest = if at + 1 == rows.len() { " (including overflows)" } else { "" };
        text += &if *label == "..." { "    ...\n".to_owned() } else { format!("{label:>7} (us):\t {count}{rest}\n") };
    }
    text + &format!(
        "     Minimum:\t 1 (us)\n     Average:\t 1.000 (us)\n     Maximum:\t {max} (us)\n    Duration:\t 10.002 (sec)\n"
    )
}

/// oslat's JSON of CPU 1.
fn oslat_json(command: &str, rows: &[(&str, u64)], max: u64) -> String {
    let rows: Vec<String> = rows.iter().map(|(label, count)| format!("\"{label}\": {count}")).collect();
    format!(
        "{{{command}\"rt_test_version:\": \"2.70\", \"thread\": {{\"0\": {{\"cpu\": 1, \"min\": 23, \"max\": {max}, \"histogram\": {{{}}}}}}}}}",
        rows.join(", ")
    )
}

/// The edges of the buckets, the count above them, the maximum, and whether their width is in doubt.
fn spans(text: &str) -> (Vec<[i64; 2]>, Option<i64>, Option<i64>, bool) {
    let Anything::Distribution(found) = read(Format::Oslat, "file", text.as_bytes()).unwrap() else { panic!() };
    check(&Anything::Distribution(found.clone()), text);
    let of = &found.series[0];
    let is_unsure = found.warnings.iter().any(|warning| warning.code == "imported_width_unknown");
    let spans = of.buckets.iter().map(|bucket| [bucket.from_ns, bucket.below_ns]).collect();
    (spans, of.above.map(|above| above.from_ns), of.max_ns, is_unsure)
}

/// Buckets of oslat are as wide as their edges say, with microseconds and with nanoseconds.
#[test]
fn buckets_of_oslat_have_their_own_width() {
    const V: &str = "oslat V 2.70\n";
    const BIAS: &str = "oslat V 2.70\nGlobal bias set to 37 (us)\n";
    let wide = [[0, 100_000], [100_000, 200_000]];
    let half = [[500, 1_000], [1_000, 1_500]];
    for (head, rows, wanted, above, is_unsure) in [
        (V, &[("100", 9), ("200", 5), ("300", 1)][..], wide.to_vec(), 200_000, false),
        ("", &[("100", 9), ("200", 5), ("300", 1)], wide.to_vec(), 200_000, false),
        (V, &[("001.000", 9), ("001.500", 5), ("002.000", 1)], half.to_vec(), 1_500, false),
        (BIAS, &[("137", 9), ("237", 5), ("337", 1)], vec![[37_000, 137_000], [137_000, 237_000]], 237_000, false),
        // With -z, one that is next to another one says enough, as does a microsecond, than which none is narrower.
        (
            V,
            &[("...", 0), ("300", 9), ("400", 5), ("...", 0), ("900", 1)],
            vec![[200_000, 300_000], [300_000, 400_000]],
            800_000,
            false,
        ),
        (V, &[("001", 9), ("...", 0), ("032", 1)], vec![[0, 1_000]], 31_000, false),
        (V, &[("100", 9), ("...", 0), ("3200", 1)], vec![[0, 100_000]], 3_100_000, true),
        ("", &[("101", 9), ("...", 0), ("301", 1)], vec![[0, 101_000]], 101_000, true),
    ] {
        let found = spans(&oslat_text(head, rows, "4700"));
        assert_eq!(found, (wanted, Some(above), Some(4_700_000), is_unsure), "{head}{rows:?}");
    }
    assert_eq!(spans(&oslat_text(V, &[("0.500", 9), ("1.000", 1)], "412.345")).2, Some(412_345));

    let command = |options: &str| format!("\"cmdline:\": \"oslat -D 10 {options}\", ");
    let three = &[("100", 9), ("200", 5), ("300", 1)][..];
    for (command, rows, max, wanted, above, max_ns, is_unsure) in [
        (
            command("-W 100000 -q"),
            three,
            290,
            vec![[0, 100_000], [100_000, 200_000], [200_000, 300_000]],
            None,
            290_000,
            false,
        ),
        (command("-qzW100000"), three, 4_700, wide.to_vec(), Some(200_000), 4_700_000, false),
        (command("--bucket-width=50000"), &[("100", 9)], 90, vec![[50_000, 100_000]], None, 90_000, false),
        (command("--bucket-w 50000"), &[("100", 9)], 90, vec![[50_000, 100_000]], None, 90_000, false),
        (command("-w memmove"), &[("2", 9), ("5", 1)], 5, vec![[1_000, 2_000], [4_000, 5_000]], None, 5_000, false),
        // A command line that the edges contradict, or none.
        (
            command("-W 70000"),
            three,
            290,
            vec![[0, 100_000], [100_000, 200_000], [200_000, 300_000]],
            None,
            290_000,
            false,
        ),
        (String::new(), &[("100", 9), ("300", 1)], 290, vec![[0, 100_000], [100_000, 300_000]], None, 290_000, true),
        (
            command("-W 500"),
            &[("0.500", 9), ("1.000", 5), ("1.500", 1)],
            412_345,
            vec![[0, 500], [500, 1_000]],
            Some(1_000),
            412_345,
            false,
        ),
    ] {
        let text = oslat_json(&command, rows, max);
        assert_eq!(spans(&text), (wanted, above, Some(max_ns), is_unsure), "{text}");
    }
}
