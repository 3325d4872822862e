//! The summary form of a node's recording, also in `runs/node=HOST.json`, for recordings too large to keep every detour.
//!
//! Regardless of the recording's length, it has at most [`SLOTS`] time slots, [`SOURCES`] sources per CPU plus the sums of the others, and the
//! [`LONGEST`] longest detours of each CPU. The slot length depends on the recording's: it is a power of two times [`SLOT_NS`], and slots are counted
//! from 1970, so nodes recorded at the same time have the same slots.

use becalm_units::CpuId;
use serde::{Deserialize, Serialize};

use crate::activity::Kind;
use crate::{Document, NodeDoc};

/// The version of the schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.run-summary/1";

/// The maximum number of time slots.
pub const SLOTS: usize = 512;

/// The shortest slot, in nanoseconds: 2^24, about 16.8 ms.
pub const SLOT_NS: i64 = 1 << SLOT_BITS;

/// The binary logarithm of [`SLOT_NS`].
pub const SLOT_BITS: u32 = 24;

/// The number of sources per CPU that are stored separately: the most expensive ones. The others are summed per kind as [`OTHERS`].
pub const SOURCES: usize = 32;

/// The name for the remaining sources of a kind.
pub const OTHERS: &str = "(others)";

/// The number of longest detours per CPU that are stored individually.
pub const LONGEST: usize = 128;

/// The maximum size of a document in bytes per CPU, for any length and noise of the recording.
pub const BYTES_A_CPU: u64 = 512 << 10;

/// One node's recording in summary form.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DigestDoc {
    /// The schema that the document follows: [`SCHEMA`], or it is refused.
    pub schema: String,
    /// The document of the recording, like that of a full one.
    pub run: NodeDoc,
    /// How long a slot is, in nanoseconds: a power of two, at least [`SLOT_NS`].
    pub slot_ns: i64,
    /// The number of the first slot: it starts this many slots after 1970 by the wall clock.
    pub first_slot: i64,
    /// How many there are.
    pub slots: usize,
    /// The CPUs, in the order of the recording's document.
    pub cpus: Vec<CpuDigest>,
    /// The slots when each source started anything on any CPU, for the sources that took most.
    pub moments: Vec<SourceSlots>,
}

/// The sums of the detours of a CPU.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CpuDigest {
    /// The kernel's number of the CPU.
    pub cpu: CpuId,
    /// All detours as they came, with becalm's own time.
    pub stored: Sums,
    /// Those without becalm's own time.
    pub durations: Sums,
    /// Of these, those of 1 us and more.
    pub long: Sums,
    /// Becalm's own time in the detours, in nanoseconds.
    pub own_ns: i64,
    /// The most of it in one detour.
    pub own_longest_ns: i64,
    /// Detours with dropped kernel events.
    pub incomplete: u64,
    /// Activities of the kernel that were seen in detours.
    pub activities: u64,
    /// Whether the activities add up to the detours; also of a recording that has none.
    pub books_closed: bool,
    /// When the last detour ended, since the run's origin; 0 of none.
    pub last_end_ns: i64,
    /// How many detours had which length, without becalm's own time.
    pub lengths: Counts,
    /// How late work was, for each of [`GRAINS_NS`].
    pub delays: Vec<GrainDelays>,
    /// The noise in each slot, in nanoseconds.
    pub noise_ns: Vec<i64>,
    /// How many detours started in each slot.
    pub began: Vec<u64>,
    /// The sources.
    pub sources: Vec<SourceDigest>,
    /// The longest detours, in order of time.
    pub longest: Vec<LongDetour>,
}

/// The sums of one source on a CPU.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SourceDigest {
    /// What kind of thing it is.
    pub kind: Kind,
    /// Its stable name; [`OTHERS`] for those that are not kept apart.
    pub source: String,
    /// The self times of its activities.
    pub own: Sums,
    /// The time of all activities charged to it, in nanoseconds.
    pub whole_ns: i64,
    /// How many detours it was the root in for how long.
    pub lengths: Counts,
}

/// The grains of work with stored delays, in nanoseconds. Each is a multiple of [`WINDOWS`].
pub const GRAINS_NS: [i64; 7] = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000];

/// The number of windows that start within one grain of work, evenly spaced. Each detour is in as many windows.
pub const WINDOWS: usize = 8;

/// The maximum number of cells per grain.
pub const DELAY_CELLS: usize = 256;

/// The maximum number of sources in a cell.
pub const DELAY_PARTS: usize = 6;

/// How late a grain of work was. Windows of as much work start [`WINDOWS`] times in each grain of it; the noise that comes within one is its
/// delay. Of w nanoseconds of work there are `WINDOWS` w / `grain_ns` windows; those that are in no cell had no noise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct GrainDelays {
    /// The work of a window, in nanoseconds.
    pub grain_ns: i64,
    /// The windows with noise, those that are alike together, shorter delays first. In the document a text of numbers, for each kind: how many
    /// windows, their delays together in nanoseconds, how many sources have a part in that, and for each its place in the list of the CPU and
    /// nanoseconds. A number is written in digits of five bits, the lowest first, each as a character of `A-Za-z0-9-_`, which stand for
    /// 0 to 63; 32 is added to each digit but a number's last.
    pub cells: DelayCells,
}

/// The cells of a grain; in the document a text of numbers, as [`GrainDelays::cells`] says.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct DelayCells(pub Vec<DelayCell>);

/// Windows with similar delay, mostly from the same source.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DelayCell {
    /// The number of windows.
    pub windows: u64,
    /// The sum of their delays, in nanoseconds.
    pub delay_ns: i64,
    /// The parts of that sum charged to sources: the index in the CPU's list of sources, and nanoseconds.
    pub parts: Vec<(u32, i64)>,
}

/// The text form of cells in a document.
mod cells_text {
    use super::{DELAY_CELLS, DELAY_PARTS, DelayCell, DelayCells};

    /// The digits, by value.
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    /// The value of each digit by its byte; 64 for other bytes.
    const VALUES: [u8; 256] = {
        let mut values = [64; 256];
        let mut value = 0;
        while value < 64 {
            values[DIGITS[value] as usize] = value as u8;
            value += 1;
        }
        values
    };

    impl From<DelayCells> for String {
        fn from(DelayCells(cells): DelayCells) -> Self {
            let mut text = Self::new();
            for cell in cells {
                push(&mut text, cell.windows);
                push(&mut text, cell.delay_ns as u64);
                push(&mut text, cell.parts.len() as u64);
                for (source, ns) in &cell.parts {
                    push(&mut text, u64::from(*source));
                    push(&mut text, *ns as u64);
                }
            }
            text
        }
    }

    impl TryFrom<String> for DelayCells {
        type Error = &'static str;

        fn try_from(text: String) -> Result<Self, &'static str> {
            read(&text).map(Self).ok_or("its delays are no text of numbers")
        }
    }

    fn push(text: &mut String, mut number: u64) {
        while number >= 32 {
            text.push(char::from(DIGITS[(number % 32 + 32) as usize]));
            number /= 32;
        }
        text.push(char::from(DIGITS[number as usize]));
    }

    /// Parses cells; `None` if the text is invalid or has too many.
    pub(super) fn read(text: &str) -> Option<Vec<DelayCell>> {
        let mut digits = text.bytes();
        let mut cells = Vec::new();
        while digits.len() > 0 {
            let (windows, delay_ns, parts) = (number(&mut digits)?, number(&mut digits)?, number(&mut digits)?);
            if parts > DELAY_PARTS as u64 || cells.len() == DELAY_CELLS {
                return None;
            }
            let part = |_| Some((u32::try_from(number(&mut digits)?).ok()?, number(&mut digits)?.try_into().ok()?));
            let parts = (0..parts).map(part).collect::<Option<_>>()?;
            cells.push(DelayCell { windows, delay_ns: delay_ns.try_into().ok()?, parts });
        }
        Some(cells)
    }

    fn number(digits: &mut std::str::Bytes<'_>) -> Option<u64> {
        let mut number = 0_u64;
        for place in 0..13 {
            let digit = u64::from(VALUES[usize::from(digits.next()?)]);
            if digit >= 64 {
                return None;
            }
            let bits = digit % 32;
            let part = bits << (5 * place);
            if part >> (5 * place) != bits {
                return None;
            }
            number |= part;
            if digit < 32 {
                return Some(number);
            }
        }
        None
    }
}

impl DelayCell {
    /// The mean delay of the windows, in nanoseconds.
    pub fn delay(&self) -> f64 {
        self.delay_ns as f64 / self.windows.max(1) as f64
    }

    fn fits(&self, sources: usize) -> bool {
        let known = self.parts.iter().all(|(source, ns)| (*source as usize) < sources && *ns >= 0);
        let parts = self.parts.iter().try_fold(0_i64, |sum, (_, ns)| sum.checked_add(*ns));
        known && (1..1 << 48).contains(&self.windows) && parts.is_some_and(|parts| parts <= self.delay_ns)
    }
}

/// One of the longest detours; in the document a list of start, duration and parts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(from = "(i64, i64, Vec<(u32, i64)>)", into = "(i64, i64, Vec<(u32, i64)>)")]
pub struct LongDetour {
    /// When it started, since the run's origin.
    pub start_ns: i64,
    /// How long it was, without becalm's own time.
    pub duration_ns: i64,
    /// For how long each source was the root in it: the source's place in the list of the CPU, and nanoseconds.
    pub parts: Vec<(u32, i64)>,
}

impl From<(i64, i64, Vec<(u32, i64)>)> for LongDetour {
    fn from((start_ns, duration_ns, parts): (i64, i64, Vec<(u32, i64)>)) -> Self {
        Self { start_ns, duration_ns, parts }
    }
}

impl From<LongDetour> for (i64, i64, Vec<(u32, i64)>) {
    fn from(detour: LongDetour) -> Self {
        (detour.start_ns, detour.duration_ns, detour.parts)
    }
}

/// The slots when a source started anything.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SourceSlots {
    /// What kind of thing it is.
    pub kind: Kind,
    /// Its stable name.
    pub source: String,
    /// The slots.
    pub slots: SlotSet,
}

/// Some of the slots; in the document a hexadecimal digit for each four of them, the first one in the highest bit of the first digit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct SlotSet([u64; SLOTS / 64]);

impl SlotSet {
    /// Adds the slot at this index. Panics if no slot can have it.
    pub const fn set(&mut self, slot: usize) {
        self.0[slot / 64] |= 1 << (slot % 64);
    }

    /// Whether the slot at this index is in the set.
    pub fn has(&self, slot: usize) -> bool {
        self.0.get(slot / 64).is_some_and(|bits| bits >> (slot % 64) & 1 == 1)
    }

    /// The indices of the slots, in ascending order.
    pub fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        (0..SLOTS).filter(|slot| self.has(*slot))
    }
}

impl From<SlotSet> for String {
    fn from(set: SlotSet) -> Self {
        let last = set.slots().last().map_or(0, |last| last / 4 + 1);
        let digit = |at: usize| (0..4).fold(0_u32, |digit, bit| digit << 1 | u32::from(set.has(at * 4 + bit)));
        (0..last).filter_map(|at| char::from_digit(digit(at), 16)).collect()
    }
}

impl TryFrom<String> for SlotSet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.len() > SLOTS / 4 {
            return Err(format!("a set of slots has {} digits; {} are enough for all of them", text.len(), SLOTS / 4));
        }
        let mut set = Self::default();
        for (at, digit) in text.chars().enumerate() {
            let digit =
                digit.to_digit(16).ok_or_else(|| format!("'{digit}' in a set of slots is no hexadecimal digit"))?;
            (0..4).filter(|bit| digit >> (3 - bit) & 1 == 1).for_each(|bit| set.set(at * 4 + bit));
        }
        Ok(set)
    }
}

/// Sums over some durations, in nanoseconds. Without durations, only the count means anything.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Sums {
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub total_ns: i64,
    /// The sum of their squares, in floating point.
    pub squares_ns2: f64,
    /// The shortest.
    pub min_ns: i64,
    /// The longest.
    pub max_ns: i64,
}

impl Sums {
    /// Adds a value.
    pub fn add(&mut self, ns: i64) {
        (self.min_ns, self.max_ns) =
            if self.count == 0 { (ns, ns) } else { (self.min_ns.min(ns), self.max_ns.max(ns)) };
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.squares_ns2 += ns as f64 * ns as f64;
    }

    /// Adds all values of another set.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let ends = |sums: &Self| (sums.min_ns, sums.max_ns);
        let (ours, theirs) = (if self.count == 0 { ends(other) } else { ends(self) }, ends(other));
        (self.min_ns, self.max_ns) = (ours.0.min(theirs.0), ours.1.max(theirs.1));
        self.count = self.count.saturating_add(other.count);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.squares_ns2 += other.squares_ns2;
    }
}

/// The number of leading bits that determine a bucket of [`CpuDigest::lengths`]: HdrHistogram with two significant digits. Buckets are at most 0.8 %
/// wide.
pub const LENGTH_BITS: u32 = 8;

/// The same for all other histograms: one significant digit, buckets of at most 6.3 %.
pub const SOURCE_BITS: u32 = 5;

/// A histogram: the shortest value of each bucket that has any, in rising order, each followed by how many there are.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Counts(pub Vec<u64>);

impl Counts {
    /// The shortest value and the count of each bucket.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.0.chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }

    /// The shortest value, the width and the count of each bucket. `bits` leading bits determine a bucket.
    pub fn spans(&self, bits: u32) -> impl DoubleEndedIterator<Item = (u64, u64, u64)> + '_ {
        let width = move |value: u64| 1 << (value.max(1).ilog2() + 1).saturating_sub(bits);
        self.buckets().map(move |(value, count)| (value, width(value), count))
    }

    /// The total count.
    pub fn count(&self) -> u64 {
        self.buckets().fold(0, |sum: u64, (_, count)| sum.saturating_add(count))
    }

    fn check(&self, what: &str) -> Result<(), String> {
        let rising = self.0.chunks_exact(2).is_sorted_by(|a, b| a[0] < b[0]);
        let limits = self.buckets().all(|(value, count)| value <= i64::MAX as u64 && count > 0 && count < 1 << 48);
        if self.0.len().is_multiple_of(2) && rising && limits && self.count() < 1 << 48 {
            Ok(())
        } else {
            Err(format!("{what} is no histogram: it is to be rising values, each followed by a count above 0"))
        }
    }
}

impl Document for DigestDoc {
    const SCHEMA: &'static str = SCHEMA;

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.run.node
    }

    fn check(&self) -> Result<(), String> {
        self.run.check()?;
        if self.run.settings.work.is_some() {
            return Err("it is of samples of work, which have no summary form".to_owned());
        }
        if self.slots > SLOTS || self.slot_ns < SLOT_NS || self.slot_ns.count_ones() != 1 {
            let Self { slots, slot_ns, .. } = self;
            return Err(format!(
                "it has {slots} slots of {slot_ns} ns; at most {SLOTS} of a power of two from {SLOT_NS} on can be"
            ));
        }
        let end = self.first_slot.checked_add(self.slots as i64).and_then(|last| last.checked_mul(self.slot_ns));
        if end.is_none() || self.first_slot.checked_mul(self.slot_ns).is_none() {
            return Err(format!("its slots from number {} on are outside of all time", self.first_slot));
        }
        if !self.cpus.iter().map(|cpu| cpu.cpu).eq(self.run.cpus.iter().map(|cpu| cpu.cpu)) {
            return Err("its CPUs are not those of the recording".to_owned());
        }
        self.cpus.iter().try_for_each(|cpu| cpu.check(self.slots))?;
        for source in &self.moments {
            if source.slots.slots().last().is_some_and(|at| at >= self.slots) {
                return Err(format!("source '{}' came in slots that there are not", source.source));
            }
        }
        Ok(())
    }
}

impl CpuDigest {
    fn check(&self, slots: usize) -> Result<(), String> {
        let labeled = |what: &str| format!("CPU {}: {what}", self.cpu);
        if self.noise_ns.len() != slots || self.began.len() != slots {
            return Err(labeled("it has not a value for each slot"));
        }
        if self.noise_ns.iter().any(|ns| *ns < 0) || self.own_ns < 0 || self.last_end_ns < 0 {
            return Err(labeled("it lost a negative time"));
        }
        if self.sources.len() > SOURCES + Kind::ALL.len() || self.longest.len() > LONGEST {
            return Err(labeled("it has more sources or detours than are kept"));
        }
        self.lengths.check(&labeled("the lengths"))?;
        if !self.delays.iter().map(|delays| delays.grain_ns).eq(GRAINS_NS) {
            return Err(labeled("its delays are not those of the grains that this becalm keeps"));
        }
        let cells = || self.delays.iter().flat_map(|delays| &delays.cells.0);
        if self.delays.iter().any(|delays| delays.cells.0.len() > DELAY_CELLS)
            || !cells().all(|cell| cell.fits(self.sources.len()))
        {
            return Err(labeled("its delays contradict each other"));
        }
        for sums in [&self.stored, &self.durations, &self.long] {
            sums.check(&labeled("its detours"))?;
        }
        for source in &self.sources {
            source.own.check(&labeled(&source.source))?;
            source.lengths.check(&labeled(&source.source))?;
            if source.whole_ns < 0 {
                return Err(labeled("a source took a negative time"));
            }
        }
        for detour in &self.longest {
            let parts = detour.parts.iter().try_fold(0_i64, |sum, (_, ns)| sum.checked_add(*ns).filter(|_| *ns >= 0));
            if detour.duration_ns < 0 || detour.start_ns.checked_add(detour.duration_ns).is_none() || parts.is_none() {
                return Err(labeled("a detour cannot be so long"));
            }
            if detour.parts.iter().any(|(source, _)| *source as usize >= self.sources.len()) {
                return Err(labeled("a part of a detour is of no source"));
            }
        }
        Ok(())
    }
}

impl Sums {
    fn check(&self, what: &str) -> Result<(), String> {
        let fits = self.total_ns >= 0 && self.min_ns >= 0 && self.max_ns >= self.min_ns && self.max_ns <= self.total_ns;
        if fits && self.squares_ns2 >= 0.0 && self.squares_ns2.is_finite() && self.count < 1 << 48 {
            Ok(())
        } else {
            Err(format!("{what}: the sums contradict each other"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_rising_values_with_counts() {
        for (counts, fits) in [
            (vec![], true),
            (vec![5, 1, 9, 2], true),
            (vec![5, 1, 9], false),
            (vec![9, 1, 5, 2], false),
            (vec![5, 0], false),
            (vec![5, u64::MAX], false),
        ] {
            assert_eq!(Counts(counts.clone()).check("it").is_ok(), fits, "{counts:?}");
        }
    }

    #[test]
    fn cells_of_delays_are_a_text_of_numbers() {
        let cell = |windows, delay_ns, parts: &[(u32, i64)]| DelayCell { windows, delay_ns, parts: parts.to_vec() };
        let cells =
            vec![cell(1, 31, &[]), cell(8, 32, &[(0, 32)]), cell(1 << 40, i64::MAX, &[(u32::MAX, 1), (3, i64::MAX)])];
        let delays = GrainDelays { grain_ns: 100_000, cells: DelayCells(cells) };
        let text = serde_json::to_string(&delays).unwrap();
        assert!(text.starts_with(r#"{"grain_ns":100000,"cells":"BfAIgBBAgB"#), "{text}");
        assert_eq!(serde_json::from_str::<GrainDelays>(&text).unwrap(), delays);
        // No numbers; a number that does not end; one of more than 64 bits; too few numbers; too many parts.
        for wrong in ["B f", "é", "Bf", "g", &"_".repeat(40), "BfB", "BfBA", &format!("BfH{}", "AB".repeat(7))] {
            assert_eq!(cells_text::read(wrong), None, "{wrong}");
        }
        assert_eq!(cells_text::read(""), Some(Vec::new()));
    }

    #[test]
    fn a_set_of_slots_is_a_digit_for_four() {
        let mut set = SlotSet::default();
        [0, 5, 7, SLOTS - 1].into_iter().for_each(|slot| set.set(slot));
        let text = String::from(set);
        assert_eq!((&text[..3], text.len()), ("850", SLOTS / 4));
        assert_eq!(SlotSet::try_from(text).unwrap(), set);
        assert_eq!(String::from(SlotSet::default()), "");
        assert!(SlotSet::try_from("8x".to_owned()).is_err() && SlotSet::try_from("0".repeat(SLOTS)).is_err());
    }

    #[test]
    fn sums_of_two_parts_are_those_of_the_whole() {
        let (mut whole, mut left, mut right) = (Sums::default(), Sums::default(), Sums::default());
        for (at, ns) in [5, 900, 3, 70].into_iter().enumerate() {
            whole.add(ns);
            if at < 2 { left.add(ns) } else { right.add(ns) }
        }
        left.merge(&right);
        left.merge(&Sums::default());
        assert_eq!((left, left.min_ns, left.max_ns, left.total_ns), (whole, 3, 900, 978));
    }
}
