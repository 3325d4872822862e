//! Memory whose pages are taken by faults, again and again.

use std::path::Path;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ProbeError;
use crate::file::{FileError, optional, value};

/// `MADV_PAGEOUT` of Linux 5.4, which not every C library names.
const MADV_PAGEOUT: libc::c_int = 21;

/// The size of a transparent huge page in bytes; `None` on a kernel without them. Fails if the file exists and holds no
/// number.
pub fn huge_page_bytes(root: &Path) -> Result<Option<usize>, FileError> {
    optional(value(root, "sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "the size of huge pages"))
}

/// Private anonymous memory of whole pages, not present before they are touched.
#[derive(Debug)]
pub struct Pages {
    /// The first page, aligned to the size of a page.
    start: NonNull<AtomicU64>,
    page: usize,
    count: usize,
    /// The whole mapping, including the padding for alignment.
    mapped: (NonNull<libc::c_void>, usize),
}

// SAFETY: the memory is plain atomics, owned by this value alone; sharing and sending them is what atomics are for.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// This many pages of the smallest size; asks the kernel never to merge them into huge ones.
    pub fn small(count: usize) -> Result<Self, ProbeError> {
        // SAFETY: sysconf takes a name and returns a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let pages = Self::map(count, usize::try_from(page).unwrap_or(4096))?;
        // Refused only by kernels without huge pages, which is fine.
        pages.advise(libc::MADV_NOHUGEPAGE);
        Ok(pages)
    }

    /// This many pages with a size of `page` bytes, a power of two; asks the kernel to make them huge. The number of faults in
    /// [`crate::sched::ThreadUsage`] shows whether it does. Fails if there is no memory, or the kernel has no huge pages.
    pub fn huge(count: usize, page: usize) -> Result<Self, ProbeError> {
        let pages = Self::map(count, page)?;
        if pages.advise(libc::MADV_HUGEPAGE) { Ok(pages) } else { Err(ProbeError::last("ask for huge pages")) }
    }

    fn map(count: usize, page: usize) -> Result<Self, ProbeError> {
        const WHAT: &str = "map memory";
        let length = count.max(1).checked_add(1).and_then(|pages| pages.checked_mul(page));
        let length = length.ok_or_else(|| ProbeError::new(WHAT, std::io::ErrorKind::OutOfMemory.into()))?;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory of ours.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let base = match NonNull::new(address) {
            Some(base) if address != libc::MAP_FAILED => base,
            _ => return Err(ProbeError::last(WHAT)),
        };
        let skipped = address.align_offset(page);
        // SAFETY: less than one page is skipped, and there is one more than counted.
        let start = unsafe { base.byte_add(skipped) }.cast();
        Ok(Self { start, page, count: count.max(1), mapped: (base, length) })
    }

    fn advise(&self, advice: libc::c_int) -> bool {
        // SAFETY: the range is mapped and ours. The advices given here remove pages, which then read as zeros or as before, both valid for atomics.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.page * self.count, advice) == 0 }
    }

    /// The number of pages in the mapping.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The size of a page, in bytes.
    pub const fn page_bytes(&self) -> usize {
        self.page
    }

    /// The whole mapping, as words of 8 bytes.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the range is mapped as long as `self`, aligned to a page, and the kernel fills it with zeros.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.page * self.count / size_of::<AtomicU64>()) }
    }

    /// Reads the first word of a page; the pages wrap around.
    #[inline(always)]
    pub fn read(&self, page: usize) -> u64 {
        self.words()[page % self.count * (self.page / 8)].load(Ordering::Relaxed)
    }

    /// Writes the first word of a page; the pages wrap around.
    #[inline(always)]
    pub fn write(&self, page: usize) {
        self.words()[page % self.count * (self.page / 8)].store(1, Ordering::Relaxed);
    }

    /// Gives all pages back to the kernel; they read as zeros afterwards. Fails if the memory is locked.
    pub fn discard(&self) -> Result<(), ProbeError> {
        if self.advise(libc::MADV_DONTNEED) { Ok(()) } else { Err(ProbeError::last("give pages back")) }
    }

    /// Asks the kernel to swap all pages out; it may leave some. Fails if the kernel is older than 5.4.
    pub fn page_out(&self) -> Result<(), ProbeError> {
        if self.advise(MADV_PAGEOUT) { Ok(()) } else { Err(ProbeError::last("swap pages out")) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped, and nothing refers to it any more.
        unsafe { libc::munmap(self.mapped.0.as_ptr(), self.mapped.1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::ThreadUsage;

    fn faults(body: impl FnOnce()) -> u64 {
        let before = ThreadUsage::for_current_thread();
        body();
        ThreadUsage::for_current_thread().since(before).faults
    }

    #[test]
    fn each_page_faults_once_until_it_is_given_back() {
        let pages = Pages::small(64).unwrap();
        let write_all = || (0..64).for_each(|page| pages.write(page));
        // A few faults come from the code itself, or from pages that the kernel is moving: not in most rounds.
        let mut as_expected = 0;
        for _ in 0..20 {
            let first = faults(write_all);
            assert!(first >= 64, "only {first} faults of 64 pages");
            as_expected += u32::from(first < 70 && faults(write_all) < 6);
            assert_eq!(pages.read(63), 1);
            pages.discard().unwrap();
            assert_eq!(pages.read(63), 0);
            pages.discard().unwrap();
        }
        assert!(as_expected > 10, "{as_expected} of 20 rounds");
    }

    #[test]
    fn huge_pages_are_aligned() {
        let Ok(Some(bytes)) = huge_page_bytes(Path::new("/")) else { return };
        let Ok(pages) = Pages::huge(2, bytes) else { return };
        assert_eq!(pages.words().as_ptr() as usize % bytes, 0);
        assert_eq!(pages.words().len() * 8, 2 * bytes);
        pages.write(1);
        assert_eq!((pages.read(0), pages.read(1), pages.read(2)), (0, 1, 0));
    }

    #[test]
    fn an_absurd_size_is_an_error() {
        assert!(Pages::small(usize::MAX).is_err());
        assert!(Pages::small(usize::MAX >> 16).is_err());
    }

    #[test]
    fn the_size_of_a_huge_page_is_read() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(huge_page_bytes(root.path()).unwrap(), None);
        let file = "sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
        crate::file::write_tree(root.path(), &[(file, "2097152\n")]);
        assert_eq!(huge_page_bytes(root.path()).unwrap(), Some(2 << 20));
        crate::file::write_tree(root.path(), &[(file, "big\n")]);
        assert!(huge_page_bytes(root.path()).is_err());
    }
}
