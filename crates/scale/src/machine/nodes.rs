//! Messages of ranks that share nodes: a node's ranks share its card, and their messages to each other do not use it.
//!
//! All messages of a step between one pair of passes are processed node by node. A card takes the messages that its ranks send to other nodes in the
//! order of their readiness (when the rank is free to send; when a message has arrived and its receiver is free), on ties that of the lower rank
//! first, each for g + (bytes-1) G: separately for everything that the node's ranks send, and everything that they receive. Requested bytes take the
//! sender's card when the request has arrived, and then the receiver's.
//!
//! Messages within a node have their own costs. Two of a rank are at least their g + (bytes-1) G apart.
//!
//! Ranks send and receive `width` messages each, with numbers from 0: those of all ranks are rows of numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::card::Card;
use super::messages::Costs;
use super::{ALONE, CHUNK, Cursor, JobMachine, PARALLEL_RANKS, Payload, Rank, Time};
use crate::ScaleError;
use crate::workers::{Task, run_all};

/// The costs of messages between nodes and within one.
#[derive(Clone, Copy)]
pub(super) struct NodeCosts {
    remote: Costs,
    same_node: Costs,
}

impl NodeCosts {
    fn get(&self, same_node: bool) -> &Costs {
        if same_node { &self.same_node } else { &self.remote }
    }
}

struct NodeView<'v, 'a, T: Time> {
    /// The number of its first rank.
    first: usize,
    ranks: &'v mut [Rank<T>],
    cursors: &'v mut [Cursor<'a, T>],
    card: &'v mut Card<T>,
}

/// Maps a rank and the number of one of its messages to the other rank. Dynamic, because all code that moves messages would otherwise be compiled for
/// each.
pub(super) type Other<'f> = &'f (dyn Fn(usize, usize) -> Option<usize> + Sync);

/// A message of a rank of a node, in order of arrival: a time, the rank within its node, the message's number.
type Waiting = (i64, usize, usize);

/// A message of a rank of a node, in the order of ranks, then in that rank's order of processing.
#[derive(Clone, Copy)]
struct Listed<T> {
    /// The rank within its node.
    at: usize,
    /// The time of arrival; 0 for one that is sent.
    arrived: T,
    number: usize,
    same_node: bool,
}

/// Memory reused for one node after the other: allocating it each time would take longer than the messages.
struct Scratch<T> {
    lists: Vec<Listed<T>>,
    /// The time when a rank is ready, the rank, the index of its message in the list.
    ready: BinaryHeap<Reverse<Waiting>>,
    /// The same, sorted, if no rank has several.
    once: Vec<Waiting>,
}

impl<T: Time> NodeView<'_, '_, T> {
    fn holds(&self, rank: usize) -> bool {
        (self.first..self.first + self.ranks.len()).contains(&rank)
    }

    /// Drops the card's history before anything that can still come. All messages that it will send or receive are ready when one of its ranks is, or
    /// later. But announced messages are sent when their receiver, on any node, requests them: then `earliest` is the clock of the earliest rank of
    /// all.
    fn forget(&mut self, earliest: Option<i64>) {
        let own = || self.ranks.iter().map(|rank| rank.clock.ns()).min().unwrap_or(0);
        let earliest = earliest.unwrap_or_else(own);
        self.card.sends.forget(earliest);
        self.card.receives.forget(earliest);
    }

    /// Lets a rank work from a time on, which is not before its clock.
    fn work(&mut self, at: usize, start: T, work: i64) -> T {
        let rank = &mut self.ranks[at];
        rank.clock = rank.finish(&mut self.cursors[at], start, work);
        rank.clock
    }

    /// Sends or announces a message: `cpu` is its cost for the CPU, `busy` the time that it occupies the card or, within the node, delays the rank's
    /// next one.
    fn send(&mut self, at: usize, same_node: bool, cpu: i64, busy: i64) -> T {
        let ready = self.ranks[at].clock;
        let start = if same_node {
            let rank = &mut self.ranks[at];
            let start = ready.later(rank.send_free);
            rank.send_free = start.plus(busy);
            start
        } else {
            self.card.sends.take(ready, busy)
        };
        self.work(at, start, cpu)
    }

    /// The time when a message that arrived at `there` may be received.
    fn bring(&mut self, at: usize, same_node: bool, there: T, busy: i64) -> T {
        if !same_node {
            return self.card.receives.take(there, busy);
        }
        let rank = &mut self.ranks[at];
        let start = there.later(rank.receive_free);
        rank.receive_free = start.plus(busy);
        start
    }

    /// Calls `each` for the messages of a node's ranks for which `other` names a rank: the rank within the node, the number, the other rank.
    fn each_message(&self, width: usize, other: Other<'_>, mut each: impl FnMut(&Self, usize, usize, usize)) {
        for at in 0..self.ranks.len() {
            for number in 0..width {
                if let Some(other) = other(self.first + at, number) {
                    each(self, at, number, other);
                }
            }
        }
    }

    /// The same as a list.
    fn messages(&self, width: usize, other: Other<'_>) -> Vec<(usize, usize, usize)> {
        let mut out = Vec::with_capacity(self.ranks.len() * width);
        self.each_message(width, other, |_, at, number, other| out.push((at, number, other)));
        out
    }
}

impl<T: Time> Scratch<T> {
    /// Processes the listed messages of a node's ranks: each rank's own in order, and always the rank that is ready first. `ready` returns when a
    /// rank is ready for a message, which depends only on its own messages; `each` processes it.
    fn in_order<'v, 'a>(
        &mut self,
        node: &mut NodeView<'v, 'a, T>,
        ready: impl Fn(&NodeView<'v, 'a, T>, &Listed<T>) -> i64,
        mut each: impl FnMut(&mut NodeView<'v, 'a, T>, &Listed<T>),
    ) {
        let Self { lists, ready: heap, once } = self;
        if lists.windows(2).all(|two| two[0].at < two[1].at) {
            once.clear();
            once.extend(lists.iter().enumerate().map(|(position, listed)| (ready(node, listed), listed.at, position)));
            once.sort_unstable();
            once.iter().for_each(|(.., position)| each(node, &lists[*position]));
            return;
        }
        for (position, listed) in lists.iter().enumerate() {
            if position == 0 || lists[position - 1].at != listed.at {
                heap.push(Reverse((ready(node, listed), listed.at, position)));
            }
        }
        while let Some(Reverse((_, at, position))) = heap.pop() {
            each(node, &lists[position]);
            if let Some(next) = lists.get(position + 1).filter(|next| next.at == at) {
                heap.push(Reverse((ready(node, next), at, position + 1)));
            }
        }
    }
}

impl<'a, T: Time> JobMachine<'a, T> {
    /// Whether ranks share nodes.
    pub(super) fn has_nodes(&self) -> bool {
        self.per_node > 1
    }

    fn both_costs(&self, payload: Payload, asked_for: bool) -> Result<NodeCosts, ScaleError> {
        let local = self.network.within_node();
        Ok(NodeCosts {
            remote: self.costs(payload, asked_for)?,
            same_node: Costs::new(&local, payload, asked_for, ALONE)?,
        })
    }

    /// One pass over all nodes, each with the rows of its ranks.
    fn step_nodes(
        &mut self,
        rows: &mut [T],
        width: usize,
        each: impl Fn(&mut NodeView<'_, 'a, T>, &mut [T], &mut Scratch<T>) + Sync,
    ) -> Result<(), ScaleError> {
        let per_node = self.per_node;
        let each = &each;
        let pass = |first: usize,
                    ranks: &mut [Rank<T>],
                    cursors: &mut [Cursor<'a, T>],
                    cards: &mut [Card<T>],
                    rows: &mut [T]| {
            let nodes = ranks.chunks_mut(per_node).zip(cursors.chunks_mut(per_node)).zip(cards);
            let nodes = nodes.zip(rows.chunks_mut(per_node * width)).enumerate();
            let mut scratch = Scratch { lists: Vec::new(), ready: BinaryHeap::new(), once: Vec::new() };
            for (number, (((ranks, cursors), card), rows)) in nodes {
                each(&mut NodeView { first: first + number * per_node, ranks, cursors, card }, rows, &mut scratch);
            }
        };
        let pass = &pass;
        if self.ranks.len() < PARALLEL_RANKS {
            pass(0, &mut self.ranks, &mut self.cursors, &mut self.cards, rows);
        } else {
            // Threads process whole nodes.
            let nodes = (CHUNK / per_node).max(1);
            let chunk = nodes * per_node;
            let chunks = self.ranks.chunks_mut(chunk).zip(self.cursors.chunks_mut(chunk));
            let chunks = chunks.zip(self.cards.chunks_mut(nodes)).zip(rows.chunks_mut(chunk * width));
            let task = |(number, (((ranks, cursors), cards), rows))| -> Task<'_> {
                Box::new(move || pass(number * chunk, ranks, cursors, cards, rows))
            };
            run_all(chunks.enumerate().map(task).collect());
        }
        self.stepped(u32::try_from(2 * width * per_node).unwrap_or(u32::MAX))
    }

    /// Ranks send messages to those that `to` names, or announce them; their row receives the times when each has left or is announced.
    pub(super) fn send_rows(
        &mut self,
        rows: &mut [T],
        width: usize,
        (payload, announce): (Payload, bool),
        to: Other<'_>,
    ) -> Result<(), ScaleError> {
        let costs = self.both_costs(payload, announce)?;
        let earliest = announce.then(|| self.earliest());
        self.step_nodes(rows, width, |node, sent, scratch| {
            node.forget(earliest);
            scratch.lists.clear();
            node.each_message(width, to, |node, at, number, to| {
                scratch.lists.push(Listed { at, arrived: T::default(), number, same_node: node.holds(to) });
            });
            let ready = |node: &NodeView<'_, '_, T>, listed: &Listed<T>| node.ranks[listed.at].clock.ns();
            scratch.in_order(node, ready, |node, &Listed { at, number, same_node, .. }| {
                let costs = costs.get(same_node);
                let busy = if announce { costs.gap } else { costs.busy };
                sent[at * width + number] = node.send(at, same_node, costs.send, busy);
            });
        })
    }

    /// Ranks receive messages that left at given times, in order of arrival, on ties the lower number first.
    pub(super) fn receive_rows(
        &mut self,
        sent: &[T],
        width: usize,
        payload: Payload,
        from: Other<'_>,
    ) -> Result<(), ScaleError> {
        let costs = self.both_costs(payload, false)?;
        let mut nothing = vec![T::default(); self.ranks.len() * width];
        self.step_nodes(&mut nothing, width, |node, _, scratch| {
            scratch.lists.clear();
            node.each_message(width, from, |node, at, number, from| {
                let same_node = node.holds(from);
                let costs = costs.get(same_node);
                let arrived = sent[from * width + number].plus(costs.latency + costs.bytes);
                scratch.lists.push(Listed { at, arrived, number, same_node });
            });
            if width > 1 {
                scratch.lists.sort_unstable_by_key(|listed| (listed.at, listed.arrived.ns(), listed.number));
            }
            let ready = |node: &NodeView<'_, '_, T>, listed: &Listed<T>| {
                node.ranks[listed.at].clock.ns().max(listed.arrived.ns())
            };
            scratch.in_order(node, ready, |node, &Listed { at, arrived, same_node, .. }| {
                let costs = costs.get(same_node);
                let start = node.bring(at, same_node, node.ranks[at].clock.later(arrived), costs.busy);
                node.work(at, start, costs.receive);
            });
        })
    }

    /// Ranks request messages that were announced at given times, and take them: the receiver's row receives the time when the last byte of each left
    /// its sender.
    pub(super) fn take_rows(
        &mut self,
        announced: &[T],
        width: usize,
        payload: Payload,
        to: Other<'_>,
        from: Other<'_>,
    ) -> Result<Vec<T>, ScaleError> {
        let costs = self.both_costs(payload, true)?;
        let mut asked = vec![T::default(); announced.len()];
        self.step_nodes(&mut asked, width, |node, asked, _| {
            let mut heard: Vec<(usize, T, usize, bool)> = Vec::new();
            for (at, number, from) in node.messages(width, from) {
                let same_node = node.holds(from);
                heard.push((
                    at,
                    announced[from * width + number].plus(costs.get(same_node).latency),
                    number,
                    same_node,
                ));
            }
            heard.sort_unstable_by_key(|(at, heard, number, _)| (*at, heard.ns(), *number));
            for (at, heard, number, same_node) in heard {
                let start = node.ranks[at].clock.later(heard);
                asked[at * width + number] = node.work(at, start, costs.get(same_node).overhead);
            }
        })?;
        // The senders' cards move the bytes in the order of the requests.
        let mut there = vec![T::default(); announced.len()];
        self.step_nodes(&mut there, width, |node, there, _| {
            let mut wanted: Vec<(T, usize, usize)> = Vec::new();
            for (at, number, to) in node.messages(width, to) {
                let same_node = node.holds(to);
                let costs = costs.get(same_node);
                let ready = asked[to * width + number].plus(costs.latency);
                there[at * width + number] = ready.plus(costs.bytes + costs.latency);
                if !same_node {
                    wanted.push((ready, at, number));
                }
            }
            wanted.sort_unstable_by_key(|(ready, at, number)| (ready.ns(), *at, *number));
            let costs = &costs.remote;
            for (ready, at, number) in wanted {
                let start = node.card.sends.take(ready, costs.busy);
                there[at * width + number] = start.plus(costs.bytes + costs.latency);
            }
        })?;
        // The receivers' cards bring them, and their CPUs take them.
        let mut left = asked;
        self.step_nodes(&mut left, width, |node, left, _| {
            let mut come: Vec<((T, usize, usize), bool)> = Vec::new();
            for (at, number, from) in node.messages(width, from) {
                come.push(((there[from * width + number], at, number), node.holds(from)));
            }
            come.sort_unstable_by_key(|((arrived, at, number), _)| (arrived.ns(), *at, *number));
            for ((arrived, at, number), same_node) in come {
                let costs = costs.get(same_node);
                let brought = node.bring(at, same_node, arrived, costs.busy);
                left[at * width + number] = brought.plus(-costs.latency);
                node.work(at, node.ranks[at].clock.later(brought), costs.receive);
            }
        })?;
        Ok(left)
    }

    /// Ranks continue when the bytes of all their messages to those that `to` names have left.
    pub(super) fn leave_rows(&mut self, left: &[T], width: usize, to: Other<'_>) -> Result<(), ScaleError> {
        let mut nothing = vec![T::default(); left.len()];
        self.step_nodes(&mut nothing, width, |node, _, _| {
            for (at, number, to) in node.messages(width, to) {
                let rank = &mut node.ranks[at];
                rank.clock = rank.clock.later(left[to * width + number]);
            }
        })
    }

    /// Every rank sends messages to those that `to` names, and receives from the ranks that `from` names.
    pub(super) fn exchange_rows(
        &mut self,
        width: usize,
        payload: Payload,
        to: Other<'_>,
        from: Other<'_>,
    ) -> Result<(), ScaleError> {
        let asked_for = self.network.waits_for_receiver(payload.bytes);
        let mut sent = vec![T::default(); self.ranks.len() * width];
        self.send_rows(&mut sent, width, (Payload::plain(payload.bytes), asked_for), to)?;
        if !asked_for {
            return self.receive_rows(&sent, width, payload, from);
        }
        let left = self.take_rows(&sent, width, payload, to, from)?;
        self.leave_rows(&left, width, to)
    }
}
