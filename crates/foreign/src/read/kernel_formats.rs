//! The kernel's own formats in files of trace-cmd and perf: the layout of its records, and the names of its functions, strings and threads.
//! Both programs write them alike.

use super::ReadError;
use super::binary::Binary;

/// More formats than any kernel has events.
const MOST_FORMATS: u32 = 1 << 16;

/// The kernel's descriptions of its events, as text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelFormats {
    /// The layout of a page of its trace, as in `events/header_page`.
    pub header_page: String,
    /// System and text of each `format` file.
    pub events: Vec<(String, String)>,
    /// The names of its functions, as in `/proc/kallsyms`; empty if the file has none.
    pub symbols: String,
    /// Its strings by address, as in `printk_formats`.
    pub strings: String,
    /// The names of threads, as in `saved_cmdlines`: a number and a name per line.
    pub threads: String,
}

impl KernelFormats {
    /// Reads the layout of a page, and the data after it.
    pub(super) fn read_header(&mut self, from: &mut Binary<'_>) -> Result<(), ReadError> {
        for name in ["header_page", "header_event"] {
            let place = from.clone();
            if from.text("the name of a header")? != name {
                return Err(place.error(format!("'{name}' was expected here")));
            }
            let length = from.u64("the length of a header")?;
            let text = from.text_of(length, name)?;
            if name == "header_page" {
                text.clone_into(&mut self.header_page);
            }
        }
        Ok(())
    }

    /// Skips the formats of the tracer's own events, which are not used.
    pub(super) fn skip_own(from: &mut Binary<'_>) -> Result<(), ReadError> {
        let count = from.u32("the number of the tracer's formats")?;
        for _ in 0..count {
            let length = from.u64("the length of a format")?;
            from.take(length, "a format")?;
        }
        Ok(())
    }

    /// Reads the formats of events, system by system.
    pub(super) fn read_events(&mut self, from: &mut Binary<'_>) -> Result<(), ReadError> {
        let systems = from.u32("the number of systems")?;
        for _ in 0..systems {
            let system = from.text("the name of a system")?.to_owned();
            let count = from.u32("the number of a system's formats")?;
            for _ in 0..count {
                let length = from.u64("the length of a format")?;
                let text = from.text_of(length, "the format of an event")?;
                if self.events.len() as u32 >= MOST_FORMATS {
                    return Err(from.error("there are more formats of events than a kernel has"));
                }
                self.events.push((system.clone(), text.to_owned()));
            }
        }
        Ok(())
    }

    /// Reads the names of functions.
    pub(super) fn read_symbols(&mut self, from: &mut Binary<'_>) -> Result<(), ReadError> {
        let length = from.u32("the length of the symbols")?;
        from.text_of(length.into(), "the table of symbols")?.clone_into(&mut self.symbols);
        Ok(())
    }

    pub(super) fn read_strings(&mut self, from: &mut Binary<'_>) -> Result<(), ReadError> {
        let length = from.u32("the length of the kernel's strings")?;
        self.strings =
            String::from_utf8_lossy(from.take(length.into(), "the table of the kernel's strings")?).into_owned();
        Ok(())
    }

    pub(super) fn read_threads(&mut self, from: &mut Binary<'_>) -> Result<(), ReadError> {
        let length = from.u64("the length of the names of threads")?;
        self.threads = String::from_utf8_lossy(from.take(length, "the table of threads")?).into_owned();
        Ok(())
    }

    /// The numbers of threads and their names.
    pub fn threads(&self) -> impl Iterator<Item = (i32, &str)> {
        self.threads.lines().filter_map(|line| {
            let (pid, name) = line.split_once(' ')?;
            Some((pid.parse().ok()?, name))
        })
    }
}
