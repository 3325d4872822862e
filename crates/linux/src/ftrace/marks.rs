//! Finds the numbers that the kernel's events use for this process's threads. In a PID namespace, as in containers, the process itself sees other
//! numbers.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};

use super::error::TracefsError;
use super::instance::Instance;
use super::tracefs::read;
use crate::sched;

/// The text that a thread writes before its own number.
const TEXT: &str = "becalm thread ";

/// Lets threads identify themselves. The instance records until [`Instance::numbers`] is called.
#[derive(Debug)]
pub struct Marks {
    file: File,
}

impl Marks {
    /// Identifies the calling thread. It must run on one of the instance's CPUs.
    pub fn mark(&self) -> io::Result<()> {
        // In one piece, because each write is a mark of its own.
        let mark = format!("{TEXT}{}\n", sched::current_tid());
        (&self.file).write_all(mark.as_bytes())
    }
}

impl Instance {
    /// Lets threads identify themselves, and starts recording. Fails if the kernel has no marks, or they may not be written.
    pub fn open_marks(&self) -> Result<Marks, TracefsError> {
        self.set("trace_options", "markers")?;
        let path = self.folder().join("trace_marker");
        let file = OpenOptions::new().write(true).open(&path);
        let file = file.map_err(|error| TracefsError::io("open", &path, error))?;
        self.start()?;
        Ok(Marks { file })
    }

    /// Stops recording, and returns the kernel's number of each thread that identified itself, keyed by the thread's own number. Discards all
    /// recorded events. Fails if the trace cannot be read or emptied.
    pub fn numbers(&self) -> Result<BTreeMap<i32, i32>, TracefsError> {
        self.stop()?;
        self.set("trace_options", "nomarkers")?;
        let numbers = numbers(&read(&self.folder().join("trace"))?);
        // Opening it for writing empties it.
        self.set("trace", "")?;
        Ok(numbers)
    }
}

/// Parses lines like `   becalm/1-3140    [001] .....  9.872: tracing_mark_write: becalm thread 17`, which start with the thread's name and the
/// kernel's number for it.
fn numbers(text: &str) -> BTreeMap<i32, i32> {
    let entry = |line: &str| {
        let (head, own) = line.rsplit_once(TEXT)?;
        let (thread, _) = head.split_once(" [")?;
        let (_, kernels) = thread.trim_end().rsplit_once('-')?;
        Some((own.trim().parse().ok()?, kernels.parse().ok()?))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_both_numbers_of_a_thread() {
        let text = "# tracer: nop\n#\n\
            \x20       becalm/1-3140    [001] .....  9.872: tracing_mark_write: becalm thread 17\n\
            \x20         <idle>-0       [001] d..2.  9.873: sched_switch: prev_comm=x [1] ==> next_comm=becalm thread\n\
            \x20  a-b [c-3139    [000] .....  9.874: tracing_mark_write: becalm thread 9\n\
            \x20 my becalm-3138    [000] .....  2489712: 0xffffffff81: becalm thread 3\n";
        assert_eq!(numbers(text), BTreeMap::from([(17, 3140), (3, 3138)]));
    }
}
