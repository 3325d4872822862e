//! The journal's folder: one journal at a time, one process at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use becalm_linux::file::sync_folder;
use becalm_linux::private;
use becalm_linux::procfs::locks::lock_holder;
use becalm_linux::procfs::task::TaskStat;

use super::error::JournalError;
use super::owner::Owner;
use super::record::{Record, VERSION};
use super::state::State;
use crate::Plan;

/// The longest journal that is read, in bytes: some hundred times what 4,096 CPUs and their threads take.
const LONGEST: u64 = 1 << 30;

/// What is held on the disk for each step that may have to be restored: a line that says that it was, in bytes.
const LINE: u64 = 64;

/// The folder in which a journal lies. It and its files are for one user alone, since what they say is written back with that
/// user's rights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Default for Folder {
    fn default() -> Self {
        Self::new(Self::DEFAULT)
    }
}

impl Folder {
    /// Where it lies unless told otherwise.
    pub const DEFAULT: &'static str = "/run/becalm/tune";

    /// The folder with this path; it need not be there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the journal is while something is changed.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Where the last journal is when all is restored.
    #[must_use]
    pub fn last(&self) -> PathBuf {
        self.path.join("restored.jsonl")
    }

    /// What the journal says; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn read(&self) -> Result<Option<State>, JournalError> {
        Ok(self.read_whole(false)?.map(|(state, _)| state))
    }

    /// What the journal says, and how many of its bytes are whole lines; `lenient`, without the lines that are damaged.
    fn read_whole(&self, lenient: bool) -> Result<Option<(State, usize)>, JournalError> {
        let path = self.journal();
        let read = || -> io::Result<Vec<u8>> {
            let mut text = Vec::new();
            private::open(&path, OpenOptions::new().read(true))?.take(LONGEST).read_to_end(&mut text)?;
            Ok(text)
        };
        let text = match read() {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(JournalError::File { action: "read the journal", path, source }),
        };
        State::parse(&String::from_utf8_lossy(&text), lenient).map_err(|(line, why)| match line {
            0 => JournalError::Version { path, version: why.parse().unwrap_or(0) },
            _ => JournalError::Damaged { path, line, why },
        })
    }

    /// Keeps other processes from changing anything until the lock is dropped.
    fn lock(&self) -> Result<Lock, JournalError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::File { action, path, source }
        };
        private::make_folder(&self.path).map_err(failed("use the journal's folder", &self.path))?;
        let path = self.path.join("lock");
        let opened = private::open(&path, OpenOptions::new().create(true).truncate(false).write(true));
        let lock = opened.map_err(failed("open the lock", &path))?;
        // Whoever can read a file can lock it.
        private::close_to_others(&lock).map_err(failed("close the lock to others", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Lock(lock)),
            Err(TryLockError::WouldBlock) => Err(JournalError::Locked { holder: holder(&lock), path }),
            Err(TryLockError::Error(source)) => Err(JournalError::File { action: "lock", path, source }),
        }
    }

    /// Begins a journal, or gives the one that says that something is changed already. One of which everything is restored,
    /// or of an earlier boot of the machine, is kept under another name.
    ///
    /// # Errors
    /// If another process is at work, a journal that is there cannot be understood, or none can be written.
    pub(crate) fn begin(&self, owner: &Owner, plan: &Plan) -> Result<Begun, JournalError> {
        let lock = self.lock()?;
        if let Some((file, state)) = self.reopen(false)? {
            if state.owner.boot_id == owner.boot_id && !state.is_spent() {
                return Ok(Begun::There(Journal { folder: self.clone(), _lock: lock, file, state, unwritten: None }));
            }
            self.put_away()?;
        }
        let path = self.journal();
        let draft = self.path.join("journal.new");
        let failed = |source| JournalError::File { action: "write the journal", path: path.clone(), source };
        let begin = Record::Begin { version: VERSION, owner: owner.clone(), plan: Box::new(plan.clone()) };
        // Under its name it is whole from the beginning.
        let mut file = private::create(&draft).map_err(failed)?;
        line(&begin).and_then(|line| file.write_all(&line)).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&draft, &path).and_then(|()| sync_folder(&self.path)).map_err(failed)?;
        let state = State::begin(owner.clone(), plan.clone());
        let journal = Journal { folder: self.clone(), _lock: lock, file, state, unwritten: None };
        journal.hold_space().map_err(failed)?;
        Ok(Begun::New(journal))
    }

    /// Opens the journal to go on with it; `None` if there is none. `lenient`, lines of it that are damaged are passed over.
    ///
    /// # Errors
    /// If another process is at work, or the journal cannot be read, understood or opened for writing.
    pub(crate) fn resume(&self, lenient: bool) -> Result<Option<Journal>, JournalError> {
        // Without a journal nothing need be locked, and no folder made.
        if !self.journal().exists() {
            return Ok(None);
        }
        let lock = self.lock()?;
        let found = self.reopen(lenient)?;
        Ok(found.map(|(file, state)| Journal { folder: self.clone(), _lock: lock, file, state, unwritten: None }))
    }

    /// The journal that is there, to be written on.
    fn reopen(&self, lenient: bool) -> Result<Option<(File, State)>, JournalError> {
        let Some((state, whole)) = self.read_whole(lenient)? else { return Ok(None) };
        let path = self.journal();
        let failed = |source| JournalError::File { action: "write the journal", path: path.clone(), source };
        let file = private::open(&path, OpenOptions::new().append(true)).map_err(failed)?;
        // What comes next begins a line of its own. To set the same length would give back the space that is held.
        if file.metadata().map_err(failed)?.len() != whole as u64 {
            file.set_len(whole as u64).map_err(failed)?;
        }
        Ok(Some((file, state)))
    }

    /// Gives the journal the name of the last one.
    fn put_away(&self) -> Result<(), JournalError> {
        let (path, last) = (self.journal(), self.last());
        let failed = |source| JournalError::File { action: "put away the journal", path: path.clone(), source };
        fs::rename(&path, &last).and_then(|()| sync_folder(&self.path)).map_err(failed)
    }
}

/// The process that holds a lock, with its name, as far as the kernel tells.
fn holder(lock: &File) -> Option<String> {
    let root = Path::new("/");
    let pid = lock_holder(root, lock).ok()??;
    let name = TaskStat::read(root, pid).ok().flatten().map(|task| format!(" ({})", task.comm));
    Some(format!("process {pid}{}", name.unwrap_or_default()))
}

/// A lock that is held. It is given back by name: a process that another thread has just forked holds the file as well, until it
/// executes its program.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // The end of the process gives it back in any case.
        let _ = self.0.unlock();
    }
}

/// What came of beginning a journal.
pub(crate) enum Begun {
    /// No journal was there, and this one is new.
    New(Journal),
    /// One is there, of which not everything is restored.
    There(Journal),
}

/// A journal that is being written, by nobody else.
#[derive(Debug)]
pub struct Journal {
    folder: Folder,
    _lock: Lock,
    file: File,
    state: State,
    /// The first of what could not be written, though it was done.
    unwritten: Option<JournalError>,
}

impl Journal {
    /// What it says until now.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Writes a line; when this returns, it is on disk.
    pub(crate) fn write(&mut self, record: Record) -> Result<(), JournalError> {
        let path = self.folder.journal();
        let failed = |source| JournalError::File { action: "write the journal", path: path.clone(), source };
        self.append(&record).map_err(failed)?;
        let more = matches!(record, Record::Extend { .. } | Record::More { .. });
        self.note(record)?;
        if more { self.hold_space().map_err(failed) } else { Ok(()) }
    }

    /// Notes what was brought back, and writes it if the disk lets it be written: restoring goes on without, as it can be
    /// repeated.
    pub(crate) fn write_if_possible(&mut self, record: Record) -> Result<(), JournalError> {
        if let Err(source) = self.append(&record) {
            let path = self.folder.journal();
            self.unwritten.get_or_insert(JournalError::File { action: "write the journal", path, source });
        }
        self.note(record)
    }

    /// The first of what could not be written, though it was done.
    pub(crate) const fn unwritten(&self) -> Option<&JournalError> {
        self.unwritten.as_ref()
    }

    fn note(&mut self, record: Record) -> Result<(), JournalError> {
        let line = self.state.steps.len();
        self.state.note(record).map_err(|why| JournalError::Damaged { path: self.folder.journal(), line, why })
    }

    /// Adds a line, or leaves the file as it was.
    fn append(&mut self, record: &Record) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let line = line(record)?;
        self.file.write_all(&line).and_then(|()| self.file.sync_data()).inspect_err(|_| {
            // A part of a line would stand before the next one. If this fails, too, reading passes over a last part.
            let _ = self.file.set_len(before);
        })
    }

    /// Holds space for what restoring everything will write, so that a disk that fills meanwhile does not keep it from being
    /// noted.
    fn hold_space(&self) -> io::Result<()> {
        private::hold_space(&self.file, LINE * (self.state.steps.len() as u64 + 4))
    }

    /// Puts it away, as everything is restored.
    pub(crate) fn close(self) -> Result<(), JournalError> {
        self.folder.put_away()
    }
}

/// A record with its line's end, to be written in one call.
fn line(record: &Record) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(record)?;
    bytes.push(b'\n');
    Ok(bytes)
}
