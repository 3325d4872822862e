//! Which format a file is in, by what it holds.

use super::{Format, Source, perf_script, trace_dat};

/// So many bytes of a file are looked at.
const LOOKED_AT: usize = 64 << 10;

/// The format of a file, if it looks like one that is known. A file that looks like it may yet be damaged.
#[must_use]
pub fn recognize(source: Source<'_>) -> Option<Format> {
    let head = &source.bytes[..source.bytes.len().min(LOOKED_AT)];
    if head.starts_with(trace_dat::MAGIC) {
        return Some(Format::TraceDat);
    }
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The end of the head may cut a character.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    if has_kernel_events(text) {
        return Some(Format::PerfScript);
    }
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines().find(|line| !line.starts_with('#'))?;
    let numbers = first.split_whitespace().take_while(|word| is_number(word)).count();
    (numbers >= 2).then_some(Format::Selfish)
}

/// Whether one of the first lines is an event as perf prints it.
fn has_kernel_events(text: &str) -> bool {
    let head = Source { name: "", bytes: text.as_bytes() };
    // The last line may be cut.
    perf_script::read(head, &mut |_| {}).is_ok_and(|mut events| matches!(events.next(), Some(Ok(_))))
}

/// Whether a word is a decimal number without a sign.
fn is_number(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    digits(whole) && digits(fraction)
}
