//! A node's network card: when it is busy with the messages of its ranks.

use crate::delay::TIME_LIMIT;

/// One direction of a card. Messages take it one after the other, each for a time of its own.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Lane {
    /// When it is busy: from, until; in rising order, apart from each other.
    taken: Vec<(i64, i64)>,
}

/// Both directions.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Card {
    pub sends: Lane,
    pub receives: Lane,
}

impl Lane {
    /// When a message that is ready at a time is taken: then, or as soon as the lane is free for as long as the message keeps it.
    ///
    /// A message of a later step that is ready before one of an earlier step goes first where there is room, as it does on a
    /// card: a rank that noise holds up does not hold up the others of its node.
    pub(super) fn take(&mut self, ready: i64, busy: i64) -> i64 {
        let mut at = self.taken.partition_point(|(_, until)| *until <= ready);
        let mut start = ready;
        while let Some((from, until)) = self.taken.get(at)
            && start + busy.max(1) > *from
        {
            start = *until;
            at += 1;
        }
        // Such times are refused by the next check of the clocks.
        let start = start.min(TIME_LIMIT.get() + 1);
        if busy > 0 {
            self.keep(at, start, (start + busy).min(TIME_LIMIT.get() + 1));
        }
        start
    }

    /// Notes that it is busy, before the stretch with a number.
    fn keep(&mut self, at: usize, from: i64, until: i64) {
        let follows = at > 0 && self.taken[at - 1].1 >= from;
        let leads = self.taken.get(at).is_some_and(|next| next.0 <= until);
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

    /// Forgets what is over before any message can be ready.
    pub(super) fn forget(&mut self, earliest: i64) {
        if self.taken.first().is_some_and(|(_, until)| *until <= earliest) {
            let over = self.taken.partition_point(|(_, until)| *until <= earliest);
            self.taken.drain(..over);
        }
    }

    /// When it is busy from a time on.
    pub(super) fn busy_from(&self, earliest: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let left = self.taken.iter().filter(move |(_, until)| *until > earliest);
        left.map(move |(from, until)| ((*from).max(earliest), *until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against trying one nanosecond after the other.
        #[test]
        fn a_message_takes_the_first_room(messages in proptest::collection::vec((0_i64..60, 0_i64..8), 1..20)) {
            let mut lane = Lane::default();
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
        let mut lane = Lane::default();
        let limit = TIME_LIMIT.get();
        assert_eq!(lane.take(limit, 1 << 50), limit);
        assert_eq!(lane.take(limit, 1 << 50), limit + 1);
    }
}
