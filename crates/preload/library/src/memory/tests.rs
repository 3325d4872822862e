use super::*;

/// Shared memory with these circles, each a length and its detours.
pub fn prepared(circles: &[(u64, &[(u64, u64)])]) -> Box<[AtomicU64]> {
    let first = layout::first_detour(circles.len());
    let detours: usize = circles.iter().map(|(_, detours)| detours.len()).sum();
    let zeros = Box::new_zeroed_slice(first + 2 * detours);
    // SAFETY: an atomic number may have any bits. (Creating them one by one would take Miri seconds.)
    let words: Box<[AtomicU64]> = unsafe { zeros.assume_init() };
    let set = |at: usize, value: u64| words[at].store(value, Relaxed);
    set(layout::KIND, layout::MAGIC);
    set(layout::WORDS, words.len() as u64);
    set(layout::CIRCLES, circles.len() as u64);
    let mut at = first;
    for (number, (length, detours)) in circles.iter().enumerate() {
        let circle = layout::HEADER_WORDS + number * layout::CIRCLE_WORDS;
        for (word, value) in [*length, detours.len() as u64, at as u64].into_iter().enumerate() {
            set(circle + word, value);
        }
        for (start, length) in *detours {
            set(at, *start);
            set(at + 1, *length);
            at += 2;
        }
    }
    words
}

#[test]
fn memory_of_another_version_or_without_room_is_refused() {
    let words = prepared(&[(100, &[(10, 5)])]);
    assert!(Shared::new(&words).is_some());
    assert!(Shared::new(&[]).is_none());
    // Its header claims more than is mapped.
    assert!(Shared::new(&words[..words.len() - 1]).is_none());
    for (word, value) in [(layout::KIND, layout::MAGIC + 1), (layout::CIRCLES, 2), (layout::CIRCLES, u64::MAX)] {
        let before = words[word].swap(value, Relaxed);
        // A second circle takes three words; there are two for the detour.
        assert!(Shared::new(&words).is_none(), "word {word} is {value}");
        words[word].store(before, Relaxed);
    }
}

#[test]
fn a_slot_is_found_by_its_address_and_by_no_other_number() {
    let words = prepared(&[(100, &[(10, 5)])]);
    let shared = Shared::new(&words).unwrap();
    assert_eq!(shared.slots().count(), SLOTS);
    let slot = shared.slot(7).unwrap();
    assert_eq!(slot.number(), 7);
    slot.set(layout::TID, 77);
    assert_eq!(shared.slot_at(slot.address()).unwrap().get(layout::TID), 77);
    for number in [0, 1, slot.address() + 8, slot.address() - 1, usize::MAX] {
        assert!(shared.slot_at(number).is_none());
    }
    let last = shared.slot(SLOTS - 1).unwrap();
    assert!(shared.slot(SLOTS).is_none() && shared.slot_at(last.address() + SLOT_WORDS * 8).is_none());
}

#[test]
fn circles_that_reach_beyond_the_memory_are_none() {
    let words = prepared(&[(100, &[(10, 5), (20, 6)]), (0, &[(1, 1)]), (50, &[])]);
    let shared = Shared::new(&words).unwrap();
    assert_eq!(shared.circle(0).unwrap().detour(1), (20, 6));
    // One without a length, one without detours, and one that is not there.
    assert!([1, 2, 3, u64::MAX].iter().all(|number| shared.circle(*number).is_none()));
    let first = layout::HEADER_WORDS + 2;
    for at in [words.len() as u64 - 1, u64::MAX] {
        words[first].store(at, Relaxed);
        assert!(shared.circle(0).is_none());
    }
}
