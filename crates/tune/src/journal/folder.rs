//! The journal's directory: one journal at a time, one process at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use becalm_linux::file::sync_folder;
use becalm_linux::private::{self, Reserve};
use becalm_linux::procfs::locks::lock_holder;
use becalm_linux::stuck::Stuck;

use super::error::JournalError;
use super::line::sealed;
use super::owner::Owner;
use super::record::{Record, VERSION};
use super::state::{ParsedJournal, State};
use crate::Plan;

/// The largest journal that is read, in bytes: some hundred times the size for 4,096 CPUs and their threads.
const LONGEST: u64 = 1 << 30;

/// Disk space reserved for each step that may have to be restored, in bytes: one line that records the restoration.
const LINE: u64 = 128;

/// Additional reserved lines: one that threads are settled, and some spare.
const SPARE: u64 = 4;

/// The directory of a journal. Only its owner can access it and its files, because their contents are written back with that user's rights.
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
    /// The default path.
    pub const DEFAULT: &'static str = "/run/becalm/tune";

    /// The directory with this path, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the journal while something is changed.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// The path of a journal until it is complete.
    fn draft(&self) -> PathBuf {
        self.path.join("journal.new")
    }

    /// The path of the last journal, after everything was restored.
    pub fn last(&self) -> PathBuf {
        self.path.join("restored.jsonl")
    }

    /// Reads the complete lines of the journal; `None` if there is none. Fails if it cannot be read, or not even its first line is valid.
    pub fn read(&self) -> Result<Option<State>, JournalError> {
        let Some(found) = self.found()? else { return Ok(None) };
        Ok(found.parse()?.map(|parsed| parsed.state))
    }

    /// The directory with all links resolved, on a path where no other user can replace anything; `None` if it does not exist. Used for all further
    /// work.
    fn found(&self) -> Result<Option<Self>, JournalError> {
        match private::find_folder(&self.path) {
            Ok(path) => Ok(Some(Self::new(path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable(error)),
        }
    }

    fn unusable(&self, source: io::Error) -> JournalError {
        JournalError::File { action: "use the journal's directory", path: self.path.clone(), source }
    }

    fn parse(&self) -> Result<Option<ParsedJournal>, JournalError> {
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
        State::parse(&text).map_err(|damage| match damage.line {
            0 => JournalError::Version { path, version: damage.why.parse().unwrap_or(0) },
            line => JournalError::Damaged { path, line, why: damage.why },
        })
    }

    /// Keeps other processes from changing anything until the lock is dropped.
    fn lock(&self) -> Result<Lock, JournalError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::File { action, path, source }
        };
        let path = self.path.join("lock");
        let opened = private::open(&path, OpenOptions::new().create(true).truncate(false).write(true));
        let lock = opened.map_err(failed("open the lock", &path))?;
        // Any process that can read a file can lock it.
        private::close_to_others(&lock).map_err(failed("close the lock to others", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Lock(lock)),
            Err(TryLockError::WouldBlock) => Err(JournalError::Locked { holder: holder(&lock), path }),
            Err(TryLockError::Error(source)) => Err(JournalError::File { action: "lock", path, source }),
        }
    }

    /// Starts a journal, or returns the existing one if something is already changed. A journal that is fully restored, or of an earlier boot, is
    /// kept under another name. Fails if another process holds the lock, the existing journal is invalid, or none can be written.
    pub(crate) fn begin(&self, owner: &Owner, plan: &Plan) -> Result<Begun, JournalError> {
        let found = Self::new(private::make_folder(&self.path).map_err(|error| self.unusable(error))?);
        let lock = found.lock()?;
        if let Some((file, parsed)) = found.reopen()? {
            if !parsed.state.is_spent() && !parsed.state.owner.is_of_boot_before(owner) {
                return Ok(Begun::There(Journal::new(found, lock, file, parsed)));
            }
            found.put_away()?;
        }
        let path = found.journal();
        let draft = found.draft();
        let failed = |source| JournalError::File { action: "write the journal", path: path.clone(), source };
        let (plan, steps) = Record::parts(plan.clone());
        let begin = Record::Begin { version: VERSION, owner: owner.clone(), plan };
        let records: Vec<Record> = std::iter::once(begin).chain(Record::steps(0, steps)).collect();
        // The journal gets its name only when it is complete.
        let mut file = private::create(&draft).map_err(failed)?;
        let text = lines(1, &records).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&draft, &path).and_then(|()| sync_folder(&found.path)).map_err(failed)?;
        let parsed = State::parse(&text).ok().flatten().ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        Ok(Begun::New(Journal::new(found, lock, file, parsed)))
    }

    /// Opens the journal to continue it; `None` if there is none. Removes the draft of a process that was killed before its journal had its name,
    /// since nothing was changed until then. Fails if another process holds the lock, or the journal cannot be read, is invalid, or cannot be opened
    /// for writing.
    pub(crate) fn resume(&self) -> Result<Option<Journal>, JournalError> {
        let has_any = |found: &Self| found.journal().exists() || found.draft().exists();
        // Without a journal there is nothing to lock, and no directory to create.
        let Some(found) = self.found()?.filter(has_any) else { return Ok(None) };
        let lock = found.lock()?;
        // If it cannot be removed, the next journal replaces it.
        let _ = fs::remove_file(found.draft());
        let there = found.reopen()?;
        Ok(there.map(|(file, parsed)| Journal::new(found, lock, file, parsed)))
    }

    /// Opens the existing journal for writing.
    fn reopen(&self) -> Result<Option<(File, ParsedJournal)>, JournalError> {
        let Some(parsed) = self.parse()? else { return Ok(None) };
        let path = self.journal();
        let failed = |source| JournalError::File { action: "write the journal", path: path.clone(), source };
        let file = private::open(&path, OpenOptions::new().append(true)).map_err(failed)?;
        // The next line must follow a line end. Truncating to the present length would release the reserved space.
        if file.metadata().map_err(failed)?.len() != parsed.len as u64 {
            file.set_len(parsed.len as u64).map_err(failed)?;
        }
        Ok(Some((file, parsed)))
    }

    /// Renames the journal to the last one.
    fn put_away(&self) -> Result<(), JournalError> {
        let (path, last) = (self.journal(), self.last());
        let failed = |source| JournalError::File { action: "put away the journal", path: path.clone(), source };
        fs::rename(&path, &last).and_then(|()| sync_folder(&self.path)).map_err(failed)
    }
}

/// The process that holds a lock, and its state, as far as known.
fn holder(lock: &File) -> Option<String> {
    let root = Path::new("/");
    let pid = lock_holder(root, lock).ok()??;
    Some(Stuck::look(root, pid).to_string())
}

/// A held lock. It is released explicitly: a process just forked by another thread has the file open as well, until it executes its program.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // The end of the process releases it in any case.
        let _ = self.0.unlock();
    }
}

/// The result of starting a journal.
pub(crate) enum Begun {
    /// There was no journal, and this one is new.
    New(Journal),
    /// A journal exists that is not fully restored.
    There(Journal),
}

/// A journal open for writing, by this process only.
///
/// Disk space for the lines that restoring writes is always reserved after its end, so they can be written even if the disk fills up. No other line
/// uses that space.
#[derive(Debug)]
pub struct Journal {
    folder: Folder,
    _lock: Lock,
    file: File,
    state: State,
    /// The number of the last line.
    last: usize,
    /// Whether the last line is terminated.
    is_ended: bool,
    reserve: Reserve,
    /// The first failure to record a completed action.
    unwritten: Option<JournalError>,
}

impl Journal {
    fn new(folder: Folder, lock: Lock, file: File, parsed: ParsedJournal) -> Self {
        let ParsedJournal { state, is_ended, last, .. } = parsed;
        let (reserve, unwritten) = (Reserve::default(), None);
        let mut journal = Self { folder, _lock: lock, file, state, last, is_ended, reserve, unwritten };
        let left = journal.state.steps.iter().filter(|step| !step.restored).count();
        // No more than may be reserved already: a tmpfs that cannot provide all releases everything. Restoring works without a reserve, too.
        let _ = journal.reserve.hold(&journal.file, LINE * (left as u64 + SPARE));
        journal
    }

    /// The recorded state.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Writes lines. On return, those that must precede changes are on disk.
    pub(crate) fn write(&mut self, records: Vec<Record>) -> Result<(), JournalError> {
        self.append(&records).map_err(|source| self.unwritable(source))?;
        records.into_iter().try_for_each(|record| self.note(record))
    }

    fn unwritable(&self, source: io::Error) -> JournalError {
        JournalError::File { action: "write the journal", path: self.folder.journal(), source }
    }

    /// Notes what restoring found or did, and writes it if the disk allows: restoring continues otherwise, because it can be repeated.
    pub(crate) fn write_if_possible(&mut self, record: Record) -> Result<(), JournalError> {
        if let Err(source) = self.append(std::slice::from_ref(&record)) {
            let error = self.unwritable(source);
            self.unwritten.get_or_insert(error);
        }
        self.note(record)
    }

    /// The first failure to record a completed action.
    pub(crate) const fn unwritten(&self) -> Option<&JournalError> {
        self.unwritten.as_ref()
    }

    fn note(&mut self, record: Record) -> Result<(), JournalError> {
        let line = self.last;
        self.state.note(record).map_err(|why| JournalError::Damaged { path: self.folder.journal(), line, why })
    }

    /// Appends lines, or leaves the file unchanged.
    fn append(&mut self, records: &[Record]) -> io::Result<()> {
        let mut text = lines(self.last + 1, records)?;
        if !self.is_ended {
            text.insert(0, b'\n');
        }
        if !records.iter().all(|record| matches!(record, Record::Restored { .. } | Record::Settled)) {
            let steps = records.iter().filter(|record| matches!(record, Record::Step { .. })).count();
            self.hold(text.len() as u64 + LINE * steps as u64)?;
        }
        let before = self.file.metadata()?.len();
        let mut written = self.file.write_all(&text);
        if records.iter().any(Record::precedes_changes) {
            written = written.and_then(|()| self.file.sync_data());
        }
        if written.is_ok() {
            (self.last, self.is_ended) = (self.last + records.len(), true);
        } else {
            // A partial line before the next one would be read as one line with it.
            self.is_ended &= self.file.set_len(before).is_ok();
            // Truncating released the reserved space.
            self.reserve = Reserve::default();
            let _ = self.hold(0);
        }
        written
    }

    /// Reserves space for `bytes` bytes, and after them for the lines of restoring every step.
    fn hold(&mut self, bytes: u64) -> io::Result<()> {
        self.reserve.hold(&self.file, bytes + LINE * (self.state.steps.len() as u64 + SPARE))
    }

    /// Puts the journal away after everything was restored.
    pub(crate) fn close(self) -> Result<(), JournalError> {
        self.folder.put_away()
    }
}

/// Records as lines, numbered from `first`, for a single write call.
fn lines(first: usize, records: &[Record]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (number, record) in (first..).zip(records) {
        bytes.extend_from_slice(sealed(number, &serde_json::to_string(record)?).as_bytes());
        bytes.push(b'\n');
    }
    Ok(bytes)
}
