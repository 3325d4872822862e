//! /proc/kallsyms: the kernel function at an address.
//!
//! A kernel has some 200,000 symbols. Only functions are kept, in three flat arrays (about 20 bytes plus the name for each), and the file is read
//! line by line. Data symbols are left out.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::file::{self, FileError, FormatError, path_below};

const NAME: &str = "proc/kallsyms";
const WHAT: &str = "the kernel's symbols";

/// The end of the last function of the kernel or a module is unknown. Hardly any function is longer than this; an address further from its start does
/// not get its name.
const LONGEST_FUNCTION: u64 = 1 << 20;

/// The kernel's functions, sorted by address.
#[derive(Clone, Debug, Default)]
pub struct Kallsyms {
    addresses: Vec<u64>,
    /// The start of each name in `names`; it ends at a newline.
    starts: Vec<u32>,
    names: String,
}

/// The function at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbol<'a> {
    /// Its name, without the module's.
    pub name: &'a str,
    /// The distance of the address from the function's first instruction.
    pub offset: u64,
}

/// Reasons why there are no symbols.
#[derive(Debug, thiserror::Error)]
pub enum KallsymsError {
    /// The file could not be read or parsed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Every address reads as zero: the kernel hides them from this process.
    #[error(
        "cannot use the kernel's symbols in {}: all {symbols} addresses read as zero, as kernel.kptr_restrict \
         and the rights of this process have it", path.display()
    )]
    Hidden {
        /// The path of the file, including the root directory.
        path: PathBuf,
        /// The number of symbols in it.
        symbols: usize,
    },
}

impl Kallsyms {
    /// Parses the file's text; `None` if the kernel hides the addresses. An empty text has no symbols. Skips lines that are not an address, a type
    /// and a name. Fails if all lines are skipped.
    pub fn parse(text: &str) -> Result<Option<Self>, FormatError> {
        let mut builder = Builder::default();
        file::lines(text.lines(), |line| builder.push(line))?;
        Ok(builder.finish())
    }

    /// Reads `proc/kallsyms`. Fails if it cannot be read or parsed, or hides the addresses.
    pub fn read(root: &Path) -> Result<Self, KallsymsError> {
        let mut builder = Builder::default();
        let mut first = None;
        each_line(root, |line| {
            builder.push(line).unwrap_or_else(|why| _ = first.get_or_insert(why));
            true
        })?;
        if let Some(why) = first.filter(|_| builder.symbols == 0) {
            return Err(FileError::Format { what: WHAT, path: path_below(root, NAME), why }.into());
        }
        let symbols = builder.symbols;
        builder.finish().ok_or_else(|| KallsymsError::Hidden { path: path_below(root, NAME), symbols })
    }

    /// Whether the kernel shows addresses to this process; the first one that is not zero proves it.
    pub fn are_visible(root: &Path) -> Result<bool, FileError> {
        let mut visible = false;
        each_line(root, |line| {
            visible |= address(line).is_ok_and(|address| address != 0);
            !visible
        })?;
        Ok(visible)
    }

    /// The function at an address. If several are at one address, the first that the kernel lists, which the kernel itself also prints.
    pub fn symbol(&self, address: u64) -> Option<Symbol<'_>> {
        let after = self.addresses.partition_point(|start| *start <= address);
        let offset = address - self.addresses[after.checked_sub(1)?];
        let name = &self.names[self.starts[after - 1] as usize..];
        let name = &name[..name.find('\n').unwrap_or(name.len())];
        (offset < LONGEST_FUNCTION).then_some(Symbol { name, offset })
    }

    /// The number of functions with different addresses.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether no function is known.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The memory of the table, in bytes.
    pub fn bytes(&self) -> usize {
        self.addresses.capacity() * 8 + self.starts.capacity() * 4 + self.names.capacity()
    }
}

/// Passes the file's lines to the visitor until that returns false.
fn each_line(root: &Path, mut visit: impl FnMut(&str) -> bool) -> Result<(), FileError> {
    let path = path_below(root, NAME);
    let failed = |source| FileError::Read { what: WHAT, path: path.clone(), source };
    let mut file = BufReader::with_capacity(1 << 16, File::open(&path).map_err(failed)?);
    let mut line = Vec::new();
    // A module's name may be anything, even invalid UTF-8.
    while file.read_until(b'\n', &mut line).map_err(failed)? > 0 && visit(String::from_utf8_lossy(&line).trim_end()) {
        line.clear();
    }
    Ok(())
}

fn address(line: &str) -> Result<u64, FormatError> {
    let word = line.split_ascii_whitespace().next().unwrap_or_default();
    u64::from_str_radix(word, 16).map_err(|_| FormatError::new("'ADDRESS TYPE NAME' was expected", line))
}

#[derive(Default)]
struct Builder {
    /// The address of each function, and the start of its name.
    functions: Vec<(u64, u32)>,
    names: String,
    symbols: usize,
    seen_address: bool,
}

impl Builder {
    /// Adds a line: `ffffffff81000000 T _text`, or with a module `ffffffffc0a1 t probe\t[module]`.
    fn push(&mut self, line: &str) -> Result<(), FormatError> {
        let error = || FormatError::new("'ADDRESS TYPE NAME' was expected", line);
        let address = address(line)?;
        let mut words = line.split_ascii_whitespace().skip(1);
        let mut next = || words.next().ok_or_else(error);
        let (kind, name) = (next()?, next()?);
        self.symbols += 1;
        self.seen_address |= address != 0;
        // Text, weak text; symbols of other kinds are data.
        if address != 0 && matches!(kind, "t" | "T" | "w" | "W") {
            let start = u32::try_from(self.names.len());
            self.functions.push((address, start.map_err(|_| FormatError::new("names below 4 GiB", name))?));
            self.names += name;
            self.names.push('\n');
        }
        Ok(())
    }

    fn finish(mut self) -> Option<Kallsyms> {
        if self.symbols > 0 && !self.seen_address {
            return None;
        }
        // The names are in the file's order, so sorting by both puts the first listed function of an address first.
        self.functions.sort_unstable();
        self.functions.dedup_by_key(|(address, _)| *address);
        self.names.shrink_to_fit();
        let (addresses, starts) = self.functions.into_iter().unzip();
        Some(Kallsyms { addresses, starts, names: self.names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "ffffffff81000100 T run_timer\nffffffff81000000 T _text\nffffffff81000000 T startup\n\
        ffffffff81000180 D data\nffffffff81000200 t helper\nffffffffc0000000 t probe\t[virtio_net]\n";

    #[test]
    fn finds_the_function() {
        let symbols = Kallsyms::parse(TEXT).unwrap().unwrap();
        let name = |address| symbols.symbol(address).map(|symbol| (symbol.name, symbol.offset));
        assert_eq!(name(0xffff_ffff_8100_0000), Some(("_text", 0)));
        assert_eq!(name(0xffff_ffff_8100_0190), Some(("run_timer", 0x90)));
        assert_eq!(name(0xffff_ffff_8100_0200), Some(("helper", 0)));
        assert_eq!(name(0xffff_ffff_c000_0010), Some(("probe", 0x10)));
        assert_eq!(name(0xffff_ffff_9000_0000), None);
        assert_eq!(name(0x10), None);
        assert_eq!(symbols.len(), 4);
    }

    #[test]
    fn hidden_addresses_are_told() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let file = root.path().join("proc/kallsyms");
        std::fs::write(&file, "0000000000000000 T _text\n0000000000000000 t x [m]\n").unwrap();
        let error = Kallsyms::read(root.path()).unwrap_err();
        assert!(matches!(error, KallsymsError::Hidden { symbols: 2, .. }));
        assert!(error.to_string().contains("kptr_restrict"), "{error}");
        // The kernel's per-CPU symbols may be at zero on a machine that hides nothing.
        std::fs::write(&file, format!("0000000000000000 A fixed\n{TEXT}")).unwrap();
        assert_eq!(Kallsyms::read(root.path()).unwrap().len(), 4);
        std::fs::write(&file, [b"(____ptrval____) T early\n\xff\xfe\n", TEXT.as_bytes()].concat()).unwrap();
        assert_eq!(Kallsyms::read(root.path()).unwrap().len(), 4);
        assert!(Kallsyms::are_visible(root.path()).unwrap());
        std::fs::write(&file, "what is this").unwrap();
        assert!(matches!(Kallsyms::read(root.path()), Err(KallsymsError::File(_))));
        assert!(Kallsyms::parse("").unwrap().unwrap().is_empty());
    }

    #[test]
    #[allow(clippy::print_stderr)]
    fn this_machine_in_little_memory() {
        match Kallsyms::read(Path::new("/")) {
            Ok(symbols) => assert!(symbols.bytes() < symbols.len() * 100, "{} bytes", symbols.bytes()),
            Err(error) => eprintln!("skipped: {error}"),
        }
    }

    proptest! {
        #[test]
        fn is_what_a_plain_search_finds(functions in proptest::collection::vec(1_u64..5_000, 0..40), address in 0_u64..6_000) {
            let text: String =
                functions.iter().enumerate().map(|(i, at)| format!("{at:016x} t f{i}\n")).collect();
            let symbols = Kallsyms::parse(&text).unwrap().unwrap();
            let below = functions.iter().enumerate().filter(|(_, at)| **at <= address);
            let plain = below.max_by_key(|(i, at)| (**at, std::cmp::Reverse(*i)));
            let plain = plain.map(|(i, at)| (format!("f{i}"), address - at));
            let found = symbols.symbol(address).map(|symbol| (symbol.name.to_owned(), symbol.offset));
            prop_assert_eq!(found, plain);
        }
    }
}
