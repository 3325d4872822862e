//! Reads numbers and texts of a binary file one by one, with the place of each for errors.

use super::ReadError;

/// Reads a part of a file from its start. All numbers are little-endian.
#[derive(Clone, Debug)]
pub(super) struct Binary<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The offset of the part in the file.
    base: usize,
    /// Whether the part was compressed in the file, so only its start is a place there.
    unpacked: bool,
}

impl<'a> Binary<'a> {
    /// A part that starts at this byte of the file.
    pub const fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base, unpacked: false }
    }

    /// Data that was compressed in the file from this byte on.
    pub const fn unpacked(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base, unpacked: true }
    }

    /// Creates a reader of the file from this byte on. Fails if the file ends before.
    pub fn from_file(file: &'a [u8], offset: u64, what: &str) -> Result<Self, ReadError> {
        let found = usize::try_from(offset).ok().and_then(|offset| Some((offset, file.get(offset..)?)));
        let (offset, rest) = found.ok_or_else(|| {
            ReadError::byte(file.len(), format!("the file ends here, but {what} should be at byte {offset}"))
        })?;
        Ok(Self::new(rest, offset))
    }

    /// An error at the next byte.
    pub fn error(&self, why: impl std::fmt::Display) -> ReadError {
        if self.unpacked {
            let at = self.at;
            return ReadError::byte(self.base, format!("{why} (byte {at} of what is compressed here)"));
        }
        ReadError::byte(self.base + self.at, why.to_string())
    }

    /// The offset of the next byte in the file.
    pub const fn place(&self) -> usize {
        if self.unpacked { self.base } else { self.base + self.at }
    }

    /// The number of bytes left.
    pub const fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Takes this many bytes, which are `what`. Fails if fewer are left.
    pub fn take(&mut self, length: u64, what: &str) -> Result<&'a [u8], ReadError> {
        let found = usize::try_from(length).ok().and_then(|length| self.bytes[self.at..].get(..length));
        let found = found.ok_or_else(|| {
            self.error(format!(
                "{what} should take {length} bytes, and {} are left: the file is cut short or damaged",
                self.left()
            ))
        })?;
        self.at += found.len();
        Ok(found)
    }

    /// This many bytes, or all that are left.
    pub fn up_to(&self, length: usize) -> &'a [u8] {
        &self.bytes[self.at..][..length.min(self.left())]
    }

    /// Takes `N` bytes.
    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], ReadError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    /// Takes a byte.
    pub fn u8(&mut self, what: &str) -> Result<u8, ReadError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    /// Takes a number of two bytes.
    pub fn u16(&mut self, what: &str) -> Result<u16, ReadError> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// Takes a number of four bytes.
    pub fn u32(&mut self, what: &str) -> Result<u32, ReadError> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// Takes a number of eight bytes.
    pub fn u64(&mut self, what: &str) -> Result<u64, ReadError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Takes a text and the zero that ends it. Fails if no zero follows, or it is no text.
    pub fn text(&mut self, what: &str) -> Result<&'a str, ReadError> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|byte| *byte == 0) else {
            return Err(self.error(format!("{what} has no end")));
        };
        let text = std::str::from_utf8(&rest[..length]).map_err(|_| self.error(format!("{what} is no text")))?;
        self.at += length + 1;
        Ok(text)
    }

    /// Takes this many bytes as a text. Fails if fewer are left, or they are no text.
    pub fn text_of(&mut self, length: u64, what: &str) -> Result<&'a str, ReadError> {
        let place = self.clone();
        std::str::from_utf8(self.take(length, what)?).map_err(|_| place.error(format!("{what} is no text")))
    }
}
