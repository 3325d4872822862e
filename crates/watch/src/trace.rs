//! The interface of the standing trace, which tests can fake.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use becalm_linux::clock::Anchor;
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_measure::{Disturbance, Drained, Names, StandingTrace};
use becalm_model::Event;
use becalm_model::node::TracingDoc;
use becalm_units::{CpuList, Nanos};

/// Takes the events of a CPU, by its index among the traced ones.
pub type Take<'a> = dyn FnMut(usize, &[Event], &mut Names) + 'a;

/// Sets up a trace of these CPUs and leaves it off; the error says why that is impossible.
pub type Opener<'a> = Box<dyn FnMut(&CpuList) -> Result<Box<dyn Trace>, String> + 'a>;

/// A trace that can be switched on and off, and is emptied now and then. The functions are those of [`StandingTrace`].
pub trait Trace {
    /// The cost of one event for the thread that it interrupts.
    fn event_cost(&self) -> Nanos;
    /// The trace's part of documents.
    fn doc(&self) -> &TracingDoc;
    /// The origin of the events' times.
    fn origin(&self) -> Anchor;
    /// Now, on the axis of the events.
    fn now(&self) -> Nanos;
    /// The names of the kernel's functions, if known.
    fn symbols(&self) -> Option<&Arc<Kallsyms>>;
    /// The names in the events.
    fn names(&self) -> &Names;
    /// Whether so many names are stored that they should be forgotten.
    fn knows_many(&self) -> bool;
    fn forget_names(&mut self, root: &Path);
    /// Forgets them, and reads those of the kernel's functions again.
    fn read_symbols(&mut self, root: &Path);
    /// Descriptors that become readable when a buffer fills up.
    fn filling(&self) -> Vec<BorrowedFd<'_>>;
    /// Switches it on or off.
    fn turn(&mut self, is_on: bool) -> Result<(), String>;
    /// How it was changed since its setup; `None` if it is unchanged.
    fn disturbance(&self) -> Option<Disturbance>;
    /// Whether it ever contained everything that the kernel counted.
    fn is_confirmed(&self) -> bool;
    /// Takes the contents of the buffers, CPU by CPU.
    fn drain(&mut self, take: &mut Take<'_>) -> io::Result<Drained>;
}

impl Trace for StandingTrace {
    fn event_cost(&self) -> Nanos {
        self.event_cost()
    }

    fn doc(&self) -> &TracingDoc {
        self.doc()
    }

    fn origin(&self) -> Anchor {
        self.origin()
    }

    fn now(&self) -> Nanos {
        self.now()
    }

    fn symbols(&self) -> Option<&Arc<Kallsyms>> {
        self.symbols()
    }

    fn names(&self) -> &Names {
        self.names()
    }

    fn knows_many(&self) -> bool {
        self.knows_many()
    }

    fn forget_names(&mut self, root: &Path) {
        self.forget_names(root);
    }

    fn read_symbols(&mut self, root: &Path) {
        self.read_symbols(root);
    }

    fn filling(&self) -> Vec<BorrowedFd<'_>> {
        self.filling().collect()
    }

    fn turn(&mut self, is_on: bool) -> Result<(), String> {
        self.turn(is_on).map_err(|error| error.to_string())
    }

    fn disturbance(&self) -> Option<Disturbance> {
        self.disturbance()
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed()
    }

    fn drain(&mut self, take: &mut Take<'_>) -> io::Result<Drained> {
        self.drain(take)
    }
}
