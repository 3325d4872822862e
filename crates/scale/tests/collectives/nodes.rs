//! The plain reference for ranks that share nodes: one step of all ranks after another, and in a step one message after another,
//! with a textbook finish() for every CPU time and cards that are lists of when they were busy.
//!
//! A step is what all ranks do between two passes: each sends its messages, then each receives its own, then each waits for those
//! that it announced.

use std::collections::{HashMap, VecDeque};

use becalm_scale::machine::RankStart;
use becalm_scale::network::Network;
use becalm_units::Nanos;

use crate::simulator::Action;

/// The times of a rank: its CPU's, and when the next message within its node may be sent and received.
#[derive(Clone, Copy, Default)]
struct Clocks {
    cpu: i64,
    send_free: i64,
    receive_free: i64,
}

/// When one direction of a card was busy: from, until.
#[derive(Clone, Default)]
struct Busy(Vec<(i64, i64)>);

impl Busy {
    /// The first time from `ready` on at which nothing else keeps it for so long.
    fn take(&mut self, ready: i64, busy: i64) -> i64 {
        let mut start = ready;
        while let Some((_, until)) = self.0.iter().find(|(from, until)| start < *until && start + busy.max(1) > *from) {
            start = *until;
        }
        if busy > 0 {
            self.0.push((start, start + busy));
        }
        start
    }
}

/// A message that is to be received: its sender, bytes, those that are reduced, and its place among those of its receiver.
#[derive(Clone, Copy)]
struct Incoming {
    from: usize,
    bytes: u64,
    reduced: u64,
    number: usize,
}

pub struct NodeSimulator<'a> {
    between: &'a Network,
    within: Network,
    starts: &'a [RankStart<'a>],
    share: u64,
    per_node: usize,
    clocks: Vec<Clocks>,
    sends: Vec<Busy>,
    receives: Vec<Busy>,
    /// When messages left or were announced, by sender and receiver.
    wire: HashMap<(usize, usize), VecDeque<i64>>,
    /// When announced messages had left altogether.
    left: HashMap<(usize, usize), VecDeque<i64>>,
}

impl<'a> NodeSimulator<'a> {
    pub fn new(network: &'a Network, starts: &'a [RankStart<'a>], share: u64, per_node: usize) -> Self {
        let cards = vec![Busy::default(); starts.len().div_ceil(per_node)];
        Self {
            between: network,
            within: network.within_node(),
            starts,
            share,
            per_node,
            clocks: vec![Clocks::default(); starts.len()],
            sends: cards.clone(),
            receives: cards,
            wire: HashMap::new(),
            left: HashMap::new(),
        }
    }

    /// Plays the steps of all ranks; the clocks then.
    pub fn play(mut self, programs: &[Vec<Vec<Action>>]) -> Vec<i64> {
        let steps = programs.iter().map(Vec::len).max().unwrap();
        for (rank, program) in programs.iter().enumerate() {
            assert_eq!(program.len(), steps, "rank {rank} has as many steps as the others");
        }
        for step in 0..steps {
            let actions: Vec<&[Action]> = programs.iter().map(|program| &program[step][..]).collect();
            self.step(&actions);
        }
        assert!(self.wire.values().all(VecDeque::is_empty), "all messages were received");
        self.clocks.iter().map(|clocks| clocks.cpu).collect()
    }

    fn step(&mut self, actions: &[&[Action]]) {
        let mut sends: Vec<VecDeque<(usize, u64)>> = Vec::new();
        let mut incoming: Vec<Vec<Incoming>> = Vec::new();
        for (rank, actions) in actions.iter().enumerate() {
            let (mut out, mut come) = (VecDeque::new(), Vec::new());
            for action in *actions {
                match action {
                    Action::Work(work) => {
                        self.work(rank, 0, Nanos::new(*work));
                    }
                    Action::Send { to, bytes } => out.push_back((*to, *bytes)),
                    Action::Receive { from, bytes, reduced } => {
                        come.push(Incoming { from: *from, bytes: *bytes, reduced: *reduced, number: come.len() });
                    }
                    Action::ReceiveAll { from, bytes } => {
                        come.extend((0..).zip(from).map(|(number, from)| Incoming {
                            from: *from,
                            bytes: *bytes,
                            reduced: 0,
                            number,
                        }));
                    }
                    Action::Wait { .. } => {}
                }
            }
            sends.push(out);
            incoming.push(come);
        }
        self.send(sends);
        self.receive_all(incoming);
        for (rank, actions) in actions.iter().enumerate() {
            for action in *actions {
                if let Action::Wait { to, bytes } = action
                    && self.between.waits_for_receiver(*bytes)
                {
                    let left = self.left.get_mut(&(rank, *to)).unwrap().pop_front().unwrap();
                    self.clocks[rank].cpu = self.clocks[rank].cpu.max(left);
                }
            }
        }
    }

    fn share_node(&self, a: usize, b: usize) -> bool {
        a / self.per_node == b / self.per_node
    }

    fn network(&self, within: bool) -> &Network {
        if within { &self.within } else { self.between }
    }

    fn latency(&self, within: bool) -> i64 {
        self.network(within).latency().get()
    }

    /// g + (bytes-1) G of a message.
    fn busy(&self, within: bool, bytes: u64) -> i64 {
        let share = if within { 1_000 } else { self.share };
        self.network(within).gap_after(bytes, share).unwrap().get()
    }

    /// Keeps the rank's CPU busy from a time on, when it is free.
    fn work(&mut self, rank: usize, from: i64, work: Nanos) -> i64 {
        let RankStart { trace, offset } = self.starts[rank];
        let begin = from.max(self.clocks[rank].cpu);
        self.clocks[rank].cpu = trace.finish(Nanos::new(begin + offset), work).unwrap().get() - offset;
        self.clocks[rank].cpu
    }

    /// Always the rank goes on that is ready first.
    fn send(&mut self, mut sends: Vec<VecDeque<(usize, u64)>>) {
        let ready = |this: &Self, sends: &[VecDeque<(usize, u64)>]| {
            let waiting = (0..sends.len()).filter(|rank| !sends[*rank].is_empty());
            waiting.min_by_key(|rank| (this.clocks[*rank].cpu, *rank))
        };
        while let Some(rank) = ready(self, &sends) {
            let (to, bytes) = sends[rank].pop_front().unwrap();
            let within = self.share_node(rank, to);
            let network = *self.network(within);
            let asks = network.waits_for_receiver(bytes);
            let cpu = if asks { network.overhead() } else { network.cpu_time(bytes).unwrap() };
            let busy = if asks { network.gap().get() } else { self.busy(within, bytes) };
            let clock = self.clocks[rank].cpu;
            let begin = if within {
                let begin = clock.max(self.clocks[rank].send_free);
                self.clocks[rank].send_free = begin + busy;
                begin
            } else {
                self.sends[rank / self.per_node].take(clock, busy)
            };
            let sent = self.work(rank, begin, cpu);
            self.wire.entry((rank, to)).or_default().push_back(sent);
        }
    }

    fn receive_all(&mut self, incoming: Vec<Vec<Incoming>>) {
        let mut at_once: Vec<VecDeque<(i64, usize, Incoming)>> = Vec::new();
        let mut asked: Vec<(i64, usize, Incoming)> = Vec::new();
        for (rank, incoming) in incoming.into_iter().enumerate() {
            let mut come: Vec<(i64, usize, Incoming)> = Vec::new();
            for message in incoming {
                let within = self.share_node(rank, message.from);
                let sent = self.wire.get_mut(&(message.from, rank)).unwrap().pop_front().unwrap();
                let asks = self.between.waits_for_receiver(message.bytes);
                let bytes = if asks { 0 } else { self.network(within).bytes_time(message.bytes).unwrap().get() };
                come.push((sent + self.latency(within) + bytes, message.number, message));
            }
            come.sort_by_key(|(time, number, _)| (*time, *number));
            if come.first().is_some_and(|first| self.between.waits_for_receiver(first.2.bytes)) {
                for (heard, _, message) in come {
                    let overhead = self.network(self.share_node(rank, message.from)).overhead();
                    asked.push((self.work(rank, heard, overhead), rank, message));
                }
                come = Vec::new();
            }
            at_once.push(come.into());
        }
        self.receive(at_once);
        self.take(asked);
    }

    /// Messages that came at once: always the rank goes on that is ready first.
    fn receive(&mut self, mut come: Vec<VecDeque<(i64, usize, Incoming)>>) {
        let ready = |this: &Self, rank: usize, message: &(i64, usize, Incoming)| this.clocks[rank].cpu.max(message.0);
        let next = |this: &Self, come: &[VecDeque<(i64, usize, Incoming)>]| {
            let first = come.iter().enumerate().filter_map(|(rank, list)| Some((rank, list.front()?)));
            first.map(|(rank, message)| (ready(this, rank, message), rank)).min()
        };
        while let Some((ready, rank)) = next(self, &come) {
            let (_, _, message) = come[rank].pop_front().unwrap();
            let within = self.share_node(rank, message.from);
            let begin = self.bring(rank, within, ready, message.bytes);
            let network = *self.network(within);
            let cpu = network.cpu_time(message.bytes).unwrap() + network.reduction_time(message.reduced).unwrap();
            self.work(rank, begin, cpu);
        }
    }

    /// When a message that is there may be taken.
    fn bring(&mut self, rank: usize, within: bool, there: i64, bytes: u64) -> i64 {
        let busy = self.busy(within, bytes);
        if !within {
            return self.receives[rank / self.per_node].take(there, busy);
        }
        let begin = there.max(self.clocks[rank].receive_free);
        self.clocks[rank].receive_free = begin + busy;
        begin
    }

    /// Bytes that were asked for: over the sender's card, and then over the receiver's.
    fn take(&mut self, asked: Vec<(i64, usize, Incoming)>) {
        let mut wanted: Vec<(i64, usize, usize, usize, Incoming)> = Vec::new();
        for (asked, rank, message) in asked {
            let latency = self.latency(self.share_node(rank, message.from));
            wanted.push((asked + latency, message.from, message.number, rank, message));
        }
        wanted.sort_by_key(|(ready, from, number, ..)| (*ready, *from, *number));
        let mut there: Vec<(i64, usize, usize, Incoming)> = Vec::new();
        for (ready, from, number, rank, message) in wanted {
            let within = self.share_node(rank, from);
            let (latency, busy) = (self.latency(within), self.busy(within, message.bytes));
            let begin = if within { ready } else { self.sends[from / self.per_node].take(ready, busy) };
            let bytes = self.network(within).bytes_time(message.bytes).unwrap().get();
            there.push((begin + bytes + latency, rank, number, message));
        }
        there.sort_by_key(|(there, rank, number, _)| (*there, *rank, *number));
        for (there, rank, _, message) in there {
            let within = self.share_node(rank, message.from);
            let brought = self.bring(rank, within, there, message.bytes);
            let network = *self.network(within);
            let left = brought - network.latency().get();
            self.left.entry((message.from, rank)).or_default().push_back(left);
            self.work(rank, brought, network.overhead() + network.reduction_time(message.reduced).unwrap());
        }
    }
}
