//! Any bytes as a ring-buffer page: decoding must end, with events or an error, and count its output correctly.
#![no_main]

use std::sync::LazyLock;

use becalm_linux::ftrace::synth::{Long, SynthKernel};
use becalm_linux::ftrace::{RawEvent, RawHappening};
use libfuzzer_sys::fuzz_target;

static KERNELS: LazyLock<[SynthKernel; 2]> =
    LazyLock::new(|| [SynthKernel::new(Long::Bits64, 4096), SynthKernel::new(Long::Bits32, 4096)]);

fuzz_target!(|page: &[u8]| {
    for kernel in KERNELS.iter() {
        let (mut events, mut lost) = (0, false);
        let mut sink = |event: RawEvent<'_>| match event.what {
            RawHappening::Lost { .. } => lost = true,
            RawHappening::IrqHandlerEntry { name, .. } => {
                events += 1;
                // A name is within the page and ends before its zero.
                assert!(
                    page.as_ptr_range().start <= name.as_ptr() && name.as_ptr_range().end <= page.as_ptr_range().end
                );
                assert!(!name.contains(&0));
            }
            _ => events += 1,
        };
        if let Ok(summary) = kernel.decoder().page(page, &mut sink) {
            assert_eq!((summary.events, summary.lost), (events, lost));
            // Every record has at least two words.
            assert!(summary.events + summary.ignored <= page.len() as u64 / 8);
        }
    }
});
