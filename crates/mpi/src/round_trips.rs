//! Round trips of messages: between rank 0 and the first rank of each other node, to relate their clocks, and between two ranks, for the
//! cost of a message.

use becalm_stats::median_high;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Source};

use crate::clocks::RoundTrip;

/// The number of round trips with each node, before and after the measurement.
const TRIPS: usize = 1_000;

/// Makes round trips between rank 0 of a communicator and each of its other ranks, with the clock of the calling rank. Returns those with
/// every rank on rank 0, empty for rank 0 itself; the other ranks get nothing.
pub fn with_each(leaders: &SimpleCommunicator, clock: impl Fn() -> i64) -> Vec<Vec<RoundTrip>> {
    if leaders.rank() == 0 {
        let with = |rank| (0..if rank == 0 { 0 } else { TRIPS }).map(|_| ask(leaders, rank, &clock)).collect();
        return (0..leaders.size()).map(with).collect();
    }
    let first = leaders.process_at_rank(0);
    for _ in 0..TRIPS {
        let mut asked = 0_i64;
        first.receive_into(&mut asked);
        first.send(&clock());
    }
    Vec::new()
}

fn ask(leaders: &SimpleCommunicator, rank: i32, clock: &impl Fn() -> i64) -> RoundTrip {
    let other = leaders.process_at_rank(rank);
    let mut answered = 0_i64;
    let sent = clock();
    other.send(&sent);
    other.receive_into(&mut answered);
    RoundTrip { sent, answered, received: clock() }
}

/// The cost of messages between rank 0 and another rank, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MessageCost {
    /// Half of the median round trip.
    pub one_way_ns: f64,
    /// The median time of a send on its rank.
    pub send_ns: f64,
    /// The additional time per byte of a message.
    pub byte_ns: f64,
}

/// The size of the large messages, in bytes.
const LARGE: usize = 1 << 16;

/// Measures the cost of messages between rank 0 and rank `last`. All ranks may call it; rank 0 gets the result.
pub fn message_cost(world: &SimpleCommunicator, last: i32, clock: impl Fn() -> i64) -> Option<MessageCost> {
    if last == 0 || last >= world.size() {
        return None;
    }
    let (small, large) = (vec![0_u8; 8], vec![0_u8; LARGE]);
    let mut both = [&small, &large].map(|message| {
        let mut answer = message.clone();
        let (mut sends, mut trips) = (Vec::with_capacity(TRIPS), Vec::with_capacity(TRIPS));
        for _ in 0..TRIPS {
            if world.rank() == 0 {
                let other = world.process_at_rank(last);
                let before = clock();
                other.send(&message[..]);
                sends.push(clock() - before);
                other.receive_into(&mut answer[..]);
                trips.push(clock() - before);
            } else if world.rank() == last {
                let other = world.process_at_rank(0);
                other.receive_into(&mut answer[..]);
                other.send(&message[..]);
            }
        }
        (sends, trips)
    });
    if world.rank() != 0 {
        return None;
    }
    let [(sends, trips), (_, large_trips)] = &mut both;
    let [send, trip, large_trip] = [sends, trips, large_trips].map(|times| median_high(times));
    let (send, trip, large_trip) = (send? as f64, trip? as f64, large_trip? as f64);
    Some(MessageCost {
        one_way_ns: trip / 2.0,
        send_ns: send,
        byte_ns: ((large_trip - trip) / 2.0 / (LARGE - small.len()) as f64).max(0.0),
    })
}
