//! Messages that are under way together, and are received in order of arrival.

use super::{CHUNK, Cursor, JobMachine, PARALLEL_RANKS, Payload, Rank, Time};
use crate::ScaleError;
use crate::workers::{Task, run_all};

/// Maximum number of messages in a window, of all ranks together: they take 16 bytes each.
const WINDOW_MEMORY: usize = 1 << 28;

impl<'a, T: Time> JobMachine<'a, T> {
    /// Every rank sends a message to those that are `distances` further, one after the other, and then receives as many in order of arrival (on ties,
    /// the nearest sender's first). Messages on request are all requested before the first is taken.
    pub(crate) fn exchange_window(&mut self, bytes: u64, distances: std::ops::Range<usize>) -> Result<(), ScaleError> {
        let (ranks, width) = (self.len(), distances.len());
        if width.saturating_mul(ranks) > WINDOW_MEMORY {
            let value = format!("{width} messages of each of {ranks} ranks");
            let allowed = "268,435,456 of all ranks together: give a smaller one, like alltoall:scattered=32";
            return Err(ScaleError::Range("the window", value, allowed));
        }
        let source = |rank: usize, at: usize| (rank + ranks - distances.start - at) % ranks;
        let target = |rank: usize, at: usize| (rank + distances.start + at) % ranks;
        if self.has_nodes() {
            let (to, from) = (|rank, at| Some(target(rank, at)), |rank, at| Some(source(rank, at)));
            return self.exchange_rows(width, Payload::plain(bytes), &to, &from);
        }
        let asked_for = self.network.waits_for_receiver(bytes);
        let costs = self.costs(Payload::plain(bytes), asked_for)?;
        let busy = if asked_for { costs.gap } else { costs.busy };
        let mut sent = vec![T::default(); ranks * width];
        self.step_rows(&mut sent, width, |_, rank, cursor, sent| {
            for sent in sent {
                let start = rank.clock.later(rank.send_free);
                rank.clock = rank.finish(cursor, start, costs.send);
                rank.send_free = start.plus(busy);
                *sent = rank.clock;
            }
        })?;
        let mut rows = vec![T::default(); ranks * width];
        if !asked_for {
            return self.step_rows(&mut rows, width, |at, rank, cursor, arrivals| {
                for (number, arrival) in arrivals.iter_mut().enumerate() {
                    *arrival = sent[source(at, number) * width + number].plus(costs.latency + costs.bytes);
                }
                arrivals.sort_unstable_by_key(|arrival| arrival.ns());
                arrivals.iter().for_each(|arrival| rank.receive(cursor, &costs, *arrival));
            });
        }
        self.step_rows(&mut rows, width, |at, rank, cursor, left| {
            let heard = |number: usize| (sent[source(at, number) * width + number].plus(costs.latency), number);
            let mut asked: Vec<(T, usize)> = (0..width).map(heard).collect();
            asked.sort_unstable_by_key(|(time, number)| (time.ns(), *number));
            for (time, _) in &mut asked {
                rank.clock = rank.finish(cursor, rank.clock.later(*time), costs.overhead);
                *time = rank.clock;
            }
            for (asked, number) in asked {
                left[number] = rank.take(cursor, &costs, asked);
            }
        })?;
        self.leave(|rank| (0..width).map(|at| rows[target(rank, at) * width + at]).reduce(T::later))
    }

    /// One pass over all ranks, each with `width` numbers of its own.
    fn step_rows(
        &mut self,
        rows: &mut [T],
        width: usize,
        each: impl Fn(usize, &mut Rank<T>, &mut Cursor<'a, T>, &mut [T]) + Sync,
    ) -> Result<(), ScaleError> {
        let each = &each;
        let pass = |first: usize, ranks: &mut [Rank<T>], cursors: &mut [Cursor<'a, T>], rows: &mut [T]| {
            for (at, ((rank, cursor), row)) in ranks.iter_mut().zip(cursors).zip(rows.chunks_mut(width)).enumerate() {
                each(first + at, rank, cursor, row);
            }
        };
        let pass = &pass;
        if self.ranks.len() < PARALLEL_RANKS {
            pass(0, &mut self.ranks, &mut self.cursors, rows);
        } else {
            let chunks =
                self.ranks.chunks_mut(CHUNK).zip(self.cursors.chunks_mut(CHUNK)).zip(rows.chunks_mut(CHUNK * width));
            let task = |(number, ((ranks, cursors), rows))| -> Task<'_> {
                Box::new(move || pass(number * CHUNK, ranks, cursors, rows))
            };
            run_all(chunks.enumerate().map(task).collect());
        }
        self.stepped(2 * width as u32)
    }
}
