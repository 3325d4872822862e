//! What this process may do, and how it gives that up.
//!
//! A recording needs rights while it is set up: to open the kernel's trace, to take a real-time class, to lock memory. What decodes,
//! attributes, writes and draws afterwards needs none of them, only what is open by then. So there are three ways to end a
//! set-up, all in here:
//!
//! - [`give_up`] for good: the process becomes the user who called `sudo`, and keeps no capability but those that are named;
//! - [`lower`] for a while, where another set-up follows;
//! - [`give_up_of_this_thread`] in each measuring thread, once it has its place, its class and its counters.
//!
//! What needs which rights is said in [`Need`].
//!
//! The kernel keeps the rights of each *thread*. Identities are changed through the C library, whose `setgroups`, `setresgid`
//! and `setresuid` do so in all threads of the process, as POSIX demands; from user 0 to another one the kernel then clears the
//! capabilities of each of them. Capabilities have no such call: `capset` concerns the calling thread and those that it starts
//! afterwards. So every thread that was started before gives up its own; not before the process has become another user, since the C library
//! ends a process of whose threads some may do so and others may not.

mod capabilities;
mod leave;
mod needs;
mod user;

pub(crate) use capabilities::keep_of_this_thread;
pub use leave::{Lowered, RemainingRights, RightsError, give_up, give_up_of_this_thread, keep_only, lower};
pub use needs::Need;
pub(crate) use user::becoming_in_child;
pub use user::{Caller, User};
