//! Memory for measuring threads: mapped, touched and locked before they start to measure.

use std::io;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, MlockAllFlags, mlock, mlockall, munlock, munlockall};

use crate::mapping::Mapping;

/// Memory that is not available or cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The kernel refused to map this many bytes; `usize::MAX` if there are more.
    #[error("cannot map {0} bytes of memory for a buffer: {1}")]
    Map(usize, io::Error),
}

becalm_units::fault::faultless!(MemoryError);

/// A fixed number of 64-bit words that cause no page faults any more: mapped shared (otherwise a fork in another thread would make them
/// copy-on-write), touched, and locked if the user may.
#[derive(Debug)]
pub struct LockedWords {
    memory: Mapping,
    locked: bool,
}

impl LockedWords {
    /// Maps this many words, all zero, wherever the kernel likes.
    pub fn new(words: usize) -> Result<Self, MemoryError> {
        Self::for_node(words, None)
    }

    /// Maps this many words, all zero, in the memory of a NUMA node if it has some. The kernel also skips memory with such a policy when it looks for
    /// pages to migrate, which would cause page faults.
    pub fn for_node(words: usize, node: Option<u32>) -> Result<Self, MemoryError> {
        let words = words.max(1);
        let memory = Mapping::anonymous(words, MapFlags::SHARED)
            .map_err(|source| MemoryError::Map(words.saturating_mul(size_of::<AtomicU64>()), source))?;
        let (address, bytes) = (memory.as_ptr().cast_mut().cast(), size_of_val(&*memory));
        if let Some(node) = node {
            // Before the first use, which decides where a page is. Unnecessary on a kernel without nodes.
            prefer_node(address, bytes, node);
        }
        // SAFETY: exactly the range that was mapped just above.
        let locked = unsafe { mlock(address, bytes) }.is_ok();
        // If they could not be locked, this makes the pages present.
        for word in memory.iter().step_by(512) {
            word.store(0, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(Self { memory, locked })
    }

    /// Whether the memory is locked; if the user's limit forbids it, it is only touched.
    pub const fn is_locked(&self) -> bool {
        self.locked
    }
}

impl Deref for LockedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        &self.memory
    }
}

/// `MPOL_PREFERRED` of `linux/mempolicy.h`: pages come from the node, or from others if it has none left.
const PREFERRED: libc::c_int = 1;

/// Makes the pages of a mapping come from a NUMA node. Returns whether the kernel does.
fn prefer_node(address: *mut libc::c_void, bytes: usize, node: u32) -> bool {
    let bits = libc::c_ulong::BITS;
    let mut nodes = vec![0 as libc::c_ulong; (node / bits) as usize + 1];
    nodes[(node / bits) as usize] = 1 << (node % bits);
    // The kernel reads one bit less than specified.
    let count = nodes.len() * bits as usize + 1;
    // SAFETY: changes where pages of the mapping come from, not their content; the kernel reads at most `count` bits, which exist.
    let result = unsafe { libc::syscall(libc::SYS_mbind, address, bytes, PREFERRED, nodes.as_ptr(), count, 0) };
    result == 0
}

/// Locks everything that the process has mapped now (code, data, stacks of threads), so no measuring thread hits a page that was evicted or never
/// loaded. Returns whether the user may do so.
///
/// The first thread's stack is unlocked again. It grows with use, and the kernel lets a locked stack grow only within the user's limit, or with
/// `CAP_IPC_LOCK`: once that is given up, a deeper call would end the process.
pub fn lock_current_pages() -> bool {
    let locked = mlockall(MlockAllFlags::CURRENT).is_ok();
    if locked && let Some((start, length)) = first_stack() {
        // SAFETY: changes only the residence of pages, not their content.
        let _ = unsafe { munlock(start as *mut libc::c_void, length) };
    }
    locked
}

/// The start of the first thread's stack, and its current length in bytes.
fn first_stack() -> Option<(usize, usize)> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let (range, _) = maps.lines().find(|line| line.ends_with("[stack]"))?.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).ok());
    Some((start?, end?.checked_sub(start?)?))
}

/// Unlocks all pages of the process, including those that [`lock_current_pages`] locked.
pub fn unlock_pages() {
    let _ = munlockall();
}

/// The machine's memory, in bytes.
pub fn total_bytes() -> usize {
    // SAFETY: sysconf takes a name and returns a number.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    usize::try_from(pages).unwrap_or(0).saturating_mul(rustix::param::page_size())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::ThreadUsage;
    use std::sync::atomic::Ordering;

    #[test]
    fn writing_to_it_takes_no_page_fault() {
        let memory = LockedWords::new(1 << 18).unwrap();
        let pass = |_| {
            let before = ThreadUsage::for_current_thread();
            for (i, word) in memory.iter().enumerate() {
                word.store(i as u64, Ordering::Relaxed);
            }
            ThreadUsage::for_current_thread().since(before).faults
        };
        // The first pass may load the code of the loop itself, and a kernel that moves pages together (compaction, huge pages) makes accesses to them
        // wait in a fault. Memory that was not present would fault 512 times.
        let passes: Vec<_> = (0..50).map(pass).collect();
        assert!(passes.contains(&0) && passes[0] < 256, "{passes:?}");
    }

    #[test]
    fn the_first_stack_is_found() {
        let (start, length) = first_stack().unwrap();
        assert!(start > 0 && length >= 4096 && start.is_multiple_of(4096), "{start:x} {length}");
    }

    #[test]
    fn words_have_the_place_that_was_asked_for() {
        let policy = |words: &LockedWords| {
            let mut mode: libc::c_int = -1;
            let none = std::ptr::null_mut::<libc::c_ulong>();
            // `MPOL_F_ADDR`: of the mapping at this address.
            // SAFETY: the kernel writes one number, for which there is room.
            let asked = unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, none, 0, words.as_ptr(), 2) };
            (asked == 0).then_some(mode)
        };
        let Some(default) = policy(&LockedWords::new(4096).unwrap()) else { return };
        let local = LockedWords::for_node(4096, Some(0)).unwrap();
        assert_eq!((default, policy(&local)), (0, Some(PREFERRED)));
        assert!(local.iter().all(|word| word.load(std::sync::atomic::Ordering::Relaxed) == 0));
        // A node that does not exist is no reason to have no memory.
        assert_eq!(LockedWords::for_node(512, Some(1_000)).unwrap().len(), 512);
    }

    #[test]
    fn an_absurd_size_is_an_error() {
        // The first two wrap to a few bytes.
        for words in [usize::MAX / 8 + 2, usize::MAX, usize::MAX >> 8] {
            assert!(LockedWords::new(words).is_err(), "{words}");
        }
    }
}
