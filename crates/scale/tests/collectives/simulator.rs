//! The plain reference: programs of single ranks, played one operation after another as far as messages have come, with a
//! textbook finish() for every CPU time.

use std::collections::{HashMap, VecDeque};

use becalm_scale::machine::RankStart;
use becalm_scale::network::Network;
use becalm_units::Nanos;

/// What one rank does, one thing after another.
#[derive(Clone, Debug)]
pub enum Action {
    Work(i64),
    /// Sends at once, or announces.
    Send {
        to: usize,
        bytes: u64,
    },
    /// Receives, and reduces so many bytes of it.
    Receive {
        from: usize,
        bytes: u64,
        reduced: u64,
    },
    /// Receives one message from each, in the order in which they come.
    ReceiveAll {
        from: Vec<usize>,
        bytes: u64,
    },
    /// Goes on when the message that it announced has left.
    Wait {
        to: usize,
        bytes: u64,
    },
}

/// The clocks of a rank: its CPU's, and when its card takes the next message and brings the next one.
#[derive(Clone, Copy, Default)]
struct Clocks {
    cpu: i64,
    send_free: i64,
    receive_free: i64,
}

pub struct Simulator<'a> {
    network: &'a Network,
    starts: &'a [RankStart<'a>],
    /// Thousandths of a link's time that a message takes.
    share: u64,
    clocks: Vec<Clocks>,
    /// When messages left or were announced, by sender and receiver.
    wire: HashMap<(usize, usize), VecDeque<i64>>,
    /// When announced messages had left altogether.
    left: HashMap<(usize, usize), VecDeque<i64>>,
}

impl<'a> Simulator<'a> {
    pub fn new(network: &'a Network, starts: &'a [RankStart<'a>], share: u64) -> Self {
        let clocks = vec![Clocks::default(); starts.len()];
        Self { network, starts, share, clocks, wire: HashMap::new(), left: HashMap::new() }
    }

    /// Plays all programs to their end; the clocks then.
    pub fn play(mut self, programs: &[Vec<Action>]) -> Vec<i64> {
        let mut at = vec![0; programs.len()];
        loop {
            let mut moved = false;
            for (rank, program) in programs.iter().enumerate() {
                while let Some(action) = program.get(at[rank])
                    && self.act(rank, action)
                {
                    at[rank] += 1;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        for (rank, program) in programs.iter().enumerate() {
            assert_eq!(at[rank], program.len(), "rank {rank} waits forever");
        }
        self.clocks.iter().map(|clocks| clocks.cpu).collect()
    }

    /// Keeps the rank's CPU busy from a time on, when it is free.
    fn work(&mut self, rank: usize, from: i64, work: Nanos) -> i64 {
        let RankStart { trace, offset } = self.starts[rank];
        let begin = from.max(self.clocks[rank].cpu);
        self.clocks[rank].cpu = trace.finish(Nanos::new(begin + offset), work).unwrap().get() - offset;
        self.clocks[rank].cpu
    }

    fn gap(&self, bytes: u64) -> i64 {
        self.network.gap_after(bytes, self.share).unwrap().get()
    }

    /// Does it, unless what it needs has not come.
    fn act(&mut self, rank: usize, action: &Action) -> bool {
        let latency = self.network.latency().get();
        match action {
            Action::Work(work) => {
                self.work(rank, 0, Nanos::new(*work));
            }
            Action::Send { to, bytes } => {
                let asks = self.network.waits_for_receiver(*bytes);
                let cpu = if asks { self.network.overhead() } else { self.network.cpu_time(*bytes).unwrap() };
                let begin = self.clocks[rank].cpu.max(self.clocks[rank].send_free);
                self.clocks[rank].send_free = begin + if asks { self.network.gap().get() } else { self.gap(*bytes) };
                let sent = self.work(rank, begin, cpu);
                self.wire.entry((rank, *to)).or_default().push_back(sent);
            }
            Action::Receive { from, bytes, reduced } => {
                let Some(sent) = self.wire.get_mut(&(*from, rank)).and_then(VecDeque::pop_front) else { return false };
                if self.network.waits_for_receiver(*bytes) {
                    let asked = self.work(rank, sent + latency, self.network.overhead());
                    self.take(rank, *from, asked, *bytes, *reduced);
                } else {
                    self.receive(rank, sent, *bytes, *reduced);
                }
            }
            Action::ReceiveAll { from, bytes } => {
                if from.iter().any(|from| self.wire.get(&(*from, rank)).is_none_or(VecDeque::is_empty)) {
                    return false;
                }
                let mut come: Vec<(i64, usize, usize)> = (0..)
                    .zip(from)
                    .map(|(at, from)| (self.wire.get_mut(&(*from, rank)).unwrap().pop_front().unwrap(), at, *from))
                    .collect();
                come.sort_unstable();
                if self.network.waits_for_receiver(*bytes) {
                    let overhead = self.network.overhead();
                    let asked: Vec<i64> =
                        come.iter().map(|(sent, ..)| self.work(rank, sent + latency, overhead)).collect();
                    for (asked, (_, _, from)) in asked.into_iter().zip(come) {
                        self.take(rank, from, asked, *bytes, 0);
                    }
                } else {
                    come.into_iter().for_each(|(sent, ..)| self.receive(rank, sent, *bytes, 0));
                }
            }
            Action::Wait { to, bytes } => {
                if !self.network.waits_for_receiver(*bytes) {
                    return true;
                }
                let Some(left) = self.left.get_mut(&(rank, *to)).and_then(VecDeque::pop_front) else { return false };
                let clocks = &mut self.clocks[rank];
                clocks.cpu = clocks.cpu.max(left);
                clocks.send_free = clocks.send_free.max(left + self.network.gap().get());
            }
        }
        true
    }

    fn receive(&mut self, rank: usize, sent: i64, bytes: u64, reduced: u64) {
        let arrival = sent + self.network.latency().get() + self.network.bytes_time(bytes).unwrap().get();
        let begin = arrival.max(self.clocks[rank].cpu).max(self.clocks[rank].receive_free);
        self.clocks[rank].receive_free = begin + self.gap(bytes);
        let cpu = self.network.cpu_time(bytes).unwrap() + self.network.reduction_time(reduced).unwrap();
        self.work(rank, begin, cpu);
    }

    /// The bytes come that were asked for, and leave their sender before.
    fn take(&mut self, rank: usize, from: usize, asked: i64, bytes: u64, reduced: u64) {
        let latency = self.network.latency().get();
        let on_the_way = self.network.bytes_time(bytes).unwrap().get();
        let there = self.clocks[rank].receive_free.max(asked + latency + on_the_way + latency);
        self.clocks[rank].receive_free = there + self.gap(bytes);
        self.work(rank, there, self.network.overhead() + self.network.reduction_time(reduced).unwrap());
        self.left.entry((from, rank)).or_default().push_back(there - latency);
    }
}
