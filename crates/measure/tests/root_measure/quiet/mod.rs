//! What holds only where nothing else runs: beside others, rarer noise finds colder caches and work takes longer.

use becalm_linux::sched::Policy;

mod roots;
mod work;

/// The class of the loops: an ordinary thread would share its CPU with every busy program.
const AHEAD_OF_PROGRAMS: Policy = Policy::Fifo(40);
