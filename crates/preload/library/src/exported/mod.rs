//! Functions that the program finds before those of its C library. Each behaves like the C library's function of its name, with the same arguments
//! and results, but hides our signal from the program.
//!
//! They are called in any thread and, if the C library's are async-signal-safe, also in the program's signal handlers. So they allocate nothing, and
//! the one lock is held with all signals blocked (`process::guard`). The C library's functions are looked up before the program starts
//! (`process::next`).

pub mod signals;
pub mod sockets;
pub mod threads;
pub mod waits;
