//! When each command drops rights beyond those of an ordinary user: from root, `sudo`, or capabilities.
//!
//! | command | what it keeps, and until when |
//! | --- | --- |
//! | `report`, `detours`, `compare`, `check RUN`, `fleet`, `predict`, `cost tick --from`, `paper --list` | from the start: only the right to read any file; becomes the user behind `sudo` |
//! | the same with `--html`, `--junit` or `--sarif`, `export`, `import`, `condense` | from the start: only rights over files, for directories of root or of the user |
//! | `record`, `observe`, `top --observe`, `check`, the last run of `work` | everything until setup is done, then nothing; becomes the user behind `sudo` |
//! | `top`, `watch`, the other runs of `work`, the recordings of `cost detours`, one per process | lowers everything while recording, because another setup follows |
//! | `inject` | everything until its threads are placed, then nothing; with `--signal` nothing from the start; with several noises, each a becalm of its own, the parent keeps all |
//! | `study`, `compare --record` | everything until all is recorded, then like `report` |
//! | `cost` | everything until all is measured, then rights over files; `cost tick`, which has stored all, like `report` |
//! | `paper` | everything, because its commands may need it; each of them drops rights itself |
//! | `tune run` | everything, because it restores at the end; it decodes nothing |
//! | `bench` | everything, because it starts runs in sequence and restores at the end; it decodes the kernel's own trace and files |
//! | `config`, `doctor` | everything, because they describe other commands; `doctor` starts programs to get their versions, and reads no bundle |
//! | `tune apply`, `restore`, `watch`, `audit` and `plan` | everything: that is their purpose |
//!
//! If a trace instance must be removed at the end, the janitor keeps that right.

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
    /// Run COMMAND as root, instead of as the user who called sudo
    #[arg(long, requires = "command")]
    pub as_root: bool,
}

impl CommandUserArgs {
    /// The user for COMMAND; `None` if it runs as becalm does.
    pub fn user(&self) -> Option<User> {
        if self.as_root { None } else { User::from_sudo() }
    }
}

/// The remaining rights of a recording that starts no program.
pub fn give_up_after_set_up() -> AfterSetUp {
    AfterSetUp::GiveUp(left_as(User::from_sudo(), false))
}

/// The rights of a recording that another setup follows.
pub fn lower_while_recording() -> AfterSetUp {
    AfterSetUp::Lower(User::from_sudo())
}

/// The remaining rights after setup, for this user or the current one. `starts_programs`: a COMMAND is started, which may call `sudo`
/// itself or belong to root.
pub fn left_as(user: Option<User>, starts_programs: bool) -> RemainingRights {
    // Unless becalm becomes the user that gets the files, it must give them away, and write in that user's directories.
    let gives = user.is_none() && Access::guarded().is_given();
    let kept = if gives { &[Capability::Chown, Capability::DacOverride][..] } else { &[] };
    RemainingRights { user, kept: Capabilities::from_list(kept), starts_programs }
}

/// Refuses a place for a bundle if the user that the recording continues as cannot write there. Fails if the user may not write in the
/// directory, and becalm may not create one there for the user.
pub fn refuse_place_of_root(bundle: &Path, user: Option<&User>) -> fault::Result<()> {
    let Some(user) = user else { return Ok(()) };
    let parent = bundle.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let (place, is_there) = if bundle.exists() { (bundle, true) } else { (parent, false) };
    // Creating the bundle will report the error.
    let Ok(folder) = Folder::open(place) else { return Ok(()) };
    let is_named = bundle.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes());
    if (is_named && !is_there) || folder.can_give(Access::guarded())? {
        return Ok(());
    }
    fault::bail!(
        "{}: under sudo, a recording continues as user {}, who may not write in {}; choose a directory of that user, or a new name \
         that ends in {SUFFIX}",
        bundle.display(),
        user.uid,
        place.display()
    )
}

/// Refuses a file, written after setup, in a directory of root's without write access for the user behind `sudo`.
pub fn refuse_file_of_root(file: &Path) -> fault::Result<()> {
    let Some(user) = User::from_sudo() else { return Ok(()) };
    let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    // Creating the file will report the error.
    let Ok(opened) = Folder::open(folder) else { return Ok(()) };
    if opened.can_give(Access::guarded())? {
        return Ok(());
    }
    fault::bail!(
        "{}: under sudo, becalm continues as user {}, who may not write in {}; choose a directory of that user",
        file.display(),
        user.uid,
        folder.display()
    )
}

/// The rights that a command keeps from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RightsKept {
    /// All.
    All,
    /// Rights over files, to read and write some.
    Files,
    /// The right to read any file.
    Reading,
}

impl RightsKept {
    /// The rights of a command that reads, and may write a file.
    pub const fn to_read(and_write: bool) -> Self {
        if and_write { Self::Files } else { Self::Reading }
    }

    /// Drops all others.
    pub fn keep(self) -> Result<(), RightsError> {
        match self {
            Self::All => Ok(()),
            Self::Files => only_files(),
            Self::Reading => only_read(),
        }
    }
}

/// For commands that only read: drops all rights except reading files, in any directory.
pub fn only_read() -> Result<(), RightsError> {
    let kept = Capabilities::from_list(&[Capability::DacReadSearch]);
    rights::give_up(&RemainingRights { user: User::from_sudo(), kept, starts_programs: false })
}

/// For commands that read, and write a file in a directory of root or of another user.
pub fn only_files() -> Result<(), RightsError> {
    rights::keep_only(Capabilities::from_list(&[Capability::Chown, Capability::DacOverride, Capability::FileOwner]))
}
