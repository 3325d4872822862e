//! Walks one raw sub-buffer of the kernel's ring buffer, as read from `per_cpu/cpuN/trace_pipe_raw`.
//!
//! Pure, and made for millions of records: nothing is allocated, and every access is checked against the page. The meaning of
//! the records is not interpreted here.
//!
//! The page, by the names of `events/header_page` (Linux 6.18, 64 bits; the offsets are read from there, not assumed):
//!
//! ```text
//!  offset 0        8        16                                          16 + commit               end of page
//!         +--------+--------+--------+--------+-- ... --+--------+-------------+-------------------+
//!         |timestamp| commit | record | record |         | record | lost count  | zeros             |
//!         +--------+--------+--------+--------+-- ... --+--------+-------------+-------------------+
//!            u64    local_t                                        unsigned long, if MISSED_STORED
//!
//!  commit, low 32 bits (the upper ones repeat bit 31):
//!         bit 31  MISSED_EVENTS  events were lost before this page
//!         bit 30  MISSED_STORED  and their count is stored after the records
//!         29..0   bytes of records
//! ```
//!
//! A record starts on a multiple of 4 bytes with one 32-bit word, `type_len` in its low 5 bits and `time_delta` above:
//!
//! ```text
//!  type_len   length in bytes      content                                       time
//!  0          4 + array[0]         u32 array[0], then array[0] - 4 bytes of data += time_delta
//!  1..=28     4 + 4 * type_len     4 * type_len bytes of data                    += time_delta
//!  29         to the end           padding, if time_delta is 0
//!  29         4 + array[0]         a discarded event                             += time_delta, if it is not 1
//!  30         8                    time_extend                                   += array[0] << 27 | time_delta
//!  31         8                    time_stamp, absolute, 59 bits                  = array[0] << 27 | time_delta
//! ```
//!
//! The 5 bits above an absolute stamp's 59 are those of the time so far, plus one if that would run backwards, and
//! zero while the time so far has none. A discarded event keeps its delta, since the next one counts from it;
//! the kernel writes 1 if the delta was 0, and we read it like the kernel's own check.

use super::format::HeaderPage;

const MISSED_EVENTS: u32 = 1 << 31;
const MISSED_STORED: u32 = 1 << 30;
const DELTA_BITS: u32 = 27;
const STAMP_BITS: u32 = 59;
const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;

/// The positions of a page's header fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageLayout {
    timestamp_at: usize,
    commit_at: usize,
    /// The size of the kernel's `long`, which `local_t` and the stored count share.
    long: usize,
    data_at: usize,
}

/// Events that the kernel lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missed {
    /// Their number; `None` if the page had no room for it.
    pub count: Option<u64>,
}

/// One sub-buffer whose header was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracePage<'a> {
    /// The time that the first record's delta counts from, in units of the trace clock.
    pub stamp: u64,
    /// The events lost between the page before and this one, if any.
    pub missed: Option<Missed>,
    records: &'a [u8],
    data_at: usize,
}

/// One data record: an undecoded event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// When it was written, in units of the trace clock.
    pub time: u64,
    /// The content, `common_type` first. The kernel may have rounded its length up to a multiple of 4.
    pub data: &'a [u8],
    /// The offset of the record in the page, for messages.
    pub at: usize,
}

/// A page that the kernel cannot have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The page is shorter than its header.
    #[error("a ring-buffer page of {length} bytes is shorter than its header of {header}")]
    NoHeader {
        /// The length of the input, in bytes.
        length: usize,
        /// The length of a header, in bytes.
        header: usize,
    },
    /// The header announces more bytes than there are.
    #[error("the ring-buffer page announces {commit} bytes of records, but has room for {room}")]
    Commit {
        /// The bytes announced, with those of the stored count.
        commit: usize,
        /// The bytes after the header.
        room: usize,
    },
    /// A record reaches beyond the page's records.
    #[error("ring-buffer page, byte {at}: the record is {length} bytes long, but only {left} are left")]
    Overlong {
        /// The offset of the record in the page.
        at: usize,
        /// The length it needs, in bytes.
        length: usize,
        /// The remaining bytes.
        left: usize,
    },
    /// A record with an impossible length.
    #[error("ring-buffer page, byte {at}: a record with the impossible length {length}")]
    Length {
        /// The offset of the record in the page.
        at: usize,
        /// The length in the record, in bytes.
        length: u32,
    },
}

impl PageLayout {
    /// Takes the offsets and sizes from `events/header_page`.
    pub fn new(header: &HeaderPage) -> Self {
        Self {
            timestamp_at: header.timestamp.offset,
            commit_at: header.commit.offset,
            long: header.commit.size,
            data_at: header.data.offset,
        }
    }

    /// The number of bytes in use at the start of a sub-buffer; the rest need not be kept. All of them if the header cannot be read.
    pub fn used(&self, bytes: &[u8]) -> usize {
        let Some(commit) = read_u32(bytes, self.commit_at) else { return bytes.len() };
        let length = (commit & !(MISSED_EVENTS | MISSED_STORED)) as usize;
        let stored = if commit & MISSED_STORED == 0 { 0 } else { self.long };
        self.data_at.saturating_add(length).saturating_add(stored).min(bytes.len())
    }

    /// Reads the header of a page. `bytes` is the whole sub-buffer, of any size. Fails on a page that is shorter than its header, or than its header
    /// announces.
    pub fn page<'a>(&self, bytes: &'a [u8]) -> Result<TracePage<'a>, PageError> {
        let short = PageError::NoHeader { length: bytes.len(), header: self.data_at };
        let data = bytes.get(self.data_at..).ok_or(short)?;
        let stamp = read_u64(bytes, self.timestamp_at).ok_or(short)?;
        let commit = read_u32(bytes, self.commit_at).ok_or(short)?;
        let length = (commit & !(MISSED_EVENTS | MISSED_STORED)) as usize;
        let beyond = |commit: usize| PageError::Commit { commit, room: data.len() };
        let records = data.get(..length).ok_or(beyond(length))?;
        let count = if commit & MISSED_STORED == 0 {
            None
        } else {
            let stored = if self.long == 8 { read_u64(data, length) } else { read_u32(data, length).map(u64::from) };
            Some(stored.ok_or(beyond(length + self.long))?)
        };
        let missed = (commit & (MISSED_EVENTS | MISSED_STORED) != 0).then_some(Missed { count });
        Ok(TracePage { stamp, missed, records, data_at: self.data_at })
    }
}

impl<'a> TracePage<'a> {
    /// The data records, in order. After an error there are no more.
    pub fn records(&self) -> Records<'a> {
        Records { records: self.records, at: 0, time: self.stamp, data_at: self.data_at }
    }
}

/// The data records of a page.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    records: &'a [u8],
    at: usize,
    time: u64,
    data_at: usize,
}

impl<'a> Records<'a> {
    /// Ends the iteration with an error.
    #[cold]
    fn fail(&mut self, error: PageError) -> Option<Result<Record<'a>, PageError>> {
        self.at = self.records.len();
        Some(Err(error))
    }

    #[cold]
    fn overlong(&mut self, at: usize, length: usize) -> Option<Result<Record<'a>, PageError>> {
        let left = self.records.len().saturating_sub(at);
        self.fail(PageError::Overlong { at: self.data_at + at, length, left })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, PageError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.records.len() {
            let at = self.at;
            let Some(head) = read_u32(self.records, at) else {
                return self.overlong(at, 4);
            };
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            // Every kind except the short data record has a second word.
            if (1..=28).contains(&kind) {
                let end = at + 4 + 4 * kind as usize;
                let Some(data) = self.records.get(at + 4..end) else {
                    return self.overlong(at, end - at);
                };
                self.at = end;
                self.time = self.time.wrapping_add(delta);
                return Some(Ok(Record { time: self.time, data, at: self.data_at + at }));
            }
            if kind == TYPE_PADDING && delta == 0 {
                self.at = self.records.len();
                return None;
            }
            let Some(word) = read_u32(self.records, at + 4) else {
                return self.overlong(at, 8);
            };
            let wide = (u64::from(word) << DELTA_BITS) | delta;
            match kind {
                TYPE_TIME_EXTEND => {
                    self.at = at + 8;
                    self.time = self.time.wrapping_add(wide);
                }
                TYPE_TIME_STAMP => {
                    self.at = at + 8;
                    self.time = absolute(wide, self.time);
                }
                _ => {
                    // array[0] counts itself; anything but a multiple of 4 would leave the grid of records.
                    if word < 4 || word % 4 != 0 {
                        return self.fail(PageError::Length { at: self.data_at + at, length: word });
                    }
                    let length = 4 + word as usize;
                    let Some(data) = self.records.get(at + 8..at.saturating_add(length)) else {
                        return self.overlong(at, length);
                    };
                    self.at = at + length;
                    if kind == 0 {
                        self.time = self.time.wrapping_add(delta);
                        return Some(Ok(Record { time: self.time, data, at: self.data_at + at }));
                    }
                    if delta != 1 {
                        self.time = self.time.wrapping_add(delta);
                    }
                }
            }
        }
        None
    }
}

/// The full time of an absolute stamp's 59 bits, given the time so far.
fn absolute(stamp: u64, so_far: u64) -> u64 {
    let high_bits = so_far >> STAMP_BITS << STAMP_BITS;
    if high_bits == 0 {
        return stamp;
    }
    let time = high_bits | stamp;
    if time < so_far { time.wrapping_add(1 << STAMP_BITS) } else { time }
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::super::synth::{self, Long, PageBuilder};
    use super::*;
    use proptest::prelude::*;

    fn layout(long: Long) -> PageLayout {
        PageLayout::new(&HeaderPage::parse("header_page", &synth::header_page_text(long, 4096)).unwrap())
    }

    fn walk(layout: PageLayout, bytes: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, PageError> {
        layout.page(bytes)?.records().map(|r| r.map(|r| (r.time, r.data.to_vec()))).collect()
    }

    #[test]
    fn a_page_written_by_hand() {
        // 6.18 on x86-64: stamp 1000, 12 + 8 + 16 bytes of records, then zeros.
        let mut page = vec![0_u8; 64];
        let mut put = |at: usize, word: u32| page[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        put(0, 1000);
        put(8, 36);
        put(16, 2 | (5 << 5)); // 8 bytes of data, 5 later
        put(20, 0xaaaa);
        put(24, 0xbbbb);
        put(28, 30 | (7 << 5)); // time_extend
        put(32, 1);
        put(36, 3 << 5); // length in array[0]
        put(40, 12);
        put(44, 0xcccc);
        put(48, 0xdddd);
        let words = |a: u32, b: u32| [a.to_ne_bytes(), b.to_ne_bytes()].concat();
        assert_eq!(
            walk(layout(Long::Bits64), &page).unwrap(),
            [(1005, words(0xaaaa, 0xbbbb)), (1005 + 7 + (1 << 27) + 3, words(0xcccc, 0xdddd))]
        );
    }

    #[test]
    fn absolute_stamps_keep_the_bits_they_lack() {
        assert_eq!(absolute(5, 3), 5);
        assert_eq!(absolute(5, (1 << 59) + 3), (1 << 59) + 5);
        assert_eq!(absolute(5, (1 << 59) + 9), (2 << 59) + 5, "an overflow of the 59 bits");
        // Without bits above the 59, a stamp may run backwards, as in the kernel.
        assert_eq!(absolute(5, 9), 5);
    }

    #[test]
    fn lost_events_are_read_from_the_header() {
        for long in [Long::Bits32, Long::Bits64] {
            let mut builder = PageBuilder::new(long, 4096, 7);
            assert!(builder.push(8, &[1, 2, 3, 4]));
            for (count, missed) in [(None, Missed { count: None }), (Some(9), Missed { count: Some(9) })] {
                let bytes = builder.clone().missed(count).finish();
                let page = layout(long).page(&bytes).unwrap();
                assert_eq!((page.stamp, page.missed, page.records().count()), (7, Some(missed), 1));
            }
            assert_eq!(layout(long).page(&builder.finish()).unwrap().missed, None);
        }
    }

    #[test]
    fn errors_say_where() {
        let layout = layout(Long::Bits64);
        assert_eq!(
            walk(layout, &[0; 10]).unwrap_err().to_string(),
            "a ring-buffer page of 10 bytes is shorter than its header of 16"
        );
        let mut page = [0_u8; 32];
        page[8] = 17;
        assert_eq!(
            walk(layout, &page).unwrap_err().to_string(),
            "the ring-buffer page announces 17 bytes of records, but has room for 16"
        );
        page[8] = 16;
        page[16] = 2;
        page[28] = 1;
        assert_eq!(
            walk(layout, &page).unwrap_err().to_string(),
            "ring-buffer page, byte 28: the record is 8 bytes long, but only 4 are left"
        );
        page[28] = 0;
        page[24] = 0;
        page[16] = 0;
        assert_eq!(
            walk(layout, &page).unwrap_err().to_string(),
            "ring-buffer page, byte 16: a record with the impossible length 0"
        );
    }

    /// One thing that a writer puts into a page.
    #[derive(Clone, Debug)]
    enum Written {
        Data(u64, Vec<u8>),
        Discarded(u64, usize),
        Absolute(u64),
    }

    fn written() -> impl Strategy<Value = Written> {
        let step = prop_oneof![0_u64..200, 0_u64..(1 << 28), 0_u64..(1 << 45)];
        prop_oneof![
            8 => (step.clone(), proptest::collection::vec(any::<u8>(), 1..200)).prop_map(|(t, d)| Written::Data(t, d)),
            // A step of 1 is indistinguishable from one of 0.
            1 => (2_u64..1000, 4_usize..60).prop_map(|(t, n)| Written::Discarded(t, n)),
            1 => step.prop_map(Written::Absolute),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            wide: bool, size in prop_oneof![Just(4096_usize), Just(8192), Just(65536)],
            start in prop_oneof![0_u64..(1 << 50), (1_u64 << 59) - 1000..(1 << 59) + 1000, (7_u64 << 59)..(8 << 59)],
            all in proptest::collection::vec(written(), 0..60),
        ) {
            let long = if wide { Long::Bits64 } else { Long::Bits32 };
            let mut builder = PageBuilder::new(long, size, start);
            let mut time = start;
            let mut expected = Vec::new();
            for one in all {
                let fits = match one {
                    Written::Data(step, mut data) => {
                        time += step;
                        let fits = builder.push(time, &data);
                        if fits {
                            data.resize(data.len().next_multiple_of(4), 0);
                            expected.push((time, data));
                        }
                        fits
                    }
                    Written::Discarded(step, length) => {
                        time += step;
                        builder.discarded(time, length)
                    }
                    Written::Absolute(step) => {
                        // The kernel merges upper bits only where the time so far has some.
                        if time >> 59 == 0 && (time + step) >> 59 != 0 {
                            continue;
                        }
                        time += step;
                        builder.absolute(time)
                    }
                };
                if !fits {
                    break;
                }
            }
            prop_assert_eq!(walk(layout(long), &builder.finish()), Ok(expected));
        }

        #[test]
        fn no_page_panics(mut page in proptest::collection::vec(any::<u8>(), 0..300), small: bool) {
            // With a plausible commit word, to let the walk get beyond the header.
            if small && page.len() > 16 {
                let room = (page.len() - 16) as u64;
                page[8..16].copy_from_slice(&room.to_ne_bytes());
            }
            for long in [Long::Bits32, Long::Bits64] {
                if let Ok(page) = layout(long).page(&page) {
                    prop_assert!(page.records().count() <= 300);
                }
            }
        }
    }
}
