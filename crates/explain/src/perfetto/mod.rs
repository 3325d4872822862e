//! Traces of Perfetto, packet by packet: the parts that becalm reads of `protos/perfetto/trace/trace.proto`.

pub mod clocks;
pub mod messages;

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};

use messages::TracePacket;

/// The field of a trace that holds its packets.
const PACKET: u32 = 1;
/// The most bytes that one packet unpacks to.
const MOST_UNPACKED: usize = 1 << 28;
/// A trace starts with one of these bytes: the key of its first packet.
const FIRST_BYTE: u8 = 0x0a;

/// True if a file starts with a whole packet of a trace. Texts may start with the same byte, a line end.
pub fn looks_so(bytes: &[u8]) -> bool {
    let first = if bytes.first() == Some(&FIRST_BYTE) { Packets::new(bytes).next_slice() } else { None };
    first.is_some_and(|found| {
        found.is_ok_and(|(_, packet)| TracePacket::decode(packet).is_ok_and(|packet| packet.is_known()))
    })
}

/// Why a trace cannot be read, or read any further.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketError {
    /// The byte of the file where the packet starts.
    pub byte: usize,
    /// The reason.
    pub why: String,
    /// Whether only the end of the file is missing.
    pub is_cut: bool,
}

/// Slices of the packets of a trace.
struct Packets<'a> {
    whole: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Packets<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { whole: bytes, rest: bytes }
    }

    /// The next packet, with the byte where it starts. Other fields are skipped.
    fn next_slice(&mut self) -> Option<Result<(usize, &'a [u8]), PacketError>> {
        while !self.rest.is_empty() {
            let byte = self.whole.len() - self.rest.len();
            let error = |why: String, is_cut| Some(Err(PacketError { byte, why, is_cut }));
            let mut rest = self.rest;
            let (field, length) = match decode_key(&mut rest).and_then(|key| Ok((key, decode_varint(&mut rest)?))) {
                Ok(((field, WireType::LengthDelimited), length)) => (field, length),
                // The longest key and length together.
                Err(_) if self.rest.len() < 16 => {
                    return error("the file ends in the middle of a packet".to_owned(), true);
                }
                _ => return error("no packet of a trace starts here".to_owned(), false),
            };
            let Some((packet, after)) = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length))
            else {
                return error("the file ends in the middle of a packet".to_owned(), true);
            };
            self.rest = after;
            if field == PACKET {
                return Some(Ok((byte, packet)));
            }
        }
        None
    }
}

/// Passes each packet of a trace, with the byte where it starts; packed ones are unpacked. Fails if one cannot be read, and with the errors of
/// `take`; all packets before are passed.
pub fn each_packet(bytes: &[u8], take: &mut impl FnMut(&TracePacket) -> Result<(), String>) -> Result<(), PacketError> {
    let mut packets = Packets::new(bytes);
    while let Some(found) = packets.next_slice() {
        let (byte, slice) = found?;
        let error = |why: String| PacketError { byte, why, is_cut: false };
        let packet = TracePacket::decode(slice).map_err(|why| error(format!("the packet is damaged: {why}")))?;
        if packet.compressed_packets.is_empty() {
            take(&packet).map_err(error)?;
            continue;
        }
        let unpacked = decompress_to_vec_zlib_with_limit(&packet.compressed_packets, MOST_UNPACKED)
            .map_err(|why| error(format!("the packed packets are damaged: {why}")))?;
        let mut inner = Packets::new(&unpacked);
        while let Some(found) = inner.next_slice() {
            let (_, slice) = found.map_err(|inner| error(format!("in packed packets: {}", inner.why)))?;
            let packet =
                TracePacket::decode(slice).map_err(|why| error(format!("a packed packet is damaged: {why}")))?;
            // Packed packets are never packed again.
            take(&packet).map_err(error)?;
        }
    }
    Ok(())
}

/// A name as text, up to the first byte that is none: the kernel cuts names between the bytes of a letter.
pub fn text(bytes: &[u8]) -> &str {
    let end = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(&bytes[..end]).unwrap_or_default()
}
