//! The journal: what every changed knob was before, on disk before it is changed.
//!
//! It lies in `/run/becalm/tune` unless told otherwise. That folder is lost at a reboot, and so are the settings: a journal that
//! survived them would offer to restore what is no more. One that was kept elsewhere is told from a live one by the boot's
//! identity in it.
//!
//! It is a file of JSON documents, one a line, each with its number and a checksum. The first names the owner and the boot; a line a
//! change follows. Then, for each change, a line with the value before, which reaches the disk before the change is made, and a line
//! with what came of it. Restoring adds lines of its own, so that it can be killed and repeated at every step. A last line that was
//! not written to its end is ignored: what it would have told had not begun. A line that is damaged costs what it alone said.
//! When all is restored, the file is kept under another name until the next one.

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
