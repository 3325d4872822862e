//! The rights of this process, and how it gives them up.
//!
//! A recording needs rights during set-up: to open the kernel's trace, to use a real-time class, to lock memory. Decoding, attributing, writing and
//! drawing need none of them, only what is open by then. So there are three ways to end a set-up, all in this module:
//!
//! - [`give_up`] permanently: the process becomes the user who called `sudo`, and keeps only the listed capabilities;
//! - [`lower`] temporarily, if another set-up follows;
//! - [`give_up_of_this_thread`] in each measuring thread, once it has its place, its class and its counters.
//!
//! [`Need`] lists the rights that each part of a measurement needs.
//!
//! The kernel keeps the rights of each *thread*. Users are changed through the C library, whose `setgroups`, `setresgid` and `setresuid` apply to all
//! threads of the process, as POSIX demands; on a change from user 0 to another one, the kernel then clears the capabilities of each of them. There
//! is no such call for capabilities: `capset` applies to the calling thread and those that it starts afterwards. So every earlier thread gives up its
//! own, but not before the process has become another user, because the C library ends a process if only some of its threads may change the user.

mod capabilities;
mod leave;
mod needs;
mod user;

pub(crate) use capabilities::keep_of_this_thread;
pub use leave::{Lowered, RemainingRights, RightsError, give_up, give_up_of_this_thread, keep_only, lower};
pub use needs::Need;
pub(crate) use user::becoming_in_child;
pub use user::{Caller, User};
