//! Directories where only this user creates files, and which no other user can recreate.
//!
//! Files in a directory for all users can vanish while programs still name them: the temporary directory is cleared of old files, and `/dev/shm` of
//! files of users without a session (`RemoveIPC`). Then any user may create a directory of the same name. So code is never there. Memory may be,
//! because a process that opens it by its path checks its owner.
//!
//! Each file is locked (flock) by the process that created it, for as long as that lives: the kernel releases the lock however the process ends, and
//! the next process that creates a file there removes those that are not locked.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, StatVfsMountFlags, flock};

use crate::rights::User;
use crate::{private, stuck};

/// The path below directories of root or of one user.
const BELOW: &str = "becalm/inject";
/// The same below a user's home.
const BELOW_HOME: &str = ".cache/becalm/inject";
/// The prefix of file names that are removed if their creator was killed: no other files ever are.
const PREFIX: &str = "becalm-";
/// The file systems whose files are memory (statfs(2)): tmpfs and ramfs.
const MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// The time limit for another process that creates a file in the same directory, which takes milliseconds.
const TURN: Duration = Duration::from_secs(5);

/// The possible directories for files, best first.
#[derive(Debug)]
pub struct Places(Vec<Place>);

#[derive(Debug)]
enum Place {
    /// A directory below this one; in it and its parents, only root or this user creates directories.
    Below(PathBuf, &'static str),
    /// The same, except that the caller vouches for the parents.
    Given(PathBuf, &'static str),
    /// A directory of this user's in this one, where all users create directories.
    Among(PathBuf),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilePurpose {
    /// It is mapped as code.
    Code,
    /// It is written all the time: on a disk, writers would sometimes wait.
    Memory,
}

impl Places {
    /// The places for the user whose rights this process has. If `/run` is mounted noexec, as on Debian, root's is in `/var/lib`.
    pub fn for_this_user() -> Self {
        Self::from_variables(rustix::process::geteuid().is_root(), |name| std::env::var_os(name).map(PathBuf::from))
    }

    /// The places for a user that a root process has become, with root's environment.
    pub fn for_user(user: &User) -> Self {
        Self::from_variables(false, |name| user.variable(name))
    }

    /// The places for root or another user, given the paths in the environment.
    fn from_variables(is_root: bool, variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let below = |base: PathBuf| Place::Below(base, BELOW);
        let everybodys = ["/dev/shm".into(), std::env::temp_dir()].map(Place::Among);
        if is_root {
            return Self(["/run", "/var/lib"].map(|base| below(base.into())).into_iter().chain(everybodys).collect());
        }
        let absolute = |name| variable(name).filter(|path| path.is_absolute());
        let home = || Some(Place::Below(absolute("HOME")?, BELOW_HOME));
        let cache = absolute("XDG_CACHE_HOME").map(below).or_else(home);
        Self(absolute("XDG_RUNTIME_DIR").map(below).into_iter().chain(cache).chain(everybodys).collect())
    }

    /// These directories, which must exist, and which no other user can replace.
    pub fn at(folders: &[&Path]) -> Self {
        Self(folders.iter().map(|folder| Place::Given((*folder).to_owned(), "")).collect())
    }

    /// Creates a file for this user alone, with this prefix and suffix of its name, and fills it. Fails if none of the places allows this, with the
    /// reason for each.
    pub(super) fn make(
        &self,
        need: FilePurpose,
        name: &str,
        end: &str,
        fill: impl Fn(&mut File) -> io::Result<()>,
    ) -> io::Result<HeldFile> {
        let mut places: Vec<&Place> = self.0.iter().collect();
        if need == FilePurpose::Memory {
            places.sort_by_key(|place| !is_memory(place.base()));
        }
        let mut refusals = Vec::new();
        for place in places {
            match place.folder(need).and_then(|folder| HeldFile::make(&folder, name, end, &fill)) {
                Ok(file) => return Ok(file),
                Err(error) => refusals.push(format!("{}: {error}", place.base().display())),
            }
        }
        let advice = if rustix::process::geteuid().is_root() { "" } else { "; name one in XDG_CACHE_HOME" };
        let refusals = refusals.join("; ");
        Err(io::Error::other(format!("no directory can hold files of this user alone ({refusals}){advice}")))
    }
}

impl Place {
    fn base(&self) -> &Path {
        match self {
            Self::Below(base, _) | Self::Given(base, _) | Self::Among(base) => base,
        }
    }

    /// The directory for files, created if missing.
    fn folder(&self, need: FilePurpose) -> io::Result<PathBuf> {
        let base = self.base().canonicalize()?;
        if need == FilePurpose::Code {
            check_code(&base)?;
        }
        match self {
            Self::Below(_, below) | Self::Given(_, below) => {
                // Before creating anything there.
                if matches!(self, Self::Below(..)) {
                    // Other users must not be able to recreate this user's directory after its removal.
                    let trusted = private::trusted_users()?;
                    base.ancestors().try_for_each(|folder| private::check_above(folder, trusted, false))?;
                }
                private::make_folder(&base.join(below))
            }
            Self::Among(_) if need == FilePurpose::Code => {
                let why = "anyone can create directories there, and could recreate this user's after its removal";
                Err(io::Error::other(why))
            }
            Self::Among(_) => private::find_folder(&folder_among_others(&base)?),
        }
    }
}

/// Whether a directory's files are in memory.
fn is_memory(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|found| MEMORY.contains(&(found.f_type as u64)))
}

/// Refuses a directory from which the dynamic linker would load no library.
fn check_code(folder: &Path) -> io::Result<()> {
    if rustix::fs::statvfs(folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(io::Error::other("it is mounted such that no code runs from there (noexec)"));
    }
    // They separate libraries in LD_PRELOAD, or have another meaning there.
    if folder.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)) {
        return Err(io::Error::other("its name has a character that LD_PRELOAD cannot hold"));
    }
    Ok(())
}

/// This user's directory in one for all users. becalm never removes it: while it exists, no other user can create one of its name.
fn folder_among_others(base: &Path) -> io::Result<PathBuf> {
    let name = format!("becalm-inject-{}", rustix::process::geteuid().as_raw());
    let named = |entry: &fs::DirEntry| entry.file_name().as_bytes().starts_with(name.as_bytes());
    let found = fs::read_dir(base)?.flatten().filter(named).map(|entry| entry.path());
    if let Some(own) = found.filter(|path| private::check_folder(path).is_ok()).min() {
        return Ok(own);
    }
    let make = |path: PathBuf| DirBuilder::new().mode(0o700).create(&path).map(|()| path);
    make(base.join(&name)).or_else(|error| match error.kind() {
        // Another user has the name, maybe to obstruct: then take one that cannot be predicted.
        io::ErrorKind::AlreadyExists => make(base.join(format!("{name}-{:016x}", RandomState::new().hash_one(0)))),
        _ => Err(error),
    })
}

/// A file that this process keeps locked, and finally removes.
#[derive(Debug)]
pub struct HeldFile {
    path: PathBuf,
    file: File,
}

impl HeldFile {
    fn make(folder: &Path, name: &str, end: &str, fill: impl Fn(&mut File) -> io::Result<()>) -> io::Result<Self> {
        // One at a time: a file that is not locked yet would look abandoned.
        let turn = File::open(folder)?;
        stuck::lock(&turn, TURN)?;
        remove_dead(folder);
        // Another process namespace may have a process with the same number.
        let names = (0..).map(|turn| folder.join(format!("{name}-{}-{turn}{end}", std::process::id())));
        let path = names.take(10_000).find(|path| fs::symlink_metadata(path).is_err());
        let path = path.ok_or(io::ErrorKind::AlreadyExists)?;
        // Removed again if anything fails.
        let mut held = Self { file: private::create(&path)?, path };
        flock(&held.file, FlockOperation::NonBlockingLockExclusive)?;
        fill(&mut held.file)?;
        Ok(held)
    }

    /// The path for other processes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file, for operations on its descriptor.
    pub const fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        // If this fails, the next process removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes unlocked files, as far as possible.
fn remove_dead(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())) {
        let file = private::open(&entry.path(), OpenOptions::new().read(true));
        if file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    fn made(place: Place) -> io::Result<HeldFile> {
        Places(vec![place]).make(FilePurpose::Code, "becalm-test", ".so", |_| Ok(()))
    }

    fn why(place: Place) -> String {
        made(place).unwrap_err().to_string()
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn given(base: &Path) -> Place {
        Place::Given(base.to_owned(), BELOW)
    }

    fn made_among_others(base: &Path) -> io::Result<HeldFile> {
        Places(vec![Place::Among(base.to_owned())]).make(FilePurpose::Memory, "becalm-test", "", |_| Ok(()))
    }

    #[test]
    fn no_code_lies_where_everybody_makes_folders() {
        let base = tempfile::tempdir().unwrap();
        mode(base.path(), 0o1777);
        let own = base.path().join("own");
        fs::create_dir(&own).unwrap();
        for place in [Place::Among(base.path().to_owned()), Place::Below(base.path().to_owned(), BELOW)] {
            let why = why(place);
            assert!(why.contains("anyone can create directories there") || why.contains("its mode is 1777"), "{why}");
        }
        assert!(why(Place::Below(own.clone(), BELOW)).contains("its mode is 1777"));
        // Nothing was made on the way.
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
        // A file whose openers check its owner may be there.
        assert!(made_among_others(base.path()).unwrap().path().starts_with(base.path().canonicalize().unwrap()));
    }

    #[test]
    fn folders_of_users_are_root_s_or_their_own() {
        let places = |is_root: bool, named: &[(&str, &str)]| {
            let variable = |name: &str| named.iter().find(|(known, _)| *known == name).map(|(_, path)| path.into());
            let shown = |place: &Place| match place {
                Place::Below(base, below) | Place::Given(base, below) => base.join(below).display().to_string(),
                Place::Among(base) => format!("among {}", base.display()),
            };
            Places::from_variables(is_root, variable).0.iter().map(shown).collect::<Vec<_>>()
        };
        let temporary = format!("among {}", std::env::temp_dir().display());
        let named = [("HOME", "/home/a"), ("XDG_RUNTIME_DIR", "/run/user/7")];
        let everybodys = ["among /dev/shm", &temporary];
        let and_everybodys = |own: &[&str]| own.iter().chain(&everybodys).map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(places(true, &named), and_everybodys(&["/run/becalm/inject", "/var/lib/becalm/inject"]));
        assert_eq!(
            places(false, &named),
            and_everybodys(&["/run/user/7/becalm/inject", "/home/a/.cache/becalm/inject"])
        );
        let named = [("HOME", "/home/a"), ("XDG_CACHE_HOME", "/fast/a"), ("XDG_RUNTIME_DIR", "relative")];
        assert_eq!(places(false, &named), and_everybodys(&["/fast/a/becalm/inject"]));
        assert_eq!(places(false, &[]), and_everybodys(&[]));
    }

    #[test]
    fn a_folder_that_others_could_write_is_refused() {
        let base = tempfile::tempdir().unwrap();
        drop(made(given(base.path())).unwrap());
        let (parent, folder) = (base.path().join("becalm"), base.path().join(BELOW));
        for path in [base.path(), &parent, &folder] {
            mode(path, 0o777);
            assert!(why(given(base.path())).contains("its mode is 0777"), "{}", path.display());
            if rustix::process::geteuid().is_root() {
                mode(path, 0o700);
                chown(path, Some(65_534), None).unwrap();
                assert!(why(given(base.path())).contains("belongs to user 65534"), "{}", path.display());
                chown(path, Some(0), None).unwrap();
            }
            mode(path, 0o700);
        }
        // A refused place is not the end.
        mode(base.path(), 0o777);
        let other = tempfile::tempdir().unwrap();
        let places = Places(vec![given(base.path()), given(other.path())]);
        let file = places.make(FilePurpose::Code, "becalm-test", ".so", |_| Ok(())).unwrap();
        assert!(file.path().starts_with(other.path().canonicalize().unwrap()));
    }

    #[test]
    fn a_folder_among_those_of_others_stays() {
        let base = tempfile::tempdir().unwrap();
        mode(base.path(), 0o1777);
        let file = made_among_others(base.path()).unwrap();
        let folder = file.path().parent().unwrap().to_owned();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o700);
        drop(file);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        // Without the sticky bit, any user could rename it.
        mode(base.path(), 0o777);
        assert!(made_among_others(base.path()).unwrap_err().to_string().contains("its mode is 0777"));
        mode(base.path(), 0o1777);
        // If another user has the name, it gets another one, the same every time.
        mode(&folder, 0o777);
        let first = made_among_others(base.path()).unwrap();
        let second = made_among_others(base.path()).unwrap();
        assert_eq!(first.path().parent(), second.path().parent());
        assert_ne!(first.path().parent(), Some(&*folder));
    }

    #[test]
    fn only_what_the_dead_have_left_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let live = made(given(base.path())).unwrap();
        let folder = live.path().parent().unwrap();
        let (dead, foreign) = (folder.join("becalm-test-1-0.so"), folder.join("notes"));
        drop(private::create(&dead).unwrap());
        drop(private::create(&foreign).unwrap());
        let another = made(given(base.path())).unwrap();
        assert_ne!(live.path(), another.path());
        assert_eq!([live.path(), another.path(), &dead, &foreign].map(Path::exists), [true, true, false, true]);
        let path = another.path().to_owned();
        drop(another);
        assert!(!path.exists());
    }

    #[test]
    fn names_that_the_dynamic_linker_would_split_are_refused() {
        let base = tempfile::tempdir().unwrap();
        for name in ["with space", "with:colon", "$ORIGIN"] {
            let folder = base.path().join(name);
            fs::create_dir(&folder).unwrap();
            mode(&folder, 0o700);
            assert!(why(given(&folder)).contains("LD_PRELOAD cannot hold"), "{name}");
        }
    }

    #[test]
    fn what_is_written_all_the_time_lies_in_memory_where_there_is_some() {
        let disk = tempfile::tempdir().unwrap();
        let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return };
        if is_memory(disk.path()) || !is_memory(memory.path()) {
            return;
        }
        let places = Places::at(&[disk.path(), memory.path()]);
        let made_for = |need| places.make(need, "becalm-test", "", |_| Ok(())).unwrap();
        assert!(made_for(FilePurpose::Memory).path().starts_with(memory.path()));
        assert!(made_for(FilePurpose::Code).path().starts_with(disk.path()));
    }
}
