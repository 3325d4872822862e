//! The ranks that take part in a part of a collective: all of them, those of each node, or the first of every node.

use crate::ScaleError;
use crate::machine::{JobMachine, Payload, Time};

/// Every `stride`-th rank of each run of ranks, numbered from 0. Several groups of one shape do the same at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    stride: usize,
    run: usize,
    size: usize,
}

impl Group {
    pub(super) const fn all(ranks: usize) -> Self {
        Self { stride: 1, run: ranks, size: ranks }
    }

    /// The ranks of each node. The last node may have fewer.
    pub(super) const fn nodes(per_node: usize) -> Self {
        Self { stride: 1, run: per_node, size: per_node }
    }

    /// The first rank of every node.
    pub(super) const fn leaders(ranks: usize, per_node: usize) -> Self {
        Self { stride: per_node, run: ranks, size: ranks.div_ceil(per_node) }
    }

    /// The number of its ranks: for nodes, that of a full one.
    pub(super) const fn size(self) -> usize {
        self.size
    }

    /// The number of a rank in the group, if it belongs to it.
    #[inline]
    fn number(self, rank: usize) -> Option<usize> {
        let within = if rank < self.run { rank } else { rank % self.run };
        if self.stride == 1 {
            return Some(within);
        }
        within.is_multiple_of(self.stride).then(|| within / self.stride)
    }

    /// The rank with this number in the same group as another rank.
    #[inline]
    fn rank(self, other: usize, other_number: usize, number: usize) -> usize {
        other - other_number * self.stride + number * self.stride
    }

    /// The partner of a rank, from a function on numbers.
    #[inline]
    fn partner(self, rank: usize, numbers: &impl Fn(usize) -> Option<usize>) -> Option<usize> {
        let own = self.number(rank)?;
        numbers(own).map(|number| self.rank(rank, own, number))
    }

    /// Each number sends a message to `to` of it, if any, and receives one from `from` of it, if any.
    pub(super) fn exchange<T: Time>(
        self,
        machine: &mut JobMachine<'_, T>,
        payload: Payload,
        to: impl Fn(usize) -> Option<usize> + Sync,
        from: impl Fn(usize) -> Option<usize> + Sync,
    ) -> Result<(), ScaleError> {
        // If the group contains all ranks, numbers are ranks: the common case, in the hottest loop.
        if self.stride == 1 && self.run == machine.len() {
            return machine.exchange(payload, to, from);
        }
        // The last node may lack ranks; in trees those furthest from the root.
        let ranks = machine.len();
        let there = |partner: Option<usize>| partner.filter(|partner| *partner < ranks);
        let to = |rank: usize| there(self.partner(rank, &to));
        let from = |rank: usize| there(self.partner(rank, &from));
        machine.exchange(payload, to, from)
    }

    /// Every rank sends to the one `distance` further, and receives from the one as far back.
    pub(super) fn shift<T: Time>(
        self,
        machine: &mut JobMachine<'_, T>,
        payload: Payload,
        distance: usize,
    ) -> Result<(), ScaleError> {
        let size = self.size;
        let to = move |number: usize| {
            Some(if number + distance < size { number + distance } else { number + distance - size })
        };
        let from =
            move |number: usize| Some(if number >= distance { number - distance } else { number + size - distance });
        self.exchange(machine, payload, to, from)
    }

    /// The powers of `base` that are smaller than the group.
    pub(super) fn powers(self, base: usize) -> Vec<usize> {
        std::iter::successors(Some(1_usize), |power| power.checked_mul(base))
            .take_while(|power| *power < self.size)
            .collect()
    }
}
