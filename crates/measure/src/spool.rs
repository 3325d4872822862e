//! Raw pages of the kernel's trace, in a file until the recording has ended, because decoding them earlier would take CPU time from what is measured;
//! or in memory until they are decoded.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use becalm_linux::file::unnamed;
use becalm_linux::ftrace::{Decoder, PageReader};

/// No requested record is larger; a page with more room at its end is not full.
const LONGEST_RECORD: usize = 256;

/// The memory that an empty spool keeps.
const SMALL: usize = 4 << 20;

/// A page in the spool.
#[derive(Clone, Copy, Debug)]
struct SpooledPage {
    offset: u64,
    length: u32,
}

/// The place of the pages.
#[derive(Debug)]
enum Store {
    File(File),
    Memory(Vec<u8>),
}

/// The pages of several buffers, in the order of their arrival.
#[derive(Debug)]
pub struct Spool {
    store: Store,
    length: u64,
    pages: Vec<Vec<SpooledPage>>,
    page: Vec<u8>,
}

impl Spool {
    /// A spool in a directory for this number of buffers with pages of this size. Fails if no file can be created there.
    pub fn new(folder: &Path, buffers: usize, page_size: usize) -> io::Result<Self> {
        Ok(Self::with_store(Store::File(unnamed(folder)?), buffers, page_size))
    }

    /// A spool in memory.
    pub fn in_memory(buffers: usize, page_size: usize) -> Self {
        Self::with_store(Store::Memory(Vec::new()), buffers, page_size)
    }

    fn with_store(store: Store, buffers: usize, page_size: usize) -> Self {
        Self { store, length: 0, pages: vec![Vec::new(); buffers], page: vec![0; page_size] }
    }

    /// Drops the pages of a spool in memory.
    pub fn clear(&mut self) {
        if let Store::Memory(bytes) = &mut self.store {
            bytes.clear();
            // One burst of events must not occupy memory forever.
            bytes.shrink_to(SMALL);
            self.pages.iter_mut().for_each(Vec::clear);
            self.length = 0;
        }
    }

    /// Takes the pages of a buffer; with `everything` until it is empty, which only happens once recording has stopped. Fails if the trace cannot be
    /// read, or the file cannot be written.
    pub fn take(
        &mut self,
        buffer: usize,
        reader: &mut PageReader,
        decoder: &Decoder,
        everything: bool,
    ) -> io::Result<()> {
        // The first page may be the rest of one that was half full last time; a second partial page is being written.
        let mut partial = 0;
        while (everything || partial < 2)
            && let Some(length) = reader.read_page(&mut self.page)?
        {
            let used = decoder.used(&self.page[..length]);
            partial += u32::from(used + LONGEST_RECORD < length);
            let page = std::mem::take(&mut self.page);
            let pushed = self.push(buffer, &page[..used]);
            self.page = page;
            pushed?;
        }
        Ok(())
    }

    /// Adds a page of a buffer, without its unused end. Fails if the file cannot be written.
    pub fn push(&mut self, buffer: usize, page: &[u8]) -> io::Result<()> {
        match &mut self.store {
            Store::File(file) => file.write_all(page)?,
            Store::Memory(bytes) => bytes.extend_from_slice(page),
        }
        self.pages[buffer].push(SpooledPage { offset: self.length, length: page.len() as u32 });
        self.length += page.len() as u64;
        Ok(())
    }

    /// The bytes taken.
    pub const fn bytes(&self) -> u64 {
        self.length
    }

    /// Reads a page of a buffer, by its number, into `page`; `false` if there is none.
    pub fn read(&self, buffer: usize, number: usize, page: &mut Vec<u8>) -> io::Result<bool> {
        let Some(SpooledPage { offset, length }) = self.pages[buffer].get(number).copied() else { return Ok(false) };
        page.resize(length as usize, 0);
        match &self.store {
            Store::File(file) => file.read_exact_at(page, offset)?,
            Store::Memory(bytes) => page.copy_from_slice(&bytes[offset as usize..][..length as usize]),
        }
        Ok(true)
    }
}
