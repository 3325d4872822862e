//! The options of a file: trace-cmd's facts about the recording besides its events.

use super::super::ReadError;
use super::super::binary::Binary;
use super::{Area, Buffer};

/// The most options that are read: a hostile file could have no end of them.
const MOST_OPTIONS: usize = 1 << 16;

/// How ticks of the processor's counter become nanoseconds: `ticks * mult >> shift`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TscRate {
    /// The factor.
    pub mult: u32,
    /// The shift to the right, in bits, at most 63.
    pub shift: u32,
}

/// The options of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub clock: Option<String>,
    pub tsc: Option<TscRate>,
    pub to_wall_clock: Option<i64>,
    pub uname: Option<String>,
    pub statistics: Vec<String>,
    pub cpu_count: Option<u32>,
    pub buffers: Vec<Buffer>,
    /// The offset of a text report.
    pub latency_at: Option<u64>,
    /// The numbers of sections and their offsets.
    pub sections: Vec<(u16, u64)>,
    count: usize,
}

/// The numbers of options.
mod id {
    pub const DATE: u16 = 1;
    pub const CPU_STATISTICS: u16 = 2;
    pub const BUFFER: u16 = 3;
    pub const TRACE_CLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const OFFSET: u16 = 7;
    pub const CPU_COUNT: u16 = 8;
    pub const TSC_TO_NS: u16 = 14;
    pub const SECTIONS: std::ops::RangeInclusive<u16> = 15..=21;
    pub const BUFFER_TEXT: u16 = 22;
}

impl Options {
    pub fn take(&mut self, option: u16, data: &mut Binary<'_>, has_sections: bool) -> Result<(), ReadError> {
        self.count += 1;
        if self.count > MOST_OPTIONS {
            return Err(data.error("there are more options than trace-cmd writes"));
        }
        let length = data.left() as u64;
        let text = |data: &mut Binary<'_>| -> Result<String, ReadError> {
            let bytes = data.take(length, "an option")?;
            let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
            Ok(text.trim().to_owned())
        };
        match option {
            id::DATE | id::OFFSET => {
                let place = data.clone();
                let text = text(data)?;
                let number = signed(&text).ok_or_else(|| place.error(format!("'{text}' is no offset of a time")))?;
                // The date is in microseconds, and only it leads to the wall clock.
                let offset = number.saturating_mul(if option == id::DATE { 1_000 } else { 1 });
                if option == id::DATE || self.to_wall_clock.is_some() {
                    self.to_wall_clock = Some(self.to_wall_clock.unwrap_or(0).saturating_add(offset));
                }
            }
            id::CPU_STATISTICS => self.statistics.push(text(data)?),
            id::BUFFER if has_sections => self.buffers.push(buffer(data)?),
            id::TRACE_CLOCK => {
                let text = text(data)?;
                let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                self.clock = chosen.map(|(clock, _)| clock.to_owned());
            }
            id::UNAME => self.uname = Some(text(data)?),
            id::CPU_COUNT => self.cpu_count = Some(data.u32("the number of CPUs")?),
            id::TSC_TO_NS => {
                let (mult, shift) = (data.u32("the factor of ticks")?, data.u32("the shift of ticks")?);
                if shift > 63 || mult == 0 {
                    return Err(
                        data.error(format!("ticks cannot become time by the factor {mult} and the shift {shift}"))
                    );
                }
                self.tsc = Some(TscRate { mult, shift });
            }
            id::BUFFER_TEXT if has_sections => self.latency_at = Some(data.u64("the place of a report")?),
            section if has_sections && id::SECTIONS.contains(&section) => {
                self.sections.push((section, data.u64("the place of a section")?));
            }
            // Unused options, and those of later versions.
            _ => {}
        }
        Ok(())
    }
}

/// A buffer, as version 7 describes it.
fn buffer(data: &mut Binary<'_>) -> Result<Buffer, ReadError> {
    let section = data.u64("the place of a buffer's section")?;
    let name = data.text("the name of a buffer")?.to_owned();
    let clock = data.text("the clock of a buffer")?.to_owned();
    let page_size = data.u32("the size of a buffer's pages")?;
    let count = data.u32("the number of a buffer's CPUs")?;
    let mut areas = Vec::new();
    for _ in 0..count {
        let cpu = data.u32("the number of a CPU")?.into();
        let (offset, size) = (data.u64("the place of a CPU's trace")?, data.u64("the size of a CPU's trace")?);
        areas.push(Area { cpu, offset, size });
    }
    Ok(Buffer {
        name,
        clock: Some(clock).filter(|clock| !clock.is_empty()),
        page_size,
        is_compressed: false,
        section,
        areas,
    })
}

/// A number as C's `strtoll` reads it: decimal, or hexadecimal with `0x`.
fn signed(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    // A negative one is written as its 64 bits.
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()? as i64,
        None => digits.parse().ok()?,
    };
    Some(if is_negative { number.wrapping_neg() } else { number })
}
