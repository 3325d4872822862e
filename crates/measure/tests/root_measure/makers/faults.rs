//! Makes another thread of this process take page faults in its own memory.

use std::sync::atomic::Ordering;
use std::time::Duration;

use becalm_units::CpuId;

use super::Maker;

/// `MADV_DONTNEED_LOCKED` of Linux 5.18: also takes locked pages away.
const DONTNEED_LOCKED: libc::c_int = 24;

/// Takes the pages of a shared anonymous mapping out of this process's page tables again and again, locked ones too.
/// Their contents stay, as the mapping itself holds them, so that whoever uses them next only takes a minor fault.
/// Returns how often it did.
///
/// # Safety
/// `address` and `length` must be whole pages of one `MAP_SHARED | MAP_ANONYMOUS` mapping that outlives the maker: of
/// a private mapping the contents would be lost.
pub unsafe fn start(from: CpuId, address: usize, length: usize, pause: Duration) -> Maker<u64> {
    Maker::start("faults", from, move |stop| {
        let mut times = 0;
        while !stop.load(Ordering::Relaxed) {
            // SAFETY: by the caller's word the range is a shared mapping, whose contents this keeps.
            let done = unsafe { libc::madvise(address as *mut libc::c_void, length, DONTNEED_LOCKED) };
            assert_eq!(done, 0, "madvise: {}", std::io::Error::last_os_error());
            times += 1;
            std::thread::sleep(pause);
        }
        times
    })
}
