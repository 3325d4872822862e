//! Writes one ring-buffer page, record by record, in the layout that [`page`](super::super::page) draws.

use super::long::Long;

/// A page being written; [`Self::finish`] returns its bytes.
#[derive(Clone, Debug)]
pub struct PageBuilder {
    long: Long,
    size: usize,
    bytes: Vec<u8>,
    last: u64,
    missed: Option<Option<u64>>,
}

/// The largest data that a record holds without a separate length word.
const SMALL: usize = 28 * 4;

impl PageBuilder {
    /// An empty page of `size` bytes with the given time stamp.
    pub fn new(long: Long, size: usize, stamp: u64) -> Self {
        let mut bytes = vec![0; long.data_at()];
        bytes[..8].copy_from_slice(&stamp.to_ne_bytes());
        Self { long, size, bytes, last: stamp, missed: None }
    }

    /// Marks that events were lost before this page. As in the kernel, the count is stored only if there is room left when the page ends; later
    /// pushes leave that room.
    #[must_use]
    pub fn missed(mut self, count: Option<u64>) -> Self {
        self.missed = Some(count);
        self
    }

    /// Adds a data record, with a time extend before it if the step does not fit the record, and an absolute stamp if time runs backwards. Returns
    /// whether it could: not if the page is full or the step reaches 2^59.
    pub fn push(&mut self, time: u64, data: &[u8]) -> bool {
        let Some((extend, delta)) = self.step(time) else { return false };
        let length = data.len().max(1).next_multiple_of(4);
        let head = if length <= SMALL { 4 } else { 8 };
        if !self.has_room(extend.map_or(0, |_| 8) + head + length) {
            return false;
        }
        self.words(extend);
        if length <= SMALL {
            self.word((length as u32 / 4) | (delta << 5));
        } else {
            self.word(delta << 5);
            self.word(length as u32 + 4);
        }
        self.bytes.extend_from_slice(data);
        self.bytes.resize(self.bytes.len() + length - data.len(), 0);
        self.last = time;
        true
    }

    /// Adds a discarded event with `length` bytes of data. Returns whether it could.
    pub fn discarded(&mut self, time: u64, length: usize) -> bool {
        let Some((extend, delta)) = self.step(time) else { return false };
        let length = length.max(1).next_multiple_of(4);
        if !self.has_room(extend.map_or(0, |_| 8) + 8 + length) {
            return false;
        }
        self.words(extend);
        // A delta of 0 would mean padding to the end of the page.
        self.word(29 | (delta.max(1) << 5));
        self.word(length as u32 + 4);
        self.bytes.resize(self.bytes.len() + length, 0xdd);
        self.last = time;
        true
    }

    /// Adds an absolute time stamp; the page holds its low 59 bits. Returns whether there was room.
    pub fn absolute(&mut self, time: u64) -> bool {
        let fits = self.has_room(8);
        if fits {
            self.words(Some((31, time & ((1 << 59) - 1))));
            self.last = time;
        }
        fits
    }

    /// The page, filled with zeros to its size.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let mut commit = (self.bytes.len() - self.long.data_at()) as u32;
        if let Some(count) = self.missed {
            commit |= 1 << 31;
            if let Some(count) = count.filter(|_| self.bytes.len() + self.long.bytes() <= self.size) {
                commit |= 1 << 30;
                match self.long {
                    Long::Bits32 => self.bytes.extend_from_slice(&(count as u32).to_ne_bytes()),
                    Long::Bits64 => self.bytes.extend_from_slice(&count.to_ne_bytes()),
                }
            }
        }
        match self.long {
            Long::Bits32 => self.bytes[8..12].copy_from_slice(&commit.to_ne_bytes()),
            // The kernel adds bit 31 as a negative int, which its long sign-extends.
            Long::Bits64 => self.bytes[8..16].copy_from_slice(&i64::from(commit as i32).to_ne_bytes()),
        }
        self.bytes.resize(self.size.max(self.bytes.len()), 0);
        self.bytes
    }

    /// The marker to write before a record at `time`, if any, and the record's own delta.
    fn step(&self, time: u64) -> Option<(Option<(u32, u64)>, u32)> {
        match time.checked_sub(self.last) {
            None => Some((Some((31, time & ((1 << 59) - 1))), 0)),
            Some(delta) if delta < 1 << 27 => Some((None, delta as u32)),
            Some(delta) if delta < 1 << 59 => Some((Some((30, delta)), 0)),
            Some(_) => None,
        }
    }

    fn has_room(&self, length: usize) -> bool {
        let reserved = if matches!(self.missed, Some(Some(_))) { self.long.bytes() } else { 0 };
        self.bytes.len() + length + reserved <= self.size
    }

    fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_ne_bytes());
    }

    /// A marker of two words: its type and its 59 bits.
    fn words(&mut self, marker: Option<(u32, u64)>) {
        if let Some((kind, value)) = marker {
            self.word(kind | (((value & ((1 << 27) - 1)) as u32) << 5));
            self.word((value >> 27) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_page_takes_no_more() {
        let mut page = PageBuilder::new(Long::Bits64, 4096, 0).missed(Some(3));
        let mut pushed = 0;
        while page.push(pushed, &[0; 12]) {
            pushed += 1;
        }
        assert_eq!(pushed, (4096 - 16 - 8) / 16);
        assert_eq!(page.finish().len(), 4096);
    }
}
