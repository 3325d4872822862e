//! Packs the papers' files, which would be a sixtieth of the installed program.

use std::path::PathBuf;
use std::{env, fs};

/// The compression level, from 0 to 10: beyond this the time doubles for 1 % less.
const LEVEL: u8 = 8;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo says where"));
    for name in ["beckman2007", "tsafrir2007", "radojkovic2008", "de2009"] {
        let from = format!("data/{name}.json");
        println!("cargo::rerun-if-changed={from}");
        let text = fs::read(&from).unwrap_or_else(|error| panic!("cannot read {from}: {error}"));
        let to = folder.join(format!("{name}.deflate"));
        let packed = miniz_oxide::deflate::compress_to_vec(&text, LEVEL);
        fs::write(&to, packed).unwrap_or_else(|error| panic!("cannot write {}: {error}", to.display()));
    }
}
