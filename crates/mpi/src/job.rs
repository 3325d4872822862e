//! The job as a rank sees it: all ranks, those of its node, and their communication outside of measurements.

use std::time::Duration;

use becalm_units::fault::Result;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Root, Source};

use crate::outcome::{Elsewhere, code_of};

/// A job. Dropping it finalizes MPI, which waits for all ranks.
pub struct Job {
    /// The communicator of all ranks.
    pub world: SimpleCommunicator,
    /// The ranks that share memory with this one.
    pub shared: SimpleCommunicator,
    /// The ranks of this one's node: those that share memory, unless fewer were requested.
    pub node: SimpleCommunicator,
    /// The first rank of every node; `None` on all others.
    pub leaders: Option<SimpleCommunicator>,
    /// Last, so it is dropped after the communicators.
    _universe: Universe,
}

impl Job {
    /// Joins the job; `None` if MPI cannot be initialized. The ranks of a node are those that share memory, but at most `ranks_per_node`,
    /// which splits a node to try out several.
    pub fn join(ranks_per_node: Option<u32>) -> Option<Self> {
        let universe = mpi::initialize()?;
        let world = universe.world();
        let shared = world.split_shared(world.rank());
        let part = ranks_per_node.map_or(0, |most| shared.rank() / most.max(1) as i32);
        let node = shared.split_by_color(Color::with_value(part)).expect("every rank has a color");
        let leads = node.rank() == 0;
        let leaders = world.split_by_color(if leads { Color::with_value(0) } else { Color::undefined() });
        Some(Self { world, shared, node, leaders, _universe: universe })
    }

    /// The number of this rank in the job, from 0.
    pub fn rank(&self) -> i32 {
        self.world.rank()
    }

    /// The number of ranks in the job.
    pub fn ranks(&self) -> i32 {
        self.world.size()
    }

    /// Whether this is rank 0, which prints.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// The number of this rank's node, and how many nodes there are.
    pub fn nodes(&self) -> (i32, i32) {
        let mut nodes = self.leaders.as_ref().map_or([0, 0], |leaders| [leaders.rank(), leaders.size()]);
        self.node.process_at_rank(0).broadcast_into(&mut nodes);
        let [own, count] = nodes;
        (own, count)
    }

    /// Continues only if all ranks succeed. If several failed, the error of the lowest rank is the job's: that rank returns it, and the
    /// others [`Elsewhere`].
    pub fn agree<T>(&self, result: Result<T>) -> Result<T> {
        // The lowest failed rank, combined with its exit code.
        let fine = i64::from(self.ranks()) << 8;
        let own = match &result {
            Ok(_) => fine,
            Err(error) => i64::from(self.rank()) << 8 | i64::from(code_of(error)),
        };
        let first = self.least(own);
        if first >= fine {
            return result;
        }
        let (rank, code) = ((first >> 8) as i32, first as u8);
        match result {
            Err(error) if rank == self.rank() => Err(error),
            _ => Err(Elsewhere { rank, code }.into()),
        }
    }

    /// Sleeps until rank 0 calls [`Self::release`]: waiting in MPI would keep a CPU busy.
    pub fn wait_for_first(&self) {
        let first = self.world.process_at_rank(0);
        while first.immediate_probe().is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
        first.receive::<u8>();
    }

    /// Releases the ranks that wait for rank 0, which calls it.
    pub fn release(&self) {
        (1..self.ranks()).for_each(|rank| self.world.process_at_rank(rank).send(&0_u8));
    }

    /// Waits asleep for all ranks: in a barrier, waiting ranks would keep CPUs busy that other ranks measure.
    pub fn meet_asleep(&self) {
        let mut waiting = self.world.immediate_barrier();
        while let Err(still) = waiting.test() {
            waiting = still;
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The smallest value over all ranks.
    pub fn least(&self, value: i64) -> i64 {
        let mut least = value;
        self.world.all_reduce_into(&value, &mut least, SystemOperation::min());
        least
    }

    /// The largest value over all ranks.
    pub fn most(&self, value: i64) -> i64 {
        let mut most = value;
        self.world.all_reduce_into(&value, &mut most, SystemOperation::max());
        most
    }

    /// The time from the first start to the last end within a node, in the node's time; the maximum over all nodes.
    pub fn longest_span(&self, start: i64, end: i64) -> i64 {
        let (mut first, mut last) = (start, end);
        self.node.all_reduce_into(&start, &mut first, SystemOperation::min());
        self.node.all_reduce_into(&end, &mut last, SystemOperation::max());
        self.most(last - first)
    }

    /// The sum of the values over all ranks.
    pub fn sum(&self, value: f64) -> f64 {
        let mut sum = value;
        self.world.all_reduce_into(&value, &mut sum, SystemOperation::sum());
        sum
    }
}

/// The MPI library's name and version, in one line.
pub fn library() -> String {
    // Some end it with a NUL, and some add many lines about their build.
    let text = mpi::environment::library_version().unwrap_or_default();
    let words: Vec<&str> = text.trim_end_matches('\0').lines().next().unwrap_or_default().split_whitespace().collect();
    words.join(" ").replace("MPICH Version:", "MPICH")
}

/// The number of ranks according to the launcher, from its environment variables.
pub fn launched() -> Option<(&'static str, i32)> {
    let size = |name: &'static str| Some((name, std::env::var(name).ok()?.parse().ok()?));
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"].into_iter().find_map(size)
}

/// Sends the values of a communicator's rank 0 to its other ranks.
pub fn tell(comm: &SimpleCommunicator, values: &mut [f64]) {
    comm.process_at_rank(0).broadcast_into(values);
}

/// Gathers the texts of all ranks, in their order, on all ranks.
pub fn texts(comm: &SimpleCommunicator, own: &str) -> Vec<String> {
    let size = comm.size() as usize;
    let mut counts = vec![0_i32; size];
    comm.all_gather_into(&(own.len() as i32), &mut counts[..]);
    let places = places(&counts);
    let mut bytes = vec![0_u8; counts.iter().map(|count| *count as usize).sum()];
    // Some libraries refuse empty gathers.
    if !bytes.is_empty() {
        let mut parts = PartitionMut::new(&mut bytes[..], counts.clone(), places.clone());
        comm.all_gather_varcount_into(own.as_bytes(), &mut parts);
    }
    let part = |(place, count): (&i32, &i32)| {
        String::from_utf8_lossy(&bytes[*place as usize..(*place + *count) as usize]).into_owned()
    };
    places.iter().zip(&counts).map(part).collect()
}

fn places(counts: &[i32]) -> Vec<i32> {
    let next = |sum: &mut i32, count: &i32| {
        let place = *sum;
        *sum += count;
        Some(place)
    };
    counts.iter().scan(0, next).collect()
}

/// Gathers the numbers of all ranks, in their order, on rank 0 of the communicator; empty on the others. All ranks must give equally many.
pub fn gather(comm: &SimpleCommunicator, own: &[f64]) -> Vec<f64> {
    let root = comm.process_at_rank(0);
    if comm.rank() != 0 {
        root.gather_into(own);
        return Vec::new();
    }
    let mut all = vec![0.0; own.len() * comm.size() as usize];
    root.gather_into_root(own, &mut all[..]);
    all
}

/// The maximum over all ranks at each index, on every rank.
pub fn largest(job: &Job, own: &mut [i64]) {
    /// The number of values in a message.
    const PART: usize = 1 << 16;
    for part in own.chunks_mut(PART) {
        let sent = part.to_vec();
        job.world.all_reduce_into(&sent[..], part, SystemOperation::max());
    }
}

/// Passes the numbers of each rank of the node, in order, to `each` on the first rank.
pub fn bring_to_leader(node: &SimpleCommunicator, own: Vec<i64>, mut each: impl FnMut(Vec<i64>)) {
    if node.rank() != 0 {
        node.process_at_rank(0).send(&own[..]);
        return;
    }
    each(own);
    for rank in 1..node.size() {
        each(node.process_at_rank(rank).receive_vec::<i64>().0);
    }
}
