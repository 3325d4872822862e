//! The journal: the original value of every changed knob, on disk before it is changed.
//!
//! By default it is in `/run/becalm/tune`. A reboot deletes that directory, and resets the settings: a journal that survived would offer to restore
//! what no longer exists. A journal stored elsewhere is recognized as stale by the boot ID in it.
//!
//! The file has one JSON document per line, each with its number and a checksum. The first names the owner and the boot; one line per change follows.
//! Then each change has a line with the value before, which reaches the disk before the change is made, and a line with the result. Restoring appends
//! lines of its own, so it can be killed and repeated at every step. An incomplete last line is ignored: its action had not started. A damaged line
//! affects only its own record. When everything is restored, the file is kept under another name until the next one.

mod error;
mod folder;
mod line;
mod owner;
mod record;
mod state;

pub use error::JournalError;
pub(crate) use folder::Begun;
pub use folder::{Folder, Journal};
pub use line::sealed;
pub use owner::Owner;
pub use record::NotedThread;
pub(crate) use record::Record;
pub(crate) use state::gives_cpus;
pub use state::{Damage, JournalStep, State};
