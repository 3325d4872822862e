//! What becomes of each command's rights where it has more than an ordinary user: by root, by `sudo`, by capabilities.
//!
//! | command | what it keeps, and until when |
//! | --- | --- |
//! | `report`, `sources`, `compare`, `check RUN`, `fleet`, `predict`, `law`, `cost tick --from`, `paper --list` | from the start: only the right to read any file; becomes the user behind `sudo` |
//! | the same with `--html`, `--junit` or `--sarif`, `export`, `import`, `summary` | from the start: only rights over files, as the file may be meant for a folder of root's or of the user's |
//! | `record`, `check`, the last run of `work` | everything until it is set up, then nothing; becomes the user behind `sudo` |
//! | `top`, `watch`, the other runs of `work`, the recordings of `cost detours`, one in each process | puts everything down while it records, as another set-up follows |
//! | `inject` | everything until its threads are placed, then nothing; with `--signal` nothing from the start; of several noises, each of which is a becalm of its own, the first one waits with all |
//! | `tune study`, `compare --record` | everything until all is recorded, then as the readers |
//! | `cost` | everything until all is measured, then rights over files, and `cost tick`, which has stored all, as the readers |
//! | `paper` | everything, as what it runs may need it; each command that it runs gives that up as it does by itself |
//! | `tune run` | everything, as it restores in the end; it decodes nothing |
//! | `run-quiet` | everything, as it starts one run after the other and restores in the end; it decodes the kernel's own trace and files |
//! | `config`, `doctor` | everything, as they tell what other commands do; `doctor` starts programs that say their version, and reads no bundle |
//! | `tune apply`, `restore`, `watch`, `check` and `plan` | everything: it is what they are for |
//!
//! Where a trace instance is to be removed at the end, the janitor keeps that right.

use std::path::Path;

use becalm_bundle::SUFFIX;
use becalm_linux::access::Access;
use becalm_linux::folder::Folder;
use becalm_linux::procfs::status::{Capabilities, Capability};
use becalm_linux::rights::{self, RemainingRights, RightsError, User};
use becalm_measure::AfterSetUp;
use becalm_units::fault;
use clap::Args;

/// As whom the user's COMMAND runs: what every command that starts one takes.
#[derive(Args, Debug)]
pub struct CommandUserArgs {
    /// Run COMMAND as root also where becalm was started by sudo, instead of as the user who called it
    #[arg(long, requires = "command")]
    pub as_root: bool,
}

impl CommandUserArgs {
    /// The user that COMMAND is to run as; `None` if it runs as becalm does.
    pub fn user(&self) -> Option<User> {
        if self.as_root { None } else { User::from_sudo() }
    }
}

/// What a recording that starts no program is left with.
pub fn give_up_after_set_up() -> AfterSetUp {
    AfterSetUp::GiveUp(left_as(User::from_sudo(), false))
}

/// What a recording does with its rights when another one is to be set up after it.
pub fn lower_while_recording() -> AfterSetUp {
    AfterSetUp::Lower(User::from_sudo())
}

/// What becalm is left with as this user, or as who it is, once everything is set up. Whether it starts a COMMAND then, which may call
/// `sudo` itself or is root's.
pub fn left_as(user: Option<User>, starts_programs: bool) -> RemainingRights {
    // Who does not become the user that the files are given to must give them, and write in folders of that user's.
    let gives = user.is_none() && Access::guarded().is_given();
    let kept = if gives { &[Capability::Chown, Capability::DacOverride][..] } else { &[] };
    RemainingRights { user, kept: Capabilities::from_list(kept), starts_programs }
}

/// Refuses a place for a bundle where the user that the recording continues as cannot write. Fails if the user may not
/// write in the directory, and becalm may not create one there for the user.
pub fn refuse_place_of_root(bundle: &Path, user: Option<&User>) -> fault::Result<()> {
    let Some(user) = user else { return Ok(()) };
    let parent = bundle.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let (place, is_there) = if bundle.exists() { (bundle, true) } else { (parent, false) };
    // What cannot be opened is said by whoever makes the bundle.
    let Ok(folder) = Folder::open(place) else { return Ok(()) };
    let is_named = bundle.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes());
    if (is_named && !is_there) || folder.can_give(Access::guarded())? {
        return Ok(());
    }
    fault::bail!(
        "{}: behind sudo a recording goes on as the user {}, who may not write in {}; choose a folder of that user, or a new name \
         that ends in {SUFFIX}",
        bundle.display(),
        user.uid,
        place.display()
    )
}

/// Refuses a file that is written after a set-up, in a folder of root's that the user behind `sudo` may not write in.
pub fn refuse_file_of_root(file: &Path) -> fault::Result<()> {
    let Some(user) = User::from_sudo() else { return Ok(()) };
    let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    // What cannot be opened is said by whoever makes the file.
    let Ok(opened) = Folder::open(folder) else { return Ok(()) };
    if opened.can_give(Access::guarded())? {
        return Ok(());
    }
    fault::bail!(
        "{}: behind sudo becalm goes on as the user {}, who may not write in {}; choose a folder of that user",
        file.display(),
        user.uid,
        folder.display()
    )
}

/// The rights that a command keeps from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RightsKept {
    /// All that it has.
    All,
    /// Those over files: it reads and writes some.
    Files,
    /// The one to read any file.
    Reading,
}

impl RightsKept {
    /// The rights of a command that reads, and may write a file of what it has read.
    pub const fn to_read(and_write: bool) -> Self {
        if and_write { Self::Files } else { Self::Reading }
    }

    /// Gives up all others.
    pub fn keep(self) -> Result<(), RightsError> {
        match self {
            Self::All => Ok(()),
            Self::Files => only_files(),
            Self::Reading => only_read(),
        }
    }
}

/// Before a command that only reads: it may read what root may, in root's folders and in others', and write nothing.
pub fn only_read() -> Result<(), RightsError> {
    let kept = Capabilities::from_list(&[Capability::DacReadSearch]);
    rights::give_up(&RemainingRights { user: User::from_sudo(), kept, starts_programs: false })
}

/// Before a command that reads, and writes a file that may be meant for a folder of root's or of somebody else's.
pub fn only_files() -> Result<(), RightsError> {
    rights::keep_only(Capabilities::from_list(&[Capability::Chown, Capability::DacOverride, Capability::FileOwner]))
}
