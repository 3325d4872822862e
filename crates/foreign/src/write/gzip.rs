//! Files of gzip, RFC 1952.

/// Bytes as a file of gzip: one member, without name and time.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    // Magic number, method deflate, no flags, no time, no extra flags, and the system: Unix.
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    file.extend(miniz_oxide::deflate::compress_to_vec(bytes, 6));
    file.extend(crc32(bytes).to_le_bytes());
    file.extend((bytes.len() as u32).to_le_bytes());
    file
}

/// The checksum of gzip and PNG, by the reversed polynomial 0xedb88320.
fn crc32(bytes: &[u8]) -> u32 {
    let mut table = [0_u32; 256];
    for (entry, byte) in table.iter_mut().zip(0..) {
        *entry = (0..8).fold(byte, |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 });
    }
    !bytes.iter().fold(!0, |crc: u32, byte| crc >> 8 ^ table[(crc as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_gzip() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn a_file_holds_the_bytes_its_checksum_and_its_length() {
        let text = b"noise ".repeat(1_000);
        let file = gzip(&text);
        assert_eq!(file[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
        let (body, end) = file[10..].split_at(file.len() - 18);
        assert_eq!(miniz_oxide::inflate::decompress_to_vec(body).unwrap(), text);
        assert_eq!(end, [crc32(&text).to_le_bytes(), 6_000_u32.to_le_bytes()].concat());
    }
}
