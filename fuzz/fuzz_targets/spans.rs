//! Any bytes as a file with spans, in each format: it is refused with words, or every span ends after its start and has a thread and names.
//!
//! A library decodes Parquet. It panics for some damaged files, which are refused then: such panics end no input.
#![no_main]

use std::panic;
use std::sync::Once;

use becalm_explain::spans::{self, SpanRequest};
use libfuzzer_sys::fuzz_target;

static HOOKED: Once = Once::new();

fuzz_target!(|data: &[u8]| {
    HOOKED.call_once(|| {
        let end = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !becalm_bundle::is_decoding() {
                end(panic);
            }
        }));
    });
    for by in [None, Some("rank".to_owned())] {
        let request = SpanRequest { by, tid: Some(1), name: Some("*".to_owned()), of_cpus: false };
        match spans::parse(data.to_vec(), &request) {
            Ok(found) => {
                for span in &found.all {
                    assert!(span.end >= span.start, "{span:?}");
                    for label in [span.name, span.group, span.id] {
                        // Panics for a label of another table.
                        let _ = found.labels.text(label);
                    }
                }
            }
            Err(why) => assert!(!why.to_string().is_empty(), "an error without words"),
        }
    }
});
