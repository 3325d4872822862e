//! Builds the crate `library/` again as a shared library, which is embedded into the crates that depend on this one.
//!
//! It calls the compiler directly: Cargo cannot put one crate's shared library into another; a Cargo started by a build script would wait for the
//! directory that the outer one has locked, or compile into a separate one; and the library has no dependencies that need Cargo. It is linked
//! dynamically even if everything else is linked statically: flags that Cargo gives the compiler for other crates do not apply.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=library/src");
    println!("cargo::rustc-check-cfg=cfg(has_image)");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    // As in `library/src/lib.rs`: numbers of system calls and layouts are defined for these.
    let known = matches!(variable("CARGO_CFG_TARGET_ARCH").as_str(), "x86_64" | "aarch64")
        && variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("CARGO_CFG_TARGET_ENV") == "gnu"
        && variable("CARGO_CFG_TARGET_POINTER_WIDTH") == "64";
    if !known {
        return;
    }
    let image = PathBuf::from(variable("OUT_DIR")).join("libbecalm-preload.so");
    let mut compiler = Command::new(variable("RUSTC"));
    compiler
        .args(["--edition=2024", "--crate-name=becalm_preload_library", "--crate-type=cdylib", "--cfg=preloaded"])
        .arg("library/src/lib.rs")
        .args(["-Copt-level=3", "-Cpanic=abort", "-Ccodegen-units=1", "-Cstrip=symbols", "-Cdebuginfo=0"])
        .args(["-Clink-arg=-Wl,-soname,libbecalm-preload.so", "-Clink-arg=-Wl,-z,now"])
        // Nothing would call an unwinding function; the compiled core refers to it.
        .arg("-Clink-arg=-Wl,--defsym=rust_eh_personality=0")
        .arg(format!("--target={}", variable("TARGET")))
        .arg("-o")
        .arg(&image);
    let linker = variable("RUSTC_LINKER");
    if !linker.is_empty() {
        compiler.arg(format!("-Clinker={linker}"));
    }
    let status = compiler.status().unwrap_or_else(|error| panic!("cannot run {compiler:?}: {error}"));
    assert!(status.success(), "{compiler:?} ended with {status}");
    println!("cargo::rustc-cfg=has_image");
    println!("cargo::rustc-env=BECALM_PRELOAD_IMAGE={}", image.display());
}
