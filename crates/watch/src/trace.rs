//! What is asked of the trace that stays, so that tests can plant what it answers.

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

/// Takes the events of a CPU, by its number among those that are traced.
pub type Take<'a> = dyn FnMut(usize, &[Event], &mut Names) + 'a;

/// Sets a trace of these CPUs up, and leaves it off, or tells why that cannot be.
pub type Opener<'a> = Box<dyn FnMut(&CpuList) -> Result<Box<dyn Trace>, String> + 'a>;

/// A trace that can be switched on and off, and is emptied now and then. Each function does what that of [`StandingTrace`] does.
pub trait Trace {
    /// What one event costs whoever runs where it happens.
    fn event_cost(&self) -> Nanos;
    /// What documents say of it.
    fn doc(&self) -> &TracingDoc;
    /// The origin of the events' times.
    fn origin(&self) -> Anchor;
    /// Now, on the axis of the events.
    fn now(&self) -> Nanos;
    /// The names of the kernel's functions, where they are known.
    fn symbols(&self) -> Option<&Arc<Kallsyms>>;
    /// The names of what the events told of.
    fn names(&self) -> &Names;
    /// Whether so many names are known that they should be forgotten.
    fn knows_many(&self) -> bool;
    fn forget_names(&mut self, root: &Path);
    /// Forgets them, and reads those of the kernel's functions again.
    fn read_symbols(&mut self, root: &Path);
    /// Descriptors that are ready once a buffer fills up.
    fn filling(&self) -> Vec<BorrowedFd<'_>>;
    /// Switches it on or off.
    fn turn(&mut self, is_on: bool) -> Result<(), String>;
    /// How it was changed since it was set up; `None` if it is as it was.
    fn disturbance(&self) -> Option<Disturbance>;
    /// Whether it was ever found to hold what the kernel counted.
    fn is_confirmed(&self) -> bool;
    /// Takes what is in the buffers, CPU after CPU.
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
