//! Giving rights up, for good or for a while.

use std::io;
use std::marker::PhantomData;

use rustix::thread::{set_keep_capabilities, set_no_new_privs};

use crate::procfs::status::Capabilities;

use super::capabilities::{empty_bounding_set, has_none, keep_of_this_thread, put_down, take_up};
use super::user::{self, Acting, User};

/// Rights that a process keeps when it has set up everything that needs rights.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RemainingRights {
    /// The user that it becomes; `None` if it stays who it is.
    pub user: Option<User>,
    /// The capabilities that it keeps, of those that it has.
    pub kept: Capabilities,
    /// Whether it starts programs that may get rights of their own, as `sudo` does, or as all programs of root do. The
    /// bounding set stays whole for them then, and they may gain rights.
    pub starts_programs: bool,
}

/// Rights could not be given up or taken back.
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

/// Gives up all rights of this process but what it is left with, for good. The capabilities are those of the calling thread and of
/// the threads that it starts from now on; where the process becomes another user, the other threads lose all of theirs. No thread may
/// have given up its own before. Fails if the kernel refuses. The process may have lost a part of its rights then, and
/// is not to go on.
pub fn give_up(left: &RemainingRights) -> Result<(), RightsError> {
    // An ordinary user has nothing to give up, and may run where system calls are filtered.
    if left.user.is_none() && has_none().map_err(failed("read capabilities"))? {
        return Ok(());
    }
    if !left.starts_programs {
        empty_bounding_set();
    }
    if let Some(user) = &left.user {
        let become_user = format!("become user {}, who called sudo", user.uid);
        // Else the kernel takes all capabilities with user 0.
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

/// Gives up all capabilities but these, in a process that stays who it is and starts no program. To be called while it has one
/// thread.
pub fn keep_only(kept: Capabilities) -> Result<(), RightsError> {
    give_up(&RemainingRights { kept, ..RemainingRights::default() })
}

/// Gives up all capabilities of the calling thread, as a measuring thread does that has its place, its class and its counters.
/// They are those of this thread alone: it must not start others that need any. Fails if the kernel refuses, which it
/// does not unless system calls are filtered.
pub fn give_up_of_this_thread() -> io::Result<()> {
    if has_none()? {
        return Ok(());
    }
    keep_of_this_thread(Capabilities::default())
}

/// Rights that are put down for a while. Dropping it takes them up again, in the thread that put them down.
#[derive(Debug)]
pub struct Lowered {
    /// Whom the thread acted as before; `None` where that was not changed.
    before: Option<Acting>,
    /// The rights are those of the thread which made this.
    _here: PhantomData<*const ()>,
}

/// Puts the rights of the calling thread down until what is returned is dropped, for a process that has to set up more later on: it has
/// no capability meanwhile, and acts as this user. Code of an attacker could take them up again; a mistake cannot.
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
        // If this fails, the next set-up says what it lacks.
        if let Some(before) = &self.before {
            let _ = before.assume();
        }
        let _ = take_up();
    }
}
