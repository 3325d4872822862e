//! CPU numbers and lists of them, in the kernel's syntax.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The kernel's number of a logical CPU.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuId(u32);

impl CpuId {
    /// The largest number in a list. The kernel's own limit is `NR_CPUS`, 8,192 in distributions; a million leaves room and prevents a
    /// mistyped range from exhausting memory.
    pub const LIMIT: u32 = 1 << 20;

    /// The CPU with this kernel number.
    pub const fn new(id: u32) -> Self {
        Self(id)
    }

    /// The kernel's number of the CPU, from 0.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of CPUs, sorted, without duplicates; printed as in `0-3,8`.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct CpuList(Vec<CpuId>);

impl CpuList {
    /// Whether the list contains the CPU.
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = CpuId> + '_ {
        self.0.iter().copied()
    }

    /// The number of CPUs in the list.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The CPUs in this list but not in the other.
    pub fn without(&self, other: &Self) -> Self {
        self.iter().filter(|cpu| !other.contains(*cpu)).collect()
    }

    /// The CPUs that are in both lists.
    pub fn intersection(&self, other: &Self) -> Self {
        self.iter().filter(|cpu| other.contains(*cpu)).collect()
    }

    /// Parses the kernel's format of CPU masks: comma-separated hexadecimal words of 32 bits, highest first. Fails if a word is not
    /// hexadecimal or longer than eight digits, or a CPU is beyond [`CpuId::LIMIT`].
    pub fn from_mask(text: &str) -> Result<Self, ParseCpuListError> {
        let err = |why: &str| ParseCpuListError { text: text.trim().to_owned(), why: why.to_owned() };
        let mut cpus = Vec::new();
        for (word, digits) in text.trim().rsplit(',').enumerate() {
            if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(err("a mask has words of eight hexadecimal digits"));
            }
            let bits = u32::from_str_radix(digits, 16).map_err(|_| err("a word is no number"))?;
            let first = u32::try_from(word * 32).ok().filter(|first| *first < CpuId::LIMIT);
            let first = first.ok_or_else(|| err("the mask is longer than any machine"))?;
            cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| CpuId(first + bit)));
        }
        Ok(Self(cpus))
    }

    /// The list as a mask for the kernel (`tracing_cpumask`, `smp_affinity`): comma-separated hexadecimal words of 32 bits, highest first.
    pub fn to_mask(&self) -> String {
        let words = self.0.last().map_or(1, |cpu| cpu.0 as usize / 32 + 1);
        let mut mask = vec![0_u32; words];
        for cpu in &self.0 {
            mask[cpu.0 as usize / 32] |= 1 << (cpu.0 % 32);
        }
        let words: Vec<String> = mask.iter().rev().map(|word| format!("{word:08x}")).collect();
        words.join(",")
    }
}

/// The list with only this CPU.
impl From<CpuId> for CpuList {
    fn from(cpu: CpuId) -> Self {
        Self(vec![cpu])
    }
}

impl FromIterator<CpuId> for CpuList {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> Self {
        let mut list: Vec<CpuId> = cpus.into_iter().collect();
        list.sort_unstable();
        list.dedup();
        Self(list)
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for run in self.0.chunk_by(|a, b| a.0 + 1 == b.0) {
            if !text.is_empty() {
                text.push(',');
            }
            let (first, last) = (run[0], run[run.len() - 1]);
            text += &if first == last { format!("{first}") } else { format!("{first}-{last}") };
        }
        f.pad(&text)
    }
}

/// A text that is not a list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a list of CPUs: {why}; write numbers and ranges like 0-3,8 or 0-62:2")]
pub struct ParseCpuListError {
    text: String,
    why: String,
}

/// Parses numbers and ranges, `0-3,8`, with the kernel's stride `0-62:2`. White space around the parts is allowed. An empty text is an
/// empty list, as in the kernel's files; the caller decides whether that is valid.
impl FromStr for CpuList {
    type Err = ParseCpuListError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = |why: String| ParseCpuListError { text: text.to_owned(), why };
        let number = |part: &str| -> Result<u32, ParseCpuListError> {
            let id: u32 = part.trim().parse().map_err(|_| err(format!("'{}' is not a number", part.trim())))?;
            if id >= CpuId::LIMIT {
                return Err(err(format!("{id} is above the limit of {}", CpuId::LIMIT - 1)));
            }
            Ok(id)
        };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut cpus = Vec::new();
        for part in text.trim().split(',') {
            let (range, stride) = match part.split_once(':') {
                Some((range, stride)) => (range, number(stride)?),
                None => (part, 1),
            };
            if stride == 0 {
                return Err(err("a stride of 0".to_owned()));
            }
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(range)?, number(range)?),
            };
            if first > last {
                return Err(err(format!("the range {first}-{last} runs backwards")));
            }
            // A short text could name the same million repeatedly.
            if cpus.len() + ((last - first) / stride) as usize >= CpuId::LIMIT as usize {
                return Err(err("it names more CPUs than any machine has".to_owned()));
            }
            cpus.extend((first..=last).step_by(stride as usize).map(CpuId));
        }
        Ok(cpus.into_iter().collect())
    }
}

impl Serialize for CpuList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        for (text, printed) in [
            ("0-3,8\n", "0-3,8"),
            ("", ""),
            ("5", "5"),
            ("3,1,2,2", "1-3"),
            ("0-6:2", "0,2,4,6"),
            ("1023-1026", "1023-1026"),
        ] {
            assert_eq!(text.parse::<CpuList>().unwrap().to_string(), printed);
        }
    }

    #[test]
    fn refuses_nonsense_and_says_why() {
        for (text, why) in [
            ("x", "'x' is not a number"),
            ("1,,2", "'' is not a number"),
            ("3-1", "backwards"),
            ("0-4294967295", "limit"),
            ("-1", "not a number"),
            ("0-4:0", "stride of 0"),
            ("0-1048575,0", "more CPUs than any machine has"),
        ] {
            let error = text.parse::<CpuList>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn all_cpus_that_can_be_are_a_list() {
        assert_eq!("0-1048575".parse::<CpuList>().unwrap().len(), CpuId::LIMIT as usize);
    }

    #[test]
    fn masks_are_the_kernels() {
        assert_eq!("0,1".parse::<CpuList>().unwrap().to_mask(), "00000003");
        assert_eq!("32,1".parse::<CpuList>().unwrap().to_mask(), "00000001,00000002");
        assert_eq!("1025".parse::<CpuList>().unwrap().to_mask().split(',').count(), 33);
        // As short as the kernel writes them on small machines.
        assert_eq!(CpuList::from_mask("f\n").unwrap().to_string(), "0-3");
        assert_eq!(CpuList::from_mask("1,00000000").unwrap().to_string(), "32");
        for text in ["", ",", "0x3", "123456789", "g", "-1"] {
            assert!(CpuList::from_mask(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(ids in proptest::collection::vec(0_u32..5000, 0..60)) {
            let list: CpuList = ids.into_iter().map(CpuId::new).collect();
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }

        #[test]
        fn a_mask_reads_back(ids in proptest::collection::vec(0_u32..5000, 0..60)) {
            let list: CpuList = ids.into_iter().map(CpuId::new).collect();
            prop_assert_eq!(CpuList::from_mask(&list.to_mask()).unwrap(), list);
        }

        #[test]
        fn masks_never_panic(text in "[0-9a-f,x -]{0,24}") {
            let _ = CpuList::from_mask(&text);
        }

        #[test]
        fn parsing_never_panics(text in "[0-9,:x -]{0,12}") {
            let _ = text.parse::<CpuList>();
        }
    }
}
