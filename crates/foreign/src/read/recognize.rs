//! Recognizes the format of a file by its contents.

use super::{
    Format, Source, cyclictest, ftq, ftq_ticks, ftrace_text, fwq, hdr, hiccups, loggopsim, netgauge, osjitter, oslat,
    osnoise, perf_data, perf_script, perfetto, rt_json, rtla, selfish, sysjitter, trace_dat,
};
use crate::read::ftq_ticks::Part;
use crate::read::kernel_text::is_name;

/// The number of bytes of a file that are looked at.
pub(super) const LOOKED_AT: usize = 64 << 10;

/// The format of a file, if it looks like a known one. The file may still be damaged.
pub fn recognize(source: Source<'_>) -> Option<Format> {
    if source.bytes.starts_with(trace_dat::MAGIC) {
        return Some(Format::TraceDat);
    }
    if source.bytes.starts_with(perf_data::MAGIC) {
        return Some(Format::PerfData);
    }
    if perfetto::is_perfetto(source) {
        return Some(Format::Perfetto);
    }
    let text = head(source)?;
    if has_kernel_events(text) {
        return Some(Format::PerfScript);
    }
    if osnoise::looks_so(text) {
        return Some(Format::Osnoise);
    }
    if let Some(format) = rt_json::whose(text) {
        return Some(format);
    }
    if ftq_ticks::looks_so(text, source.name) {
        return Some(Format::FtqTicks);
    }
    if loggopsim::looks_so(source) {
        return Some(Format::Loggopsim);
    }
    if let Some(format) = text.lines().map(str::trim).find_map(format_from_line) {
        return Some(format);
    }
    if ftrace_text::looks_so(text) {
        return Some(Format::Ftrace);
    }
    format_from_numbers(text, source.name)
}

/// The start of a text.
fn head(source: Source<'_>) -> Option<&str> {
    let head = &source.bytes[..source.bytes.len().min(LOOKED_AT)];
    match std::str::from_utf8(head) {
        Ok(text) => Some(text),
        // Its end may cut a character.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&head[..error.valid_up_to()]).ok(),
        Err(_) => None,
    }
}

/// The evidence for a format if no title names it, in words to follow "because".
pub fn guessed_by(format: Format, source: Source<'_>) -> Option<&'static str> {
    match format {
        Format::Selfish if selfish::detour_marker(head(source)?) == Some(selfish::DetourMarker::Words) => {
            Some("a comment names detours, or offsets and durations, and its numbers fit together as theirs do")
        }
        Format::Loggopsim => Some("its first and last events are as in files that becalm exports for LogGOPSim"),
        Format::Fwq | Format::FtqTicks if ftq_ticks::part(source.name) != Part::Both => {
            Some("its name ends as that program's do")
        }
        _ => None,
    }
}

/// The only format with this line.
pub(super) fn format_from_line(line: &str) -> Option<Format> {
    let words = || line.split_whitespace();
    let begins = |names: &[&str]| names.iter().any(|name| line.starts_with(name));
    if begins(&hdr::FIRST) {
        Some(Format::Hdr)
    } else if begins(&rtla::HISTOGRAMS)
        || rtla::plain(line).trim_start().starts_with(rtla::TABLE_BEGIN) && words().any(|word| word == "Aval")
    {
        Some(Format::Rtla)
    } else if netgauge::METHODS.iter().any(|(remark, _)| line == *remark) {
        Some(Format::Netgauge)
    } else if line.strip_prefix(ftq::FIRST).is_some_and(|hz| ftq::grain(hz).is_some()) {
        Some(Format::Ftq)
    } else if begins(&[fwq::SPEED]) && line.contains("GHz ")
        || line.starts_with("Thread ") && line.contains(" running on CPUs ")
    {
        Some(Format::Fwq)
    } else if words().eq(hiccups::TITLE) {
        Some(Format::Hiccups)
    } else if words().eq(osjitter::TITLE) {
        Some(Format::Osjitter)
    } else if begins(&[sysjitter::RAW_FIRST]) {
        Some(Format::SysjitterRaw)
    } else if begins(&[sysjitter::FIRST]) {
        Some(Format::Sysjitter)
    } else if line == cyclictest::HISTOGRAM
        || begins(&cyclictest::CLOSING)
        || line.starts_with("T:") && line.contains(" Act:")
    {
        Some(Format::Cyclictest)
    } else if line.strip_prefix(oslat::CORES).is_some_and(|cores| cores.split_whitespace().all(is_number)) {
        Some(Format::Oslat)
    } else {
        None
    }
}

/// The format of plain columns of numbers, which many programs print: two are detours if a title says so, one is fixed work if the name of
/// the file does.
fn format_from_numbers(text: &str, name: &str) -> Option<Format> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let numbers = first.split_whitespace().take_while(|word| is_number(word)).count();
    match numbers {
        0 => None,
        1 => (first.split_whitespace().count() == 1 && name.ends_with("_times.dat")).then_some(Format::Fwq),
        _ => selfish::detour_marker(text).map(|_| Format::Selfish),
    }
}

/// True if one of the first lines is an event as perf prints it.
fn has_kernel_events(text: &str) -> bool {
    let head = Source { name: "", bytes: text.as_bytes() };
    // The last line may be cut.
    perf_script::read(head, &mut |_| {}).is_ok_and(|events| {
        let mut events = events.map_while(Result::ok).peekable();
        events.peek().is_some() && events.all(|event| is_name(event.name))
    })
}

/// True if a word is a decimal number without a sign.
pub(super) fn is_number(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    digits(whole) && digits(fraction)
}
