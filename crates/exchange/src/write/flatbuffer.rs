//! Tables as FlatBuffers lays them out: what the metadata of Arrow files are made of.
//!
//! A buffer is written from its end to its begin, since a table points forward to what it holds. A place is told by how far its begin is from
//! the end of the buffer. Source: "FlatBuffer Internals" of the documentation of FlatBuffers.

/// A buffer that is being written; its bytes from the last one on.
#[derive(Default)]
pub(super) struct Builder {
    reversed: Vec<u8>,
}

/// Where a string, a vector or a table begins: so many bytes before the end of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place(usize);

/// The value of a field of a table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    /// It has its default.
    Default,
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    /// A string, a vector or a table.
    At(Place),
}

impl Builder {
    /// Bytes in the order in which they are read.
    fn push(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    /// Fills up so that what comes and takes so many bytes begins at a multiple of a size.
    fn align(&mut self, size: usize, bytes: usize) {
        let filled = (self.reversed.len() + bytes).next_multiple_of(size) - bytes;
        self.reversed.resize(filled, 0);
    }

    fn here(&self) -> Place {
        Place(self.reversed.len())
    }

    fn push_offset(&mut self, to: Place) {
        let from = self.reversed.len() + 4;
        self.push(&((from - to.0) as u32).to_le_bytes());
    }

    pub(super) fn string(&mut self, text: &str) -> Place {
        self.align(4, text.len() + 1);
        self.push(&[0]);
        self.push(text.as_bytes());
        self.push(&(text.len() as u32).to_le_bytes());
        self.here()
    }

    /// A vector of tables.
    pub(super) fn places(&mut self, places: &[Place]) -> Place {
        self.align(4, 4 * places.len());
        places.iter().rev().for_each(|place| self.push_offset(*place));
        self.push(&(places.len() as u32).to_le_bytes());
        self.here()
    }

    /// A vector of structures that are made of numbers of 64 bits.
    pub(super) fn structures<const N: usize>(&mut self, structures: &[[i64; N]]) -> Place {
        self.align(8, 8 * N * structures.len());
        for number in structures.iter().rev().flat_map(|structure| structure.iter().rev()) {
            self.push(&number.to_le_bytes());
        }
        self.push(&(structures.len() as u32).to_le_bytes());
        self.here()
    }

    /// A table with the values of its fields, in the order of their numbers.
    pub(super) fn table(&mut self, fields: &[Field]) -> Place {
        let end = self.reversed.len();
        let mut places = Vec::with_capacity(fields.len());
        for field in fields {
            match field {
                Field::Default => {
                    places.push(None);
                    continue;
                }
                Field::Byte(value) => self.push(&[*value]),
                Field::Short(value) => {
                    self.align(2, 2);
                    self.push(&value.to_le_bytes());
                }
                Field::Int(value) => {
                    self.align(4, 4);
                    self.push(&value.to_le_bytes());
                }
                Field::Long(value) => {
                    self.align(8, 8);
                    self.push(&value.to_le_bytes());
                }
                Field::At(place) => {
                    self.align(4, 4);
                    self.push_offset(*place);
                }
            }
            places.push(Some(self.here()));
        }
        // The table begins with how far before it the list of its fields is, which is known only then.
        self.align(4, 4);
        self.push(&[0; 4]);
        let table = self.here();
        for place in places.iter().rev() {
            let offset = place.map_or(0, |place: Place| table.0 - place.0);
            self.push(&(offset as u16).to_le_bytes());
        }
        self.push(&((table.0 - end) as u16).to_le_bytes());
        self.push(&((4 + 2 * fields.len()) as u16).to_le_bytes());
        let back = ((self.reversed.len() - table.0) as i32).to_le_bytes();
        for (at, byte) in back.into_iter().enumerate() {
            self.reversed[table.0 - 1 - at] = byte;
        }
        table
    }

    /// The buffer with this table as its root. Its length is a multiple of 8.
    pub(super) fn finish(mut self, root: Place) -> Vec<u8> {
        self.align(8, 4);
        self.push_offset(root);
        self.reversed.reverse();
        self.reversed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn u32_at(bytes: &[u8], at: usize) -> usize {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    }

    /// Where the field of a table is, as the format says.
    fn field(bytes: &[u8], table: usize, number: usize) -> Option<usize> {
        let list = table - u32_at(bytes, table);
        let u16_at = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()) as usize;
        assert!(list.is_multiple_of(2) && table.is_multiple_of(4));
        let offset = if 4 + 2 * number < u16_at(list) { u16_at(list + 4 + 2 * number) } else { 0 };
        assert!(offset < u16_at(list + 2), "a field lies within its table");
        (offset > 0).then_some(table + offset)
    }

    #[test]
    fn a_table_is_read_back() {
        let mut builder = Builder::default();
        let name = builder.string("name");
        let numbers = builder.structures(&[[1, 2], [3, -4]]);
        let inner = builder.table(&[Field::Int(7)]);
        let tables = builder.places(&[inner, inner]);
        let root = builder.table(&[
            Field::Byte(5),
            Field::At(name),
            Field::Default,
            Field::Long(-9),
            Field::Short(300),
            Field::At(numbers),
            Field::At(tables),
        ]);
        let bytes = builder.finish(root);
        assert!(bytes.len().is_multiple_of(8));
        let root = u32_at(&bytes, 0);
        let at = |number: usize| field(&bytes, root, number).unwrap();
        let to = |at: usize| at + u32_at(&bytes, at);
        assert_eq!((bytes[at(0)], field(&bytes, root, 2), field(&bytes, root, 7)), (5, None, None));
        let text = to(at(1));
        assert_eq!((u32_at(&bytes, text), &bytes[text + 4..text + 9]), (4, &b"name\0"[..]));
        assert!(at(3).is_multiple_of(8));
        assert_eq!(bytes[at(3)..at(3) + 8], (-9_i64).to_le_bytes());
        assert_eq!(bytes[at(4)..at(4) + 2], 300_i16.to_le_bytes());
        let vector = to(at(5));
        assert!((vector + 4).is_multiple_of(8));
        assert_eq!(u32_at(&bytes, vector), 2);
        assert_eq!(bytes[vector + 28..vector + 36], (-4_i64).to_le_bytes());
        let vector = to(at(6));
        let second = to(vector + 8);
        assert_eq!(second, to(vector + 4));
        assert_eq!(u32_at(&bytes, field(&bytes, second, 0).unwrap()), 7);
    }
}
