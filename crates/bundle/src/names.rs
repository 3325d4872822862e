//! Columns of names, read as one key per row and one name per key, without a string per row.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};

use super::hybrid::Hybrid;
use super::pages::CheckedPages;
use super::schema::GROUP_ROWS;

/// The longest name, in bytes.
const LONGEST: usize = 4 << 10;

/// The most distinct names in a column of a row group: in becalm's own files, every row may have a name of its own.
const MOST: usize = GROUP_ROWS;

/// The most bytes of distinct names in a column of a row group.
const MOST_BYTES: usize = 32 << 20;

/// The most distinct sources in a run's activities. Comparing runs takes 4 KiB for each.
const MOST_SOURCES: usize = 1 << 17;

/// The names of a column by key, in the order of the file.
pub(super) type NameTable = Arc<Vec<Arc<str>>>;

/// The source names in all row groups of a run read so far. Each is stored once, and their total is limited, because adding up a run keeps all of
/// them. Clones share the pool of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct SourcePool(Arc<Mutex<Pooled>>);

#[derive(Debug, Default)]
struct Pooled {
    names: HashSet<Arc<str>>,
    bytes: usize,
}

impl SourcePool {
    /// The pool's copy of a name.
    fn share(&self, name: Arc<str>) -> Result<Arc<str>> {
        let mut pooled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pooled.names.get(&name) {
            return Ok(Arc::clone(known));
        }
        pooled.bytes += name.len();
        if pooled.names.len() == MOST_SOURCES || pooled.bytes > MOST_BYTES {
            return Err(general(format!(
                "the run has more than {MOST_SOURCES} different sources, or more than {MOST_BYTES} bytes of their names; give \
                 several things that take time one name"
            )));
        }
        pooled.names.insert(Arc::clone(&name));
        Ok(name)
    }
}

/// Reads the names of one column in one row group.
///
/// A file stores them as keys of a dictionary at the start, as plain texts, or as both if the writer found the dictionary too large: plain texts are
/// then added to the dictionary.
pub(super) struct NameReader {
    pages: CheckedPages,
    column: String,
    table: NameTable,
    /// The number of names from the file's dictionary, which come first; keys in a page refer to these only.
    in_dictionary: usize,
    /// The total bytes of the names in the table.
    bytes: usize,
    /// The pool of names that the whole run shares.
    pool: Option<SourcePool>,
    /// The keys of the names; filled at the first plain text.
    keys: HashMap<Arc<str>, i32>,
    page: PageValues,
    /// The rows of the current page that are still to come.
    left: usize,
    gaps: bool,
}

enum PageValues {
    None,
    Keys(Hybrid),
    /// Texts with length prefixes; the check of the pages has verified that they are complete.
    Plain(Bytes),
    /// Some rows have no value, so none of them is used.
    Gaps,
}

impl NameReader {
    /// For a column whose names are stored in the pool, if any.
    pub(super) fn new(pages: CheckedPages, pool: Option<SourcePool>) -> Self {
        let (column, table) = (pages.column().to_owned(), NameTable::default());
        Self {
            pages,
            column,
            table,
            in_dictionary: 0,
            bytes: 0,
            pool,
            keys: HashMap::new(),
            page: PageValues::None,
            left: 0,
            gaps: false,
        }
    }

    /// Reads the keys of up to `rows` rows and returns their number, fewer than `rows` only at the end. Fails if a page is damaged, or a text is not
    /// UTF-8.
    pub(super) fn read(&mut self, rows: usize, keys: &mut Vec<i32>) -> Result<usize> {
        let wanted = keys.len() + rows;
        while keys.len() < wanted {
            if self.left == 0 && !self.next_page()? {
                break;
            }
            let count = self.left.min(wanted - keys.len());
            let begin = keys.len();
            match &mut self.page {
                PageValues::None => break,
                PageValues::Gaps => keys.resize(begin + count, 0),
                PageValues::Keys(packed) => {
                    if !packed.read(count, keys) {
                        return self.refuse("does not hold a value for each row");
                    }
                    let is_outside = |key: &i32| usize::try_from(*key).map_or(true, |key| key >= self.in_dictionary);
                    if keys[begin..].iter().any(is_outside) {
                        return Err(general(format!("the column {} has rows outside of its dictionary", self.column)));
                    }
                }
                PageValues::Plain(rest) => {
                    let mut rest = std::mem::take(rest);
                    for _ in 0..count {
                        let text = next_text(&self.column, &mut rest)?;
                        keys.push(self.key(text.as_str())?);
                    }
                    self.page = PageValues::Plain(rest);
                }
            }
            self.left -= count;
        }
        Ok(rows - (wanted - keys.len()))
    }

    /// The names by key, so far.
    pub(super) fn table(&self) -> NameTable {
        Arc::clone(&self.table)
    }

    /// Whether any row had no value.
    pub(super) const fn has_gaps(&self) -> bool {
        self.gaps
    }

    fn refuse<T>(&self, why: &str) -> Result<T> {
        Err(general(format!("a page of the column {} {why}", self.column)))
    }

    /// Takes the next page of rows; `false` at the end.
    fn next_page(&mut self) -> Result<bool> {
        while let Some(page) = self.pages.get_next_page()? {
            let begin = self.pages.values_begin(&page)?;
            let values = page.buffer().slice(begin..);
            if let Page::DictionaryPage { num_values, .. } = page {
                self.take_dictionary(num_values, values)?;
                continue;
            }
            self.left = page.num_values() as usize;
            self.page = if self.is_gapless(&page)? { self.values(page.encoding(), values)? } else { PageValues::Gaps };
            return Ok(true);
        }
        self.page = PageValues::None;
        Ok(false)
    }

    fn take_dictionary(&mut self, count: u32, mut values: Bytes) -> Result<()> {
        if !self.table.is_empty() {
            return self.refuse("is a dictionary behind other values");
        }
        if count as usize > MOST {
            return Err(too_many(&self.column));
        }
        // The check of the pages has verified that this many texts fill it.
        for _ in 0..count {
            let text = next_text(&self.column, &mut values)?;
            self.add(text.as_str())?;
        }
        self.in_dictionary = self.table.len();
        Ok(())
    }

    /// The key of a name; adds new names.
    fn key(&mut self, name: &str) -> Result<i32> {
        if let Some(key) = self.keys.get(name) {
            return Ok(*key);
        }
        let name = self.add(name)?;
        let key = i32::try_from(self.table.len() - 1).unwrap_or(i32::MAX);
        self.keys.insert(name, key);
        Ok(key)
    }

    fn add(&mut self, name: &str) -> Result<Arc<str>> {
        self.bytes += name.len();
        if self.table.len() == MOST || self.bytes > MOST_BYTES {
            return Err(too_many(&self.column));
        }
        let name: Arc<str> = name.into();
        let name = self.pool.as_ref().map_or_else(|| Ok(Arc::clone(&name)), |pool| pool.share(Arc::clone(&name)))?;
        Arc::make_mut(&mut self.table).push(Arc::clone(&name));
        Ok(name)
    }

    fn values(&mut self, encoding: Encoding, mut values: Bytes) -> Result<PageValues> {
        match encoding {
            Encoding::PLAIN => {
                if self.keys.is_empty() {
                    self.keys = (0..).zip(self.table.iter()).map(|(key, name)| (Arc::clone(name), key)).collect();
                }
                Ok(PageValues::Plain(values))
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => match values.first().copied() {
                Some(width @ 0..=32) => Ok(PageValues::Keys(Hybrid::new(values.split_off(1), width.into()))),
                _ => self.refuse("does not say how its keys are packed"),
            },
            other => self.refuse(&format!("is packed as {other}, which is not read here; pack it plainly")),
        }
    }

    /// Whether all rows of a page have a value, according to its definition levels. Version 2 pages count their gaps, and were already refused if
    /// they have any.
    fn is_gapless(&mut self, page: &Page) -> Result<bool> {
        let Page::DataPage { buf, num_values, .. } = page else { return Ok(true) };
        let begin = self.pages.values_begin(page)?;
        if begin == 0 {
            return Ok(true);
        }
        let mut levels = Hybrid::new(buf.slice(size_of::<u32>()..begin), 1);
        let (mut left, mut some) = (*num_values as usize, Vec::new());
        while left > 0 {
            some.clear();
            let count = left.min(1 << 16);
            if !levels.read(count, &mut some) {
                return self.refuse("does not hold a level for each row");
            }
            if some.contains(&0) {
                self.gaps = true;
                return Ok(false);
            }
            left -= count;
        }
        Ok(true)
    }
}

fn general(why: String) -> ParquetError {
    ParquetError::General(why)
}

fn too_many(column: &str) -> ParquetError {
    general(format!(
        "a row group has more than {MOST} names in the column {column}, or more than {MOST_BYTES} bytes of them; write smaller \
         row groups"
    ))
}

/// A text of a page, sharing its memory.
struct PageText(Bytes);

impl PageText {
    fn as_str(&self) -> &str {
        // Validated when it was created.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Takes the first text from the values of a page.
fn next_text(column: &str, rest: &mut Bytes) -> Result<PageText> {
    let (length, _) = rest.split_first_chunk().unwrap_or((&[0; 4], &[]));
    let length = u32::from_le_bytes(*length) as usize;
    if length > LONGEST {
        return Err(general(format!("the column {column} has a name of {length} bytes, and {LONGEST} is the most")));
    }
    let end = size_of::<u32>() + length;
    if end > rest.len() {
        return Err(general(format!("a page of the column {column} does not hold a value for each row")));
    }
    let text = rest.split_to(end).slice(size_of::<u32>()..);
    match std::str::from_utf8(&text) {
        Ok(_) => Ok(PageText(text)),
        Err(_) => Err(general(format!("the column {column} has a text that is not UTF-8"))),
    }
}
