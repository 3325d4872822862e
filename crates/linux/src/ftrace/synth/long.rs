//! The word size of a synthetic kernel, which determines the layout of its pages and records.

/// The size of the kernel's `long`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Long {
    /// `long` has 4 bytes, as in kernels of 32-bit processors.
    Bits32,
    /// `long` has 8 bytes, as in kernels of 64-bit processors.
    Bits64,
}

impl Long {
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }

    /// The offset of a page's records: after the time stamp and the commit word.
    pub(super) const fn data_at(self) -> usize {
        8 + self.bytes()
    }
}
