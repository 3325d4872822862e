//! `becalm.span`: writes when parts of a program ran, for `becalm explain`.
//!
//! Spans are kept in memory and written once a second at most, when a span ends, and at the end of the program. Their file is a table that other
//! programs read as well.

use std::cell::{Cell, RefCell};
use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use rustix::time::{ClockId, clock_gettime};

/// The variable that names the file.
const VARIABLE: &str = "BECALM_SPANS";
/// Spans are written when this many are kept, or after this time.
const KEPT: usize = 1 << 16;
const INTERVAL_NS: i64 = 1_000_000_000;

/// A span that ended.
#[derive(Clone, Copy)]
struct EndedSpan {
    tid: i32,
    name: u32,
    start: i64,
    end: i64,
}

/// The spans of this process.
struct Spans {
    file: Option<File>,
    /// The names, as fields of the table.
    names: Vec<String>,
    kept: Vec<EndedSpan>,
    written: i64,
}

static SPANS: Mutex<Spans> = Mutex::new(Spans { file: None, names: Vec::new(), kept: Vec::new(), written: 0 });

/// Counts forks: a child has other threads.
static GENERATION: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The starts of the spans of this thread that have not ended, the innermost last.
    static OPEN: RefCell<Vec<i64>> = const { RefCell::new(Vec::new()) };
    /// The number of this thread, and the generation when it was read.
    static TID: Cell<(u32, i32)> = const { Cell::new((u32::MAX, 0)) };
}

fn spans() -> MutexGuard<'static, Spans> {
    SPANS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn tid() -> i32 {
    let generation = GENERATION.load(Ordering::Relaxed);
    let (known, tid) = TID.get();
    if known == generation {
        return tid;
    }
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    TID.set((generation, tid));
    tid
}

/// A name as a field of the table.
fn field(name: &str) -> String {
    if name.contains(['"', ',', '\n', '\r', '#']) || name.trim() != name {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

/// Appends the digits of a number, faster than the formatter: writing is part of what a span costs.
fn push_number(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[begin..]);
}

impl Spans {
    /// Creates the file. Fails if it exists, since it holds the spans of another process, or cannot be created.
    fn open(&mut self) -> PyResult<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let path = env::var_os(VARIABLE).map_or_else(
            || PathBuf::from(format!("becalm-spans-{}.csv", process::id())),
            |path| PathBuf::from(path.to_string_lossy().replace("%p", &process::id().to_string())),
        );
        let file = OpenOptions::new().create_new(true).append(true).open(&path);
        let begun = file.and_then(|mut file| {
            file.write_all(b"# clock: monotonic\ntid,start_ns,duration_ns,name\n")?;
            Ok(file)
        });
        self.file = Some(begun.map_err(|error| {
            PyOSError::new_err(format!("cannot create {}: {error}; {VARIABLE} names another file", path.display()))
        })?);
        self.written = now();
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut text = Vec::with_capacity(self.kept.len() * 64);
        for EndedSpan { tid, name, start, end } in &self.kept {
            for number in [i64::from(*tid), *start, end - start] {
                push_number(&mut text, number.unsigned_abs());
                text.push(b',');
            }
            text.extend_from_slice(self.names[*name as usize].as_bytes());
            text.push(b'\n');
        }
        self.kept.clear();
        // One call, so the lines of processes that share the file stay whole.
        file.write_all(&text)
    }
}

/// A part of the program whose runs are written down: `with becalm.span("step"):`
#[pyclass(name = "span", module = "becalm", frozen)]
pub struct Span {
    name: u32,
}

#[pymethods]
impl Span {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        let name = field(name);
        let mut spans = spans();
        spans.open()?;
        let known = spans.names.iter().position(|other| *other == name);
        let number = known.unwrap_or_else(|| {
            spans.names.push(name);
            spans.names.len() - 1
        });
        Ok(Self { name: u32::try_from(number)? })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        // The clock last: only the body counts.
        OPEN.with_borrow_mut(|open| {
            open.push(0);
            if let Some(start) = open.last_mut() {
                *start = now();
            }
        });
        slf
    }

    #[pyo3(signature = (_kind=None, _value=None, _trace=None))]
    fn __exit__(
        &self,
        _kind: Option<&Bound<'_, PyAny>>,
        _value: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let end = now();
        let Some(start) = OPEN.with_borrow_mut(Vec::pop) else {
            return Err(PyRuntimeError::new_err("the span was not entered on this thread"));
        };
        Ok(keep(self.name, start, end)?)
    }

    /// The items of an iterable. The time until the next one is asked for is a span, without the time to get it.
    fn over(&self, items: &Bound<'_, PyAny>) -> PyResult<SpannedItems> {
        Ok(SpannedItems { name: self.name, items: items.try_iter()?.unbind(), start: Cell::new(None) })
    }
}

/// Keeps a span of this thread, and writes those that are kept if it is time. Fails if they cannot be written.
fn keep(name: u32, start: i64, end: i64) -> io::Result<()> {
    let mut spans = spans();
    spans.kept.push(EndedSpan { tid: tid(), name, start, end });
    if spans.kept.len() >= KEPT || end - spans.written >= INTERVAL_NS {
        spans.written = end;
        spans.write()?;
    }
    Ok(())
}

/// Items whose treatment is a span each: `for batch in becalm.span("step").over(batches):`
#[pyclass(module = "becalm", unsendable)]
pub struct SpannedItems {
    name: u32,
    items: Py<PyIterator>,
    /// The start of the current span.
    start: Cell<Option<i64>>,
}

#[pymethods]
impl SpannedItems {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(start) = self.start.take() {
            keep(self.name, start, now())?;
        }
        let item = self.items.bind(py).clone().next().transpose()?;
        // The clock last: only the body of the loop counts.
        if item.is_some() {
            self.start.set(Some(now()));
        }
        Ok(item)
    }
}

/// Writes the spans that are kept.
#[pyfunction]
pub fn flush_spans() -> PyResult<()> {
    Ok(spans().write()?)
}

/// Forgets the spans that the parent of a new process keeps, and will write.
#[pyfunction]
pub fn forget_spans() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    spans().kept.clear();
}
