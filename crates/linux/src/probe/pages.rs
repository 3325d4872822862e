//! Memory whose pages are taken by faults, again and again.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, madvise};

use super::ProbeError;
use crate::file::{FileError, optional, value};
use crate::mapping::Mapping;

/// The size of a transparent huge page in bytes; `None` on a kernel without them. Fails if the file exists and holds no
/// number.
pub fn huge_page_bytes(root: &Path) -> Result<Option<usize>, FileError> {
    optional(value(root, "sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "the size of huge pages"))
}

/// Private anonymous memory of whole pages, not present before they are touched.
#[derive(Debug)]
pub struct Pages {
    /// The whole mapping, including the padding for alignment.
    memory: Mapping,
    /// The first word of the first page, aligned to the size of a page.
    first: usize,
    page: usize,
    count: usize,
}

impl Pages {
    /// This many pages of the smallest size; asks the kernel never to merge them into huge ones.
    pub fn small(count: usize) -> Result<Self, ProbeError> {
        let pages = Self::map(count, rustix::param::page_size())?;
        // Refused only by kernels without huge pages, which is fine.
        let _ = pages.advise(Advice::LinuxNoHugepage, "ask for small pages");
        Ok(pages)
    }

    /// This many pages with a size of `page` bytes, a power of two; asks the kernel to make them huge. The number of faults in
    /// [`crate::sched::ThreadUsage`] shows whether it does. Fails if there is no memory, or the kernel has no huge pages.
    pub fn huge(count: usize, page: usize) -> Result<Self, ProbeError> {
        let pages = Self::map(count, page)?;
        pages.advise(Advice::LinuxHugepage, "ask for huge pages").map(|()| pages)
    }

    fn map(count: usize, page: usize) -> Result<Self, ProbeError> {
        let failed = |source| ProbeError::new("map memory", source);
        let count = count.max(1);
        // One more page, because the first one may have to be aligned.
        let length = count.checked_add(1).and_then(|pages| pages.checked_mul(page));
        let length = length.ok_or_else(|| failed(std::io::ErrorKind::OutOfMemory.into()))?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let memory = Mapping::anonymous(length / size_of::<AtomicU64>(), flags).map_err(failed)?;
        let first = memory.as_ptr().cast::<u8>().align_offset(page) / size_of::<AtomicU64>();
        Ok(Self { memory, first, page, count })
    }

    fn advise(&self, advice: Advice, what: &'static str) -> Result<(), ProbeError> {
        let words = self.words();
        // SAFETY: the range is mapped and ours. The advices given here remove pages, which then read as zeros or as before, both valid for atomics.
        unsafe { madvise(words.as_ptr().cast_mut().cast(), size_of_val(words), advice) }
            .map_err(|error| ProbeError::new(what, error.into()))
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
        &self.memory[self.first..][..self.page * self.count / size_of::<AtomicU64>()]
    }

    /// Reads the first word of a page; the pages wrap around.
    #[inline(always)]
    pub fn read(&self, page: usize) -> u64 {
        self.memory[self.first + page % self.count * (self.page / 8)].load(Ordering::Relaxed)
    }

    /// Writes the first word of a page; the pages wrap around.
    #[inline(always)]
    pub fn write(&self, page: usize) {
        self.memory[self.first + page % self.count * (self.page / 8)].store(1, Ordering::Relaxed);
    }

    /// Gives all pages back to the kernel; they read as zeros afterwards. Fails if the memory is locked.
    pub fn discard(&self) -> Result<(), ProbeError> {
        self.advise(Advice::LinuxDontNeed, "give pages back")
    }

    /// Asks the kernel to swap all pages out; it may leave some. Fails if the kernel is older than 5.4.
    pub fn page_out(&self) -> Result<(), ProbeError> {
        self.advise(Advice::LinuxPageOut, "swap pages out")
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
