//! The shared memory as a value: its header, the circles of noise, and a slot for each thread.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::circle::Circle;
use crate::layout::{self, SLOT_WORDS, SLOTS};

/// The words that this process shares with the maker of the noise. They are accessed atomically without ordering: only its own thread writes a slot,
/// and no word determines whether another one is valid.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a>(&'a [AtomicU64]);

impl<'a> Shared<'a> {
    /// Memory prepared by the maker of the noise; `None` if it has another version, or less room than its header and its slots take.
    pub fn new(words: &'a [AtomicU64]) -> Option<Self> {
        let word = |word: usize| words.get(word).map(|word| word.load(Relaxed));
        if word(layout::KIND) != Some(layout::MAGIC) || word(layout::WORDS) != Some(words.len() as u64) {
            return None;
        }
        let circles = usize::try_from(word(layout::CIRCLES)?).ok().filter(|circles| *circles <= words.len())?;
        (layout::first_detour(circles) <= words.len()).then_some(Self(words))
    }

    /// A word of the header.
    pub fn get(self, word: usize) -> u64 {
        self.0[word].load(Relaxed)
    }

    /// Writes a word of the header.
    pub fn set(self, word: usize, value: u64) {
        self.0[word].store(value, Relaxed);
    }

    /// Adds 1 to a word of the header, which other processes may do at the same time. Returns its previous value.
    pub fn count(self, word: usize) -> u64 {
        self.0[word].fetch_add(1, Relaxed)
    }

    /// The circle with a number; `None` if there is none with noise.
    pub fn circle(self, number: u64) -> Option<Circle<'a>> {
        if number >= self.get(layout::CIRCLES) {
            return None;
        }
        let at = layout::HEADER_WORDS + number as usize * layout::CIRCLE_WORDS;
        let [length, count, first] = [0, 1, 2].map(|word: usize| self.get(at + word));
        let first = usize::try_from(first).ok()?;
        let end = usize::try_from(count).ok()?.checked_mul(2)?.checked_add(first)?;
        Circle::new(length, self.0.get(first..end)?)
    }

    /// The slot with a number below [`SLOTS`].
    pub fn slot(self, number: usize) -> Option<Slot<'a>> {
        let at = layout::first_slot(self.get(layout::CIRCLES) as usize) + number * SLOT_WORDS;
        let words = self.0.get(at..at + SLOT_WORDS)?.try_into().ok()?;
        (number < SLOTS).then_some(Slot { words, number })
    }

    /// All slots, taken or free.
    pub fn slots(self) -> impl Iterator<Item = Slot<'a>> {
        (0..SLOTS).map_while(move |number| self.slot(number))
    }

    /// The slot at an address from [`Slot::address`]; `None` for every other number.
    pub fn slot_at(self, address: usize) -> Option<Slot<'a>> {
        let offset = address.checked_sub(self.slot(0)?.address())?;
        let bytes = SLOT_WORDS * size_of::<u64>();
        if offset.is_multiple_of(bytes) { self.slot(offset / bytes) } else { None }
    }
}

/// The words of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    words: &'a [AtomicU64; SLOT_WORDS],
    number: usize,
}

impl Slot<'_> {
    /// The number for [`Shared::slot`], below [`SLOTS`].
    pub fn number(self) -> usize {
        self.number
    }

    /// Reads the word at this place in the slot.
    pub fn get(self, word: usize) -> u64 {
        self.words[word].load(Relaxed)
    }

    /// Writes the word at this place in the slot.
    pub fn set(self, word: usize, value: u64) {
        self.words[word].store(value, Relaxed);
    }

    /// Adds to a word that no other thread writes at the same time.
    pub fn add(self, word: usize, value: u64) {
        self.set(word, self.get(word) + value);
    }

    /// Writes a word if it has the value `before`, in one step. Returns whether it had.
    #[must_use]
    pub fn replace(self, word: usize, before: u64, value: u64) -> bool {
        self.words[word].compare_exchange(before, value, Relaxed, Relaxed).is_ok()
    }

    /// The number for [`Shared::slot_at`], valid in the same process. Not zero.
    pub fn address(self) -> usize {
        self.words.as_ptr().addr()
    }

    /// The shortest detour that can be made, in nanoseconds: the time that a signal takes from its thread.
    pub fn shortest(self) -> u64 {
        self.get(layout::ENTRY) + self.get(layout::EXIT)
    }
}

#[cfg(test)]
pub(crate) mod tests;
