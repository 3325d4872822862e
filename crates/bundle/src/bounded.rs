//! A Parquet file that bounds the claimed size of each page before it is decompressed.
//!
//! A few kilobytes can decompress to gigabytes. The decoder allocates the size in a page's header, and decompresses no more than that, so bounding
//! the header's size is enough.

use std::io::{BufRead, BufReader};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// The largest allowed page, in bytes. Writers make pages of about a megabyte.
const LARGEST: u64 = 64 << 20;

/// The largest page header, in bytes. It may contain the page's minimum and maximum twice, in an old and in a new form, and a name may have 4 KiB.
const LONGEST_HEADER: usize = 32 << 10;

/// A file, or its bytes, that refuses pages that would become too large.
#[derive(Debug)]
pub struct Bounded<R>(R);

impl<R> Bounded<R> {
    /// Bounds the pages of a file.
    pub const fn new(file: R) -> Self {
        Self(file)
    }
}

impl<R: Length> Length for Bounded<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Bounded<R> {
    type T = BufReader<R::T>;

    /// The decoder only reads page headers this way, unless it peeks ahead.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut read = BufReader::with_capacity(LONGEST_HEADER, self.0.get_read(start)?);
        match uncompressed_size(read.fill_buf()?) {
            Some(size) if size > LARGEST => Err(ParquetError::General(format!(
                "a page claims to become {size} bytes, and {LARGEST} is the most that is read here; write smaller pages"
            ))),
            Some(_) => Ok(read),
            None => Err(ParquetError::General(
                "the header of a page is damaged, or longer than any that is read here".to_owned(),
            )),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// The size after decompression according to a page header in Thrift's compact form. `None` unless the header has the one form that the decoder
/// cannot interpret differently: fields in the order of their numbers, each of its own type.
fn uncompressed_size(header: &[u8]) -> Option<u64> {
    let mut size = None;
    Header(header).fields(|header, field, kind| match (field, kind) {
        (2, I32) => {
            size = header.number();
            size.map(drop)
        }
        (1 | 3 | 4, I32) => header.number().map(drop),
        // For a data page of version 1, a dictionary page, and a data page of version 2.
        (5 | 7 | 8, STRUCT) => header.fields(|header, inner, kind| match (field, inner, kind) {
            (5, 1..=4, I32) | (7, 1..=2, I32) | (8, 1..=6, I32) => header.number().map(drop),
            (7, 3, TRUE | FALSE) | (8, 7, TRUE | FALSE) => Some(()),
            // Statistics, which the decoder skips by the types of their fields.
            (5, 5, STRUCT) | (8, 8, STRUCT) => header.fields(|header, _, kind| match kind {
                TRUE | FALSE => Some(()),
                I32 | I64 => header.number().map(drop),
                BINARY => header.number().and_then(|length| header.skip(length)),
                _ => None,
            }),
            _ => None,
        }),
        _ => None,
    })?;
    // In zigzag encoding, odd numbers are negative.
    size.filter(|size| size % 2 == 0).map(|size| size / 2)
}

/// Field types of Thrift's compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const STRUCT: u8 = 12;

/// The rest of a header.
struct Header<'a>(&'a [u8]);

impl Header<'_> {
    /// Reads a structure to its end; `each` reads the field with this number and type.
    fn fields(&mut self, mut each: impl FnMut(&mut Self, u8, u8) -> Option<()>) -> Option<()> {
        let mut field = 0_u8;
        loop {
            let head = self.byte()?;
            if head & 0x0f == 0 {
                return Some(());
            }
            // The difference from the previous field number. Zero would mean that an arbitrary number follows.
            let distance = head >> 4;
            if distance == 0 {
                return None;
            }
            field = field.checked_add(distance)?;
            each(self, field, head & 0x0f)?;
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number in seven bits per byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn skip(&mut self, length: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(length).ok()?..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_size_in_a_header() {
        // A dictionary page (2) of 100 bytes, 45 when packed, with 3 values, plain (0), not sorted.
        let dictionary = [0x15, 4, 0x15, 0xc8, 1, 0x15, 90, 0x4c, 0x15, 6, 0x15, 0, 0x12, 0, 0];
        assert_eq!(uncompressed_size(&dictionary), Some(100));
        // A data page with statistics: a text of two bytes, and a count of gaps.
        let largest = [0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 90, 0x2c];
        let inner = [0x15, 6, 0x15, 0, 0x15, 6, 0x15, 6, 0x1c, 0x18, 2, b'a', b'b', 0x26, 0, 0, 0, 0];
        assert_eq!(uncompressed_size(&[&largest[..], &inner[..]].concat()), Some(i32::MAX as u64));
        for cut in 0..dictionary.len() {
            assert_eq!(uncompressed_size(&dictionary[..cut]), None, "{cut}");
        }
        // A repeated size; a size of another type; a field with an explicit number; a negative size.
        for damaged in [
            &[0x15, 4, 0x15, 2, 0x15, 90, 0x05, 4, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0][..],
            &[0x15, 4, 0x16, 2, 0x15, 90, 0],
            &[0x15, 4, 0x05, 4, 2, 0x15, 90, 0],
            &[0x15, 4, 0x15, 3, 0x15, 90, 0],
        ] {
            assert_eq!(uncompressed_size(damaged), None, "{damaged:?}");
        }
    }
}
