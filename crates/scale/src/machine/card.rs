//! A node's network card: tracks when it is busy with the messages of its ranks.

use super::Time;
use crate::delay::TIME_LIMIT;

/// One direction of a card. Messages occupy it one after the other, each for its own time.
#[derive(Clone, Default, Debug)]
pub(super) struct Lane<T> {
    /// The busy stretches, from and until; in rising order, not touching.
    taken: Vec<(i64, T)>,
}

/// Both directions.
#[derive(Clone, Default, Debug)]
pub(super) struct Card<T> {
    pub sends: Lane<T>,
    pub receives: Lane<T>,
}

impl<T: Time> Lane<T> {
    /// The time when a message that is ready at `ready` is taken: then, or as soon as the lane is free for `busy`.
    ///
    /// A message of a later step that is ready before one of an earlier step goes first if there is room, as on a real card: a rank delayed by noise
    /// does not delay the others of its node.
    pub(super) fn take(&mut self, ready: T, busy: i64) -> T {
        let mut at = self.taken.partition_point(|(_, until)| until.ns() <= ready.ns());
        let mut start = ready;
        while let Some((from, until)) = self.taken.get(at)
            && start.ns() + busy.max(1) > *from
        {
            start = *until;
            at += 1;
        }
        // The next check of the clocks rejects such times.
        let start = start.at_most(TIME_LIMIT.get() + 1);
        if busy > 0 {
            self.keep(at, start.ns(), start.plus(busy).at_most(TIME_LIMIT.get() + 1));
        }
        start
    }

    /// Inserts a busy stretch at an index.
    fn keep(&mut self, at: usize, from: i64, until: T) {
        let follows = at > 0 && self.taken[at - 1].1.ns() >= from;
        let leads = self.taken.get(at).is_some_and(|next| next.0 <= until.ns());
        match (follows, leads) {
            (true, true) => {
                self.taken[at - 1].1 = self.taken[at].1;
                self.taken.remove(at);
            }
            (true, false) => self.taken[at - 1].1 = until,
            (false, true) => self.taken[at].0 = from,
            (false, false) => self.taken.insert(at, (from, until)),
        }
    }

    /// Drops what ends before any message can be ready.
    pub(super) fn forget(&mut self, earliest: i64) {
        if self.taken.first().is_some_and(|(_, until)| until.ns() <= earliest) {
            let over = self.taken.partition_point(|(_, until)| until.ns() <= earliest);
            self.taken.drain(..over);
        }
    }

    /// The busy stretches from a time on.
    pub(super) fn busy_from(&self, earliest: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let left = self.taken.iter().filter(move |(_, until)| until.ns() > earliest);
        left.map(move |(from, until)| ((*from).max(earliest), until.ns()))
    }

    /// The end of each busy stretch.
    pub(super) fn times(&self) -> impl Iterator<Item = T> + '_ {
        self.taken.iter().map(|(_, until)| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compared with trying one nanosecond after the other.
        #[test]
        fn a_message_takes_the_first_room(messages in proptest::collection::vec((0_i64..60, 0_i64..8), 1..20)) {
            let mut lane = Lane::<i64>::default();
            let mut busy_at = vec![false; 400];
            for (ready, busy) in messages {
                let free = |at: &i64| (*at..*at + busy.max(1)).all(|at| !busy_at[at as usize]);
                let expected = (ready..).find(free).unwrap();
                prop_assert_eq!(lane.take(ready, busy), expected);
                busy_at[expected as usize..(expected + busy) as usize].fill(true);
            }
            let kept: Vec<(i64, i64)> = lane.busy_from(0).collect();
            prop_assert!(kept.windows(2).all(|two| two[0].1 < two[1].0), "merged: {:?}", kept);
            lane.forget(30);
            prop_assert!(lane.busy_from(0).all(|(_, until)| until > 30));
        }
    }

    #[test]
    fn times_past_the_limit_stay_where_they_can_be_refused() {
        let mut lane = Lane::<i64>::default();
        let limit = TIME_LIMIT.get();
        assert_eq!(lane.take(limit, 1 << 50), limit);
        assert_eq!(lane.take(limit, 1 << 50), limit + 1);
    }
}
