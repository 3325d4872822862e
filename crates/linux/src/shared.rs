//! Files in memory that other processes open by a path, and that are gone with the process that made them, however it ends.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

/// The path by which processes of the same user and the same process namespace open a descriptor of this one.
fn path(fd: &OwnedFd) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd()).into()
}

/// A file that nobody can change, and that may be mapped as code.
#[derive(Debug)]
pub struct SealedFile(OwnedFd);

impl SealedFile {
    /// Holds these bytes. The name is for people who look at a process's mappings.
    ///
    /// # Errors
    /// If there is no memory, or the system's policy forbids code in such files (`vm.memfd_noexec=2`).
    pub fn new(name: &str, bytes: &[u8]) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Linux before 6.3 does not know that one may ask for it, and allows it.
        let fd = match memfd_create(name, flags | MemfdFlags::EXEC) {
            Err(rustix::io::Errno::INVAL) => memfd_create(name, flags),
            made => made,
        }?;
        let mut left = bytes;
        while !left.is_empty() {
            let written = rustix::io::write(&fd, left)?;
            left = &left[written..];
        }
        fcntl_add_seals(&fd, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(Self(fd))
    }

    /// The path by which other processes open it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        path(&self.0)
    }
}

/// 64-bit words that other processes map, too.
#[derive(Debug)]
pub struct SharedWords {
    fd: OwnedFd,
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is plain atomics; sharing and sending them is what atomics are for.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// This many, all zero.
    ///
    /// # Errors
    /// If there is not so much memory.
    pub fn new(name: &str, words: usize) -> io::Result<Self> {
        let bytes = words.max(1) * size_of::<AtomicU64>();
        let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, bytes as u64)?;
        // Nobody can make it shorter, so that no access here can fail.
        fcntl_add_seals(&fd, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(address.cast::<AtomicU64>()) {
            Some(start) if address != libc::MAP_FAILED => Ok(Self { fd, start, words: words.max(1) }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The path by which other processes open them.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        path(&self.fd)
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: so many words were mapped there, zeroed by the kernel, and stay mapped and of that size as long as `self`.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `new` mapped, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * size_of::<AtomicU64>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_sealed_file_is_read_and_never_written() {
        let file = SealedFile::new("test", b"some bytes").unwrap();
        assert_eq!(fs::read(file.path()).unwrap(), b"some bytes");
        assert!(fs::write(file.path(), b"others").is_err());
        assert_eq!(fs::read(file.path()).unwrap(), b"some bytes");
        let path = file.path();
        drop(file);
        assert!(fs::read(path).map_or(true, |bytes| bytes != b"some bytes"));
    }

    #[test]
    fn words_are_those_that_others_see() {
        let words = SharedWords::new("test", 3).unwrap();
        words[1].store(7, Ordering::Relaxed);
        let seen = fs::read(words.path()).unwrap();
        assert_eq!(seen, [[0; 8], 7_u64.to_ne_bytes(), [0; 8]].concat());
        // Seals forbid to make it shorter, also by opening it again.
        assert!(fs::File::options().write(true).open(words.path()).unwrap().set_len(8).is_err());
    }
}
