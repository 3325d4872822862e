//! A library that is preloaded into a program and makes noise in its threads: by a timer of each thread, whose signal's
//! handler burns the time (B07 section 4).
//!
//! - [`IMAGE`] is the library itself, as the file that a dynamic linker loads. Its source is the crate in `library/`.
//! - [`layout`] is the memory that it shares with the one who had it loaded: what to make, and what was made.
//!
//! Nothing here starts a program or reads a result; that is crate `inject`.

#![forbid(unsafe_code)]

pub use becalm_preload_library::layout;

/// The shared library; `None` where it cannot be built: for processors other than x86-64 and aarch64, and C libraries other
/// than glibc.
pub const IMAGE: Option<&[u8]> = image();

#[cfg(has_image)]
const fn image() -> Option<&'static [u8]> {
    Some(include_bytes!(env!("BECALM_PRELOAD_IMAGE")))
}

#[cfg(not(has_image))]
const fn image() -> Option<&'static [u8]> {
    None
}
