//! `trace.dat`, which `trace-cmd record` writes: versions 6 and 7.
//!
//! ```text
//!  17 08 44 | "tracing" | version, 0 | order of bytes | size of a long | size of a page, u32
//!  version 6: headers, formats, symbols, strings, threads, CPUs, options, pages: in this order
//!  version 7: compression, 0 | its version, 0 | u64 offset of the first section of options
//!             each section: u16 id | u16 flags | u32 name | u64 size | body
//! ```
//!
//! From `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt`, `.v7.5.txt`, and the code of `lib/trace-cmd/trace-input.c`. The pages are the
//! kernel's own, and are not decoded here. In a file with several buffers the main one is read, or the first that is not empty.

mod compression;
mod options;
mod v6;
mod v7;

use becalm_units::CpuId;

use self::compression::Compression;
use self::options::Options;
pub use self::options::TscRate;
use super::binary::Binary;
use super::kernel_formats::KernelFormats;
use super::{ReadError, Source};

/// The first bytes of a file.
pub(super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The largest sub-buffer of the kernel's trace, in bytes.
const LARGEST_PAGE: u32 = 1 << 20;

/// A file of trace-cmd.
#[derive(Clone, Debug)]
pub struct TraceDat<'a> {
    /// The version of the format: 6 or 7.
    pub version: u32,
    /// The formats of the kernel's records.
    pub formats: KernelFormats,
    /// The clock of the time stamps, by the kernel's name: `local`, `mono`, `x86-tsc`; `None` if the file does not name it.
    pub clock: Option<String>,
    /// How ticks become nanoseconds, if the clock counts ticks and the file has it.
    pub tsc: Option<TscRate>,
    /// The offset from stamps in nanoseconds to the wall clock.
    pub to_wall_clock: Option<i64>,
    /// Kernel, host name, and architecture, as `uname` prints them.
    pub uname: Option<String>,
    /// The kernel's statistics of its buffer, CPU by CPU, in its own words.
    pub statistics: Vec<String>,
    /// Names of buffers that are not read.
    pub other_buffers: Vec<String>,
    /// The pages of each CPU that has any, in rising order of CPUs.
    pub cpus: Vec<CpuPages<'a>>,
}

/// The pages of a CPU, as in the file.
#[derive(Clone, Debug)]
pub struct CpuPages<'a> {
    /// The CPU that wrote them.
    pub cpu: CpuId,
    stored: &'a [u8],
    /// Their offset in the file.
    offset: usize,
    page_size: usize,
    compression: Option<Compression>,
}

/// The size of a CPU's number of blocks, in bytes.
const SIZE_OF_COUNT: usize = 4;

/// Reads the pages of a CPU one after the other.
#[derive(Clone, Debug)]
pub struct PageCursor<'a> {
    cpu: CpuId,
    page_size: usize,
    compression: Option<Compression>,
    from: Binary<'a>,
    /// The number of compressed blocks; `None` before the first one.
    blocks: Option<u32>,
    unpacked: u32,
    /// The present block, the offset of the next page in it, and its place in the file.
    block: Vec<u8>,
    at: usize,
    place: usize,
}

/// The place of a CPU's buffer in the file.
#[derive(Clone, Copy, Debug)]
struct Area {
    cpu: u64,
    offset: u64,
    size: u64,
}

/// A buffer in the file.
#[derive(Clone, Debug)]
struct Buffer {
    name: String,
    clock: Option<String>,
    page_size: u32,
    is_compressed: bool,
    /// The offset of its section's header; 0 in version 6.
    section: u64,
    areas: Vec<Area>,
}

/// Reads the head of a file and finds its pages. Fails if it is no such file, has another version or byte order, or is cut short or
/// damaged, with the place.
pub fn read(source: Source<'_>) -> Result<TraceDat<'_>, ReadError> {
    let file = source.bytes;
    let mut from = Binary::new(file, 0);
    if !file.starts_with(MAGIC) {
        return Err(from.error("it is no trace.dat, which starts with 17 08 44 and 'tracing'"));
    }
    from.take(MAGIC.len() as u64, "the magic number")?;
    let place = from.clone();
    let version: u32 = match from.text("the version")? {
        "6" => 6,
        "7" => 7,
        other => {
            return Err(place.error(format!(
                "version '{other}' of trace.dat is not read; 'trace-cmd convert --file-version 7' makes a newer one of it"
            )));
        }
    };
    let place = from.clone();
    if from.u8("the order of bytes")? != 0 {
        return Err(place.error("it is of a machine that has the high byte first, which is not read: 'trace-cmd report -t' prints it as text, which is"));
    }
    let _size_of_long = from.u8("the size of a long")?;
    let page_size = from.u32("the size of a page")?;
    let (mut formats, mut options) = (KernelFormats::default(), Options::default());
    let compression = match version {
        6 => {
            v6::read(file, &mut from, page_size, &mut formats, &mut options)?;
            Compression::None
        }
        _ => v7::read(file, &mut from, &mut formats, &mut options)?,
    };
    finish(file, version, compression, formats, options)
}

/// Chooses the buffer that is read.
fn finish(
    file: &[u8],
    version: u32,
    compression: Compression,
    formats: KernelFormats,
    options: Options,
) -> Result<TraceDat<'_>, ReadError> {
    let mut buffers = options.buffers;
    // The main one has no name; `sort_by_key` keeps the order of the others.
    buffers.sort_by_key(|buffer| !buffer.name.is_empty());
    let holds_any = |buffer: &Buffer| buffer.areas.iter().any(|area| area.size > 0);
    let chosen = buffers.iter().position(holds_any);
    let chosen = chosen.map(|index| buffers.remove(index)).ok_or_else(|| {
        ReadError::new(match options.latency_at {
            Some(_) => "it holds a report of a latency tracer as text, and no events; record it without -p",
            None => "it holds no event of any CPU",
        })
    })?;
    if !(64..=LARGEST_PAGE).contains(&chosen.page_size) {
        return Err(ReadError::new(format!("it says that a page of the trace has {} bytes", chosen.page_size)));
    }
    let mut cpus = Vec::new();
    for area in chosen.areas.iter().filter(|area| area.size > 0) {
        let mut place = Binary::from_file(file, area.offset, &format!("the trace of CPU {}", area.cpu))?;
        let cpu = u32::try_from(area.cpu).ok().filter(|cpu| *cpu < CpuId::LIMIT);
        let cpu =
            cpu.ok_or_else(|| place.error(format!("CPU {} is above the limit of {}", area.cpu, CpuId::LIMIT - 1)))?;
        let rest = place.clone();
        let stored = place.take(area.size, &format!("the trace of CPU {cpu}"))?;
        // trace-cmd 3.1 does not count the four bytes before the blocks in the size.
        let stored = if chosen.is_compressed { rest.up_to(stored.len() + SIZE_OF_COUNT) } else { stored };
        cpus.push(CpuPages {
            cpu: CpuId::new(cpu),
            stored,
            offset: area.offset as usize,
            page_size: chosen.page_size as usize,
            compression: chosen.is_compressed.then_some(compression),
        });
    }
    cpus.sort_by_key(|pages| pages.cpu);
    if let Some(pair) = cpus.windows(2).find(|pair| pair[0].cpu == pair[1].cpu) {
        return Err(ReadError::byte(pair[1].offset, format!("there is a second trace of CPU {} here", pair[1].cpu)));
    }
    Ok(TraceDat {
        version,
        formats,
        clock: chosen.clock.or(options.clock),
        tsc: options.tsc,
        to_wall_clock: options.to_wall_clock,
        uname: options.uname,
        statistics: options.statistics,
        other_buffers: buffers.into_iter().filter(holds_any).map(|buffer| buffer.name).collect(),
        cpus,
    })
}

impl TraceDat<'_> {
    /// The number of events that the kernel reports as overwritten or dropped.
    pub fn counted_lost(&self) -> u64 {
        let lost = |line: &str| {
            let (name, count) = line.split_once(':')?;
            matches!(name, "overrun" | "dropped events").then(|| count.trim().parse::<u64>().ok())?
        };
        self.statistics.iter().flat_map(|text| text.lines()).filter_map(lost).fold(0, u64::saturating_add)
    }
}

impl<'a> CpuPages<'a> {
    /// Reads them from the first one on.
    pub fn cursor(&self) -> PageCursor<'a> {
        PageCursor {
            cpu: self.cpu,
            page_size: self.page_size,
            compression: self.compression,
            from: Binary::new(self.stored, self.offset),
            blocks: None,
            unpacked: 0,
            block: Vec::new(),
            at: 0,
            place: self.offset,
        }
    }

    /// Its size in the file, in bytes.
    pub const fn size(&self) -> usize {
        self.stored.len()
    }
}

impl PageCursor<'_> {
    /// The next page, with its place in the file; `None` after the last one. Compressed data is unpacked block by block. Fails if a block
    /// cannot be decompressed, or a page is incomplete.
    pub fn next_page(&mut self) -> Result<Option<(usize, &[u8])>, ReadError> {
        let Some(compression) = self.compression else {
            let place = self.from.place();
            let page = self.from.up_to(self.page_size);
            self.from.take(page.len() as u64, "a page")?;
            return self.whole(place, page);
        };
        while self.at >= self.block.len() {
            let blocks = match self.blocks {
                Some(blocks) => blocks,
                None => self.from.u32("the number of blocks")?,
            };
            self.blocks = Some(blocks);
            if self.unpacked == blocks {
                // If the size includes the four bytes before the blocks, up to four bytes belong to the next part.
                if self.from.left() > SIZE_OF_COUNT {
                    let cpu = self.cpu;
                    return Err(self.from.error(format!(
                        "the {blocks} blocks of CPU {cpu} end here, and its trace goes on: the file is damaged"
                    )));
                }
                return Ok(None);
            }
            self.unpacked += 1;
            self.place = self.from.place();
            (self.block, self.at) = (compression.block(&mut self.from)?, 0);
        }
        let from = self.at;
        self.at = (from + self.page_size).min(self.block.len());
        self.whole(self.place, &self.block[from..self.at])
    }

    /// Checks that a page is complete; there is none if it is empty.
    fn whole<'p>(&self, place: usize, page: &'p [u8]) -> Result<Option<(usize, &'p [u8])>, ReadError> {
        let (cpu, got, size) = (self.cpu, page.len(), self.page_size);
        match got {
            0 => Ok(None),
            _ if got < size => {
                Err(ReadError::byte(place, format!("the last page of CPU {cpu} has {got} bytes, and not {size}")))
            }
            _ => Ok(Some((place, page))),
        }
    }
}
