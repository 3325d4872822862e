//! Files of Arrow IPC ("Feather V2"): a schema, batches of rows, and a footer that says where they are.
//!
//! Written by hand: four kinds of columns without gaps are two pages of code, while the eight crates for it, which only tests have, take a
//! twelfth of all compiling. Sources: "Arrow Columnar Format" and `format/{Message,Schema,File}.fbs` of apache/arrow, metadata version V5.

use std::io::{self, Write};

use super::flatbuffer::{Builder, Field, Place};
use super::table::{Column, ColumnType, Schema};

/// With which a file begins and ends.
const MAGIC: &[u8; 6] = b"ARROW1";

/// In front of the length of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// `MetadataVersion.V5`.
const VERSION: Field = Field::Short(4);

// `MessageHeader`.
const SCHEMA: u8 = 1;
const RECORD_BATCH: u8 = 3;

/// A table that is being written.
pub struct ArrowFile<W> {
    out: W,
    /// How many bytes were written.
    written: i64,
    schema: Vec<(&'static str, ColumnType)>,
    about: Vec<(String, String)>,
    /// Where each batch is: its offset, the length of its metadata, the length of its body.
    batches: Vec<[i64; 3]>,
}

impl<W: Write> ArrowFile<W> {
    /// Begins a table with these columns; `about` are the metadata of its schema.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn begin(out: W, schema: &Schema, about: Vec<(String, String)>) -> io::Result<Self> {
        let mut file = Self { out, written: 0, schema: schema.to_vec(), about, batches: Vec::new() };
        file.put(MAGIC)?;
        file.put(&[0; 2])?;
        let mut builder = Builder::default();
        let header = file.schema(&mut builder);
        file.message(builder, SCHEMA, header, &[])?;
        Ok(file)
    }

    /// Adds rows: their columns in the order of the schema.
    ///
    /// # Errors
    /// If `out` cannot be written, or the texts of a column together have 2 GiB or more.
    pub fn rows(&mut self, columns: &[Column<'_>]) -> io::Result<()> {
        let rows = columns.first().map_or(0, Column::len) as i64;
        if rows == 0 {
            return Ok(());
        }
        let mut body = Body::default();
        columns.iter().try_for_each(|column| body.add(column))?;
        let mut builder = Builder::default();
        let buffers = builder.structures(&body.buffers);
        // Length and number of gaps of each column.
        let nodes = builder.structures(&vec![[rows, 0]; columns.len()]);
        let header = builder.table(&[Field::Long(rows), Field::At(nodes), Field::At(buffers)]);
        let offset = self.written;
        let metadata = self.message(builder, RECORD_BATCH, header, &body.bytes)?;
        self.batches.push([offset, metadata, body.bytes.len() as i64]);
        Ok(())
    }

    /// Ends the table.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        self.put(&CONTINUATION)?;
        self.put(&[0; 4])?;
        let mut builder = Builder::default();
        // The second number has 32 bits and as many of filling, which are zero.
        let batches = builder.structures(&self.batches);
        let dictionaries = builder.structures::<3>(&[]);
        let schema = self.schema(&mut builder);
        let footer = [VERSION, Field::At(schema), Field::At(dictionaries), Field::At(batches)];
        let footer = builder.table(&footer);
        let footer = builder.finish(footer);
        self.put(&footer)?;
        self.put(&(footer.len() as i32).to_le_bytes())?;
        self.put(MAGIC)?;
        self.out.flush()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written += bytes.len() as i64;
        Ok(())
    }

    /// Writes a message with its body; gives the length of what is in front of the body.
    fn message(&mut self, mut builder: Builder, kind: u8, header: Place, body: &[u8]) -> io::Result<i64> {
        let length = Field::Long(body.len() as i64);
        let message = builder.table(&[VERSION, Field::Byte(kind), Field::At(header), length]);
        let metadata = builder.finish(message);
        self.put(&CONTINUATION)?;
        self.put(&(metadata.len() as i32).to_le_bytes())?;
        self.put(&metadata)?;
        self.put(body)?;
        Ok(8 + metadata.len() as i64)
    }

    fn schema(&self, builder: &mut Builder) -> Place {
        let fields: Vec<Place> = self.schema.iter().map(|(name, of)| field(builder, name, *of)).collect();
        let fields = builder.places(&fields);
        let pair = |builder: &mut Builder, (key, value): &(String, String)| {
            let (key, value) = (builder.string(key), builder.string(value));
            builder.table(&[Field::At(key), Field::At(value)])
        };
        let about: Vec<Place> = self.about.iter().map(|about| pair(builder, about)).collect();
        let about = builder.places(&about);
        // Little endian, which is the default.
        builder.table(&[Field::Default, Field::At(fields), Field::At(about)])
    }
}

/// A column without gaps.
fn field(builder: &mut Builder, name: &str, of: ColumnType) -> Place {
    // `Type`: Int, Utf8, Bool.
    let (number, fields) = match of {
        ColumnType::Int32 => (2, vec![Field::Int(32), Field::Byte(1)]),
        ColumnType::Int64 => (2, vec![Field::Int(64), Field::Byte(1)]),
        ColumnType::Text => (5, Vec::new()),
        ColumnType::Flag => (6, Vec::new()),
    };
    let (name, of, children) = (builder.string(name), builder.table(&fields), builder.places(&[]));
    let not_nullable = Field::Byte(0);
    builder.table(&[
        Field::At(name),
        not_nullable,
        Field::Byte(number),
        Field::At(of),
        Field::Default,
        Field::At(children),
    ])
}

/// The buffers of a batch, each filled up to a multiple of 8 bytes.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    /// The offset and the length of each.
    buffers: Vec<[i64; 2]>,
}

impl Body {
    fn add(&mut self, column: &Column<'_>) -> io::Result<()> {
        // Which values are there: all of them.
        self.buffer(|_| {});
        match column {
            Column::Int32(values) => {
                self.buffer(|bytes| bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())))
            }
            Column::Int64(values) => {
                self.buffer(|bytes| bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())))
            }
            Column::Flag(values) => self.buffer(|bytes| {
                let byte = |flags: &[bool]| (0..).zip(flags).fold(0, |byte, (at, flag)| byte | u8::from(*flag) << at);
                bytes.extend(values.chunks(8).map(byte));
            }),
            Column::Text(values) => {
                let mut end = 0_i32;
                let mut ends = Vec::with_capacity(4 * values.len() + 4);
                ends.extend(end.to_le_bytes());
                for text in values {
                    let length = i32::try_from(text.len()).ok();
                    end = length.and_then(|length| end.checked_add(length)).ok_or_else(too_long)?;
                    ends.extend(end.to_le_bytes());
                }
                self.buffer(|bytes| bytes.extend(ends));
                self.buffer(|bytes| values.iter().for_each(|text| bytes.extend(text.as_bytes())));
            }
        }
        Ok(())
    }

    fn buffer(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.bytes.len();
        write(&mut self.bytes);
        self.buffers.push([begin as i64, (self.bytes.len() - begin) as i64]);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }
}

fn too_long() -> io::Error {
    io::Error::other("the names in 65,536 rows have 2 GiB together, more than a column of Arrow can have")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_a_batch_byte_by_byte() {
        let mut body = Body::default();
        body.add(&Column::Int32(vec![1, -1, 2])).unwrap();
        body.add(&Column::Flag(vec![true, false, true])).unwrap();
        body.add(&Column::Text(vec!["ab", "", "c"])).unwrap();
        assert_eq!(body.buffers, [[0, 0], [0, 12], [16, 0], [16, 1], [24, 0], [24, 16], [40, 3]]);
        let mut expected = vec![1, 0, 0, 0, 255, 255, 255, 255, 2, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([5, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        expected.extend(*b"abc\0\0\0\0\0");
        assert_eq!(body.bytes, expected);
    }

    #[test]
    fn a_file_is_framed() {
        let mut out = Vec::new();
        let schema = [("cpu", ColumnType::Int32)];
        let mut file = ArrowFile::begin(&mut out, &schema, vec![("a".to_owned(), "b".to_owned())]).unwrap();
        file.rows(&[Column::Int32(Vec::new())]).unwrap();
        assert!(file.batches.is_empty());
        file.rows(&[Column::Int32(vec![7])]).unwrap();
        let [[offset, metadata, body]] = file.batches[..] else { panic!("one batch") };
        file.end().unwrap();
        assert_eq!((&out[..8], &out[out.len() - 6..], offset % 8, body), (&b"ARROW1\0\0"[..], &b"ARROW1"[..], 0, 8));
        let message = &out[offset as usize..][..metadata as usize];
        assert_eq!(message[..4], CONTINUATION);
        assert_eq!(i64::from(i32::from_le_bytes(message[4..8].try_into().unwrap())), metadata - 8);
        assert_eq!(out[(offset + metadata) as usize..][..8], [7, 0, 0, 0, 0, 0, 0, 0]);
        let footer = i32::from_le_bytes(out[out.len() - 10..out.len() - 6].try_into().unwrap());
        assert!(footer > 0 && footer % 8 == 0);
    }
}
