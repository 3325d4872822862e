//! The journal's folder: one journal at a time, one process at a time.

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

/// The longest journal that is read, in bytes: some hundred times what 4,096 CPUs and their threads take.
const LONGEST: u64 = 1 << 30;

/// What is held on the disk for each step that may have to be restored: a line that says that it was, in bytes.
const LINE: u64 = 128;

/// How many such lines are held besides: that threads are settled, and some to spare.
const SPARE: u64 = 4;

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
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the journal is while something is changed.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Where a journal is until it is whole.
    fn draft(&self) -> PathBuf {
        self.path.join("journal.new")
    }

    /// Where the last journal is when all is restored.
    pub fn last(&self) -> PathBuf {
        self.path.join("restored.jsonl")
    }

    /// What the journal says, as far as its lines are whole; `None` if there is none. Fails if it cannot be read, or not even its first
    /// line can be understood.
    pub fn read(&self) -> Result<Option<State>, JournalError> {
        let Some(found) = self.found()? else { return Ok(None) };
        Ok(found.parse()?.map(|parsed| parsed.state))
    }

    /// The folder behind all links, on whose way nobody else can put anything in its place; nothing if it is not there. What
    /// follows is done there.
    fn found(&self) -> Result<Option<Self>, JournalError> {
        match private::find_folder(&self.path) {
            Ok(path) => Ok(Some(Self::new(path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable(error)),
        }
    }

    fn unusable(&self, source: io::Error) -> JournalError {
        JournalError::File { action: "use the journal's folder", path: self.path.clone(), source }
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
        // Whoever can read a file can lock it.
        private::close_to_others(&lock).map_err(failed("close the lock to others", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Lock(lock)),
            Err(TryLockError::WouldBlock) => Err(JournalError::Locked { holder: holder(&lock), path }),
            Err(TryLockError::Error(source)) => Err(JournalError::File { action: "lock", path, source }),
        }
    }

    /// Begins a journal, or gives the one that says that something is changed already. One of which everything is restored,
    /// or of an earlier boot of the machine, is kept under another name. Fails if another process is at work, a journal that is there
    /// cannot be understood, or none can be written.
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
        // Under its name it is whole from the beginning.
        let mut file = private::create(&draft).map_err(failed)?;
        let text = lines(1, &records).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&draft, &path).and_then(|()| sync_folder(&found.path)).map_err(failed)?;
        let parsed = State::parse(&text).ok().flatten().ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
        Ok(Begun::New(Journal::new(found, lock, file, parsed)))
    }

    /// Opens the journal to go on with it; `None` if there is none. What somebody left who was killed before the journal had its
    /// name is removed: until then nothing was changed. Fails if another process is at work, or the journal cannot be read, understood or
    /// opened for writing.
    pub(crate) fn resume(&self) -> Result<Option<Journal>, JournalError> {
        let has_any = |found: &Self| found.journal().exists() || found.draft().exists();
        // Without a journal nothing need be locked, and no folder made.
        let Some(found) = self.found()?.filter(has_any) else { return Ok(None) };
        let lock = found.lock()?;
        // If it cannot be removed, the next journal replaces it.
        let _ = fs::remove_file(found.draft());
        let there = found.reopen()?;
        Ok(there.map(|(file, parsed)| Journal::new(found, lock, file, parsed)))
    }

    /// The journal that is there, to be written on.
    fn reopen(&self) -> Result<Option<(File, ParsedJournal)>, JournalError> {
        let Some(parsed) = self.parse()? else { return Ok(None) };
        let path = self.journal();
        let failed = |source| JournalError::File { action: "write the journal", path: path.clone(), source };
        let file = private::open(&path, OpenOptions::new().append(true)).map_err(failed)?;
        // What comes next begins a line of its own. To set the same length would give back the space that is held.
        if file.metadata().map_err(failed)?.len() != parsed.len as u64 {
            file.set_len(parsed.len as u64).map_err(failed)?;
        }
        Ok(Some((file, parsed)))
    }

    /// Gives the journal the name of the last one.
    fn put_away(&self) -> Result<(), JournalError> {
        let (path, last) = (self.journal(), self.last());
        let failed = |source| JournalError::File { action: "put away the journal", path: path.clone(), source };
        fs::rename(&path, &last).and_then(|()| sync_folder(&self.path)).map_err(failed)
    }
}

/// The process that holds a lock, with what it does, as far as the kernel tells.
fn holder(lock: &File) -> Option<String> {
    let root = Path::new("/");
    let pid = lock_holder(root, lock).ok()??;
    Some(Stuck::look(root, pid).to_string())
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
///
/// Behind its end there is always space for the lines by which restoring says what is back, so that a disk that fills keeps none of
/// them from being written: all other lines use none of it.
#[derive(Debug)]
pub struct Journal {
    folder: Folder,
    _lock: Lock,
    file: File,
    state: State,
    /// The number of the last line.
    last: usize,
    /// Whether the last line has its end.
    is_ended: bool,
    reserve: Reserve,
    /// The first of what could not be written, though it was done.
    unwritten: Option<JournalError>,
}

impl Journal {
    fn new(folder: Folder, lock: Lock, file: File, parsed: ParsedJournal) -> Self {
        let ParsedJournal { state, is_ended, last, .. } = parsed;
        let (reserve, unwritten) = (Reserve::default(), None);
        let mut journal = Self { folder, _lock: lock, file, state, last, is_ended, reserve, unwritten };
        let left = journal.state.steps.iter().filter(|step| !step.restored).count();
        // No more than may be held already: a tmpfs that cannot give all gives back all. What has none is restored all the same.
        let _ = journal.reserve.hold(&journal.file, LINE * (left as u64 + SPARE));
        journal
    }

    /// What it says until now.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Writes lines. When this returns, those that have to precede changes are on disk.
    pub(crate) fn write(&mut self, records: Vec<Record>) -> Result<(), JournalError> {
        self.append(&records).map_err(|source| self.unwritable(source))?;
        records.into_iter().try_for_each(|record| self.note(record))
    }

    fn unwritable(&self, source: io::Error) -> JournalError {
        JournalError::File { action: "write the journal", path: self.folder.journal(), source }
    }

    /// Notes what restoring has found or brought back, and writes it if the disk lets it be written: restoring goes on without, as
    /// it can be repeated.
    pub(crate) fn write_if_possible(&mut self, record: Record) -> Result<(), JournalError> {
        if let Err(source) = self.append(std::slice::from_ref(&record)) {
            let error = self.unwritable(source);
            self.unwritten.get_or_insert(error);
        }
        self.note(record)
    }

    /// The first of what could not be written, though it was done.
    pub(crate) const fn unwritten(&self) -> Option<&JournalError> {
        self.unwritten.as_ref()
    }

    fn note(&mut self, record: Record) -> Result<(), JournalError> {
        let line = self.last;
        self.state.note(record).map_err(|why| JournalError::Damaged { path: self.folder.journal(), line, why })
    }

    /// Adds lines, or leaves the file as it was.
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
            // A part of a line would stand before the next one, and reading would take both for one.
            self.is_ended &= self.file.set_len(before).is_ok();
            // That gave back what was held.
            self.reserve = Reserve::default();
            let _ = self.hold(0);
        }
        written
    }

    /// Holds space for so many bytes, and behind them for what restoring every step will write.
    fn hold(&mut self, bytes: u64) -> io::Result<()> {
        self.reserve.hold(&self.file, bytes + LINE * (self.state.steps.len() as u64 + SPARE))
    }

    /// Puts it away, as everything is restored.
    pub(crate) fn close(self) -> Result<(), JournalError> {
        self.folder.put_away()
    }
}

/// Records as lines, numbered from `first`, to be written in one call.
fn lines(first: usize, records: &[Record]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (number, record) in (first..).zip(records) {
        bytes.extend_from_slice(sealed(number, &serde_json::to_string(record)?).as_bytes());
        bytes.push(b'\n');
    }
    Ok(bytes)
}
