//! What trace-cmd compresses with: each block says how long it is and how long it was.

use std::io::Read;

use super::super::ReadError;
use super::super::binary::Binary;

/// No block becomes larger than this, in bytes. Those of pages have 40 KiB, the largest is the table of symbols with some 20 MiB.
pub(super) const LARGEST_BLOCK: usize = 64 << 20;

/// How the blocks of a file are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compression {
    None,
    Zlib,
    Zstd,
}

impl Compression {
    /// By the name that the file gives.
    pub fn named(name: &str, place: &Binary<'_>) -> Result<Self, ReadError> {
        match name {
            "none" => Ok(Self::None),
            "zlib" => Ok(Self::Zlib),
            "zstd" => Ok(Self::Zstd),
            _ => Err(place.error(format!(
                "its compression '{name}' is not known; 'trace-cmd convert --compression none' writes it without"
            ))),
        }
    }

    /// The next block: two lengths, and what is compressed.
    pub fn block(self, from: &mut Binary<'_>) -> Result<Vec<u8>, ReadError> {
        let place = from.clone();
        let packed = from.u32("the length of a compressed block")?;
        let plain = from.u32("the length of a block")? as usize;
        if plain > LARGEST_BLOCK {
            return Err(
                place.error(format!("a compressed block of {plain} bytes is larger than any that trace-cmd writes"))
            );
        }
        let bytes = from.take(packed.into(), "a compressed block")?;
        let unpacked =
            self.unpack(bytes, plain).map_err(|why| place.error(format!("a block cannot be decompressed: {why}")))?;
        if unpacked.len() != plain {
            let got = unpacked.len();
            return Err(place.error(format!("a block has {got} bytes after decompression, and not {plain} as it says")));
        }
        Ok(unpacked)
    }

    /// Memory grows with what comes out, so that a length that lies takes none.
    fn unpack(self, bytes: &[u8], plain: usize) -> Result<Vec<u8>, String> {
        match self {
            Self::None => Err("the file says that nothing in it is compressed".to_owned()),
            Self::Zlib => {
                miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(bytes, plain).map_err(|error| error.to_string())
            }
            Self::Zstd => {
                let mut unpacked = Vec::new();
                let decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| error.to_string())?;
                decoder.take(plain as u64 + 1).read_to_end(&mut unpacked).map_err(|error| error.to_string())?;
                Ok(unpacked)
            }
        }
    }
}
