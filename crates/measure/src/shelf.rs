//! A list that grows without moving its items.

/// Items in order, in parts of equal capacity. A growing vector copies its contents, which for some megabytes takes longer than a recorder may stay
/// on a measured CPU; this list starts another part instead. Clearing it keeps its memory.
#[derive(Debug)]
pub struct Shelf<T> {
    parts: Vec<Vec<T>>,
    /// The part being filled; earlier parts contain items, later ones are empty.
    filling: usize,
    room: usize,
    len: usize,
}

impl<T: Copy> Shelf<T> {
    /// An empty list whose parts have room for this many items each, at least one. It allocates memory with the first item.
    pub const fn new(room: usize) -> Self {
        Self { parts: Vec::new(), filling: 0, room: if room == 0 { 1 } else { room }, len: 0 }
    }

    /// Allocates memory for this many items while the list is empty, and writes to it, because the kernel maps a page only at the first write, which
    /// takes about as long as adding a hundred items.
    pub fn prepare(&mut self, items: usize, any: T) {
        while self.parts.iter().map(Vec::capacity).sum::<usize>() < items {
            let mut part = vec![any; self.room];
            part.clear();
            self.parts.push(part);
        }
    }

    /// The number of items.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no items.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        self.part_with_room(1).push(item);
        self.len += 1;
    }

    /// Adds items, possibly in several parts.
    pub fn extend(&mut self, mut items: &[T]) {
        self.len += items.len();
        while !items.is_empty() {
            let part = self.part_with_room(1);
            let (now, later) = items.split_at(items.len().min(part.capacity() - part.len()));
            part.extend_from_slice(now);
            items = later;
        }
    }

    /// Adds items contiguously, in one part.
    pub fn extend_together(&mut self, items: &[T]) {
        self.len += items.len();
        self.part_with_room(items.len()).extend_from_slice(items);
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        self.parts.iter_mut().for_each(Vec::clear);
        (self.filling, self.len) = (0, 0);
    }

    /// The items in order, part by part; no part is empty.
    pub fn parts(&self) -> impl Iterator<Item = &[T]> {
        self.parts.iter().map(Vec::as_slice).filter(|part| !part.is_empty())
    }

    /// The part that has room for this many more items without moving those it contains.
    fn part_with_room(&mut self, items: usize) -> &mut Vec<T> {
        let fits = |part: &Vec<T>| part.capacity() - part.len() >= items;
        while self.parts.get(self.filling).is_some_and(|part| !fits(part)) {
            self.filling += 1;
        }
        if self.filling == self.parts.len() {
            self.parts.push(Vec::with_capacity(self.room.max(items)));
        }
        &mut self.parts[self.filling]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_what_a_vector_would(
            room in 0_usize..5,
            prepared in 0_usize..40,
            actions in proptest::collection::vec((0_u8..4, proptest::collection::vec(any::<u8>(), 0..9)), 0..30),
        ) {
            let (mut shelf, mut plain) = (Shelf::new(room), Vec::new());
            shelf.prepare(prepared, 7);
            prop_assert_eq!((shelf.len(), shelf.parts().count()), (0, 0));
            for (action, items) in actions {
                match action {
                    0 => {
                        shelf.clear();
                        plain.clear();
                    }
                    1 => items.iter().for_each(|item| shelf.push(*item)),
                    2 => shelf.extend(&items),
                    _ => {
                        shelf.extend_together(&items);
                        prop_assert!(items.is_empty() || shelf.parts().last().unwrap().ends_with(&items));
                    }
                }
                if action > 0 {
                    plain.extend_from_slice(&items);
                }
                prop_assert_eq!((shelf.len(), shelf.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert_eq!(shelf.parts().flatten().copied().collect::<Vec<_>>(), plain.clone());
                prop_assert!(shelf.parts().all(|part| !part.is_empty()));
            }
        }

        #[test]
        fn what_it_holds_does_not_move(items in 1_usize..100) {
            let mut shelf = Shelf::new(4);
            shelf.push(0);
            let first = shelf.parts().next().unwrap().as_ptr();
            (1..items).for_each(|item| shelf.push(item));
            prop_assert_eq!(shelf.parts().next().unwrap().as_ptr(), first);
        }
    }
}
