//! Logs of HdrHistogram, versions 0 to 2, also jHiccup's: a line for each interval with its start, its length, a scaled maximum, and the
//! histogram, compressed and in base64; optionally with a tag in front. The intervals of a tag are added up.
//!
//! The log has neither the unit of its values nor their meaning; jHiccup's are known. jHiccup adds values for the time that a thread slept
//! through, so its counts are no counts of events. The maximum is not read, because the writer chooses its scale.
//!
//! Histograms of decimal fractions (`DoubleHistogram`) are integers and a ratio, a power of two that moves with the values: the same place
//! has another value from interval to interval, so these are added up by value.
//!
//! The decoder is becalm's own: that of the crate `hdrhistogram` unpacks without a limit, and needs a parser and a second decompressor.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use becalm_model::warning;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use super::distribution::{short, some_series, times};
use super::lines::{End, Lines, Progress, text};
use super::time::{TimeUnit, nanos};
use super::{ReadError, Source};
use crate::distribution::{BUCKETS, Bucket, DistributionDoc, Quantity, SERIES, Series};

/// Prefixes of the first comments of a log.
pub(super) const FIRST: [&str; 3] = ["#[Histogram log format version", "#[Logged with jHiccup", "#[StartTime:"];

/// The largest unpacked histogram of a line, in bytes: the whole range with five digits, in the words of version 1.
const UNPACKED: usize = 64 << 20;

/// The largest size of all unpacked lines together, in bytes: a short line may unpack to a thousand times as much.
const UNPACKED_OF_ALL: usize = 1 << 30;

/// The mapping of values to places in the array: binary logarithms of half the number of values in a bucket, and of the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shape {
    half: u32,
    unit: u32,
}

/// The common resolution of all intervals of a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resolution {
    /// Whole numbers, counted by their place.
    Whole(Shape),
    /// Decimal fractions with this many values in half a bucket, counted by the bits of the shortest value of each place, which are in the
    /// order of the values.
    Fractions { half: u32 },
}

#[derive(Clone, PartialEq, Debug)]
struct Histogram {
    shape: Shape,
    /// The factor of the values, if they are decimal fractions.
    ratio: Option<f64>,
    /// The count of each place that has any.
    counts: Vec<(u64, u64)>,
}

/// The count of a value, and the width of its place if that does not follow from the place.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    count: u64,
    width: f64,
}

/// The sum of the intervals of a tag.
struct Sum {
    resolution: Resolution,
    counts: BTreeMap<u64, Count>,
    observed_ns: i64,
}

/// Reads a log with values in this unit. Fails if a line is not in the format, or its histogram is damaged or differs in resolution from
/// those before it of its tag; and if the sum is larger than the limits.
pub fn read(source: Source<'_>, unit: TimeUnit, progress: Progress<'_>) -> Result<DistributionDoc, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let mut found = DistributionDoc::new("HdrHistogram", Quantity::Unknown);
    let (mut sums, mut usage) = (BTreeMap::<String, Sum>::new(), LogUsage { buckets: 0, bytes: UNPACKED_OF_ALL });
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            if !sums.is_empty() && FIRST.iter().any(|first| line.starts_with(first)) {
                return Err(lines.second_report());
            }
            remark(line, &mut found);
        } else if !line.starts_with('"') {
            interval(line, &mut sums, &mut usage).map_err(|why| lines.error(why))?;
        }
    }
    for (tag, sum) in sums {
        found.series.push(series(&tag, sum, unit.nanoseconds())?);
    }
    found.warnings.extend(lines.warnings(End::Unmarked));
    if found.quantity == Quantity::Pause {
        found.warnings.push(warning::imported_values_put_in());
    }
    some_series(found, "HdrHistogram")
}

fn remark(line: &str, found: &mut DistributionDoc) {
    let inner = line.trim_start_matches('#').trim_matches(['[', ']']);
    if let Some(rest) = inner.strip_prefix("Logged with jHiccup") {
        found.tool = format!("jHiccup{}", short(rest));
        found.quantity = Quantity::Pause;
    } else if let Some(rest) = inner.strip_prefix("StartTime:") {
        found.begun = Some(rest.trim().chars().take(80).collect());
    }
}

/// Memory that a log may still take.
struct LogUsage {
    buckets: usize,
    /// Bytes that may still be unpacked.
    bytes: usize,
}

fn interval(line: &str, sums: &mut BTreeMap<String, Sum>, usage: &mut LogUsage) -> Result<(), String> {
    let mut fields = line.split([',', ' ', '\t']).filter(|field| !field.is_empty());
    let mut first = fields.next().unwrap_or_default();
    let mut tag = "";
    if let Some(named) = first.strip_prefix("Tag=") {
        (tag, first) = (named, fields.next().unwrap_or_default());
    }
    let (Some(length), Some(_), Some(packed)) = (fields.next(), fields.next(), fields.next()) else {
        return Err("it has not the four fields of an interval".to_owned());
    };
    let seconds = |word: &str, what: &str| {
        nanos(word, TimeUnit::S).map_err(|why| format!("its {what}, '{}', {why}", short(word)))
    };
    seconds(first, "begin")?;
    let length = seconds(length, "length")?;
    let packed = STANDARD.decode(packed).map_err(|_| "its histogram is no base64".to_owned())?;
    let histogram = unpacked(&packed, &mut usage.bytes)?;
    let resolution = histogram.resolution();
    if !sums.contains_key(tag) && sums.len() >= SERIES {
        return Err("the log has more tags than are kept".to_owned());
    }
    let sum = sums.entry(tag.to_owned()).or_insert(Sum { resolution, counts: BTreeMap::new(), observed_ns: 0 });
    if sum.resolution != resolution {
        return Err("its histogram has another resolution than those before of the same tag".to_owned());
    }
    sum.observed_ns = sum.observed_ns.checked_add(length.get()).ok_or("the intervals are longer than times can be")?;
    for (place, count) in &histogram.counts {
        let (key, width) = histogram.key(*place)?;
        let total = sum.counts.entry(key).or_insert_with(|| {
            usage.buckets += 1;
            Count::default()
        });
        if usage.buckets > BUCKETS {
            return Err("the log has more values than are kept".to_owned());
        }
        total.width = total.width.max(width);
        let all = total.count.checked_add(*count).filter(|total| *total < 1 << 48);
        total.count = all.ok_or("a value comes too often to count it")?;
    }
    Ok(())
}

impl Histogram {
    fn resolution(&self) -> Resolution {
        if self.ratio.is_some() {
            Resolution::Fractions { half: self.shape.half }
        } else {
            Resolution::Whole(self.shape)
        }
    }

    /// The key of a place, and its width if that does not follow from the place.
    fn key(&self, place: u64) -> Result<(u64, f64), String> {
        let Some(ratio) = self.ratio else { return Ok((place, 0.0)) };
        let (from, width) = self.shape.span(place).ok_or("a place is beyond all values")?;
        Ok(((from as f64 * ratio).to_bits(), width as f64 * ratio))
    }
}

/// Big-endian integers of the binary form.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or("its histogram is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<u64, String> {
        Ok(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A signed number of one to nine bytes: seven bits each, the lowest first, the ninth has eight; the sign is the lowest bit.
    fn signed(&mut self) -> Result<i64, String> {
        let mut value = 0_u64;
        for at in 0..9 {
            let byte = self.number(1)?;
            if at == 8 {
                value |= byte << 56;
                break;
            }
            value |= (byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

/// The first number of a histogram of decimal fractions, plain and with a compressed histogram of whole numbers inside.
const FRACTIONS: [u64; 2] = [0x0c72_124e, 0x0c72_124f];

/// The versions of the form, by the last four bits of the first number.
const PLAIN: [u64; 3] = [0x1c84_9308, 0x1c84_9301, 0x1c84_9303];
const PACKED: [u64; 3] = [0x1c84_9309, 0x1c84_9302, 0x1c84_9304];

/// A histogram: its shape, and the count of each place that has any. `left` is the number of bytes that may still be unpacked, and is
/// reduced.
fn unpacked(bytes: &[u8], left: &mut usize) -> Result<Histogram, String> {
    let mut bytes = Bytes(bytes);
    let mut cookie = bytes.number(4)?;
    let is_of_fractions = FRACTIONS.contains(&cookie);
    if is_of_fractions {
        // Digits, and the ratio of the highest to the lowest value: the inner histogram has both itself.
        bytes.take(12)?;
        cookie = bytes.number(4)?;
    }
    let unpacked;
    if PACKED.contains(&(cookie & !0xf0)) {
        let length = bytes.number(4)? as usize;
        let packed = bytes.take(length)?;
        unpacked = decompress_to_vec_zlib_with_limit(packed, UNPACKED.min(*left))
            .map_err(|_| "its histogram is damaged, or unpacks to more than any can be".to_owned())?;
        *left -= unpacked.len();
        bytes = Bytes(&unpacked);
        cookie = bytes.number(4)?;
    }
    let version = PLAIN.iter().position(|plain| *plain == cookie & !0xf0);
    let version = version.ok_or_else(|| format!("its histogram starts with {cookie:#010x}, which no version does"))?;
    let payload = if version == 0 { None } else { Some(bytes.number(4)? as usize) };
    if version > 0 {
        // The shift of a histogram of decimal fractions.
        bytes.number(4)?;
    }
    let (digits, lowest) = (bytes.number(4)?, bytes.number(8)?);
    // The highest value; then the total, or a ratio, which version 0 lacks.
    bytes.take(8)?;
    let ratio = f64::from_bits(bytes.number(8)?);
    let ratio = match (is_of_fractions, version) {
        (true, 0) => return Err("its histogram of decimal fractions is of version 0, which has none".to_owned()),
        (true, _) => Some(ratio),
        (false, _) => None,
    };
    if ratio.is_some_and(|ratio| !(1e-300..=1e300).contains(&ratio)) {
        return Err("its histogram has a ratio of integers to decimal fractions that cannot be".to_owned());
    }
    let shape = shape(digits, lowest)?;
    if let Some(payload) = payload {
        bytes = Bytes(bytes.take(payload)?);
    }
    let counts = if version == 2 {
        counts_of_variable_size(bytes, shape)?
    } else {
        counts_of_words(bytes, (cookie >> 4 & 0xe) as usize, shape)?
    };
    Ok(Histogram { shape, ratio, counts })
}

fn shape(digits: u64, lowest: u64) -> Result<Shape, String> {
    if digits > 5 {
        return Err(format!("its histogram has {digits} digits, and no more than 5 can be"));
    }
    let singly = 2 * 10_u64.pow(digits as u32);
    let half = singly.next_power_of_two().ilog2().max(1) - 1;
    let unit = lowest.max(1).ilog2();
    if unit + half > 61 {
        return Err("its histogram has a unit that leaves no room for values".to_owned());
    }
    Ok(Shape { half, unit })
}

impl Shape {
    /// The shortest value of a place and its width; `None` beyond all values.
    fn span(self, place: u64) -> Option<(i64, i64)> {
        let half = 1_u64 << self.half;
        let (bucket, within) = match (place >> self.half).checked_sub(1) {
            None => (0, place),
            Some(bucket) => (bucket, (place & (half - 1)) + half),
        };
        let shift = u32::try_from(bucket).ok()?.checked_add(self.unit).filter(|shift| *shift < 63)?;
        let value = within.checked_mul(1 << shift)?;
        Some((i64::try_from(value).ok()?, 1 << shift))
    }
}

/// Counts of version 2: a negative one is this many empty places.
fn counts_of_variable_size(mut bytes: Bytes<'_>, shape: Shape) -> Result<Vec<(u64, u64)>, String> {
    let (mut place, mut counts) = (0_u64, Vec::new());
    while !bytes.0.is_empty() {
        let count = bytes.signed()?;
        if count < 0 {
            place = place
                .checked_add(count.unsigned_abs())
                .filter(|place| *place < 1 << 40)
                .ok_or("its histogram has places beyond all values")?;
            continue;
        }
        push(&mut counts, place, count as u64, shape)?;
        place += 1;
    }
    Ok(counts)
}

/// Counts of earlier versions: a word for each place.
fn counts_of_words(mut bytes: Bytes<'_>, size: usize, shape: Shape) -> Result<Vec<(u64, u64)>, String> {
    if ![2, 4, 8].contains(&size) {
        return Err(format!("its histogram has words of {size} bytes, which none has"));
    }
    let mut counts = Vec::new();
    let mut place = 0;
    while bytes.0.len() >= size {
        push(&mut counts, place, bytes.number(size)?, shape)?;
        place += 1;
    }
    Ok(counts)
}

fn push(counts: &mut Vec<(u64, u64)>, place: u64, count: u64, shape: Shape) -> Result<(), String> {
    if count == 0 {
        return Ok(());
    }
    if shape.span(place).is_none() || count >= 1 << 48 || counts.len() >= BUCKETS {
        return Err("its histogram has a count that cannot be".to_owned());
    }
    counts.push((place, count));
    Ok(())
}

fn series(tag: &str, sum: Sum, unit_ns: i64) -> Result<Series, ReadError> {
    let name = if tag.is_empty() { "log".to_owned() } else { format!("tag {}", short(tag)) };
    let buckets = match sum.resolution {
        Resolution::Whole(shape) => whole_buckets(shape, &sum.counts, unit_ns).map_err(ReadError::new)?,
        Resolution::Fractions { .. } => fraction_buckets(&sum.counts, unit_ns)?,
    };
    let mut series = Series { name, observed_ns: Some(sum.observed_ns), buckets, ..Series::default() };
    series.count = Some(series.in_histogram());
    Ok(series)
}

fn whole_buckets(shape: Shape, counts: &BTreeMap<u64, Count>, unit_ns: i64) -> Result<Vec<Bucket>, String> {
    let mut buckets = Vec::with_capacity(counts.len());
    for (place, Count { count, .. }) in counts {
        let (from, width) = shape.span(*place).ok_or("a place is beyond all values")?;
        let below = from.checked_add(width).ok_or("a value is longer than times can be")?;
        let [from_ns, below_ns] = [times(from, unit_ns, "value"), times(below, unit_ns, "value")];
        buckets.push(Bucket { from_ns: from_ns?, below_ns: below_ns?, count: *count });
    }
    Ok(buckets)
}

/// Places of decimal fractions in whole nanoseconds; those that become equal are merged.
fn fraction_buckets(counts: &BTreeMap<u64, Count>, unit_ns: i64) -> Result<Vec<Bucket>, ReadError> {
    let mut buckets: Vec<Bucket> = Vec::with_capacity(counts.len());
    for (bits, Count { count, width }) in counts {
        let from = f64::from_bits(*bits);
        let [from_ns, below_ns] = [from, from + width].map(|value| (value * unit_ns as f64).round());
        if below_ns >= (i64::MAX / 4) as f64 {
            return Err(ReadError::new("a value is longer than times can be").with_fix("; say its unit with {unit}"));
        }
        let (from_ns, below_ns) = (from_ns as i64, (below_ns as i64).max(from_ns as i64 + 1));
        match buckets.last_mut().filter(|last| last.below_ns > from_ns) {
            Some(last) => {
                last.below_ns = last.below_ns.max(below_ns);
                last.count = last.count.saturating_add(*count);
            }
            None => buckets.push(Bucket { from_ns, below_ns, count: *count }),
        }
    }
    Ok(buckets)
}
