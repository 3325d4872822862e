//! Programs, processes and threads that start in a certain place: on certain CPUs, in a scheduling class, in a control group.

mod process;
mod program;
mod thread;

pub use process::{ProcessWords, Processes, ProcessesError, Turn};
pub use program::{ProgramStart, adopt_orphans, apart_from_signals, begin_in};
pub use thread::{Thread, Waiting};
