//! A library that is preloaded into a program and makes noise in its threads: with a timer per thread, whose signal handler burns the time (B07
//! section 4).
//!
//! - [`IMAGE`] is the library itself: the file that a dynamic linker loads. Its source is the crate in `library/`.
//! - [`layout`] is the memory that it shares with the process that had it loaded: the noise to make, and the noise made.
//!
//! This crate starts no programs and reads no results; the crate `inject` does.

#![forbid(unsafe_code)]

pub use becalm_preload_library::layout;

/// The shared library; `None` if it cannot be built: for processors other than x86-64 and aarch64, and C libraries other than glibc.
pub const IMAGE: Option<&[u8]> = image();

#[cfg(has_image)]
const fn image() -> Option<&'static [u8]> {
    Some(include_bytes!(env!("BECALM_PRELOAD_IMAGE")))
}

#[cfg(not(has_image))]
const fn image() -> Option<&'static [u8]> {
    None
}
