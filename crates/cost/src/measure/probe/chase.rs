//! Dependent loads: a walk along a random cycle through memory, which prefetchers cannot predict (McVoy, Staelin, *lmbench*, USENIX 1996,
//! section 6.2).

use std::sync::atomic::{AtomicU64, Ordering};

use becalm_linux::probe::Pages;
use becalm_linux::sched::ThreadUsage;
use becalm_stats::splitmix::SplitMix64;

/// Words in a cache line of 64 bytes.
pub(super) const LINE: usize = 8;

/// Writes a cycle through these places, each an index into `words`, and returns its start: a random permutation that is one cycle (S.
/// Sattolo, Information Processing Letters 22, 1986), the same for every run.
pub(super) fn lay(words: &[AtomicU64], places: usize, place: impl Fn(usize) -> usize) -> usize {
    let mut next: Vec<u32> = (0..places as u32).collect();
    let mut random = SplitMix64::new(0x6265_6361_6c6d);
    for last in (1..places).rev() {
        next.swap(last, random.below(last as u64) as usize);
    }
    for (at, next) in next.iter().enumerate() {
        words[place(at)].store(place(*next as usize) as u64, Ordering::Relaxed);
    }
    place(0)
}

/// Touches these places for the first time, in random order, so neighboring pages get memory from anywhere: physically adjacent pages may
/// share a TLB entry.
pub(super) fn scatter(words: &[AtomicU64], places: usize, place: impl Fn(usize) -> usize) {
    let mut order: Vec<usize> = (0..places).collect();
    let mut random = SplitMix64::new(0x7363_6174);
    for last in (1..places).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order.into_iter().for_each(|at| words[place(at)].store(0, Ordering::Relaxed));
}

/// Walks along the cycle and returns the final place.
#[inline(always)]
pub(super) fn walk(words: &[AtomicU64], mut at: usize, loads: u32) -> usize {
    for _ in 0..loads {
        at = words[at].load(Ordering::Relaxed) as usize;
    }
    at
}

/// Positions for a page chase: one line per page, at offsets that fill all sets of a cache evenly. Up to 1,024 sets of 64-byte lines, the
/// page number selects the set together with the offset, so the offset changes only after a full turn of it. Otherwise all lines of
/// contiguous memory, as in huge pages, would share a few sets.
pub(super) const fn one_line_a_page(page: usize, page_words: usize) -> usize {
    let pages_in_all_sets = 1_024 * LINE / page_words;
    let turn = if pages_in_all_sets > 1 { page / pages_in_all_sets } else { page };
    page * page_words + turn % (page_words / LINE) * LINE
}

/// Touches every small page and checks by the number of faults that the pages are huge.
pub(super) fn is_huge(pages: &Pages) -> bool {
    let before = ThreadUsage::for_current_thread();
    for word in pages.words().iter().step_by(4096 / 8) {
        word.store(0, Ordering::Relaxed);
    }
    let faults = ThreadUsage::for_current_thread().since(before).faults;
    faults <= 4 * pages.count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cycle_visits_every_place_once(places in 1_usize..300, stride in 1_usize..9) {
            let words: Vec<AtomicU64> = (0..places * stride).map(|_| AtomicU64::new(u64::MAX)).collect();
            let start = lay(&words, places, |at| at * stride);
            let mut seen = vec![false; places];
            let mut at = start;
            for _ in 0..places {
                prop_assert!(at % stride == 0 && !seen[at / stride]);
                seen[at / stride] = true;
                at = walk(&words, at, 1);
            }
            prop_assert_eq!(at, start);
            prop_assert_eq!(walk(&words, start, places as u32), start);
        }

        #[test]
        fn every_place_is_touched(places in 0_usize..300, stride in 1_usize..9) {
            let words: Vec<AtomicU64> = (0..places * stride).map(|_| AtomicU64::new(u64::MAX)).collect();
            scatter(&words, places, |at| at * stride);
            for (at, word) in words.iter().enumerate() {
                prop_assert_eq!(word.load(Ordering::Relaxed) == 0, at % stride == 0);
            }
        }

        #[test]
        fn a_page_has_one_line(page in 0_usize..10_000, shift in 9_u32..14) {
            let words = 1_usize << shift;
            let at = one_line_a_page(page, words);
            prop_assert!(at / words == page && at.is_multiple_of(LINE));
        }

        #[test]
        fn lines_fill_the_sets_of_a_cache_alike(pages in 1_usize..9_000, shift in 9_u32..14, sets in 6_u32..11) {
            let mut lines = vec![0; 1 << sets];
            for page in 0..pages {
                lines[one_line_a_page(page, 1 << shift) / LINE % (1 << sets)] += 1;
            }
            let fair = pages.div_ceil(1 << sets);
            // The last round of the offsets may be incomplete.
            let (most, round) = (lines.iter().max().copied().unwrap_or(0), 1_024_usize.div_ceil(1 << sets));
            prop_assert!(most <= fair + round, "{most} lines in a set, {fair} are fair");
        }
    }

    #[test]
    fn the_way_is_not_the_order_of_memory() {
        let words: Vec<AtomicU64> = (0..1000).map(|_| AtomicU64::new(0)).collect();
        lay(&words, 1000, |at| at);
        let ahead = words.iter().enumerate().filter(|(at, word)| word.load(Ordering::Relaxed) as usize == at + 1);
        assert!(ahead.count() < 20);
    }
}
