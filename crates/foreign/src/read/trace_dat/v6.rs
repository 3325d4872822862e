//! Version 6: everything in a fixed order.

use super::super::ReadError;
use super::super::binary::Binary;
use super::super::kernel_formats::KernelFormats;
use super::options::Options;
use super::{Area, Buffer};

/// Reads the part between the head of a file and its pages.
pub(super) fn read(
    file: &[u8],
    from: &mut Binary<'_>,
    page_size: u32,
    formats: &mut KernelFormats,
    options: &mut Options,
) -> Result<(), ReadError> {
    formats.read_header(from)?;
    KernelFormats::skip_own(from)?;
    formats.read_events(from)?;
    formats.read_symbols(from)?;
    formats.read_strings(from)?;
    formats.read_threads(from)?;
    let mut cpus = from.u32("the number of CPUs")?;
    let place = from.clone();
    let mut kind = from.take(10, "the kind of what follows")?;
    if kind.starts_with(b"options") {
        loop {
            let option = from.u16("the number of an option")?;
            if option == 0 {
                break;
            }
            let length = from.u32("the length of an option")?;
            let place = from.place();
            let data = from.take(length.into(), "an option")?;
            if option == INSTANCE {
                options.buffers.push(instance(file, data, place, page_size)?);
            } else {
                options.take(option, &mut Binary::new(data, place), false)?;
            }
        }
        kind = from.take(10, "the kind of what follows")?;
    }
    if kind.starts_with(b"latency") {
        options.latency_at = Some(from.place() as u64);
        return Ok(());
    }
    if !kind.starts_with(b"flyrecord") {
        return Err(place.error("'options', 'latency' or 'flyrecord' was expected here"));
    }
    // Older programs read the number in front, which is wrong if CPU numbers have gaps.
    cpus = cpus.max(options.cpu_count.unwrap_or(0));
    let clock = None;
    let areas = areas(from, cpus)?;
    options.buffers.push(Buffer { name: String::new(), clock, page_size, is_compressed: false, section: 0, areas });
    Ok(())
}

/// The number of the option for a further buffer.
const INSTANCE: u16 = 3;

/// A further buffer: the place of its CPUs, and its name.
fn instance(file: &[u8], data: &[u8], place: usize, page_size: u32) -> Result<Buffer, ReadError> {
    let mut data = Binary::new(data, place);
    let offset = data.u64("the place of a buffer")?;
    let name = data.text("the name of a buffer")?.to_owned();
    let mut from = Binary::from_file(file, offset, &format!("the buffer '{name}'"))?;
    from.take(10, "the kind of a buffer")?;
    let cpus = from.u32("the number of a buffer's CPUs")?;
    let areas = areas(&mut from, cpus)?;
    Ok(Buffer { name, clock: None, page_size, is_compressed: false, section: 0, areas })
}

/// The place of each CPU's trace.
fn areas(from: &mut Binary<'_>, cpus: u32) -> Result<Vec<Area>, ReadError> {
    let mut areas = Vec::new();
    for cpu in 0..cpus {
        let (offset, size) = (from.u64("the place of a CPU's trace")?, from.u64("the size of a CPU's trace")?);
        areas.push(Area { cpu: cpu.into(), offset, size });
    }
    Ok(areas)
}
