//! Packs the charts' library, which would be a fifteenth of the installed program.

use std::path::PathBuf;
use std::{env, fs};

/// How hard is tried, from 0 to 10: beyond this the time doubles for 1 % less.
const LEVEL: u8 = 8;

fn main() {
    let from = "assets/echarts/echarts.min.js";
    println!("cargo::rerun-if-changed={from}");
    println!("cargo::rerun-if-changed=build.rs");
    let script = fs::read(from).unwrap_or_else(|error| panic!("cannot read {from}: {error}"));
    let to = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo says where")).join("echarts.deflate");
    let packed = miniz_oxide::deflate::compress_to_vec(&script, LEVEL);
    fs::write(&to, packed).unwrap_or_else(|error| panic!("cannot write {}: {error}", to.display()));
}
