//! Functions that the program finds in front of those of its C library. Each does what the C library's function of its name
//! does, with the same arguments and results, but that the program does not notice our signal.
//!
//! They are called in any thread and, as far as the C library's are async-signal-safe, also in handlers of the program. So
//! they allocate nothing, and the one lock is held with all signals blocked (`process::guard`). The C library's functions are
//! looked for before the program begins (`process::next`).

pub mod signals;
pub mod sockets;
pub mod threads;
pub mod waits;
