//! Reads whole, raw sub-buffers of one CPU from `per_cpu/cpuN/trace_pipe_raw`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use becalm_units::CpuId;

use super::error::TracefsError;

/// The consuming reader of one CPU's buffer. It never waits. The instance cannot be removed while it is open.
#[derive(Debug)]
pub struct PageReader {
    file: File,
    cpu: CpuId,
    page_size: usize,
}

impl PageReader {
    pub(super) fn open(path: &Path, cpu: CpuId, page_size: usize) -> Result<Self, TracefsError> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        Ok(Self { file: file.map_err(|error| TracefsError::io("open", path, error))?, cpu, page_size })
    }

    /// The CPU whose buffer is read.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// The size of a sub-buffer, in bytes, which is the room that `read_page` needs.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// Takes the oldest sub-buffer out of the CPU's buffer, copies it to the start of `page`, and returns its length; `None` if there is no event.
    /// Also takes the one that the kernel is still writing to, with its content so far; the rest comes with a later call. Fails if `page` is shorter
    /// than [`Self::page_size`], which would cut the sub-buffer, or with the kernel's error.
    pub fn read_page(&mut self, page: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(page) = page.get_mut(..self.page_size) else {
            let message = format!("a buffer of {} bytes is too small for a page of {}", page.len(), self.page_size);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        loop {
            match self.file.read(page) {
                Ok(0) => return Ok(None),
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Lets poll and epoll wait for the trace. Readiness follows the instance's `buffer_percent`.
impl AsFd for PageReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
