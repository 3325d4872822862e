//! Any text as a file of another program, in the format selected by its first byte: it is refused with a location, or the result has the
//! properties of its form.
#![no_main]

use becalm_foreign::read::{self, FileFacts, Form, Format, SampleList, Source, TimeUnit, ftq_ticks, recognize};
use becalm_foreign::write::loggopsim::NoiseFile;
use becalm_model::Document;
use becalm_units::{Named, Nanos};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let source = Source { name: "file.1", bytes };
    let _ = recognize(source);
    let format = Format::ALL[usize::from(first & 0x1f) % Format::ALL.len()];
    let units = [None, Some(TimeUnit::Us), Some(TimeUnit::Ms), Some(TimeUnit::S)];
    let known = FileFacts { unit: units[usize::from(first >> 6)], rate_hz: (first & 0x20 == 0).then_some(2.5e9) };
    let told = &mut |_| {};
    match format.form() {
        Form::Detours => {
            let Ok(list) = read::detours(format, source, known, told) else { return };
            for pair in list.detours.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "they overlap after rounding");
            }
            assert!(list.length.is_none_or(|length| length >= Nanos::ZERO), "a negative time was measured");
            if !list.detours.is_empty() {
                let mut file = NoiseFile::begin(std::io::sink()).expect("a sink takes everything");
                for (start, duration) in &list.detours {
                    file.detour(*start, *duration).expect("a sink takes everything");
                }
                file.end(list.end()).expect("a sink takes everything");
            }
        }
        Form::Samples => {
            let Ok(lists) = read::samples(format, source, known, told) else {
                // A text that is not a valid pair of files may be one of times and one of counts, separated by a byte that is not text.
                let halves = (format == Format::FtqTicks).then(|| two_files(bytes, known)).flatten();
                return halves.iter().for_each(in_order);
            };
            lists.iter().for_each(in_order);
        }
        // The target foreign_trace covers these.
        Form::Trace => {}
        Form::Distribution => {
            let Ok(found) = read::distribution(format, source, known, told) else { return };
            assert_eq!(found.check(), Ok(()), "it cannot be stored");
        }
    }
});

fn in_order(list: &SampleList) {
    for pair in list.samples.windows(2) {
        assert!(pair[0].duration >= Nanos::ZERO && pair[0].start + pair[0].duration <= pair[1].start);
    }
}

/// The longest list that times and counts form together.
fn two_files(bytes: &[u8], known: FileFacts) -> Option<SampleList> {
    let mut halves = bytes.splitn(2, |byte| *byte == 0xff);
    let mut column = || ftq_ticks::column(Source { name: "half", bytes: halves.next()? }, &mut |_| {}).ok();
    let (times, counts) = (column()?, column()?);
    let lists = ftq_ticks::joined("half", &times.numbers, &counts.numbers, known.rate_hz).ok()?;
    lists.into_iter().max_by_key(|list| list.samples.len())
}
