//! Any bytes as a file with spans, in each format that is text: it is refused with words, or every span ends after its start and has a thread and names.
//!
//! Parquet files are left out: a library reads them, which reserves as much memory as their pages claim.
#![no_main]

use becalm_explain::spans::{self, SpanRequest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if data.starts_with(b"PAR1") {
        return;
    }
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
