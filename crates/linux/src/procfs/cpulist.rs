//! Lists of CPUs in the format of the kernel's own parameters (`lib/bitmap-str.c`, `bitmap_parselist`): numbers, ranges, groups `0-31:2/4` (the first
//! 2 of every 4), `N` for the last CPU and `all`.
//!
//! Unlike the format of [`CpuList`], which users write: here `0-30:2` is an error, as in the kernel.

use becalm_units::{CpuId, CpuList};

use crate::file::FormatError;

/// Parses a list of CPUs of a machine that can have `count` of them, numbered from 0. Fails if the kernel would refuse the list: its format is wrong,
/// a range runs backwards, or a CPU is `count` or more.
pub fn parse_kernel_list(text: &str, count: u32) -> Result<CpuList, FormatError> {
    let mut cpus: Vec<CpuId> = Vec::new();
    // Blanks and commas separate regions, in any number.
    for region in text.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|region| !region.is_empty()) {
        let Region { first, last, taken, group } = Region::parse(region, count)?;
        if first > last || group == 0 || taken > group {
            return Err(FormatError::new("a range that runs forwards was expected", region));
        }
        if last >= count {
            return Err(FormatError::new("a CPU that this machine can have was expected", region));
        }
        for start in (first..=last).step_by(group as usize) {
            cpus.extend((start..start.saturating_add(taken).min(last + 1)).map(CpuId::new));
        }
    }
    Ok(cpus.into_iter().collect())
}

/// One part of a list: of every `group` CPUs from `first` to `last`, the first `taken`.
struct Region {
    first: u32,
    last: u32,
    taken: u32,
    group: u32,
}

impl Region {
    fn parse(text: &str, count: u32) -> Result<Self, FormatError> {
        let error = || FormatError::new("a number, a range or a group of CPUs was expected", text);
        let number = |digits: &str| match digits {
            "N" => Ok(count.saturating_sub(1)),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().map_err(|_| error()),
            _ => Err(error()),
        };
        let (range, pattern) = match text.split_once(':') {
            Some((range, pattern)) => (range, Some(pattern.split_once('/').ok_or_else(error)?)),
            None => (text, None),
        };
        let whole = range.eq_ignore_ascii_case("all");
        let (first, last) = match range.split_once('-') {
            _ if whole => (0, count.saturating_sub(1)),
            Some((first, last)) => (number(first)?, number(last)?),
            // A single CPU has no groups.
            None if pattern.is_none() => (number(range)?, number(range)?),
            None => return Err(error()),
        };
        let (taken, group) = match pattern {
            Some((taken, group)) => (number(taken)?, number(group)?),
            None => (last.saturating_add(1), last.saturating_add(1)),
        };
        Ok(Self { first, last, taken, group })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The kernel's own way, byte by byte, after `lib/bitmap-str.c` of Linux 6.18.
    fn plain(text: &str, count: u32) -> Option<CpuList> {
        let bytes = text.as_bytes();
        let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
        let blank = |c: u8| c.is_ascii_whitespace() || c == 0x0b;
        let end_of_region = |c: u8| blank(c) || c == b',' || c == 0;
        let number = |mut i: usize| -> Option<(u64, usize)> {
            if at(i) == b'N' {
                return Some((u64::from(count) - 1, i + 1));
            }
            let (begin, mut value) = (i, 0_u64);
            while at(i).is_ascii_digit() {
                value = value.checked_mul(10)?.checked_add(u64::from(at(i) - b'0'))?;
                i += 1;
            }
            (i > begin && value <= u64::from(u32::MAX)).then_some((value, i))
        };
        let mut set = vec![false; count as usize];
        let mut i = 0;
        loop {
            while blank(at(i)) || at(i) == b',' {
                i += 1;
            }
            if at(i) == 0 {
                break;
            }
            let (first, last);
            let mut pattern = None;
            let all = bytes[i..].len() >= 3 && bytes[i..i + 3].eq_ignore_ascii_case(b"all");
            if all {
                (first, last) = (0, u64::from(count) - 1);
                i += 3;
            } else {
                let (number_first, next) = number(i)?;
                i = next;
                first = number_first;
                if end_of_region(at(i)) {
                    last = first;
                } else {
                    (at(i) == b'-').then_some(())?;
                    (last, i) = number(i + 1)?;
                }
            }
            if !end_of_region(at(i)) {
                (at(i) == b':').then_some(())?;
                let (taken, next) = number(i + 1)?;
                (at(next) == b'/').then_some(())?;
                let (group, next) = number(next + 1)?;
                i = next;
                pattern = Some((taken, group));
                // Here the kernel would continue with the next region without a comma between; no one writes that.
                end_of_region(at(i)).then_some(())?;
            }
            let (taken, group) = pattern.unwrap_or((last + 1, last + 1));
            if first > last || group == 0 || taken > group || last >= u64::from(count) {
                return None;
            }
            let mut start = first;
            while start <= last {
                for cpu in start..start + taken.min(last - start + 1) {
                    set[cpu as usize] = true;
                }
                start += group;
            }
        }
        Some((0..count).filter(|cpu| set[*cpu as usize]).map(CpuId::new).collect())
    }

    #[test]
    fn what_the_documentation_shows() {
        for (text, printed) in [
            ("1,2,10-20", "1-2,10-20"),
            ("1-3,8", "1-3,8"),
            ("0-31:2/4", "0-1,4-5,8-9,12-13,16-17,20-21,24-25,28-29"),
            ("all", "0-31"),
            ("ALL:1/16", "0,16"),
            ("16-N", "16-31"),
            ("N", "31"),
            (" 1 ,, 3\n", "1,3"),
            ("", ""),
            ("0-7:0/4", ""),
        ] {
            assert_eq!(parse_kernel_list(text, 32).unwrap().to_string(), printed, "{text}");
        }
        for text in ["32", "3-1", "0-30:2", "1:1/2", "0-7:5/4", "0-7:1/0", "x", "-1", "+1", "1-", "1;2", "n", "nohz,1"]
        {
            assert!(parse_kernel_list(text, 32).is_err(), "{text}");
        }
        assert_eq!(parse_kernel_list("0-4294967295:1/4294967295", 4096).ok(), None);
        assert_eq!(parse_kernel_list("1-N", 4096).unwrap().len(), 4095);
    }

    proptest! {
        #[test]
        fn it_is_the_kernels(text in "([0-9N]{1,2}|[0-9]{1,2}-[0-9N]{1,2}|(all|[0-9]-[0-9]{1,2}):[0-9]/[0-9]|[ ,x]){0,4}(,[0-9N]{1,2})?") {
            prop_assert_eq!(parse_kernel_list(&text, 24).ok(), plain(&text, 24), "{}", text);
        }

        #[test]
        fn any_text_is_taken_or_refused_alike(text in "[0-9,:/N al-]{0,10}") {
            prop_assert_eq!(parse_kernel_list(&text, 70).ok(), plain(&text, 70), "{}", text);
        }
    }
}
