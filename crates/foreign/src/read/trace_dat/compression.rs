//! The compressions of trace-cmd: each block has its compressed and its original length.

use std::io::Read;

use super::super::ReadError;
use super::super::binary::Binary;

/// The largest block, in bytes. Those of pages have 40 KiB, the largest is the table of symbols with some 20 MiB.
pub(super) const LARGEST_BLOCK: usize = 32 << 20;

/// The compression of a file's blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compression {
    None,
    Zlib,
    Zstd,
}

impl Compression {
    /// The compression with the name that the file gives.
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

    /// The next block: two lengths, and compressed data.
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

    /// Memory grows with the output, so a wrong length takes none.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn block(compression: Compression, packed: &[u8], plain: usize) -> Result<Vec<u8>, String> {
        let mut bytes = (packed.len() as u32).to_le_bytes().to_vec();
        bytes.extend((plain as u32).to_le_bytes());
        bytes.extend(packed);
        let mut from = Binary::new(&bytes, 100);
        let block = compression.block(&mut from).map_err(|error| error.to_string())?;
        assert_eq!(from.left(), 0);
        Ok(block)
    }

    #[test]
    fn blocks_come_out_as_they_went_in() {
        let plain: Vec<u8> = (0..9_000_u32).map(|at| (at / 7) as u8).collect();
        let zlib = miniz_oxide::deflate::compress_to_vec_zlib(&plain, 6);
        assert_eq!(block(Compression::Zlib, &zlib, plain.len()), Ok(plain.clone()));
        let zstd = zstd::bulk::compress(&plain, 3).unwrap();
        assert_eq!(block(Compression::Zstd, &zstd, plain.len()), Ok(plain.clone()));
        // A block that is longer or shorter than its length.
        for (compression, packed) in [(Compression::Zlib, &zlib), (Compression::Zstd, &zstd)] {
            for wrong in [plain.len() - 1, plain.len() + 1] {
                assert!(block(compression, packed, wrong).is_err_and(|why| why.starts_with("byte 100: ")));
            }
        }
    }

    #[test]
    fn what_grows_without_an_end_is_refused() {
        let bomb = zstd::bulk::compress(&vec![0; LARGEST_BLOCK + 1], 1).unwrap();
        assert!(block(Compression::Zstd, &bomb, LARGEST_BLOCK + 1).is_err_and(|why| why.contains("larger than any")));
        assert!(block(Compression::Zstd, &bomb, 4_096).is_err_and(|why| why.contains("after decompression")));
        assert!(block(Compression::None, &bomb, 4_096).is_err_and(|why| why.contains("nothing in it is compressed")));
    }
}
