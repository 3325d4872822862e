//! Any text as the detours of a selfish benchmark; what is accepted is in order, and is a trace that can be exported.
#![no_main]

use becalm_exchange::{read::selfish, write::loggopsim};
use becalm_units::Nanos;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(length) = selfish::measured(text) {
        assert!(length >= Nanos::ZERO, "a negative time was measured");
    }
    for unit in ["ns", "us", "ms", "s"] {
        let Ok(detours) = selfish::parse(text, unit) else { continue };
        for pair in detours.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "they overlap after rounding");
        }
        if let Some((start, duration)) = detours.last().copied() {
            loggopsim::write(start + duration, detours, &mut std::io::sink()).expect("a sink takes everything");
        }
    }
});
