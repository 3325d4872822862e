//! Collectives prepared for repeated calls without allocation.

use becalm_model::phases::CollectiveCall;
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

/// The actual payload for this many requested bytes: whole doubles for a sum, 0 for collectives without one.
pub const fn payload(collective: CollectiveCall, bytes: u64) -> u64 {
    match collective {
        CollectiveCall::None | CollectiveCall::Barrier => 0,
        CollectiveCall::Allreduce => bytes.div_ceil(8) * 8,
        CollectiveCall::Alltoall => bytes,
    }
}

/// A collective with its communicator and its buffers.
pub struct Call<'a> {
    comm: &'a SimpleCommunicator,
    collective: CollectiveCall,
    doubles: (Vec<f64>, Vec<f64>),
    bytes: (Vec<u8>, Vec<u8>),
}

impl<'a> Call<'a> {
    /// Prepares a call with a payload of this many bytes; per pair for `alltoall`.
    pub fn new(comm: &'a SimpleCommunicator, collective: CollectiveCall, bytes: u64) -> Self {
        let payload = payload(collective, bytes) as usize;
        let (doubles, bytes) = match collective {
            CollectiveCall::None | CollectiveCall::Barrier => (0, 0),
            CollectiveCall::Allreduce => (payload / 8, 0),
            CollectiveCall::Alltoall => (0, payload * comm.size() as usize),
        };
        Self {
            comm,
            collective,
            doubles: (vec![1.0; doubles], vec![0.0; doubles]),
            bytes: (vec![1; bytes], vec![0; bytes]),
        }
    }

    /// Calls it once.
    #[inline]
    pub fn run(&mut self) {
        match self.collective {
            CollectiveCall::None => {}
            CollectiveCall::Barrier => self.comm.barrier(),
            CollectiveCall::Allreduce => {
                self.comm.all_reduce_into(&self.doubles.0[..], &mut self.doubles.1[..], SystemOperation::sum());
            }
            CollectiveCall::Alltoall => self.comm.all_to_all_into(&self.bytes.0[..], &mut self.bytes.1[..]),
        }
    }
}
