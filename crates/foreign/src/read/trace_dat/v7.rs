//! Version 7: sections in any order, to which the options lead.

use super::super::ReadError;
use super::super::binary::Binary;
use super::super::kernel_formats::KernelFormats;
use super::compression::Compression;
use super::options::Options;

/// The most sections of options in a row.
const MOST_SECTIONS: usize = 1 << 12;

/// Flag of a section with a compressed body.
const IS_COMPRESSED: u16 = 1;

/// The numbers of sections.
mod id {
    pub const OPTIONS: u16 = 0;
    pub const NAMES: u16 = 15;
    pub const HEADERS: u16 = 16;
    pub const EVENTS: u16 = 18;
    pub const SYMBOLS: u16 = 19;
    pub const STRINGS: u16 = 20;
    pub const THREADS: u16 = 21;
}

/// The body of a section, decompressed if need be.
enum Body<'a> {
    InFile(&'a [u8], usize),
    Unpacked(Vec<u8>, usize),
}

impl Body<'_> {
    fn reader(&self) -> Binary<'_> {
        match self {
            Self::InFile(bytes, place) => Binary::new(bytes, *place),
            Self::Unpacked(bytes, place) => Binary::unpacked(bytes, *place),
        }
    }
}

/// Reads the rest of a file after its head.
pub(super) fn read(
    file: &[u8],
    from: &mut Binary<'_>,
    formats: &mut KernelFormats,
    options: &mut Options,
) -> Result<Compression, ReadError> {
    let place = from.clone();
    let compression = Compression::named(from.text("the name of the compression")?, &place)?;
    from.text("the version of the compression")?;
    let mut next = from.u64("the place of the options")?;
    let (mut sections, mut last) = (0, 0);
    while next != 0 {
        last = next;
        sections += 1;
        if sections > MOST_SECTIONS {
            return Err(place.error("its sections of options go on without an end"));
        }
        let body = section(file, next, id::OPTIONS, compression)?;
        next = read_options(&mut body.reader(), options)?;
    }
    check_end(file, last, compression)?;
    let mut known = Vec::new();
    for (id, offset) in std::mem::take(&mut options.sections) {
        // There is one of each.
        if known.contains(&id) {
            continue;
        }
        known.push(id);
        let read = match id {
            id::HEADERS => KernelFormats::read_header,
            id::EVENTS => KernelFormats::read_events,
            id::SYMBOLS => KernelFormats::read_symbols,
            id::STRINGS => KernelFormats::read_strings,
            id::THREADS => KernelFormats::read_threads,
            // The names of sections and the tracer's own formats: not needed, but if they are missing, the file was cut short.
            _ => |_: &mut KernelFormats, _: &mut Binary<'_>| Ok(()),
        };
        let body = section(file, offset, id, compression)?;
        read(formats, &mut body.reader())?;
    }
    for buffer in &mut options.buffers {
        let mut header = Binary::from_file(file, buffer.section, "the section of a buffer")?;
        header.u16("the number of a section")?;
        buffer.is_compressed = header.u16("the flags of a section")? & IS_COMPRESSED != 0;
    }
    Ok(compression)
}

/// The names of sections follow the last options. In files of trace-cmd 3.1 nothing refers to them: a file that ends within them was cut
/// short.
fn check_end(file: &[u8], last_options: u64, compression: Compression) -> Result<(), ReadError> {
    if last_options == 0 {
        return Ok(());
    }
    let mut from = Binary::from_file(file, last_options, "a section")?;
    from.take(8, "the number and the name of a section")?;
    let size = from.u64("the size of a section")?;
    from.take(size, "a section")?;
    if from.up_to(2) == id::NAMES.to_le_bytes() {
        section(file, from.place() as u64, id::NAMES, compression)?;
    }
    Ok(())
}

/// Reads a section of options, and returns the offset of the next one; 0 if there is none.
fn read_options(from: &mut Binary<'_>, options: &mut Options) -> Result<u64, ReadError> {
    loop {
        let option = from.u16("the number of an option")?;
        let length = from.u32("the length of an option")?;
        let place = from.place();
        let mut data = Binary::new(from.take(length.into(), "an option")?, place);
        if option == 0 {
            return data.u64("the place of further options");
        }
        options.take(option, &mut data, true)?;
    }
}

/// A section, which must have this number.
fn section(file: &[u8], offset: u64, id: u16, compression: Compression) -> Result<Body<'_>, ReadError> {
    let mut from = Binary::from_file(file, offset, "a section")?;
    let place = from.clone();
    let (found, flags) = (from.u16("the number of a section")?, from.u16("the flags of a section")?);
    if found != id {
        return Err(place.error(format!("section {id} was expected here, and section {found} is there")));
    }
    from.u32("the name of a section")?;
    let size = from.u64("the size of a section")?;
    let place = from.place();
    let body = from.take(size, "a section")?;
    if flags & IS_COMPRESSED == 0 {
        return Ok(Body::InFile(body, place));
    }
    Ok(Body::Unpacked(compression.block(&mut Binary::new(body, place))?, place))
}
