//! Histograms of rtla and oslat: the width of their buckets, and the lines after them.

use super::*;

/// rtla prints sentences after a histogram, and the largest number as the minimum of a CPU without events: these are no rows and no values.
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

/// No file has the width of buckets: it is never taken to be narrower than a bucket's values.
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
        // One row at 0 allows for any width.
        ("0 5\n", "7", &[], Some("imported_width_unknown")),
        // Buckets cannot be wider than ten, and the longest is beyond.
        ("0 5\n10 3\n20 1\n", "35", &[], Some("imported_width_unknown")),
        // Nor narrower than one.
        ("0 5\n1 3\n2 1\n", "58", &[1_000, 1_000, 1_000], Some("imported_rows_missing")),
    ] {
        let text = text("timerlat", rows, max).replace("CPU-000", "Thr-000");
        let Anything::Distribution(found) = read(Format::Rtla, "hist", text.as_bytes()).unwrap() else { panic!() };
        let series = &found.series[0];
        let found_widths: Vec<i64> = series.buckets.iter().map(|bucket| bucket.below_ns - bucket.from_ns).collect();
        assert_eq!(found_widths, widths, "{rows}");
        assert_eq!(series.in_histogram(), series.count.unwrap(), "{rows}");
        assert_eq!(found.warnings.first().map(|warning| warning.code.as_str()), code, "{rows}: {:?}", found.warnings);
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
    let series = &found.series[0];
    let is_unsure = found.warnings.iter().any(|warning| warning.code == "imported_width_unknown");
    let spans = series.buckets.iter().map(|bucket| [bucket.from_ns, bucket.below_ns]).collect();
    (spans, series.above.map(|above| above.from_ns), series.max_ns, is_unsure)
}

/// Buckets of oslat are as wide as their edges show, in microseconds and in nanoseconds.
#[test]
fn buckets_of_oslat_have_their_own_width() {
    const V: &str = "oslat V 2.70\n";
    const BIAS: &str = "oslat V 2.70\nGlobal bias set to 37 (us)\n";
    let wide = [[0, 100_000], [100_000, 200_000]];
    let half = [[500, 1_000], [1_000, 1_500]];
    for (head, rows, wanted, overflow, is_unsure) in [
        (V, &[("100", 9), ("200", 5), ("300", 1)][..], wide.to_vec(), 200_000, false),
        ("", &[("100", 9), ("200", 5), ("300", 1)], wide.to_vec(), 200_000, false),
        (V, &[("001.000", 9), ("001.500", 5), ("002.000", 1)], half.to_vec(), 1_500, false),
        (BIAS, &[("137", 9), ("237", 5), ("337", 1)], vec![[37_000, 137_000], [137_000, 237_000]], 237_000, false),
        // With -z, two neighbors are enough; so is a microsecond, because no bucket is narrower.
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
        assert_eq!(found, (wanted, Some(overflow), Some(4_700_000), is_unsure), "{head}{rows:?}");
    }
    assert_eq!(spans(&oslat_text(V, &[("0.500", 9), ("1.000", 1)], "412.345")).2, Some(412_345));

    let command = |options: &str| format!("\"cmdline:\": \"oslat -D 10 {options}\", ");
    let three = &[("100", 9), ("200", 5), ("300", 1)][..];
    for (command, rows, max, wanted, overflow, max_ns, is_unsure) in [
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
        assert_eq!(spans(&text), (wanted, overflow, Some(max_ns), is_unsure), "{text}");
    }
}
