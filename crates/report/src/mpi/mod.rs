//! What `becalm-mpi` has to say: how long the phases of a job took, and how well predictions hold.

pub(crate) mod run;
pub(crate) mod validate;
