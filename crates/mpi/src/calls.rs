//! The collectives, ready to be called again and again: nothing is allocated in between.

use std::fmt;

use clap::ValueEnum;
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

/// What ends a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum CollectiveCall {
    /// Nothing: the ranks do not wait for each other.
    None,
    /// All ranks wait for each other: MPI_Barrier.
    Barrier,
    /// All ranks get the sum of all their doubles: MPI_Allreduce.
    Allreduce,
    /// Every rank sends a part to every other: MPI_Alltoall.
    Alltoall,
}

impl CollectiveCall {
    /// Its name on the command line and in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Barrier => "barrier",
            Self::Allreduce => "allreduce",
            Self::Alltoall => "alltoall",
        }
    }

    /// The payload that is sent if this many bytes are asked for: whole doubles for a sum, nothing for what sends nothing.
    pub const fn payload(self, bytes: u64) -> u64 {
        match self {
            Self::None | Self::Barrier => 0,
            Self::Allreduce => bytes.div_ceil(8) * 8,
            Self::Alltoall => bytes,
        }
    }
}

impl fmt::Display for CollectiveCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
    /// Prepares a call with so many bytes of payload; for `alltoall` those of each pair.
    pub fn new(comm: &'a SimpleCommunicator, collective: CollectiveCall, bytes: u64) -> Self {
        let payload = collective.payload(bytes) as usize;
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

    /// Goes through it once.
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
