//! Messages of all ranks at a time: sent eagerly or on request.
//!
//! A message above the network's limit S waits for its receiver (rendezvous). Its sender announces it (o), and the announcement arrives L later. The
//! receiver, once ready, requests the bytes (o); they arrive 2 L + (bytes-1) G after that, moved by the cards alone, and the receiver takes them (o).
//! The sender continues when the last byte has left, L before it arrives. While it waits, a rank neither works nor suffers from noise that ends
//! before it continues.
//!
//! A rank that sends and receives in one step does both at the same time, as with `MPI_Sendrecv`: two ranks that exchange long messages do not
//! deadlock.
//!
//! Here each rank has its own node and card; for ranks that share nodes, see `nodes`.

use super::{ALONE, Cursor, JobMachine, Rank, Time};
use crate::ScaleError;
use crate::network::Network;

/// The content of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Payload {
    pub bytes: u64,
    /// The number of bytes that its receiver reduces on arrival.
    pub reduced: u64,
}

impl Payload {
    /// Bytes that are used as received.
    pub(crate) const fn plain(bytes: u64) -> Self {
        Self { bytes, reduced: 0 }
    }

    /// Bytes that are added to the receiver's own.
    pub(crate) const fn reduced(bytes: u64) -> Self {
        Self { bytes, reduced: bytes }
    }
}

/// The costs of messages of one kind, in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Costs {
    /// L.
    pub latency: i64,
    /// (bytes-1) G.
    pub bytes: i64,
    /// g + (bytes-1) G, or more on shared links.
    pub busy: i64,
    /// g.
    pub gap: i64,
    /// o.
    pub overhead: i64,
    /// CPU time of sending: o + (bytes-1) O, or o if the cards move the bytes.
    pub send: i64,
    /// CPU time of receiving, including the reduction.
    pub receive: i64,
}

impl Costs {
    /// For eager messages, or those on request (`asked_for`).
    pub(super) fn new(network: &Network, payload: Payload, asked_for: bool, share: u64) -> Result<Self, ScaleError> {
        let Payload { bytes, reduced } = payload;
        let overhead = network.overhead();
        let cpu = if asked_for { overhead } else { network.cpu_time(bytes)? };
        Ok(Self {
            latency: network.latency().get(),
            bytes: network.bytes_time(bytes)?.get(),
            busy: network.gap_after(bytes, share)?.get(),
            gap: network.gap().get(),
            overhead: overhead.get(),
            send: cpu.get(),
            receive: (cpu + network.reduction_time(reduced)?).get(),
        })
    }
}

impl<T: Time> Rank<T> {
    /// Receives a message that arrived; returns nothing, because its sender does not wait.
    #[inline]
    pub(super) fn receive(&mut self, cursor: &mut Cursor<'_, T>, costs: &Costs, arrived: T) {
        let start = self.clock.later(arrived).later(self.receive_free);
        self.clock = self.finish(cursor, start, costs.receive);
        self.receive_free = start.plus(costs.busy);
    }

    /// Takes the requested bytes; returns the time when the last one left the sender.
    #[inline]
    pub(super) fn take(&mut self, cursor: &mut Cursor<'_, T>, costs: &Costs, asked: T) -> T {
        let there = asked.plus(2 * costs.latency + costs.bytes).later(self.receive_free);
        self.receive_free = there.plus(costs.busy);
        self.clock = self.finish(cursor, self.clock.later(there), costs.receive);
        there.plus(-costs.latency)
    }
}

impl<'a, T: Time> JobMachine<'a, T> {
    /// Sets the time of a link that each message takes, in thousandths, until `links_alone`.
    pub(crate) fn share_links(&mut self, share: u64) {
        self.share = share;
    }

    /// Gives each message its links alone.
    pub(crate) fn links_alone(&mut self) {
        self.share = ALONE;
    }

    pub(super) fn costs(&self, payload: Payload, asked_for: bool) -> Result<Costs, ScaleError> {
        Costs::new(&self.network, payload, asked_for, self.share)
    }

    /// Ranks for which `to` names a rank send it one eager message of `bytes`. Fails for messages that take too long, or clocks beyond their limit.
    pub fn send(&mut self, bytes: u64, to: impl Fn(usize) -> Option<usize> + Sync) -> Result<(), ScaleError> {
        let payload = Payload::plain(bytes);
        if self.has_nodes() {
            return self.send_in_nodes((payload, false), to);
        }
        let costs = self.costs(payload, false)?;
        self.step_and_send(move |at, rank, cursor, sent| {
            if to(at).is_some() {
                let start = rank.clock.later(rank.send_free);
                rank.clock = rank.finish(cursor, start, costs.send);
                rank.send_free = start.plus(costs.busy);
                *sent = rank.clock;
            }
        })
    }

    fn send_in_nodes(
        &mut self,
        what: (Payload, bool),
        to: impl Fn(usize) -> Option<usize> + Sync,
    ) -> Result<(), ScaleError> {
        let mut sent = std::mem::take(&mut self.sent);
        let result = self.send_rows(&mut sent, 1, what, &|rank, _| to(rank));
        self.sent = sent;
        result
    }

    /// Ranks for which `source` names a rank receive its last message, of `bytes`.
    pub fn receive(&mut self, bytes: u64, source: impl Fn(usize) -> Option<usize> + Sync) -> Result<(), ScaleError> {
        self.receive_payload(Payload::plain(bytes), source)
    }

    fn receive_payload(
        &mut self,
        payload: Payload,
        source: impl Fn(usize) -> Option<usize> + Sync,
    ) -> Result<(), ScaleError> {
        // The pass reads the times of other ranks, so it walks along another array.
        std::mem::swap(&mut self.sent, &mut self.spare);
        let sent = std::mem::take(&mut self.spare);
        let result = self.receive_sent(&sent, payload, source);
        self.spare = sent;
        std::mem::swap(&mut self.sent, &mut self.spare);
        result
    }

    /// The time when each rank's last message left.
    pub(crate) fn sent(&self) -> &[T] {
        &self.sent
    }

    /// Receives messages that left at given times.
    pub(crate) fn receive_sent(
        &mut self,
        sent: &[T],
        payload: Payload,
        source: impl Fn(usize) -> Option<usize> + Sync,
    ) -> Result<(), ScaleError> {
        if self.has_nodes() {
            return self.receive_rows(sent, 1, payload, &|rank, _| source(rank));
        }
        let costs = self.costs(payload, false)?;
        self.step(move |at, rank, cursor| {
            if let Some(source) = source(at) {
                rank.receive(cursor, &costs, sent[source].plus(costs.latency + costs.bytes));
            }
        })
    }

    /// Ranks for which `to` names a rank send it a message, while those for which `from` names a rank receive from it.
    pub(crate) fn exchange(
        &mut self,
        payload: Payload,
        to: impl Fn(usize) -> Option<usize> + Sync,
        from: impl Fn(usize) -> Option<usize> + Sync,
    ) -> Result<(), ScaleError> {
        if self.has_nodes() {
            return self.exchange_rows(1, payload, &|rank, _| to(rank), &|rank, _| from(rank));
        }
        if !self.network.waits_for_receiver(payload.bytes) {
            self.send(payload.bytes, to)?;
            return self.receive_payload(payload, from);
        }
        self.announce(&to)?;
        let announced = std::mem::take(&mut self.sent);
        self.sent = std::mem::take(&mut self.spare);
        let taken = self.take_announced(&announced, payload, &to, from);
        self.spare = announced;
        taken?;
        // Every pass walks along `sent`, so another array replaces the one that is read.
        let left = std::mem::replace(&mut self.sent, std::mem::take(&mut self.spare));
        let result = self.leave(|rank| to(rank).map(|to| left[to]));
        self.spare = left;
        result
    }

    /// Ranks for which `to` names a rank announce a message to it.
    pub(crate) fn announce(&mut self, to: impl Fn(usize) -> Option<usize> + Sync) -> Result<(), ScaleError> {
        if self.has_nodes() {
            return self.send_in_nodes((Payload::plain(0), true), to);
        }
        let (overhead, gap) = (self.network.overhead().get(), self.network.gap().get());
        self.step_and_send(|at, rank, cursor, sent| {
            if to(at).is_some() {
                let start = rank.clock.later(rank.send_free);
                rank.clock = rank.finish(cursor, start, overhead);
                rank.send_free = start.plus(gap);
                *sent = rank.clock;
            }
        })
    }

    /// Ranks request messages that were announced at given times to those that `to` names, and take them. The time when the last byte left its sender
    /// is stored as the receiver's `sent`.
    pub(crate) fn take_announced(
        &mut self,
        announced: &[T],
        payload: Payload,
        to: impl Fn(usize) -> Option<usize> + Sync,
        source: impl Fn(usize) -> Option<usize> + Sync,
    ) -> Result<(), ScaleError> {
        if self.has_nodes() {
            self.sent = self.take_rows(announced, 1, payload, &|rank, _| to(rank), &|rank, _| source(rank))?;
            return Ok(());
        }
        let costs = self.costs(payload, true)?;
        self.step_and_send(|at, rank, cursor, left| {
            if let Some(source) = source(at) {
                let heard = rank.clock.later(announced[source].plus(costs.latency));
                let asked = rank.finish(cursor, heard, costs.overhead);
                rank.clock = asked;
                *left = rank.take(cursor, &costs, asked);
            }
        })
    }

    /// Ranks continue when their bytes have left.
    pub(crate) fn leave(&mut self, left: impl Fn(usize) -> Option<T> + Sync) -> Result<(), ScaleError> {
        let gap = if self.has_nodes() { 0 } else { self.network.gap().get() };
        self.step(|at, rank, _| {
            if let Some(left) = left(at) {
                rank.clock = rank.clock.later(left);
                rank.send_free = rank.send_free.later(left.plus(gap));
            }
        })
    }
}
