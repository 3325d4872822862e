//! `perf.data`: the kernel's tracepoints in files of `perf record`.
//!
//! A head has the places of three parts: the attributes that were recorded, each with the numbers that its samples have; the data; and
//! features after the data, one of them with the formats of the events as in `trace.dat`. The data are records. A sample has the fields of
//! its attribute, in a fixed order, and among them the event as the kernel wrote it. From
//! `tools/perf/Documentation/perf.data-file-format.txt` and `include/uapi/linux/perf_event.h`.

use std::collections::{BTreeMap, BTreeSet};

use becalm_units::CpuId;

use super::binary::Binary;
use super::kernel_formats::KernelFormats;
use super::{Progress, ReadError, Source};

/// The first bytes of a file.
pub(super) const MAGIC: &[u8] = b"PERFILE2";

/// Another way to get the data.
const WAY_OUT: &str = "'perf script --ns' prints it, which is read as perf-script";

/// How to make perf record every event.
pub(super) const EVERY_EVENT: &str = "record every event, with 'perf record -a -c 1'";

/// More attributes, and more numbers of samples, than any recording has.
const MOST_ATTRIBUTES: u64 = 1 << 16;
const MOST_IDS: usize = 1 << 22;

/// The size of an offset and a length, in bytes.
const SPAN: u64 = 16;

mod feature {
    pub const TRACING_DATA: u32 = 1;
    pub const HOSTNAME: u32 = 3;
    pub const RELEASE: u32 = 4;
    pub const ARCHITECTURE: u32 = 6;
    pub const DIRECTORY: u32 = 24;
    pub const COMPRESSED: u32 = 27;
}

mod record {
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const LOST_SAMPLES: u32 = 13;
    pub const AUXTRACE: u32 = 71;
    pub const THREAD_MAP: u32 = 73;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED_ALIGNED: u32 = 83;
}

/// Fields of samples, by the bits of their attribute.
mod bit {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDRESS: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// Flag of an attribute: records that are no samples end with thread, time and CPU.
const ALL_HAVE_IDS: u64 = 1 << 18;

/// Flag of an attribute: the period is a frequency, and perf chooses which events become samples.
const IS_FREQUENCY: u64 = 1 << 10;

/// The type of an attribute that is a tracepoint.
const TRACEPOINT: u32 = 2;

/// The fields of a kind of samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    sample: u64,
    read: u64,
    all_have_ids: bool,
}

/// A file. Its records are read from its bytes.
#[derive(Clone, Debug)]
pub struct PerfData<'a> {
    /// The kernel's own formats.
    pub formats: KernelFormats,
    /// The release of the kernel.
    pub release: Option<String>,
    /// The machine's architecture.
    pub architecture: Option<String>,
    records: Binary<'a>,
    /// The numbers of the tracepoints that were recorded.
    pub recorded: BTreeSet<u64>,
    /// The name of the host.
    pub host: Option<String>,
    /// Layouts of samples, by the number that they have.
    layouts: BTreeMap<u64, Layout>,
    /// The layout of samples without a number.
    common: Layout,
}

/// A record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PerfRecord<'a> {
    /// An undecoded kernel event.
    Event {
        /// The CPU.
        cpu: CpuId,
        /// The time, in nanoseconds of perf's clock.
        time: u64,
        /// Its bytes.
        bytes: &'a [u8],
        /// Their offset in the file.
        place: usize,
    },
    /// Records were lost before this instant.
    Lost {
        /// The CPU.
        cpu: CpuId,
        /// The time when the loss was noticed.
        time: u64,
        /// The number of lost records.
        count: u64,
    },
    /// A thread was created, by kthreadd or by a program.
    Thread {
        /// Its number.
        tid: i32,
        /// The number of its process.
        process: i32,
        /// True if it is the kernel's.
        is_kernel: bool,
    },
    /// A thread has this name.
    Name {
        /// Its number.
        tid: i32,
        /// The number of its process.
        process: i32,
        /// The name.
        name: &'a [u8],
    },
}

/// Takes a record.
pub type TakeRecord<'t, 'a> = dyn FnMut(PerfRecord<'a>) -> Result<(), ReadError> + 't;

/// Reads everything except the records. Fails if it is no such file, is compressed, was written to a pipe or by a big-endian machine; if it
/// has no tracepoint, or its samples lack time or CPU; and if it is cut short or damaged, with the place.
pub fn read(source: Source<'_>) -> Result<PerfData<'_>, ReadError> {
    let file = source.bytes;
    let mut from = Binary::new(file, 0);
    if !file.starts_with(MAGIC) {
        return Err(from.error("it is no perf.data of this order of bytes, which starts with PERFILE2"));
    }
    from.take(MAGIC.len() as u64, "the magic number")?;
    if from.u64("the size of the head")? == SPAN {
        return Err(from.error(format!("it was written to a pipe, which is not read; {WAY_OUT}")));
    }
    let entry = from.u64("the size of an attribute")?;
    let place = from.clone();
    let described = part(file, &mut from, "the attributes")?;
    let Attributes { layouts, common, recorded } = attributes(file, described, entry, &place)?;
    let records = part(file, &mut from, "the data")?;
    from.take(SPAN, "the place of the types")?;
    let mut wanted = Vec::new();
    for word in 0..4 {
        let bits = from.u64("the features")?;
        wanted.extend((0..64).filter(|at| bits >> at & 1 == 1).map(|at| word * 64 + at));
    }
    let features_at = records.place() + records.left();
    let mut found = PerfData {
        formats: KernelFormats::default(),
        release: None,
        architecture: None,
        recorded,
        host: None,
        records,
        layouts,
        common,
    };
    let mut places = Binary::from_file(file, features_at as u64, "the table of features")?;
    let mut has_formats = false;
    for number in wanted {
        let mut body = part(file, &mut places, "a feature")?;
        match number {
            feature::TRACING_DATA => {
                has_formats = true;
                read_formats(&mut body, &mut found.formats)?;
            }
            feature::HOSTNAME => found.host = Some(string(&mut body)?),
            feature::RELEASE => found.release = Some(string(&mut body)?),
            feature::ARCHITECTURE => found.architecture = Some(string(&mut body)?),
            feature::DIRECTORY => return Err(body.error(format!("it is a part of a directory of files; {WAY_OUT}"))),
            feature::COMPRESSED => return Err(body.error(format!("it is compressed; {WAY_OUT}"))),
            _ => {}
        }
    }
    if !has_formats {
        return Err(ReadError::new(
            "it holds no formats of events, and so no tracepoint: record with -e 'irq:*' and others",
        ));
    }
    Ok(found)
}

/// The part of a file at the offset and length that come next.
fn part<'a>(file: &'a [u8], from: &mut Binary<'_>, what: &str) -> Result<Binary<'a>, ReadError> {
    let (offset, size) = (from.u64("the place of a part")?, from.u64("the size of a part")?);
    let mut part = Binary::from_file(file, offset, what)?;
    let place = part.place();
    Ok(Binary::new(part.take(size, what)?, place))
}

/// A text after its length.
fn string(from: &mut Binary<'_>) -> Result<String, ReadError> {
    let length = from.u32("the length of a text")?;
    let bytes = from.take(length.into(), "a text")?;
    Ok(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned())
}

/// The contents of a file's attributes.
struct Attributes {
    /// Layouts of samples, by the number that they have.
    layouts: BTreeMap<u64, Layout>,
    /// The layout of samples without a number.
    common: Layout,
    recorded: BTreeSet<u64>,
}

fn attributes(file: &[u8], mut from: Binary<'_>, entry: u64, place: &Binary<'_>) -> Result<Attributes, ReadError> {
    if !(64 + SPAN..=4_096).contains(&entry) || from.left() as u64 / entry > MOST_ATTRIBUTES {
        return Err(place.error("its attributes are not such as perf writes"));
    }
    let (mut layouts, mut all, mut recorded) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    while from.left() as u64 >= entry {
        let place = from.clone();
        let mut fields = from.clone();
        from.take(entry - SPAN, "an attribute")?;
        let mut ids = part(file, &mut from, "the numbers of an attribute")?;
        let kind = fields.u32("the type of an attribute")?;
        fields.take(4, "an attribute")?;
        let [config, period, sample, read, flags] = [(); 5].map(|()| fields.u64("an attribute"));
        let (config, period, flags) = (config?, period?, flags?);
        let layout = Layout { sample: sample?, read: read?, all_have_ids: flags & ALL_HAVE_IDS != 0 };
        // The periods of samples do not show it: those of sched_stat_runtime are times, even if nothing is left out.
        let sampled = if flags & IS_FREQUENCY != 0 { Some("-F") } else { (period != 1).then_some("-c") };
        if let Some(option) = sampled.filter(|_| kind == TRACEPOINT) {
            return Err(place.error(format!(
                "perf left out events ({option} {period}), so an entry and the exit behind it need not belong together: {EVERY_EVENT}"
            )));
        }
        if kind == TRACEPOINT && layout.sample & bit::RAW != 0 && layout.sample & bit::TIME == 0 {
            return Err(place.error("its samples do not tell when they were: record with -T"));
        }
        if kind == TRACEPOINT && layout.sample & bit::RAW != 0 && layout.sample & bit::CPU == 0 {
            return Err(place.error("its samples do not tell on which CPU they were: record with -a"));
        }
        if kind == TRACEPOINT {
            recorded.insert(config);
        }
        all.push(layout);
        while ids.left() >= 8 && layouts.len() < MOST_IDS {
            layouts.insert(ids.u64("a number")?, layout);
        }
    }
    let common = *all.first().ok_or_else(|| place.error("it holds no attribute"))?;
    // Only if this bit is set, the number of a sample's attribute is at the same place in all.
    if all.iter().any(|other| other.sample != common.sample && (other.sample & common.sample & bit::IDENTIFIER == 0)) {
        return Err(place.error(format!("its samples are of several kinds that cannot be distinguished; {WAY_OUT}")));
    }
    Ok(Attributes { layouts, common, recorded })
}

/// The formats of events, as trace-cmd writes them too.
fn read_formats(from: &mut Binary<'_>, formats: &mut KernelFormats) -> Result<(), ReadError> {
    let place = from.clone();
    if from.take(10, "the magic number of the formats")? != b"\x17\x08\x44tracing" {
        return Err(place.error("the formats of its events do not start as they should"));
    }
    from.text("the version of the formats")?;
    let place = from.clone();
    if from.u8("the order of bytes")? != 0 {
        return Err(place.error("it is of a machine that has the high byte first, which is not read: 'perf script --ns' prints it as text, which is"));
    }
    from.take(5, "the size of a long and of a page")?;
    formats.read_header(from)?;
    KernelFormats::skip_own(from)?;
    formats.read_events(from)?;
    formats.read_symbols(from)?;
    formats.read_strings(from)
}

impl<'a> PerfData<'a> {
    /// Gives the records one by one, in the order of the file: those of a CPU are in order of time as far as perf sorts them. Fails if a
    /// record is damaged or compressed, and with the errors of `take`.
    pub fn each(&self, told: Progress<'_>, take: &mut TakeRecord<'_, 'a>) -> Result<(), ReadError> {
        let mut from = self.records.clone();
        while from.left() > 0 {
            let place = from.clone();
            let kind = from.u32("the kind of a record")?;
            from.u16("the flags of a record")?;
            let size = from.u16("the size of a record")?;
            let body = u64::from(size).checked_sub(8);
            let body = body.ok_or_else(|| place.error(format!("a record of {size} bytes is shorter than its head")))?;
            let at = from.place();
            let body = Binary::new(from.take(body, "a record")?, at);
            match kind {
                record::SAMPLE => self.sample(body, take)?,
                record::LOST => self.lost(body, 8, take)?,
                record::LOST_SAMPLES => self.lost(body, 0, take)?,
                record::COMM => name(body, take)?,
                record::FORK => fork(body, take)?,
                record::THREAD_MAP => refuse_threads(body)?,
                record::COMPRESSED | record::COMPRESSED_ALIGNED => {
                    return Err(place.error(format!("it is compressed from here on; {WAY_OUT}")));
                }
                record::AUXTRACE => {
                    return Err(place.error(format!("it holds a trace of the processor itself; {WAY_OUT}")));
                }
                _ => {}
            }
            told(size.into());
        }
        Ok(())
    }

    fn layout(&self, number: Option<u64>) -> Layout {
        number.and_then(|number| self.layouts.get(&number)).copied().unwrap_or(self.common)
    }

    fn sample(&self, mut from: Binary<'a>, take: &mut TakeRecord<'_, 'a>) -> Result<(), ReadError> {
        let number = (self.common.sample & bit::IDENTIFIER != 0).then(|| from.u64("the number of a sample"));
        let Layout { sample, read, .. } = self.layout(number.transpose()?);
        if sample & bit::RAW == 0 {
            return Ok(());
        }
        let has = |what: u64| sample & what != 0;
        let skip = |from: &mut Binary<'a>, words: u64| from.take(words.saturating_mul(8), "a sample").map(|_| ());
        skip(&mut from, u64::from(has(bit::IP)) + u64::from(has(bit::TID)))?;
        let time = from.u64("the time of a sample")?;
        skip(&mut from, [bit::ADDRESS, bit::ID, bit::STREAM].iter().filter(|what| has(**what)).count() as u64)?;
        let cpu = cpu(&mut from)?;
        skip(&mut from, u64::from(has(bit::PERIOD)))?;
        if has(bit::READ) {
            skip_counters(&mut from, read)?;
        }
        if has(bit::CALLCHAIN) {
            let length = from.u64("the length of a call chain")?;
            skip(&mut from, length)?;
        }
        let length = from.u32("the length of an event")?;
        let place = from.place();
        let bytes = from.take(length.into(), "an event")?;
        take(PerfRecord::Event { cpu, time, bytes, place })
    }

    /// Handles a record of lost records, with `before` bytes before their number.
    fn lost(&self, mut from: Binary<'a>, before: u64, take: &mut TakeRecord<'_, 'a>) -> Result<(), ReadError> {
        let Layout { sample, all_have_ids, .. } = self.common;
        from.take(before, "a mark of lost records")?;
        let count = from.u64("the number of lost records")?;
        if !all_have_ids || sample & bit::TIME == 0 || sample & bit::CPU == 0 {
            return Ok(());
        }
        from.take(if sample & bit::TID != 0 { 8 } else { 0 }, "who lost records")?;
        let time = from.u64("when records were lost")?;
        let between = [bit::ID, bit::STREAM].iter().filter(|what| sample & **what != 0).count() as u64;
        from.take(8 * between, "which records were lost")?;
        take(PerfRecord::Lost { cpu: cpu(&mut from)?, time, count })
    }
}

/// The CPU, and four reserved bytes.
fn cpu(from: &mut Binary<'_>) -> Result<CpuId, ReadError> {
    let place = from.clone();
    let cpu = from.u32("the CPU of a sample")?;
    from.u32("the CPU of a sample")?;
    if cpu >= CpuId::LIMIT {
        return Err(place.error(format!("CPU {cpu} is above the limit of {}", CpuId::LIMIT - 1)));
    }
    Ok(CpuId::new(cpu))
}

/// Refuses a recording of single threads: -1 alone stands for all of the CPUs.
fn refuse_threads(mut from: Binary<'_>) -> Result<(), ReadError> {
    const ALL: u64 = u64::MAX;
    let place = from.clone();
    if from.u64("the number of threads")? == 0 || from.u64("a thread")? == ALL {
        return Ok(());
    }
    Err(place.error("it holds the events of single threads, so it does not tell when others had a CPU: record all threads, with 'perf record -a'"))
}

/// Skips the values of counters, according to the bits of their format.
fn skip_counters(from: &mut Binary<'_>, format: u64) -> Result<(), ReadError> {
    const GROUP: u64 = 1 << 3;
    let is_set = |bit: u32| format >> bit & 1;
    let (times, each) = (is_set(0) + is_set(1), 1 + is_set(2) + is_set(4));
    let count = if format & GROUP != 0 { from.u64("the number of counters")? } else { 1 };
    let words = count.saturating_mul(each).saturating_add(times);
    from.take(words.saturating_mul(8), "the values of counters").map(|_| ())
}

/// A thread was created; existing threads are listed in the same way, with their parent. All kernel threads, and no programs, are children
/// of kthreadd, which has number 2 outside of PID namespaces.
fn fork<'a>(mut from: Binary<'a>, take: &mut TakeRecord<'_, 'a>) -> Result<(), ReadError> {
    const KTHREADD: u32 = 2;
    let pid = from.u32("the process of a thread")?;
    let parent = from.u32("the parent of a thread")?;
    let tid = from.u32("the number of a thread")? as i32;
    take(PerfRecord::Thread { tid, process: pid as i32, is_kernel: pid == KTHREADD || parent == KTHREADD })
}

fn name<'a>(mut from: Binary<'a>, take: &mut TakeRecord<'_, 'a>) -> Result<(), ReadError> {
    let process = from.u32("the process of a name")? as i32;
    let tid = from.u32("the thread of a name")? as i32;
    let rest = from.up_to(from.left());
    let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
    take(PerfRecord::Name { tid, process, name })
}
