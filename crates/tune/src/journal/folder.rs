//! The journal's folder: one journal at a time, one process at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use becalm_linux::file::sync_folder;

use super::error::JournalError;
use super::owner::Owner;
use super::record::{Record, VERSION};
use super::state::State;
use crate::Plan;

/// The folder in which a journal lies.
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

    /// What the journal says; nothing if there is none.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn read(&self) -> Result<Option<State>, JournalError> {
        Ok(self.read_whole()?.map(|(state, _)| state))
    }

    fn read_whole(&self) -> Result<Option<(State, usize)>, JournalError> {
        let path = self.journal();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(JournalError::File { action: "read the journal", path, source }),
        };
        State::parse(&String::from_utf8_lossy(&text)).map_err(|(line, why)| match line {
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
        fs::create_dir_all(&self.path).map_err(failed("make the journal's folder", &self.path))?;
        let path = self.path.join("lock");
        let options = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = options.map_err(failed("open the lock", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Lock(lock)),
            Err(TryLockError::WouldBlock) => Err(JournalError::Locked { path }),
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
        if let Some((file, state)) = self.reopen()? {
            if state.owner.boot_id == owner.boot_id && !state.is_spent() {
                return Ok(Begun::There(Journal { folder: self.clone(), _lock: lock, file, state }));
            }
            self.put_away()?;
        }
        let path = self.journal();
        let draft = self.path.join("journal.new");
        let failed = |source| JournalError::File { action: "write the journal", path: path.clone(), source };
        let begin = Record::Begin { version: VERSION, owner: owner.clone(), plan: Box::new(plan.clone()) };
        // Under its name it is whole from the beginning.
        let mut file = File::create(&draft).map_err(failed)?;
        line(&begin).and_then(|line| file.write_all(&line)).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&draft, &path).and_then(|()| sync_folder(&self.path)).map_err(failed)?;
        let state = State::begin(owner.clone(), plan.clone());
        Ok(Begun::New(Journal { folder: self.clone(), _lock: lock, file, state }))
    }

    /// Opens the journal to go on with it; nothing if there is none.
    ///
    /// # Errors
    /// If another process is at work, or the journal cannot be read, understood or written.
    pub(crate) fn resume(&self) -> Result<Option<Journal>, JournalError> {
        // Without a journal nothing need be locked, and no folder made.
        if !self.journal().exists() {
            return Ok(None);
        }
        let lock = self.lock()?;
        let found = self.reopen()?;
        Ok(found.map(|(file, state)| Journal { folder: self.clone(), _lock: lock, file, state }))
    }

    /// The journal that is there, to be written on.
    fn reopen(&self) -> Result<Option<(File, State)>, JournalError> {
        let Some((state, whole)) = self.read_whole()? else { return Ok(None) };
        let path = self.journal();
        let failed = |source| JournalError::File { action: "write the journal", path: path.clone(), source };
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        // What comes next begins a line of its own.
        file.set_len(whole as u64).map_err(failed)?;
        Ok(Some((file, state)))
    }

    /// Gives the journal the name of the last one.
    fn put_away(&self) -> Result<(), JournalError> {
        let (path, last) = (self.journal(), self.last());
        let failed = |source| JournalError::File { action: "put away the journal", path: path.clone(), source };
        fs::rename(&path, &last).and_then(|()| sync_folder(&self.path)).map_err(failed)
    }
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
}

impl Journal {
    /// What it says until now.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Writes a line; when this returns, it is on disk.
    pub(crate) fn write(&mut self, record: Record) -> Result<(), JournalError> {
        let failed = |source| JournalError::File { action: "write the journal", path: self.folder.journal(), source };
        line(&record)
            .and_then(|line| self.file.write_all(&line))
            .and_then(|()| self.file.sync_data())
            .map_err(failed)?;
        let number = self.state.steps.len();
        self.state.note(record).map_err(|why| JournalError::Damaged { path: self.folder.journal(), line: number, why })
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
