//! Giving up rights, permanently or temporarily.

use std::io;
use std::marker::PhantomData;

use rustix::thread::{set_keep_capabilities, set_no_new_privs};

use crate::procfs::status::Capabilities;

use super::capabilities::{empty_bounding_set, has_none, keep_of_this_thread, put_down, take_up};
use super::user::{self, Acting, User};

/// The rights that a process keeps after setting up everything that needs rights.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RemainingRights {
    /// The user that it becomes; `None` if it does not change.
    pub user: Option<User>,
    /// The capabilities that it keeps, among those that it has.
    pub kept: Capabilities,
    /// Whether it starts programs that may get rights of their own, like `sudo`, or like all programs of root. They then keep the whole bounding set,
    /// and may gain rights.
    pub starts_programs: bool,
}

/// Rights could not be given up or restored.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {source}")]
pub struct RightsError {
    action: String,
    r#source: io::Error,
}

becalm_units::fault::faultless!(RightsError);

fn failed<E: Into<io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> RightsError {
    move |source| RightsError { action: action.into(), source: source.into() }
}

/// Gives up all rights of this process except the remaining ones, permanently. The capabilities are those of the calling thread and of threads that
/// it starts later; if the process becomes another user, its other threads lose all of theirs. No thread may have given up its own before. Fails if
/// the kernel refuses. The process may then have lost a part of its rights, and must not continue.
pub fn give_up(left: &RemainingRights) -> Result<(), RightsError> {
    // An ordinary user has nothing to give up, and may run with filtered system calls.
    if left.user.is_none() && has_none().map_err(failed("read capabilities"))? {
        return Ok(());
    }
    if !left.starts_programs {
        empty_bounding_set();
    }
    if let Some(user) = &left.user {
        let become_user = format!("become user {}, who called sudo", user.uid);
        // Otherwise the kernel clears all capabilities when the user is no longer 0.
        set_keep_capabilities(left.kept != Capabilities::default()).map_err(failed(&*become_user))?;
        user::become_user(user).map_err(failed(become_user))?;
    }
    keep_of_this_thread(left.kept).map_err(failed("give up capabilities"))?;
    if left.user.is_some() {
        set_keep_capabilities(false).map_err(failed("give up capabilities"))?;
    }
    if !left.starts_programs {
        set_no_new_privs(true).map_err(failed("forbid itself new rights"))?;
    }
    Ok(())
}

/// Gives up all capabilities but these, in a process that keeps its user and starts no program. Must be called while it has one thread.
pub fn keep_only(kept: Capabilities) -> Result<(), RightsError> {
    give_up(&RemainingRights { kept, ..RemainingRights::default() })
}

/// Gives up all capabilities of the calling thread, for measuring threads that have their place, class and counters. Affects only this thread: it
/// must not start others that need any. Fails if the kernel refuses, which happens only with filtered system calls.
pub fn give_up_of_this_thread() -> io::Result<()> {
    if has_none()? {
        return Ok(());
    }
    keep_of_this_thread(Capabilities::default())
}

/// Rights that are dropped temporarily. Dropping this restores them, in the thread that dropped them.
#[derive(Debug)]
pub struct Lowered {
    /// The thread's previous user; `None` if unchanged.
    before: Option<Acting>,
    /// The rights are those of the thread that created this.
    _here: PhantomData<*const ()>,
}

/// Drops the rights of the calling thread until the returned value is dropped, for a process that has more to set up later. It has no capabilities
/// meanwhile, and acts as this user. This protects from mistakes, but not from an attacker's code, which could restore them.
pub fn lower(user: Option<&User>) -> Result<Lowered, RightsError> {
    let mut lowered = Lowered { before: None, _here: PhantomData };
    if let Some(user) = user {
        let act_as = || failed(format!("act as user {}, who called sudo", user.uid));
        lowered.before = Some(Acting::now().map_err(act_as())?);
        Acting::as_user(user).assume().map_err(act_as())?;
    }
    if !has_none().map_err(failed("read capabilities"))? {
        put_down().map_err(failed("put down capabilities"))?;
    }
    Ok(lowered)
}

impl Drop for Lowered {
    fn drop(&mut self) {
        // If this fails, the next set-up reports what it lacks.
        if let Some(before) = &self.before {
            let _ = before.assume();
        }
        let _ = take_up();
    }
}
