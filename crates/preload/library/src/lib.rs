//! The library that is loaded into a program before its own libraries (`LD_PRELOAD`) and makes noise in its threads: each has a timer, whose signal
//! handler burns the time (B07 section 4).
//!
//! The program must notice nothing but the time that it loses. There are two kinds of modules. Those that only compute contain no unsafe code, know
//! nothing about the process, and are tested like any others:
//!
//! - [`layout`]: the memory that the library shares with the maker of the noise, word by word.
//! - [`memory`]: that memory as a value, with its circles and the slots of the threads.
//! - [`circle`], [`schedule`]: which detour is due next, and what the handler does when its signal arrives.
//! - [`books`]: requested and delivered detours.
//! - [`toll`]: the cost of a signal, from trials.
//! - [`signals`]: which signal can be taken, and when the program starts to use it.
//! - [`random`]: where threads start on their circles.
//! - [`preloads`]: the list of libraries that the program's own programs load.
//!
//! The others act on the process:
//!
//! - [`abi`]: types and constants of the C library and the kernel.
//! - [`process`]: calls into both, the signal and its handler, the slots of the threads.
//! - [`exported`]: the functions that the program finds before those of its C library.
//!
//! The crate is compiled in two ways. In the workspace it is a plain library: it is checked, linted and tested, and the linker uses only [`layout`]
//! from it. The build script of crate `becalm-preload` compiles it again as the shared library, with `--cfg preloaded`. Only then does it export
//! functions under the C library's names, so no program of the workspace has them. It then contains neither Rust's standard library nor any other
//! crate, and allocates no memory.
//!
//! The tests of the modules that compute also run under Miri, which finds undefined behavior and data races:
//!
//! ```text
//! cargo +nightly miri test --package becalm-preload-library --lib
//! ```

#![cfg_attr(not(test), no_std)]

pub mod books;
pub mod circle;
pub mod layout;
pub mod memory;
pub mod preloads;
pub mod random;
pub mod schedule;
pub mod signals;
pub mod toll;

/// The modules with layouts and system calls, which are defined for these machines only.
macro_rules! on_known_machines {
    ($($item:item)*) => {$(
        #[cfg(all(
            target_os = "linux",
            target_env = "gnu",
            target_pointer_width = "64",
            any(target_arch = "x86_64", target_arch = "aarch64")
        ))]
        $item
    )*};
}

on_known_machines! {
    pub mod abi;
    pub mod exported;
    pub mod process;
}

/// The entry points of the shared library.
#[cfg(preloaded)]
mod image {
    use crate::process::{self, calls};

    /// The dynamic linker calls it before the program's own code.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static ATTACH: extern "C" fn() = process::attach;

    /// The dynamic linker calls it when the program ends.
    #[used]
    #[unsafe(link_section = ".fini_array")]
    static DETACH: extern "C" fn() = process::detach;

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        calls::exit_now(127)
    }
}
