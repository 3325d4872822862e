//! The readers' results for files of the real programs, compared with figures of the programs themselves.

use becalm_units::fault;

use super::*;

/// The results of the library's own tests for its logs. They add them up in a histogram of three digits, where buckets from 2^30 on are
/// 2^20 wide.
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

/// The results of the library's own reader for a log of decimal fractions, in seconds. Each interval had another range.
#[test]
fn logs_of_decimal_fractions_add_up() {
    let bytes = fs::read(folder().join("hdr/fractions.hlog")).unwrap();
    let known = FileFacts { unit: Some(TimeUnit::S), rate_hz: None };
    let found = distribution(Format::Hdr, Source { name: "log", bytes: &bytes }, known, &mut |_| {}).unwrap();
    assert_eq!(found.check(), Ok(()));
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
    // As nanoseconds they are all below one, and so one value.
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
fn all_steps_of_oslat_are_counted() {
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
    let unknown = samples(Format::Fwq, Source { name: "x", bytes: b"100\n" }, FileFacts::default(), &mut |_| {});
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
    // The two threads of the OpenMP variant follow each other.
    let threads = join("omp", Some(2.445_404e9)).unwrap();
    assert_eq!(threads.iter().map(|list| list.samples.len()).collect::<Vec<_>>(), [59, 59]);
    assert_eq!(threads[1].samples[1].work, 19_287);

    let refused = |read: Result<Vec<SampleList>, ReadError>, why: &str| {
        let error = fault::Error::from(read.unwrap_err()).message(fault::option);
        assert!(error.contains(why), "{error}");
    };
    refused(join("serial_0", None), "--rate");
    refused(ftq_ticks::joined("run_1", &[1], &[1], Some(1e9)), "thread 1");
    refused(ftq_ticks::joined("run", &[1, 2], &[1], Some(1e9)), "2 times, and there are 1");
    refused(ftq_ticks::joined("run", &[1, 2], &[1, -1], Some(1e9)), "count 2 is below zero");
    refused(ftq_ticks::joined("run", &[0, i64::MAX], &[1, 1], Some(1e-3)), "--rate right");
    let falling: Vec<i64> = (0..5_000).rev().collect();
    refused(ftq_ticks::joined("run", &falling, &falling, Some(1e9)), "not start times");
    refused(
        samples(Format::FtqTicks, Source { name: "a_times.dat", bytes: b"1\n" }, FileFacts::default(), &mut |_| {}),
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
        // The file has the rate of the counter, and of windows.
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
    let series = &found.series[0];
    assert_eq!((found.tool.as_str(), found.quantity), ("rtla osnoise top", Quantity::Stolen));
    assert_eq!(
        (series.observed_ns, series.total_ns, series.max_ns),
        (Some(60_000_000_000), Some(8_120_000), Some(88_000))
    );
    assert_eq!((series.count, series.counts.len()), (None, 6));
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
