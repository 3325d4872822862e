//! The building blocks of collectives: trees, rings, halving and doubling, each for all ranks of a group.

use super::group::Group;
use crate::ScaleError;
use crate::machine::{JobMachine, Payload, Time};

type Done = Result<(), ScaleError>;

/// From number 0 down a tree with up to `radix - 1` children per rank and level, the largest subtrees first.
pub(super) fn descend<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, radix: usize, bytes: u64) -> Done {
    for power in group.powers(radix).into_iter().rev() {
        for child in 1..radix {
            let (parent, son) = tree(group, radix, power, child);
            group.exchange(machine, Payload::plain(bytes), parent, son)?;
        }
    }
    Ok(())
}

/// Up the same tree to number 0, reducing the received data.
pub(super) fn ascend<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, radix: usize, payload: Payload) -> Done {
    for power in group.powers(radix) {
        for child in 1..radix {
            let (parent, son) = tree(group, radix, power, child);
            group.exchange(machine, payload, son, parent)?;
        }
    }
    Ok(())
}

/// The functions from parent to child and from child to parent, for one child of one level.
fn tree(
    group: Group,
    radix: usize,
    power: usize,
    child: usize,
) -> (impl Fn(usize) -> Option<usize>, impl Fn(usize) -> Option<usize>) {
    let (size, below, away) = (group.size(), power * radix, child * power);
    let parent = move |number: usize| (number.is_multiple_of(below) && number + away < size).then(|| number + away);
    let son = move |number: usize| (number % below == away).then(|| number - away);
    (parent, son)
}

/// From number 0 down a binomial tree; each child gets its own part and those below. An incomplete subtree counts as a complete one.
pub(super) fn scatter<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, part: u64) -> Done {
    for power in group.powers(2).into_iter().rev() {
        let (parent, son) = tree(group, 2, power, 1);
        group.exchange(machine, Payload::plain(part.saturating_mul(power as u64)), parent, son)?;
    }
    Ok(())
}

/// Messages to the ranks 1, 2, 4 ... further, with bytes that depend on the distance.
pub(super) fn shifts<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, bytes: impl Fn(u64) -> u64) -> Done {
    for distance in group.powers(2) {
        group.shift(machine, Payload::plain(bytes(distance as u64)), distance)?;
    }
    Ok(())
}

/// Once around the ring, with the same payload each time.
pub(super) fn circle<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, payload: Payload) -> Done {
    for _ in 1..group.size() {
        group.shift(machine, payload, 1)?;
    }
    Ok(())
}

/// Each with every other, one after the other.
pub(super) fn pairwise<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, payload: Payload) -> Done {
    for distance in 1..group.size() {
        group.shift(machine, payload, distance)?;
    }
    Ok(())
}

/// The largest power of two of the numbers of a group. Each of the others is the neighbor of one in it: of the first 2 x extra numbers, the even ones
/// are outside.
#[derive(Clone, Copy)]
pub(super) struct Core {
    group: Group,
    size: usize,
    extra: usize,
}

impl Core {
    pub(super) fn new(group: Group) -> Self {
        let size = if group.size().is_power_of_two() { group.size() } else { group.size().next_power_of_two() / 2 };
        Self { group, size, extra: group.size() - size }
    }

    pub(super) const fn size(self) -> usize {
        self.size
    }

    fn outside(self, number: usize) -> bool {
        number < 2 * self.extra && number.is_multiple_of(2)
    }

    fn neighbor(self, number: usize) -> bool {
        number < 2 * self.extra && !number.is_multiple_of(2)
    }

    fn place(self, number: usize) -> usize {
        if number < 2 * self.extra { number / 2 } else { number - self.extra }
    }

    fn number(self, place: usize) -> usize {
        if place < self.extra { 2 * place + 1 } else { place + self.extra }
    }

    /// Ranks outside contribute their data.
    pub(super) fn fold<T: Time>(self, machine: &mut JobMachine<'_, T>, payload: Payload) -> Done {
        if self.extra == 0 {
            return Ok(());
        }
        let to = |number: usize| self.outside(number).then(|| number + 1);
        let from = |number: usize| self.neighbor(number).then(|| number - 1);
        self.group.exchange(machine, payload, to, from)
    }

    /// Ranks outside get theirs.
    pub(super) fn unfold<T: Time>(self, machine: &mut JobMachine<'_, T>, bytes: u64) -> Done {
        if self.extra == 0 {
            return Ok(());
        }
        let to = |number: usize| self.neighbor(number).then(|| number - 1);
        let from = |number: usize| self.outside(number).then(|| number + 1);
        self.group.exchange(machine, Payload::plain(bytes), to, from)
    }

    /// Exchange between pairs of the core whose places differ in one bit.
    pub(super) fn pairs<T: Time>(self, machine: &mut JobMachine<'_, T>, payload: Payload, bit: usize) -> Done {
        let other = |number: usize| (!self.outside(number)).then(|| self.number(self.place(number) ^ bit));
        self.group.exchange(machine, payload, other, other)
    }

    /// In each round, pairs halve the data still to be reduced.
    pub(super) fn halve<T: Time>(self, machine: &mut JobMachine<'_, T>, bytes: u64) -> Done {
        let mut parts = 2;
        for bit in Group::all(self.size).powers(2) {
            self.pairs(machine, Payload::reduced(bytes.div_ceil(parts)), bit)?;
            parts *= 2;
        }
        Ok(())
    }

    /// In each round, pairs double their data: the reverse of [`Core::halve`].
    pub(super) fn double<T: Time>(self, machine: &mut JobMachine<'_, T>, bytes: u64) -> Done {
        let mut parts = self.size as u64;
        for bit in Group::all(self.size).powers(2).into_iter().rev() {
            self.pairs(machine, Payload::plain(bytes.div_ceil(parts)), bit)?;
            parts /= 2;
        }
        Ok(())
    }

    /// Gathers the parts that [`Core::halve`] left at place 0, and sends them to number 0 if that is outside.
    pub(super) fn gather<T: Time>(self, machine: &mut JobMachine<'_, T>, bytes: u64) -> Done {
        let mut parts = self.size as u64;
        for bit in Group::all(self.size).powers(2).into_iter().rev() {
            let place = |number: usize| (!self.outside(number)).then(|| self.place(number));
            let to =
                |number: usize| place(number).filter(|at| (bit..2 * bit).contains(at)).map(|at| self.number(at - bit));
            let from = |number: usize| place(number).filter(|at| *at < bit).map(|at| self.number(at + bit));
            self.group.exchange(machine, Payload::plain(bytes.div_ceil(parts)), to, from)?;
            parts /= 2;
        }
        if self.extra > 0 {
            let to = |number: usize| (number == 1).then_some(0);
            let from = |number: usize| (number == 0).then_some(1);
            self.group.exchange(machine, Payload::plain(bytes), to, from)?;
        }
        Ok(())
    }
}

/// Neighbors exchange their data, alternately on either side (Chen et al. 2005); for even numbers of ranks.
pub(super) fn neighbors<T: Time>(machine: &mut JobMachine<'_, T>, group: Group, bytes: u64) -> Done {
    let size = group.size();
    let pair = |number: usize| Some(number ^ 1);
    group.exchange(machine, Payload::plain(bytes), pair, pair)?;
    for step in 1..size / 2 {
        let other = move |number: usize| {
            let next = number.is_multiple_of(2) != (step % 2 == 1);
            Some(if next { (number + 1) % size } else { (number + size - 1) % size })
        };
        group.exchange(machine, Payload::plain(bytes.saturating_mul(2)), other, other)?;
    }
    Ok(())
}
