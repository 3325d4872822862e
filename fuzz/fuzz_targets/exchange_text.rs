//! Any text as a file of another program, in the format that its first byte names: it is refused with a place, or what is read holds
//! what the formats promise.
#![no_main]

use becalm_exchange::read::{Format, Source, TimeUnit, recognize, selfish};
use becalm_exchange::write::loggopsim;
use becalm_units::{Named, Nanos};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let source = Source { name: "file", bytes };
    let _ = recognize(source);
    let format = Format::ALL[usize::from(*first) % Format::ALL.len()];
    let unit = [TimeUnit::Ns, TimeUnit::Us, TimeUnit::Ms, TimeUnit::S][usize::from(*first >> 6)];
    match format {
        Format::Selfish => {
            let Ok(list) = selfish::read(source, unit, &mut |_| {}) else { return };
            for pair in list.detours.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "they overlap after rounding");
            }
            if !list.detours.is_empty() {
                loggopsim::write(list.end(), list.detours, &mut std::io::sink()).expect("a sink takes everything");
            }
            assert!(list.length.is_none_or(|length| length >= Nanos::ZERO), "a negative time was measured");
        }
    }
});
