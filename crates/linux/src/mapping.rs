//! Mapped memory.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};
use std::slice;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// 64-bit words, mapped until this is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is plain atomics; sharing and sending them is what atomics are for.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// Maps this many words, all zero.
    pub(crate) fn anonymous(words: usize, flags: MapFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        Self::new(words, |bytes| unsafe { mmap_anonymous(null_mut(), bytes, Self::ACCESS, flags) })
    }

    /// Maps this many words of a file, which must not be shortened, together with all other processes that do.
    pub(crate) fn of_file(file: &File, words: usize) -> io::Result<Self> {
        // SAFETY: as above.
        Self::new(words, |bytes| unsafe { mmap(null_mut(), bytes, Self::ACCESS, MapFlags::SHARED, file, 0) })
    }

    fn new(words: usize, map: impl FnOnce(usize) -> rustix::io::Result<*mut libc::c_void>) -> io::Result<Self> {
        let bytes = words.checked_mul(size_of::<AtomicU64>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let start = NonNull::new(map(bytes)?.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, words })
    }
}

impl Deref for Mapping {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: this many words were mapped there, aligned to a page, filled in by the kernel (any bytes are a valid AtomicU64), and they stay
        // mapped as long as `self`.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped, and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), size_of_val(&**self)) };
    }
}
