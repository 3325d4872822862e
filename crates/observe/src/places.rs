//! The threads of a document in the tables of its recording.

use std::collections::HashMap;

use becalm_bundle::ThreadRow;
use becalm_model::observed::ThreadId;

use crate::document::ThreadDoc;

/// The place of each of these threads, by its number in the tables.
pub fn places<'a>(rows: &[ThreadRow], threads: impl Iterator<Item = &'a ThreadDoc>) -> HashMap<ThreadId, usize> {
    // A number of the kernel may be used by several threads in turn.
    let number = |row: &ThreadRow| Some(((row.tid, row.start_ns), ThreadId(u32::try_from(row.thread).ok()?)));
    let numbers: HashMap<(i32, i64), ThreadId> = rows.iter().filter_map(number).collect();
    let place =
        |(place, thread): (usize, &ThreadDoc)| Some((*numbers.get(&(thread.tid, thread.start_ns.get()))?, place));
    threads.enumerate().filter_map(place).collect()
}
