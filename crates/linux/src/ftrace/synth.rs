//! A stand-in for the kernel's side of tracing, for tests and benchmarks: format texts of a 64-bit or a 32-bit kernel,
//! records, and ring-buffer pages with time extends, absolute stamps, discarded events and lost-event marks.
//!
//! Nothing that measures uses this.

use super::decoder::Decoder;
use super::event::{RawEvent, RawHappening};
use super::format::{EventFormat, Field, FieldKind, HeaderPage};

/// The size of the kernel's `long`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Long {
    /// 4 bytes.
    Bits32,
    /// 8 bytes.
    Bits64,
}

impl Long {
    const fn bytes(self) -> usize {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }

    /// Where a page's records begin: behind the time stamp and the commit word.
    const fn data_at(self) -> usize {
        8 + self.bytes()
    }
}

/// The text of `events/header_page` for sub-buffers of `size` bytes.
#[must_use]
pub fn header_page_text(long: Long, size: usize) -> String {
    let (word, at) = (long.bytes(), long.data_at());
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{word};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
         \tfield: char data;\toffset:{at};\tsize:{};\tsigned:0;\n",
        size.saturating_sub(at)
    )
}

/// Builds one page.
#[derive(Clone, Debug)]
pub struct PageBuilder {
    long: Long,
    size: usize,
    bytes: Vec<u8>,
    last: u64,
    missed: Option<Option<u64>>,
}

/// The largest data that a record holds without a length word of its own.
const SMALL: usize = 28 * 4;

impl PageBuilder {
    /// An empty page of `size` bytes with the given time stamp.
    #[must_use]
    pub fn new(long: Long, size: usize, stamp: u64) -> Self {
        let mut bytes = vec![0; long.data_at()];
        bytes[..8].copy_from_slice(&stamp.to_ne_bytes());
        Self { long, size, bytes, last: stamp, missed: None }
    }

    /// Marks that events were lost before this page. As in the kernel, a count is stored only where there is room left
    /// when the page ends; what is pushed from now on leaves that room.
    #[must_use]
    pub fn missed(mut self, count: Option<u64>) -> Self {
        self.missed = Some(count);
        self
    }

    /// Adds a data record, with a time extend before it where the step does not fit the record, and an absolute stamp
    /// where time runs backwards. Says whether it could: not where the page is full or the step reaches 2^59.
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

    /// Adds a discarded event with `length` bytes of data. Says whether it could.
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

    /// Adds an absolute time stamp, of which the page holds the low 59 bits. Says whether there was room.
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
            // The kernel adds bit 31 as a negative int, which its long repeats upwards.
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

/// C types that the formats use.
#[derive(Clone, Copy)]
enum C {
    Int(&'static str, usize, bool),
    Long(&'static str, bool),
    Comm,
    Name,
}

const INT: C = C::Int("int", 4, true);
const UNSIGNED: C = C::Int("unsigned int", 4, false);
const POINTER: C = C::Long("void *", false);
const WORD: C = C::Long("unsigned long", false);

/// An event: its system, its name, its fields.
type Shape = (&'static str, &'static str, &'static [(C, &'static str)]);

const SHAPES: &[Shape] = &[
    ("irq", "irq_handler_entry", &[(INT, "irq"), (C::Name, "name")]),
    ("irq", "irq_handler_exit", &[(INT, "irq"), (INT, "ret")]),
    ("irq", "softirq_entry", &[(UNSIGNED, "vec")]),
    ("irq", "softirq_exit", &[(UNSIGNED, "vec")]),
    ("irq_vectors", "local_timer_entry", &[(INT, "vector")]),
    ("irq_vectors", "local_timer_exit", &[(INT, "vector")]),
    ("irq_vectors", "reschedule_entry", &[(INT, "vector")]),
    ("irq_vectors", "reschedule_exit", &[(INT, "vector")]),
    ("irq_vectors", "call_function_single_entry", &[(INT, "vector")]),
    ("irq_vectors", "call_function_single_exit", &[(INT, "vector")]),
    ("nmi", "nmi_handler", &[(POINTER, "handler"), (C::Int("s64", 8, true), "delta_ns"), (INT, "handled")]),
    ("ipi", "ipi_entry", &[(C::Long("const char *", false), "reason")]),
    ("ipi", "ipi_exit", &[(C::Long("const char *", false), "reason")]),
    (
        "sched",
        "sched_switch",
        &[
            (C::Comm, "prev_comm"),
            (C::Int("pid_t", 4, true), "prev_pid"),
            (INT, "prev_prio"),
            (C::Long("long", true), "prev_state"),
            (C::Comm, "next_comm"),
            (C::Int("pid_t", 4, true), "next_pid"),
            (INT, "next_prio"),
        ],
    ),
    ("workqueue", "workqueue_execute_start", &[(POINTER, "work"), (POINTER, "function")]),
    ("workqueue", "workqueue_execute_end", &[(POINTER, "work"), (POINTER, "function")]),
    ("exceptions", "page_fault_user", &[(WORD, "address"), (WORD, "ip"), (WORD, "error_code")]),
    ("exceptions", "page_fault_kernel", &[(WORD, "address"), (WORD, "ip"), (WORD, "error_code")]),
];

/// The events that a [`SynthKernel`] describes: system, name, and the text of the `format` file.
pub fn formats(long: Long) -> impl Iterator<Item = (&'static str, &'static str, String)> {
    SHAPES
        .iter()
        .zip(300..)
        .map(move |((system, name, fields), id)| (*system, *name, format_text(long, name, id, fields)))
}

fn format_text(long: Long, name: &str, id: u16, fields: &[(C, &str)]) -> String {
    let common = [
        (C::Int("unsigned short", 2, false), "common_type"),
        (C::Int("unsigned char", 1, false), "common_flags"),
        (C::Int("unsigned char", 1, false), "common_preempt_count"),
        (INT, "common_pid"),
    ];
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    let mut at = 0_usize;
    for (index, (c, field)) in common.iter().chain(fields).enumerate() {
        if index == common.len() {
            text.push('\n');
        }
        let (declaration, size, align, signed) = match c {
            C::Int(c, size, signed) => (format!("{c} {field}"), *size, *size, *signed),
            C::Long(c, signed) => (format!("{c} {field}"), long.bytes(), long.bytes(), *signed),
            C::Comm => (format!("char {field}[16]"), 16, 1, false),
            C::Name => (format!("__data_loc char[] {field}"), 4, 4, false),
        };
        at = at.next_multiple_of(align);
        text += &format!("\tfield:{declaration};\toffset:{at};\tsize:{size};\tsigned:{};\n", u8::from(signed));
        at += size;
    }
    text + "\nprint fmt: \"\"\n"
}

/// A kernel of given word and sub-buffer size that knows every event that becalm decodes.
#[derive(Clone, Debug)]
pub struct SynthKernel {
    long: Long,
    size: usize,
    header: HeaderPage,
    formats: Vec<(&'static str, EventFormat)>,
    decoder: Decoder,
}

impl SynthKernel {
    /// A kernel with sub-buffers of `size` bytes.
    ///
    /// # Panics
    /// Where this module contradicts the parser of formats, which its tests exclude.
    #[must_use]
    pub fn new(long: Long, size: usize) -> Self {
        let header = HeaderPage::parse("header_page", &header_page_text(long, size)).expect("a header page of our own");
        let mut decoder = Decoder::new(&header);
        let parse = |(system, name, text): (&'static str, &str, String)| {
            let format = EventFormat::parse(name, &text).expect("a format of our own");
            assert!(decoder.learn(system, &format).expect("a format of our own"), "{name} is decoded");
            (system, format)
        };
        let formats = formats(long).map(parse).collect();
        Self { long, size, header, formats, decoder }
    }

    /// The description of its pages.
    #[must_use]
    pub fn header(&self) -> &HeaderPage {
        &self.header
    }

    /// A decoder that has learned all its events. It knows the vectors `local_timer`, `reschedule` and
    /// `call_function_single`.
    #[must_use]
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// An empty page.
    #[must_use]
    pub fn page(&self, stamp: u64) -> PageBuilder {
        PageBuilder::new(self.long, self.size, stamp)
    }

    /// The pages in which this kernel would record the events of one CPU. A [`RawHappening::Lost`] begins a page. An
    /// event that does not fit even an empty page is left out.
    #[must_use]
    pub fn pages(&self, events: &[RawEvent<'_>]) -> Vec<Vec<u8>> {
        let mut pages = Vec::new();
        let mut page: Option<PageBuilder> = None;
        for event in events {
            if let RawHappening::Lost { count } = event.what {
                pages.extend(page.take().map(PageBuilder::finish));
                page = Some(self.page(event.time).missed(count));
                continue;
            }
            let data = self.record(event);
            let mut open = page.take().unwrap_or_else(|| self.page(event.time));
            if !open.push(event.time, &data) {
                pages.push(open.finish());
                open = self.page(event.time);
                open.push(event.time, &data);
            }
            page = Some(open);
        }
        pages.extend(page.map(PageBuilder::finish));
        pages
    }

    /// The data of an event's record; empty for [`RawHappening::Lost`], which is none.
    #[must_use]
    pub fn record(&self, event: &RawEvent<'_>) -> Vec<u8> {
        let entry = |yes: bool| if yes { "entry" } else { "exit" };
        let mut ints: Vec<(&str, u64)> = Vec::new();
        let mut texts: Vec<(&str, &[u8])> = Vec::new();
        let name = match event.what {
            RawHappening::Lost { .. } => return Vec::new(),
            RawHappening::IrqHandlerEntry { irq, name } => {
                ints.push(("irq", irq as u64));
                texts.push(("name", name));
                "irq_handler_entry".to_owned()
            }
            RawHappening::IrqHandlerExit { irq } => {
                ints.extend([("irq", irq as u64), ("ret", 1)]);
                "irq_handler_exit".to_owned()
            }
            RawHappening::VectorEntry { name, vector } | RawHappening::VectorExit { name, vector } => {
                ints.push(("vector", vector as u64));
                let begins = matches!(event.what, RawHappening::VectorEntry { .. });
                format!("{}_{}", self.decoder.vector_name(name), entry(begins))
            }
            RawHappening::SoftirqEntry { vec } | RawHappening::SoftirqExit { vec } => {
                ints.push(("vec", u64::from(vec)));
                format!("softirq_{}", entry(matches!(event.what, RawHappening::SoftirqEntry { .. })))
            }
            RawHappening::NmiHandler { handler, delta_ns } => {
                ints.extend([("handler", handler), ("delta_ns", delta_ns as u64), ("handled", 1)]);
                "nmi_handler".to_owned()
            }
            RawHappening::IpiEntry { reason } | RawHappening::IpiExit { reason } => {
                ints.push(("reason", reason));
                format!("ipi_{}", entry(matches!(event.what, RawHappening::IpiEntry { .. })))
            }
            RawHappening::SchedSwitch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state,
                next_comm,
                next_pid,
                next_prio,
            } => {
                texts.extend([("prev_comm", prev_comm), ("next_comm", next_comm)]);
                ints.extend([("prev_pid", prev_pid as u64), ("prev_prio", prev_prio as u64)]);
                ints.extend([("next_pid", next_pid as u64), ("next_prio", next_prio as u64)]);
                ints.push(("prev_state", prev_state as u64));
                "sched_switch".to_owned()
            }
            RawHappening::WorkStart { work, function } => {
                ints.extend([("work", work), ("function", function)]);
                "workqueue_execute_start".to_owned()
            }
            RawHappening::WorkEnd { work, function } => {
                ints.extend([("work", work), ("function", function.unwrap_or(0))]);
                "workqueue_execute_end".to_owned()
            }
            RawHappening::PageFault { user, address, ip, error_code } => {
                ints.extend([("address", address), ("ip", ip), ("error_code", error_code)]);
                format!("page_fault_{}", if user { "user" } else { "kernel" })
            }
        };
        let Some((_, format)) = self.formats.iter().find(|(_, format)| format.name == name) else {
            return Vec::new();
        };
        ints.extend([("common_type", u64::from(format.id)), ("common_pid", event.pid as u64)]);
        let length = format.fields.iter().map(|field| field.offset + field.size).max().unwrap_or(0);
        let mut data = vec![0; length];
        for (field, value) in ints.iter().filter_map(|(name, value)| Some((format.field(name)?, value))) {
            // The low bytes, wherever this machine keeps them.
            let bytes = value.to_le_bytes();
            let place = &mut data[field.offset..field.offset + field.size];
            place.copy_from_slice(&bytes[..field.size]);
            if cfg!(target_endian = "big") {
                place.reverse();
            }
        }
        for (field, text) in texts.iter().filter_map(|(name, text)| Some((format.field(name)?, text))) {
            put_text(&mut data, field, text);
        }
        data
    }
}

/// Writes a string with its final zero, cut to what the field can hold.
fn put_text(data: &mut Vec<u8>, field: &Field, text: &[u8]) {
    if field.kind == FieldKind::DataLoc {
        let text = &text[..text.len().min(usize::from(u16::MAX) - 1)];
        let locator = ((text.len() as u32 + 1) << 16) | data.len() as u32;
        data[field.offset..field.offset + 4].copy_from_slice(&locator.to_ne_bytes());
        data.extend_from_slice(text);
        data.push(0);
    } else {
        let text = &text[..text.len().min(field.size.saturating_sub(1))];
        data[field.offset..field.offset + text.len()].copy_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_formats_are_those_of_a_real_kernel() {
        // But for the numbers of the events and the unread rendering, the layout is that of 6.18 on x86-64.
        let real = EventFormat::parse(
            "sched_switch",
            include_str!("../../tests/data/linux-6.18-x86_64/sched/sched_switch/format"),
        );
        let kernel = SynthKernel::new(Long::Bits64, 4096);
        let ours = kernel.formats.iter().find(|(_, format)| format.name == "sched_switch").unwrap();
        assert_eq!(ours.1.fields, real.unwrap().fields);
        let real = HeaderPage::parse("h", include_str!("../../tests/data/linux-6.18-x86_64/header_page")).unwrap();
        assert_eq!(*kernel.header(), real);
    }

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
