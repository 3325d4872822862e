//! Logs of HdrHistogram, format 1.3: a line with a histogram of lengths for each CPU, in its V2 encoding.
//!
//! Source: `HistogramLogWriter.java`, `AbstractHistogram.java` and `ZigZagEncoding.java` of HdrHistogram. The crate `hdrhistogram` counts;
//! its own encoder would need four more crates.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use becalm_units::Nanos;
use hdrhistogram::Histogram;
use miniz_oxide::deflate::compress_to_vec_zlib;

use super::decimal::Decimal;

/// Cookies of the V2 encoding, plain and compressed.
const COOKIE: u32 = 0x1c84_9313;
const COMPRESSED_COOKIE: u32 = 0x1c84_9314;

/// The lengths of a CPU's detours.
#[derive(Clone, Debug)]
pub struct Lengths(Histogram<u64>);

impl Lengths {
    /// Creates a histogram with 1 to 5 significant digits. With 3, buckets are at most 0.1 % wide, and an hour takes 250 KiB. Panics with
    /// more digits, or none.
    pub fn new(digits: u8) -> Self {
        Self(Histogram::new(digits).expect("1 to 5 digits are allowed"))
    }

    /// Adds this many detours of a length in nanoseconds; a negative one counts as 0.
    pub fn add(&mut self, ns: i64, count: u64) {
        // An auto-resizing histogram takes every value.
        let _ = self.0.record_n(ns.max(0) as u64, count);
    }

    /// The histogram in V2 encoding, compressed.
    pub fn encoded(&self) -> Vec<u8> {
        let mut counts = Vec::new();
        let mut zeros = 0_i64;
        for count in self.0.iter_all().map(|bucket| bucket.count_at_value()) {
            if count == 0 {
                zeros += 1;
                continue;
            }
            push_zeros(&mut counts, std::mem::take(&mut zeros));
            push_count(&mut counts, i64::try_from(count).unwrap_or(i64::MAX));
        }
        let mut plain = Vec::with_capacity(40 + counts.len());
        plain.extend(COOKIE.to_be_bytes());
        plain.extend((counts.len() as u32).to_be_bytes());
        // The normalizing offset of a shifted histogram.
        plain.extend(0_u32.to_be_bytes());
        plain.extend(u32::from(self.0.sigfig()).to_be_bytes());
        plain.extend(self.0.low().to_be_bytes());
        plain.extend(self.0.high().to_be_bytes());
        plain.extend(1.0_f64.to_be_bytes());
        plain.extend(counts);
        let packed = compress_to_vec_zlib(&plain, 6);
        let mut encoded = Vec::with_capacity(8 + packed.len());
        encoded.extend(COMPRESSED_COOKIE.to_be_bytes());
        encoded.extend((packed.len() as u32).to_be_bytes());
        encoded.extend(packed);
        encoded
    }
}

/// Writes a run of zero counts: a single one as 0, more as a negative number.
fn push_zeros(counts: &mut Vec<u8>, zeros: i64) {
    match zeros {
        0 => {}
        1 => push_count(counts, 0),
        _ => push_count(counts, -zeros),
    }
}

/// Writes a number in zigzag encoding, seven bits per byte, the lowest first; a ninth byte has eight.
fn push_count(counts: &mut Vec<u8>, number: i64) {
    let mut rest = becalm_units::protobuf::zigzag(number);
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        counts.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    counts.push(rest as u8);
}

/// A log being written.
#[derive(Debug)]
pub struct HistogramLog<W> {
    out: W,
    /// The instant from which times count, in milliseconds since 1970.
    base_ms: i128,
    /// The start of each interval since then, and its line: readers expect them in order.
    lines: Vec<(i128, String)>,
}

impl<W: Write> HistogramLog<W> {
    /// Starts a log whose times count from an instant, if that is known.
    pub fn begin(mut out: W, base: Option<jiff::Timestamp>) -> io::Result<Self> {
        let base_ms = base.map_or(0, |base| base.as_nanosecond().div_euclid(1_000_000));
        writeln!(out, "#[Histogram log format version 1.3]")?;
        writeln!(out, "#[becalm: lengths of detours in nanoseconds; Interval_Max in milliseconds]")?;
        if let Some(base) = base {
            let seconds = Decimal::<3>(base_ms);
            writeln!(out, "#[BaseTime: {seconds} (seconds since epoch)]")?;
            writeln!(out, "#[StartTime: {seconds} (seconds since epoch), {base}]")?;
        }
        writeln!(out, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"")?;
        Ok(Self { out, base_ms, lines: Vec::new() })
    }

    /// Adds the histogram of a CPU whose loop started at an instant, in nanoseconds since 1970, and ran for this length.
    pub fn interval(&mut self, tag: &str, begin: i128, length: Nanos, lengths: &Lengths) {
        let is_delimiter = |c: char| c == ',' || c.is_whitespace() || c.is_control();
        let tag: String = tag.chars().map(|c| if is_delimiter(c) { '_' } else { c }).collect();
        let begin = begin.div_euclid(1_000_000) - self.base_ms;
        let length = Decimal::<3>(i128::from(length.get() / 1_000_000));
        let max = if lengths.0.is_empty() { 0.0 } else { lengths.0.max() as f64 / 1e6 };
        let text = STANDARD.encode(lengths.encoded());
        self.lines.push((begin, format!("Tag={tag},{},{length},{max:.3},{text}", Decimal::<3>(begin))));
    }

    /// Writes the intervals in the order of their start, and returns the writer.
    pub fn end(mut self) -> io::Result<W> {
        self.lines.sort_by_key(|(begin, _)| *begin);
        for (_, line) in &self.lines {
            writeln!(self.out, "{line}")?;
        }
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::inflate::decompress_to_vec_zlib;
    use proptest::prelude::*;

    fn bytes(number: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_count(&mut bytes, number);
        bytes
    }

    #[test]
    fn numbers_are_short_where_they_are_small() {
        assert_eq!((bytes(0), bytes(1), bytes(-1), bytes(63)), (vec![0], vec![2], vec![1], vec![126]));
        assert_eq!(bytes(64), [0x80, 1]);
        // Nine bytes at most: the last has no mark.
        assert_eq!(bytes(i64::MIN), [0xff; 9]);
        assert_eq!(bytes(i64::MAX), [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn a_histogram_is_a_head_and_counts() {
        let mut lengths = Lengths::new(2);
        [3, 3, 3, 5, 6].into_iter().for_each(|ns| lengths.add(ns, 1));
        let encoded = lengths.encoded();
        assert_eq!(encoded[..4], [0x1c, 0x84, 0x93, 0x14]);
        assert_eq!(encoded[4..8], (encoded.len() as u32 - 8).to_be_bytes());
        let plain = decompress_to_vec_zlib(&encoded[8..]).unwrap();
        let head = [&[0x1c, 0x84, 0x93, 0x13, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 2][..], &1_u64.to_be_bytes()].concat();
        assert_eq!(plain[..24], head);
        assert_eq!(plain[32..40], [0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
        // Three zeros, three of 3 ns, a zero, one of 5 and one of 6 ns.
        assert_eq!(plain[40..], [5, 6, 0, 2, 2]);
        assert_eq!(decompress_to_vec_zlib(&Lengths::new(2).encoded()[8..]).unwrap().len(), 40);
    }

    /// Reads the counts, with their indexes.
    fn counts(encoded: &[u8]) -> Vec<(usize, i64)> {
        let plain = decompress_to_vec_zlib(&encoded[8..]).unwrap();
        let (mut rest, mut place, mut found) = (&plain[40..], 0, Vec::new());
        while !rest.is_empty() {
            let mut value = 0_u64;
            for byte in 0..9 {
                let (next, left) = rest.split_first().unwrap();
                rest = left;
                let bits = if byte == 8 { u64::from(*next) } else { u64::from(next & 0x7f) };
                value |= bits << (7 * byte);
                if byte < 8 && next & 0x80 == 0 {
                    break;
                }
            }
            match (value >> 1) as i64 ^ -((value & 1) as i64) {
                zeros if zeros < 0 => place += -zeros as usize,
                count => {
                    found.extend((count > 0).then_some((place, count)));
                    place += 1;
                }
            }
        }
        found
    }

    proptest! {
        /// The index of a value by the definition: half of a bucket's indexes are those of the bucket before.
        #[test]
        fn counts_stand_where_the_format_has_them(values in prop::collection::vec((0_i64..1 << 50, 1_u64..1 << 40), 0..50), digits in 1_u8..=4) {
            let mut lengths = Lengths::new(digits);
            let half = (2 * 10_u64.pow(digits.into())).next_power_of_two() / 2;
            let mut expected = std::collections::BTreeMap::<usize, i64>::new();
            for (value, count) in &values {
                lengths.add(*value, *count);
                let value = *value as u64;
                let bucket = (value | (2 * half - 1)).ilog2() - (2 * half - 1).ilog2();
                let place = (u64::from(bucket) * half + (value >> bucket)) as usize;
                *expected.entry(place).or_default() += *count as i64;
            }
            prop_assert_eq!(counts(&lengths.encoded()), expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_log_has_a_head_and_a_line_for_each_cpu() {
        let base: jiff::Timestamp = "2026-03-04T05:06:07.123456Z".parse().unwrap();
        let mut log = HistogramLog::begin(Vec::new(), Some(base)).unwrap();
        let mut lengths = Lengths::new(2);
        lengths.add(5_000_000, 1);
        let begin = base.as_nanosecond() + 1_500_000_000;
        log.interval("a node,x/cpu3", begin, Nanos::from_secs(10), &lengths);
        log.interval("b/cpu0", begin - 1_000_000_000, Nanos::from_secs(10), &Lengths::new(2));
        let text = String::from_utf8(log.end().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "#[BaseTime: 1772600767.123 (seconds since epoch)]");
        assert_eq!(lines[3], "#[StartTime: 1772600767.123 (seconds since epoch), 2026-03-04T05:06:07.123456Z]");
        assert!(lines[5].starts_with("Tag=b/cpu0,0.500,10.000,0.000,HISTFA"), "{}", lines[5]);
        let (numbers, histogram) = lines[6].rsplit_once(',').unwrap();
        let max = numbers.strip_prefix("Tag=a_node_x/cpu3,1.500,10.000,").unwrap();
        assert!((4.9..5.1).contains(&max.parse::<f64>().unwrap()), "{max}");
        assert_eq!(STANDARD.decode(histogram).unwrap(), lengths.encoded());
        assert!(histogram.starts_with("HISTFA"), "{histogram}");
    }
}
