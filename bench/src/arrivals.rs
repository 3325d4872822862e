//! Dissemination barriers under the rules of LogGOPSim, event by event. Each of its differences from becalm can be switched on and off;
//! with all three, the result must equal LogGOPSim's, to the nanosecond.
//!
//! It serves a single comparison: one program, messages of one size, no optimization. LogGOPSim sends messages above a size by rendezvous:
//! the sender continues when the receiver has accepted the message, not L later. Each rank receives while it sends, so two ranks that
//! exchange such messages do not deadlock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use becalm_scale::NoiseTrace;
use becalm_units::Nanos;

/// The costs of messages and work, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// L: time on the wire.
    pub latency: i64,
    /// o: CPU time of a send and of a receive.
    pub overhead: i64,
    /// g: minimum time between two sends, or two receives, of a rank.
    pub gap: i64,
    /// Work before each barrier.
    pub grain: i64,
    /// The bytes of each message, at least one.
    pub bytes: i64,
    /// G: time on the wire per byte after the first.
    pub byte_gap: i64,
    /// O: CPU time per byte after the first.
    pub byte_overhead: i64,
    /// S: the largest message that does not wait for its receiver.
    pub eager_limit: i64,
}

impl Costs {
    /// The time of the bytes after the first on the wire, and on the CPU.
    const fn more(&self) -> (i64, i64) {
        ((self.bytes - 1) * self.byte_gap, (self.bytes - 1) * self.byte_overhead)
    }

    const fn waits_for_receiver(&self) -> bool {
        self.bytes > self.eager_limit
    }
}

/// The differences between LogGOPSim and becalm, besides the order of messages: LogGOPSim accepts them as they arrive, becalm's ranks in
/// the order of their program.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Noise during a send does not delay its message.
    pub leaves_on_time: bool,
    /// Noise that starts while noise extends an operation is lost.
    pub noise_is_simple: bool,
    /// The bytes after the first occupy the receiver's CPU while they arrive, and do not delay the start of the message.
    pub bytes_keep_receiver: bool,
}

impl Rules {
    /// The rules of LogGOPSim.
    pub const LOGGOPSIM: Self = Self { leaves_on_time: true, noise_is_simple: true, bytes_keep_receiver: true };
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Work,
    Send,
    Receive,
    Message(u64),
}

/// Time, number of the event (lower ones first), rank.
type Event = Reverse<(i64, u64, usize, Kind)>;

#[derive(Clone, Debug, Default)]
struct Rank {
    busy_until: i64,
    send_free: i64,
    receive_free: i64,
    /// Its current round, counted over all barriers.
    round: u64,
    waits: bool,
    /// Whether the round's message has been sent, and one received.
    sent: bool,
    received: bool,
    /// Messages that arrived before their receive.
    early: Vec<u64>,
}

struct Simulation<'a> {
    costs: Costs,
    rules: Rules,
    trace: &'a NoiseTrace,
    detours: Vec<(i64, i64)>,
    offsets: &'a [i64],
    rounds: u64,
    end: u64,
    ranks: Vec<Rank>,
    events: BinaryHeap<Event>,
    numbers: u64,
}

/// The end of the last barrier on the last rank. Panics if a time does not fit into 64 bits.
pub fn simulate(costs: Costs, rules: Rules, trace: &NoiseTrace, offsets: &[i64], barriers: u64) -> i64 {
    let rounds = u64::from(offsets.len().next_power_of_two().ilog2());
    let mut simulation = Simulation {
        costs,
        rules,
        trace,
        detours: trace.detours().map(|(start, duration)| (start.get(), duration.get())).collect(),
        offsets,
        rounds,
        end: barriers * rounds,
        ranks: vec![Rank::default(); offsets.len()],
        events: BinaryHeap::new(),
        numbers: 0,
    };
    let first = simulation.first_of_round(0);
    for rank in 0..offsets.len() {
        simulation.add(0, rank, first);
    }
    while let Some(Reverse(event)) = simulation.events.pop() {
        simulation.happen(event);
    }
    simulation.ranks.iter().map(|rank| rank.busy_until).max().unwrap_or(0)
}

impl Simulation<'_> {
    fn add(&mut self, time: i64, rank: usize, kind: Kind) {
        self.events.push(Reverse((time, self.numbers, rank, kind)));
        self.numbers += 1;
    }

    fn first_of_round(&self, round: u64) -> Kind {
        if self.costs.grain > 0 && round.is_multiple_of(self.rounds) { Kind::Work } else { Kind::Send }
    }

    /// The end of an operation that starts at `start`.
    fn done(&self, rank: usize, start: i64, work: i64) -> i64 {
        let offset = self.offsets[rank];
        if !self.rules.noise_is_simple {
            let end = self.trace.finish(Nanos::new(start + offset), Nanos::new(work));
            return end.expect("times are short").get() - offset;
        }
        // LogGOPSim's trace is shorter by the operation. It counts the rest of a current detour, and all of each detour that starts before
        // the operation would end without noise.
        let length = self.trace.length().get();
        let at = (start + offset) % (length - work);
        let next = self.detours.partition_point(|(start, _)| *start <= at);
        let last = next.checked_sub(1).map(|last| self.detours[last]);
        let under_way = last.map_or(0, |(start, duration)| (start + duration - at).max(0));
        let begun = self.detours[next..].iter().take_while(|(start, _)| *start < at + work);
        start + work + under_way + begun.map(|(_, duration)| duration).sum::<i64>()
    }

    /// The end of a send or a receive that starts at `start`, with its first byte and `more` CPU time. With simple noise, noise during the
    /// other bytes does not count.
    fn done_with(&self, rank: usize, start: i64, more: i64) -> i64 {
        let overhead = self.costs.overhead;
        if self.rules.noise_is_simple {
            self.done(rank, start, overhead) + more
        } else {
            self.done(rank, start, overhead + more)
        }
    }

    fn happen(&mut self, (time, number, rank, kind): (i64, u64, usize, Kind)) {
        let state = &self.ranks[rank];
        let ready = match kind {
            Kind::Work => state.busy_until,
            Kind::Send => state.busy_until.max(state.send_free),
            Kind::Message(_) => state.busy_until.max(state.receive_free),
            Kind::Receive => time,
        };
        if ready > time {
            return self.events.push(Reverse((ready, number, rank, kind)));
        }
        match kind {
            Kind::Work => {
                self.ranks[rank].busy_until = self.done(rank, time, self.costs.grain);
                self.add(self.ranks[rank].busy_until, rank, Kind::Send);
            }
            Kind::Send => self.send(time, rank),
            Kind::Receive => {
                let state = &mut self.ranks[rank];
                let Some(early) = state.early.iter().position(|message| *message == state.round) else {
                    state.waits = true;
                    return;
                };
                state.early.swap_remove(early);
                self.received(time, rank);
            }
            Kind::Message(message) => self.message(time, rank, message),
        }
    }

    fn send(&mut self, time: i64, rank: usize) {
        let Costs { latency, overhead, gap, .. } = self.costs;
        let (wire, copy) = self.costs.more();
        let end = self.done_with(rank, time, copy);
        let left = if self.rules.leaves_on_time { time + overhead } else { end };
        let waits = self.costs.waits_for_receiver();
        let state = &mut self.ranks[rank];
        (state.busy_until, state.send_free, state.sent) = (end, time + gap + wire, !waits);
        let round = state.round;
        let on_the_wire = if self.rules.bytes_keep_receiver { 0 } else { wire };
        self.add(left + latency + on_the_wire, self.target(rank, round), Kind::Message(round));
        self.add(end, rank, Kind::Receive);
    }

    fn message(&mut self, time: i64, rank: usize, message: u64) {
        let (wire, copy) = self.costs.more();
        let more = if self.rules.bytes_keep_receiver { wire.max(copy) } else { copy };
        let end = self.done_with(rank, time, more);
        let gap = self.costs.gap;
        let state = &mut self.ranks[rank];
        (state.busy_until, state.receive_free) = (end, time + gap + wire);
        if state.waits && message == state.round {
            state.waits = false;
            self.received(time, rank);
        } else {
            state.early.push(message);
        }
    }

    fn target(&self, rank: usize, round: u64) -> usize {
        (rank + (1 << (round % self.rounds))) % self.ranks.len()
    }

    /// A rank has accepted the message of its round; its sender may have waited for that.
    fn received(&mut self, time: i64, rank: usize) {
        self.ranks[rank].received = true;
        let mut both = vec![rank];
        if self.costs.waits_for_receiver() {
            let ranks = self.ranks.len();
            let source = (rank + ranks - (1 << (self.ranks[rank].round % self.rounds))) % ranks;
            let sender = &mut self.ranks[source];
            (sender.busy_until, sender.send_free) = (sender.busy_until.max(time), sender.send_free.max(time));
            sender.sent = true;
            both.push(source);
        }
        // The order decides between events at the same time.
        both.sort_unstable();
        both.dedup();
        both.into_iter().for_each(|rank| self.go_on(rank));
    }

    /// Starts the next round of a rank that has sent and received.
    fn go_on(&mut self, rank: usize) {
        let state = &mut self.ranks[rank];
        if !(state.sent && state.received) {
            return;
        }
        (state.sent, state.received) = (false, false);
        state.round += 1;
        let round = state.round;
        if round < self.end {
            self.add(self.ranks[rank].busy_until, rank, self.first_of_round(round));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        latency: 2_500,
        overhead: 1_500,
        gap: 1_000,
        grain: 100,
        bytes: 1,
        byte_gap: 6,
        byte_overhead: 0,
        eager_limit: 65_535,
    };

    #[test]
    fn without_noise_a_round_costs_two_overheads_and_the_latency() {
        let silence = NoiseTrace::silent(Nanos::from_secs(1)).unwrap();
        assert_eq!(simulate(COSTS, Rules::LOGGOPSIM, &silence, &[0; 16], 3), 3 * (100 + 4 * 5_500));
    }

    #[test]
    fn noise_holds_up_a_message_or_not() {
        // It hits both ranks' work, or both ranks' sends, and comes back while it stretches the send.
        let detours = [(50, 1_000), (1_100, 300), (1_500, 300)].map(|(at, time)| (Nanos::new(at), Nanos::new(time)));
        let trace = NoiseTrace::new(Nanos::from_secs(1), detours).unwrap();
        let end = |leaves_on_time, noise_is_simple| {
            let rules = Rules { leaves_on_time, noise_is_simple, bytes_keep_receiver: true };
            simulate(COSTS, rules, &trace, &[0; 2], 1)
        };
        assert_eq!(end(false, false), 100 + 5_500 + 1_600);
        assert_eq!(end(true, false), 100 + 5_500 + 1_000);
        assert_eq!(end(true, true), 100 + 5_500 + 1_000);
    }

    /// 1,001 bytes: 6 us on the wire, or on the receiver's CPU, and 2 us on both CPUs.
    #[test]
    fn bytes_cost_time_on_the_wire_or_on_cpus() {
        let silence = NoiseTrace::silent(Nanos::from_secs(1)).unwrap();
        let end = |costs: Costs, rules| simulate(costs, rules, &silence, &[0; 2], 1);
        let large = Costs { bytes: 1_001, byte_overhead: 2, ..COSTS };
        // LogGOPSim's message leaves after o, and its receiver is busy for the longer of both.
        assert_eq!(end(large, Rules::LOGGOPSIM), 100 + 1_500 + 2_500 + 1_500 + 6_000);
        let ours = Rules { leaves_on_time: false, noise_is_simple: false, bytes_keep_receiver: false };
        assert_eq!(end(large, ours), 100 + 3_500 + 2_500 + 6_000 + 3_500);
        // With a rendezvous a sender goes on when its message is taken up, which is no later than that of its own.
        let asked = Costs { eager_limit: 1_000, ..large };
        assert_eq!(end(asked, Rules::LOGGOPSIM), end(large, Rules::LOGGOPSIM));
    }
}
