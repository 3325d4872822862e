//! x
fn main(){ let u = mpi::initialize(); let _ = u; }
