//! Dissemination barriers under the rules of LogGOPSim, event by event, so that each of its differences from becalm can be
//! put on and taken off. With all three of them it must give LogGOPSim's own figure, to the nanosecond.
//!
//! It serves one comparison: one byte a message, one program, no care for speed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use becalm_scale::NoiseTrace;
use becalm_units::Nanos;

/// What messages and work cost, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// L: on the wire.
    pub latency: i64,
    /// o: of a send and of a receive, on the CPU.
    pub overhead: i64,
    /// g: least time between two sends, or two receives, of a rank.
    pub gap: i64,
    /// Work before each barrier.
    pub grain: i64,
}

/// In what LogGOPSim differs from becalm beyond taking messages as they arrive: becalm's ranks take them in the order of
/// their program.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Noise that hits a send does not hold up its message.
    pub leaves_on_time: bool,
    /// Noise that comes while noise stretches an operation is lost.
    pub noise_is_simple: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Work,
    Send,
    Receive,
    Message(u64),
}

/// Time, number of the event (older ones first), rank.
type Event = Reverse<(i64, u64, usize, Kind)>;

#[derive(Clone, Debug, Default)]
struct Rank {
    busy_until: i64,
    send_free: i64,
    receive_free: i64,
    /// The round that it is in, counted over all barriers.
    round: u64,
    waits: bool,
    /// Messages that came before their receive.
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

/// When the last rank is through the last barrier.
///
/// # Panics
/// If a time does not fit into 64 bits.
#[must_use]
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

    /// When an operation that begins at `start` is done.
    fn done(&self, rank: usize, start: i64, work: i64) -> i64 {
        let offset = self.offsets[rank];
        if !self.rules.noise_is_simple {
            let end = self.trace.finish(Nanos::new(start + offset), Nanos::new(work));
            return end.expect("times are short").get() - offset;
        }
        // Its circle is shorter by the operation. What is left of a detour under way counts, and all of each that
        // begins before the operation would end without noise.
        let length = self.trace.length().get();
        let at = (start + offset) % (length - work);
        let next = self.detours.partition_point(|(start, _)| *start <= at);
        let last = next.checked_sub(1).map(|last| self.detours[last]);
        let under_way = last.map_or(0, |(start, duration)| (start + duration - at).max(0));
        let begun = self.detours[next..].iter().take_while(|(start, _)| *start < at + work);
        start + work + under_way + begun.map(|(_, duration)| duration).sum::<i64>()
    }

    fn happen(&mut self, (time, number, rank, kind): (i64, u64, usize, Kind)) {
        let Costs { latency, overhead, gap, grain } = self.costs;
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
        let round = state.round;
        let next = match kind {
            Kind::Work => {
                self.ranks[rank].busy_until = self.done(rank, time, grain);
                Kind::Send
            }
            Kind::Send => {
                let end = self.done(rank, time, overhead);
                let left = if self.rules.leaves_on_time { time + overhead } else { end };
                let state = &mut self.ranks[rank];
                (state.busy_until, state.send_free) = (end, time + gap);
                let target = (rank + (1 << (round % self.rounds))) % self.ranks.len();
                self.add(left + latency, target, Kind::Message(round));
                Kind::Receive
            }
            Kind::Receive => {
                let state = &mut self.ranks[rank];
                let Some(early) = state.early.iter().position(|message| *message == round) else {
                    state.waits = true;
                    return;
                };
                state.early.swap_remove(early);
                return self.go_on(rank);
            }
            Kind::Message(message) => {
                let end = self.done(rank, time, overhead);
                let state = &mut self.ranks[rank];
                (state.busy_until, state.receive_free) = (end, time + gap);
                if state.waits && message == round {
                    state.waits = false;
                    return self.go_on(rank);
                }
                state.early.push(message);
                return;
            }
        };
        self.add(self.ranks[rank].busy_until, rank, next);
    }

    /// A rank begins its next round.
    fn go_on(&mut self, rank: usize) {
        self.ranks[rank].round += 1;
        let round = self.ranks[rank].round;
        if round < self.end {
            self.add(self.ranks[rank].busy_until, rank, self.first_of_round(round));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { latency: 2_500, overhead: 1_500, gap: 1_000, grain: 100 };

    #[test]
    fn without_noise_a_round_costs_two_overheads_and_the_latency() {
        let silence = NoiseTrace::silent(Nanos::from_secs(1)).unwrap();
        let rules = Rules { leaves_on_time: true, noise_is_simple: true };
        assert_eq!(simulate(COSTS, rules, &silence, &[0; 16], 3), 3 * (100 + 4 * 5_500));
    }

    #[test]
    fn noise_holds_up_a_message_or_not() {
        // It hits both ranks' work, or both ranks' sends, and comes back while it stretches the send.
        let detours = [(50, 1_000), (1_100, 300), (1_500, 300)].map(|(at, time)| (Nanos::new(at), Nanos::new(time)));
        let trace = NoiseTrace::new(Nanos::from_secs(1), detours).unwrap();
        let end = |leaves_on_time, noise_is_simple| {
            simulate(COSTS, Rules { leaves_on_time, noise_is_simple }, &trace, &[0; 2], 1)
        };
        assert_eq!(end(false, false), 100 + 5_500 + 1_600);
        assert_eq!(end(true, false), 100 + 5_500 + 1_000);
        assert_eq!(end(true, true), 100 + 5_500 + 1_000);
    }
}
