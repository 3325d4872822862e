//! Checks of the pages of a Parquet file before they are decoded.
//!
//! The decoder trusts some values that a damaged file can get wrong, and panics: a missing dictionary, texts that do not fill their page, or more
//! texts than it claims, levels longer than their page, a count of zero before packed integers. For a dictionary it allocates as many values as the
//! page claims to contain. This module refuses these, and encodings that neither becalm nor the common writers use for such columns.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::bounded::Bounded;

/// The largest block of delta-packed integers. Writers make blocks of 128 to 2,048; the decoder computes with the number before it checks the number
/// of bytes, and may overflow.
const LARGEST_BLOCK: u64 = 1 << 20;

/// The pages of one column in one row group.
pub(super) struct CheckedPages {
    reader: SerializedPageReader<Bounded<File>>,
    column: String,
    /// Whether the column's values can be missing, so pages start with definition levels.
    optional: bool,
    physical_type: Type,
    dictionary_seen: bool,
}

impl CheckedPages {
    /// For the leaf column with this index. Fails if the column's position in the file is invalid.
    pub(super) fn new(file: &Arc<Bounded<File>>, group: &RowGroupMetaData, column: usize) -> Result<Self> {
        let chunk = group.column(column);
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        Ok(Self {
            reader: SerializedPageReader::new(Arc::clone(file), chunk, rows, None)?,
            column: chunk.column_path().string(),
            optional: chunk.column_descr().max_def_level() > 0,
            physical_type: chunk.column_type(),
            dictionary_seen: false,
        })
    }

    /// The path of the column in the file's schema, for messages.
    pub(super) fn column(&self) -> &str {
        &self.column
    }

    /// The offset of the values in a page's buffer, after the definition levels. Fails if it is past the end, or if the levels are in Parquet's
    /// original form, without a length prefix.
    pub(super) fn values_begin(&self, page: &Page) -> Result<usize> {
        let levels = match page {
            Page::DataPage { def_level_encoding, .. } if self.optional && *def_level_encoding != Encoding::RLE => {
                let why = format!("has levels that are packed as {def_level_encoding}, which is not read here");
                return self.refuse(&why);
            }
            Page::DataPage { buf, .. } if self.optional => match buf.first_chunk() {
                Some(length) => u64::from(u32::from_le_bytes(*length)) + size_of::<u32>() as u64,
                None => return self.refuse("is cut off"),
            },
            Page::DataPage { .. } | Page::DictionaryPage { .. } => 0,
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len)
            }
        };
        match usize::try_from(levels) {
            Ok(levels) if levels <= page.buffer().len() => Ok(levels),
            _ => self.refuse("has levels longer than itself"),
        }
    }

    fn refuse<T>(&self, why: &str) -> Result<T> {
        Err(ParquetError::General(format!("a page of the column {} {why}", self.column)))
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        if matches!(page, Page::DataPageV2 { num_nulls: 1.., .. }) {
            return self.refuse("has rows without a value");
        }
        let values = &page.buffer()[self.values_begin(page)?..];
        if let Page::DictionaryPage { num_values, .. } = page {
            self.dictionary_seen = true;
            return self.check_dictionary(*num_values, values);
        }
        match page.encoding() {
            Encoding::PLAIN if self.physical_type == Type::BYTE_ARRAY => self.check_texts(page.num_values(), values),
            // The decoder takes only as many values as requested, and then checks the bytes.
            Encoding::PLAIN | Encoding::RLE => Ok(()),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY if self.dictionary_seen => Ok(()),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => self.refuse("has no dictionary before it"),
            Encoding::DELTA_BINARY_PACKED if matches!(self.physical_type, Type::INT32 | Type::INT64) => {
                match delta_header(values) {
                    Some((block, _)) if block > LARGEST_BLOCK => self.refuse(&format!("packs {block} values a block")),
                    Some((_, 1..)) => Ok(()),
                    _ => self.refuse("does not say how many values it holds"),
                }
            }
            other => self.refuse(&format!("is packed as {other}, which is not read here; pack it plainly")),
        }
    }

    /// Checks that all values of a dictionary exist: the decoder allocates the page's claimed number before it looks for them.
    fn check_dictionary(&self, count: u32, values: &[u8]) -> Result<()> {
        let bits = match self.physical_type {
            Type::BYTE_ARRAY => return self.check_texts(count, values),
            Type::BOOLEAN => 1,
            Type::INT32 => i32::BITS,
            _ => i64::BITS,
        };
        if u64::from(count) * u64::from(bits) <= values.len() as u64 * 8 {
            return Ok(());
        }
        self.refuse(&format!("says that it holds {count} values, and has {} bytes", values.len()))
    }

    /// Checks that texts with length prefixes fill the page.
    fn check_texts(&self, count: u32, values: &[u8]) -> Result<()> {
        let mut rest = values;
        for _ in 0..count {
            let after = rest.split_first_chunk().and_then(|(length, rest)| {
                let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
                rest.get(length..)
            });
            match after {
                Some(after) => rest = after,
                None => return self.refuse("does not hold a value for each row"),
            }
        }
        if rest.is_empty() { Ok(()) } else { self.refuse("holds more values than it says") }
    }
}

/// The first and third number in the header of delta-packed integers: the block size and the number of integers.
fn delta_header(values: &[u8]) -> Option<(u64, u64)> {
    let mut bytes = values.iter();
    let mut number = || {
        let mut value = 0_u64;
        for shift in (0..63).step_by(7) {
            let byte = *bytes.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    };
    let (block, _miniblocks) = (number()?, number()?);
    Some((block, number()?))
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        while let Some(page) = self.reader.get_next_page()? {
            if page.num_values() == 0 && page.is_data_page() {
                continue;
            }
            self.check(&page)?;
            return Ok(Some(page));
        }
        Ok(None)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        // Peeking would hide the header's position from the check of the page's size; only readers that skip rows need it.
        self.refuse("cannot be looked at ahead")
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.refuse("cannot be skipped")
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_counts_of_packed_integers() {
        // Blocks of 128 in 4 miniblocks, then the count.
        assert_eq!(delta_header(&[0x80, 1, 4, 3, 0]), Some((128, 3)));
        assert_eq!(delta_header(&[0x80, 1, 4, 0xff, 0xff, 3, 0]), Some((128, 0xffff)));
        assert_eq!(delta_header(&[0x80, 1, 4, 0, 0]), Some((128, 0)));
        assert_eq!(delta_header(&[0x80, 1, 4, 0x80]), None);
        assert_eq!(delta_header(&[0x80, 1]), None);
        assert_eq!(delta_header(&[]), None);
        assert_eq!(delta_header(&[0xff; 64]), None);
    }
}
