//! Packs the chart library, which would otherwise take a fifteenth of the installed program, and hashes the scripts and styles that a page may use.

use std::path::PathBuf;
use std::{env, fs};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// Compression level, 0 to 10: beyond this, 1 % less takes twice the time.
const LEVEL: u8 = 8;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let script = asset("assets/echarts/echarts.min.js");
    for (name, content) in
        [("CHARTS_HASH", &script), ("SCRIPT_HASH", &asset("assets/page.js")), ("STYLE_HASH", &asset("assets/page.css"))]
    {
        println!("cargo::rustc-env={name}=sha256-{}", BASE64_STANDARD.encode(Sha256::digest(content)));
    }
    let to = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo says where")).join("echarts.deflate");
    let packed = miniz_oxide::deflate::compress_to_vec(&script, LEVEL);
    fs::write(&to, packed).unwrap_or_else(|error| panic!("cannot write {}: {error}", to.display()));
}

/// Reads an asset of the pages.
fn asset(path: &str) -> Vec<u8> {
    println!("cargo::rerun-if-changed={path}");
    fs::read(path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}
