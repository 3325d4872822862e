//! Small numbers as packed by Parquet: runs of equal numbers, and bit-packed numbers.
//!
//! "Run Length Encoding / Bit-Packing Hybrid" of the Parquet format's Encodings.md. Each part starts with a number in 7 bits per byte. If it is even,
//! half of it is the repeat count of the number in the following bytes. If it is odd, half of it is the number of groups of eight packed numbers that
//! follow, the lowest bits of a byte first.

use std::ops::Range;

use bytes::{Buf, Bytes};

/// Numbers of at most 32 bits, read sequentially.
pub(super) struct Hybrid {
    rest: Bytes,
    width: u32,
    part: Part,
}

enum Part {
    Repeated { value: i32, left: usize },
    Packed { bytes: Bytes, at: usize, count: usize },
}

impl Hybrid {
    /// For numbers of `width` bits, 0 to 32.
    pub(super) fn new(rest: Bytes, width: u32) -> Self {
        Self { rest, width, part: Part::Repeated { value: 0, left: 0 } }
    }

    /// Adds the next `count` numbers; `false` if there are fewer.
    pub(super) fn read(&mut self, count: usize, into: &mut Vec<i32>) -> bool {
        let mut wanted = count;
        while wanted > 0 {
            let taken = match &mut self.part {
                Part::Repeated { value, left } => {
                    let taken = wanted.min(*left);
                    into.resize(into.len() + taken, *value);
                    *left -= taken;
                    taken
                }
                Part::Packed { bytes, at, count } => {
                    let taken = wanted.min(*count - *at);
                    unpack(bytes, *at..*at + taken, self.width, into);
                    *at += taken;
                    taken
                }
            };
            if taken == 0 && self.next_part().is_none() {
                return false;
            }
            wanted -= taken;
        }
        true
    }

    /// Starts the next part; `None` at the end or at a part without numbers.
    fn next_part(&mut self) -> Option<()> {
        let header = self.header()?;
        let count = usize::try_from(header >> 1).ok().filter(|count| *count > 0)?;
        self.part = if header & 1 == 0 {
            let size = self.width.div_ceil(8) as usize;
            let mut bytes = [0_u8; 4];
            bytes.get_mut(..size)?.copy_from_slice(self.rest.get(..size)?);
            self.rest.advance(size);
            Part::Repeated { value: i32::from_le_bytes(bytes), left: count }
        } else {
            let size = count.checked_mul(self.width as usize)?;
            // The last part of a page may be cut off after its numbers.
            let bytes = self.rest.split_to(size.min(self.rest.len()));
            let whole = if self.width == 0 { usize::MAX } else { bytes.len() * 8 / self.width as usize };
            Part::Packed { bytes, at: 0, count: count.saturating_mul(8).min(whole) }
        };
        Some(())
    }

    fn header(&mut self) -> Option<u32> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = *self.rest.first()?;
            self.rest.advance(1);
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).ok();
            }
        }
        None
    }
}

/// Adds the numbers in this range of a packed part.
fn unpack(bytes: &[u8], places: Range<usize>, width: u32, into: &mut Vec<i32>) {
    let mask = (1_u64 << width) - 1;
    let mut at = places.start;
    while at < places.end {
        // Eight numbers of at most 8 bits fill a whole number of bytes, and are unpacked together.
        let group = at / 8 * width as usize;
        if width <= 8
            && at.is_multiple_of(8)
            && places.end - at >= 8
            && let Some(group) = bytes[group..].first_chunk()
        {
            let group = u64::from_le_bytes(*group);
            into.extend((0..8).map(|number| ((group >> (number * width)) & mask) as i32));
            at += 8;
        } else {
            into.push(unpacked(bytes, at, width));
            at += 1;
        }
    }
}

/// The number at an index of a packed part.
fn unpacked(bytes: &[u8], at: usize, width: u32) -> i32 {
    let bit = at * width as usize;
    let rest = &bytes[bit / 8..];
    // A number of 32 bits may span five bytes.
    let window = match rest.first_chunk() {
        Some(window) => u64::from_le_bytes(*window),
        None => rest.iter().rev().fold(0, |window, byte| window << 8 | u64::from(*byte)),
    };
    let mask = (1_u64 << width) - 1;
    ((window >> (bit % 8)) & mask) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The parts one after another, packed bit by bit as a reference.
    fn pack(parts: &[(bool, Vec<i32>)], width: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = |mut value: u64, bytes: &mut Vec<u8>| loop {
            let low = (value & 0x7f) as u8;
            value >>= 7;
            bytes.push(if value > 0 { low | 0x80 } else { low });
            if value == 0 {
                break;
            }
        };
        for (repeated, values) in parts {
            if *repeated {
                header((values.len() as u64) << 1, &mut bytes);
                bytes.extend(&values[0].to_le_bytes()[..width.div_ceil(8) as usize]);
            } else {
                header((values.len() as u64 / 8) << 1 | 1, &mut bytes);
                let bits: Vec<bool> =
                    values.iter().flat_map(|value| (0..width).map(move |bit| value >> bit & 1 == 1)).collect();
                let byte = |bits: &[bool]| (0..).zip(bits).map(|(at, bit)| u8::from(*bit) << at).sum::<u8>();
                bytes.extend(bits.chunks(8).map(byte));
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn reads_what_was_packed(
            width in 0_u32..=32,
            parts in proptest::collection::vec((any::<bool>(), any::<u32>(), 1_usize..5, any::<[u32; 8]>()), 0..6),
            step in 1_usize..20,
        ) {
            let mask = ((1_u64 << width) - 1) as u32;
            let parts: Vec<(bool, Vec<i32>)> = parts
                .into_iter()
                .map(|(repeated, value, count, eight)| match repeated {
                    true => (true, vec![(value & mask) as i32; count * 3]),
                    false => (false, eight.iter().cycle().take(count * 8).map(|value| (value & mask) as i32).collect()),
                })
                .collect();
            let expected: Vec<i32> = parts.iter().flat_map(|(_, values)| values.clone()).collect();
            let mut packed = Hybrid::new(pack(&parts, width).into(), width);
            let mut read = Vec::new();
            while read.len() < expected.len() {
                let count = step.min(expected.len() - read.len());
                prop_assert!(packed.read(count, &mut read));
            }
            prop_assert_eq!(read, expected);
            prop_assert!(!packed.read(1, &mut Vec::new()));
        }

        #[test]
        fn damage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..40), width in 0_u32..=32) {
            let mut read = Vec::new();
            let _ = Hybrid::new(bytes.into(), width).read(1000, &mut read);
            prop_assert!(read.len() <= 1000);
        }
    }
}
