//! Messages in the wire format of Protocol Buffers.
//!
//! Hand-written, because a few kinds of messages need only a page of code; a crate for it would add a schema compiler.

/// The wire types of fields.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// A message under construction, field by field.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Message(Vec<u8>);

impl Message {
    /// The encoded fields.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The encoded fields, moved out.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Removes all fields, but keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// A plain number, seven bits per byte from the lowest on: the length of a message, an entry of a packed list.
    pub fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Plain bytes, preceded by their length.
    pub fn delimited(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    /// A field of the types `uint32`, `uint64`, `bool` and enumerations, and of `int64` if it is not negative.
    pub fn number(&mut self, field: u64, value: u64) -> &mut Self {
        self.varint(field << 3 | VARINT);
        self.varint(value);
        self
    }

    /// A field of the types `int32` and `int64`.
    pub fn int(&mut self, field: u64, value: i64) -> &mut Self {
        self.number(field, value as u64)
    }

    /// A field of the types `sint32` and `sint64`.
    pub fn signed(&mut self, field: u64, value: i64) -> &mut Self {
        self.number(field, zigzag(value))
    }

    /// A field of the type `double`.
    pub fn double(&mut self, field: u64, value: f64) -> &mut Self {
        self.varint(field << 3 | FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A field of the types `bytes` and `string`, and of packed lists.
    pub fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | BYTES);
        self.delimited(bytes);
        self
    }

    /// A field that is a message itself.
    pub fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0)
    }
}

/// Maps signed numbers to unsigned ones that stay short for small magnitudes.
pub const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of "Encoding" in the documentation of Protocol Buffers.
    #[test]
    fn fields_are_encoded_as_documented() {
        let mut message = Message::default();
        message.number(1, 150).bytes(2, b"testing").message(3, |inner| {
            inner.number(1, 150);
        });
        assert_eq!(message.as_bytes(), b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01");
        message.clear();
        message.int(2, -2).signed(1, -2).double(1, 1.0);
        let expected = b"\x10\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x08\x03\x09\0\0\0\0\0\0\xf0\x3f";
        assert_eq!(message.into_bytes(), expected);
    }
}
