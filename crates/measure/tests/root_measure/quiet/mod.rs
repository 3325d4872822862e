//! What holds only where nothing else runs: beside others, rarer noise finds colder caches and work takes longer.

mod roots;
mod work;
