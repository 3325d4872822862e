//! Any text as the format of an event or of pages; accepted ones are used to decode a page of zeros and one of ones.
#![no_main]

use becalm_linux::ftrace::{Decoder, EventFormat, HeaderPage};
use libfuzzer_sys::fuzz_target;

const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                      \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                      \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

const SYSTEMS: [&str; 7] = ["irq", "irq_vectors", "nmi", "ipi", "sched", "workqueue", "exceptions"];

fuzz_target!(|text: &str| {
    if let Ok(header) = HeaderPage::parse("header_page", text) {
        let decoder = Decoder::new(&header);
        for page in [[0; 256], [0xff; 256]] {
            let _ = decoder.page(&page, &mut |_| {});
        }
    }
    let Ok(format) = EventFormat::parse("format", text) else { return };
    let header = HeaderPage::parse("header_page", HEADER).expect("a header page as the kernel writes it");
    for system in SYSTEMS {
        let mut decoder = Decoder::new(&header);
        if decoder.learn(system, &format).is_ok_and(|decoded| decoded) {
            // One record that fills the page, with the parsed event.
            let mut page = [0_u8; 256];
            page[8..16].copy_from_slice(&240_u64.to_ne_bytes());
            page[20..24].copy_from_slice(&236_u32.to_ne_bytes());
            let place = format.field("common_type").map(|field| 24 + field.offset);
            if let Some(bytes) = place.and_then(|place| page.get_mut(place..place + 2)) {
                bytes.copy_from_slice(&format.id.to_ne_bytes());
            }
            let _ = decoder.page(&page, &mut |_| {});
        }
    }
});
