//! The kernel's descriptions of its trace records: `events/SYSTEM/EVENT/format` and `events/header_page`.
//!
//! Pure: text in, values out. The kernel promises no offset, size or order, so nothing here assumes one; the content of a record is learned from
//! these texts alone. The `print fmt` part, which describes how to print a record, is not read.

/// The position of an integer or a string in a record, from one `field:` line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventField {
    /// The field's name: `common_pid`, `prev_comm`.
    pub name: String,
    /// Its distance from the start of the record, in bytes.
    pub offset: usize,
    /// Its length in the record, in bytes; for the two kinds of dynamic arrays, that of their locator.
    pub size: usize,
    /// Whether an integer is signed.
    pub signed: bool,
    /// Whether the field holds the value itself, or its position in the record.
    pub kind: FieldKind,
}

/// The content of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// One value: an integer of `size` bytes, a pointer, or a struct.
    Scalar,
    /// An array of fixed length, `char prev_comm[16]`.
    Array,
    /// A locator, `__data_loc char[] name`: in its low 16 bits the array's offset from the start of the record, in its
    /// high 16 bits the array's length.
    DataLoc,
    /// The same, but with the offset counted from the end of the locator, `__rel_loc char[] name`.
    RelLoc,
}

/// The description of one event's records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventFormat {
    /// The event's name, without its system.
    pub name: String,
    /// The value of `common_type` in its records.
    pub id: u16,
    /// Its fields, the common ones first, in the kernel's order.
    pub fields: Vec<EventField>,
    /// The path of the description, for messages.
    file: String,
}

/// The description of a sub-buffer, from `events/header_page`. Its data size is that of the top-level buffer, not of an instance with a sub-buffer
/// size of its own, so the length of a page is taken from the page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderPage {
    /// The time stamp, from which the first record's time is counted.
    pub timestamp: EventField,
    /// The page's commit word, a `local_t`: as wide as the kernel's `long`.
    pub commit: EventField,
    /// The records: their offset is the length of the header.
    pub data: EventField,
}

/// A description that cannot be read, or lacks something needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EventFormatError(String);

impl EventFormatError {
    /// A line, counted from 1, that the kernel does not write.
    fn line(file: &str, line: usize, why: &str) -> Self {
        Self(format!("{file}, line {line}: {why}"))
    }
}

impl EventFormat {
    /// Parses the text of a `format` file; errors name it as `file`. Fails on a line that the kernel does not write, or without `name:`, `ID:` or any
    /// field.
    pub fn parse(file: &str, text: &str) -> Result<Self, EventFormatError> {
        let mut name = None;
        let mut id = None;
        let mut fields = Vec::new();
        for (line, content) in text.lines().enumerate().map(|(index, content)| (index + 1, content.trim())) {
            let err = |why: String| EventFormatError::line(file, line, &why);
            if let Some(rest) = content.strip_prefix("name:") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = content.strip_prefix("ID:") {
                let number = rest.trim();
                let parsed: u16 = number.parse().map_err(|_| err(format!("the ID '{number}' is not in 0..=65535")))?;
                id = Some(parsed);
            } else if content.starts_with("field:") {
                fields.push(EventField::parse(content).map_err(err)?);
            } else if content.starts_with("print fmt:") {
                break;
            }
        }
        let lacks = |what: &str| EventFormatError(format!("{file}: {what}"));
        if fields.is_empty() {
            return Err(lacks("no field is described"));
        }
        Ok(Self {
            name: name.ok_or_else(|| lacks("no line 'name:'"))?,
            id: id.ok_or_else(|| lacks("no line 'ID:'"))?,
            fields,
            file: file.to_owned(),
        })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&EventField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The error that a part of this event's description is missing or does not fit.
    pub(crate) fn lacks(&self, what: String) -> EventFormatError {
        EventFormatError(format!("{}: {what}", self.file))
    }
}

impl HeaderPage {
    /// Parses the text of `events/header_page`; errors name it as `file`. Fails on a line that the kernel does not write; a missing field; a time
    /// stamp that is not 8 bytes long or a commit word that is not 4 or 8 bytes long; fields that overlap the data.
    pub fn parse(file: &str, text: &str) -> Result<Self, EventFormatError> {
        let mut fields = Vec::new();
        for (index, content) in text.lines().enumerate() {
            if content.trim().is_empty() {
                continue;
            }
            let field = EventField::parse(content.trim());
            fields.push(field.map_err(|why| EventFormatError::line(file, index + 1, &why))?);
        }
        let lacks = |what: String| EventFormatError(format!("{file}: {what}"));
        let take = |name: &str| -> Result<EventField, EventFormatError> {
            let field = fields.iter().find(|field| field.name == name);
            field.cloned().ok_or_else(|| lacks(format!("no field '{name}'")))
        };
        let page = Self { timestamp: take("timestamp")?, commit: take("commit")?, data: take("data")? };
        if page.timestamp.size != 8 {
            return Err(lacks(format!("the time stamp is {} bytes long, not 8", page.timestamp.size)));
        }
        if !matches!(page.commit.size, 4 | 8) {
            return Err(lacks(format!("the commit word is {} bytes long, not 4 or 8", page.commit.size)));
        }
        if [&page.timestamp, &page.commit].iter().any(|field| field.offset + field.size > page.data.offset) {
            return Err(lacks("the page's header reaches into its data".to_owned()));
        }
        Ok(page)
    }
}

/// Offsets and sizes above this are refused: the largest sub-buffer, and so the largest record, is far smaller.
const LARGEST: usize = 1 << 24;

impl EventField {
    /// Reads one line of the form `field:TYPE NAME;\toffset:N;\tsize:N;\tsigned:B;`.
    fn parse(line: &str) -> Result<Self, String> {
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next().and_then(|part| part.strip_prefix("field:"));
        let declaration = declaration.ok_or_else(|| "expected 'field:'".to_owned())?.trim();
        let mut number = |key: &str| -> Result<usize, String> {
            let part = parts.next().unwrap_or_default();
            let value = part.strip_prefix(key).and_then(|rest| rest.strip_prefix(':'));
            let value = value.ok_or_else(|| format!("expected '{key}:' after the declaration '{declaration}'"))?.trim();
            let parsed = value.parse().ok().filter(|parsed| *parsed <= LARGEST);
            parsed.ok_or_else(|| format!("{key} '{value}' of '{declaration}' is not a number up to {LARGEST}"))
        };
        let (offset, size, signed) = (number("offset")?, number("size")?, number("signed")? != 0);
        let (name, kind) = Self::declared(declaration);
        if name.is_empty() {
            return Err(format!("'{declaration}' declares no name"));
        }
        if matches!(kind, FieldKind::DataLoc | FieldKind::RelLoc) && size != 4 {
            return Err(format!("the locator '{declaration}' is {size} bytes long, not 4"));
        }
        Ok(Self { name: name.to_owned(), offset, size, signed, kind })
    }

    /// Name and kind from a C declaration: `__data_loc char[] name`, `char comm[16]`, `unsigned long args[6]`.
    fn declared(declaration: &str) -> (&str, FieldKind) {
        let (body, array) = match declaration.strip_suffix(']').and_then(|rest| rest.rfind('[')) {
            Some(bracket) => (&declaration[..bracket], true),
            None => (declaration, false),
        };
        let body = body.trim_end();
        let start = body.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |at| {
            // The character found may have several bytes.
            at + body[at..].chars().next().map_or(1, char::len_utf8)
        });
        let kind = if declaration.starts_with("__data_loc ") {
            FieldKind::DataLoc
        } else if declaration.starts_with("__rel_loc ") {
            FieldKind::RelLoc
        } else if array {
            FieldKind::Array
        } else {
            FieldKind::Scalar
        };
        (&body[start..], kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SWITCH: &str = include_str!("../../tests/data/linux-6.18-x86_64/sched/sched_switch/format");
    const IRQ: &str = include_str!("../../tests/data/linux-6.18-x86_64/irq/irq_handler_entry/format");
    const HEADER: &str = include_str!("../../tests/data/linux-6.18-x86_64/header_page");

    #[test]
    fn reads_a_kernels_own_text() {
        let format = EventFormat::parse("f", SWITCH).unwrap();
        assert_eq!((format.name.as_str(), format.id, format.fields.len()), ("sched_switch", 372, 11));
        let state = format.field("prev_state").unwrap();
        assert_eq!((state.offset, state.size, state.signed, state.kind), (32, 8, true, FieldKind::Scalar));
        let comm = format.field("next_comm").unwrap();
        assert_eq!((comm.offset, comm.size, comm.signed, comm.kind), (40, 16, false, FieldKind::Array));
        let format = EventFormat::parse("f", IRQ).unwrap();
        assert_eq!(format.field("name").unwrap().kind, FieldKind::DataLoc);
    }

    #[test]
    fn reads_the_page_of_a_64_bit_and_of_a_32_bit_kernel() {
        let page = HeaderPage::parse("header_page", HEADER).unwrap();
        assert_eq!((page.commit.size, page.data.offset, page.data.size), (8, 16, 4080));
        let narrow = HEADER
            .replace("commit;\toffset:8;\tsize:8", "commit;\toffset:8;\tsize:4")
            .replace("offset:16;\tsize:4080", "offset:12;\tsize:4084");
        let page = HeaderPage::parse("header_page", &narrow).unwrap();
        assert_eq!((page.commit.size, page.data.offset, page.data.size), (4, 12, 4084));
    }

    #[test]
    fn declarations_of_every_shape() {
        for (declaration, name, kind) in [
            ("unsigned short common_type", "common_type", FieldKind::Scalar),
            ("void *work", "work", FieldKind::Scalar),
            ("unsigned long args[6]", "args", FieldKind::Array),
            ("__data_loc cpumask_t cpumask", "cpumask", FieldKind::DataLoc),
            ("__data_loc char[] name", "name", FieldKind::DataLoc),
            ("__rel_loc char[] name", "name", FieldKind::RelLoc),
            ("u8 saddr[sizeof(struct in6)]", "saddr", FieldKind::Array),
            ("é", "", FieldKind::Scalar),
        ] {
            assert_eq!(EventField::declared(declaration), (name, kind), "{declaration}");
        }
    }

    #[test]
    fn errors_say_file_and_line() {
        let says = |text: &str| EventFormat::parse("irq/x/format", text).unwrap_err().to_string();
        assert_eq!(says("name: x\nID: 70000\n"), "irq/x/format, line 2: the ID '70000' is not in 0..=65535");
        assert_eq!(
            says("name: x\nID: 1\nformat:\n\tfield:int a;\toffset:x;\tsize:4;\tsigned:1;\n"),
            "irq/x/format, line 4: offset 'x' of 'int a' is not a number up to 16777216"
        );
        assert_eq!(says("name: x\nID: 1\n"), "irq/x/format: no field is described");
        let header = HeaderPage::parse("header_page", "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n");
        assert_eq!(header.unwrap_err().to_string(), "header_page: no field 'commit'");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(name: a\n|ID: [0-9]{1,6}\n|\tfield:[a-z_ é*\\[\\]]{0,12};\toffset:[0-9]{0,9};\tsize:[0-9-]{0,3};\tsigned:1;\n|[ -~\n]{0,20}){0,8}") {
            let _ = EventFormat::parse("f", &text);
            let _ = HeaderPage::parse("f", &text);
        }
    }
}
