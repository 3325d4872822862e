//! Any bytes as a program to preload a library into: an ELF file, a script, or neither. An accepted program is an existing file.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use becalm_fuzz::tree::scratch;
use becalm_inject::program::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| scratch().join("program"));
    fs::write(&*PROGRAM, bytes).expect("our own file");
    match check(PROGRAM.to_str().expect("our own name")) {
        Ok(program) => assert!(fs::read(program).expect("it is there").starts_with(b"\x7fELF"), "no program at all"),
        Err(error) => assert!(!error.to_string().is_empty(), "an error without words"),
    }
});
