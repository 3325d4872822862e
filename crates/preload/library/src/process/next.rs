//! The C library's own functions, in front of which this library puts functions of the same names.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::process::calls;

/// A function of the libraries after this one.
#[derive(Debug)]
pub struct Next {
    name: &'static CStr,
    /// Zero until it was looked for.
    found: AtomicUsize,
}

impl Next {
    /// The function of a name.
    #[must_use]
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicUsize::new(0) }
    }

    /// Its address. Ends the process where there is no such function; every glibc has those that are asked for.
    pub fn address(&self) -> usize {
        let mut found = self.found.load(Relaxed);
        if found == 0 {
            // Several threads may look for it at the same time, and find the same.
            found = calls::next_symbol(self.name);
            if found == 0 {
                calls::exit_now(127);
            }
            self.found.store(found, Relaxed);
        }
        found
    }
}

/// The C library's function of a name and a type.
macro_rules! next {
    ($name:literal as $kind:ty) => {{
        static NEXT: $crate::process::next::Next = $crate::process::next::Next::new($name);
        // SAFETY: the address is not null and is that of the function which the C library declares with this name and type.
        unsafe { core::mem::transmute::<usize, $kind>(NEXT.address()) }
    }};
}
pub(crate) use next;
