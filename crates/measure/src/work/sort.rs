//! The body `sort`: introsort (Musser 1997) of an array of random numbers, the same sequences every time, as in Tsafrir 2007, section 2.
//!
//! The standard library's unstable sort is a different algorithm, designed to avoid branch mispredictions, and may change in future releases. This
//! one does not change: quicksort by the median of three down to 16 elements, heapsort if the recursion gets deeper than 2 log2 n, and one insertion
//! sort over all at the end, as in the first C++ standard libraries, which the paper's program used.

use becalm_stats::splitmix::SplitMix64;
use std::hint::black_box;

/// Parts of at most this length are left to the insertion sort.
const SHORT: usize = 16;

/// Sorts in ascending order: quicksort, heapsort if that recurses too deep, and an insertion sort for short parts.
pub fn introsort(values: &mut [u32]) {
    let depth = 2 * values.len().checked_ilog2().unwrap_or(0);
    quicksort(values, depth);
    insertion_sort(values);
}

/// Sorts all but parts of at most [`SHORT`] elements, which end up in the right place as a whole.
fn quicksort(mut values: &mut [u32], mut depth: u32) {
    while values.len() > SHORT {
        if depth == 0 {
            heapsort(values);
            return;
        }
        depth -= 1;
        let (left, right) = partition(values);
        quicksort(right, depth);
        values = left;
    }
}

/// Splits by the median of the first, the middle and the last element: no element on the left is greater than one on the right, and both parts are
/// nonempty.
fn partition(values: &mut [u32]) -> (&mut [u32], &mut [u32]) {
    let (a, b, c) = (values[0], values[values.len() / 2], values[values.len() - 1]);
    let pivot = a.max(b).min(a.min(b).max(c));
    let (mut low, mut high) = (0, values.len() - 1);
    loop {
        // Both stop at elements equal to the pivot, so neither leaves the slice: first at the pivot itself, later at exchanged elements.
        while values[low] < pivot {
            low += 1;
        }
        while values[high] > pivot {
            high -= 1;
        }
        if low >= high {
            return values.split_at_mut(low);
        }
        values.swap(low, high);
        low += 1;
        high -= 1;
    }
}

fn heapsort(values: &mut [u32]) {
    for root in (0..values.len() / 2).rev() {
        sift_down(values, root);
    }
    for end in (1..values.len()).rev() {
        values.swap(0, end);
        sift_down(&mut values[..end], 0);
    }
}

/// Restores the heap below `root`, whose two subtrees are heaps.
fn sift_down(values: &mut [u32], mut root: usize) {
    loop {
        let mut child = 2 * root + 1;
        if child >= values.len() {
            return;
        }
        if child + 1 < values.len() && values[child] < values[child + 1] {
            child += 1;
        }
        if values[root] >= values[child] {
            return;
        }
        values.swap(root, child);
        root = child;
    }
}

fn insertion_sort(values: &mut [u32]) {
    for end in 1..values.len() {
        let value = values[end];
        let mut at = end;
        while at > 0 && values[at - 1] > value {
            values[at] = values[at - 1];
            at -= 1;
        }
        values[at] = value;
    }
}

/// Fills `values` with the random sequence of this number, the same on every machine (splitmix64, Steele et al. 2014).
pub fn sequence(number: u64, values: &mut [u32]) {
    let mut random = SplitMix64::new(number);
    values.iter_mut().for_each(|value| *value = (random.next_u64() >> 32) as u32);
}

/// The array that is repeatedly filled and sorted.
#[derive(Debug)]
pub(super) struct Sort {
    values: Vec<u32>,
}

impl Sort {
    /// An array of this many bytes.
    pub fn new(bytes: u64) -> Self {
        let count = usize::try_from(bytes / 4).unwrap_or(usize::MAX).max(2);
        let mut values = vec![0; count];
        // This touches the memory.
        sequence(0, &mut values);
        Self { values }
    }

    pub const fn bytes(&self) -> u64 {
        self.values.len() as u64 * 4
    }

    /// Sorts the sequences 0 to `iterations` - 1, one after another. Returns the sum of their medians.
    pub fn run(&mut self, iterations: u64) -> u64 {
        let mut sum = 0_u64;
        for number in 0..iterations {
            sequence(number, &mut self.values);
            introsort(black_box(&mut self.values));
            sum = sum.wrapping_add(u64::from(self.values[self.values.len() / 2]));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A sequence with the median of three always the second smallest (Musser 1997), so quicksort alone would need n/2 levels.
    fn killer(n: u32) -> Vec<u32> {
        let k = n / 2;
        let mut values: Vec<u32> = (1..=k).map(|i| if i % 2 == 1 { i } else { k + i - 1 }).collect();
        values.extend((1..=k).map(|i| 2 * i));
        values
    }

    #[test]
    fn a_killer_of_quicksort_is_sorted_by_heapsort() {
        let mut values = killer(20_000);
        let mut expected = values.clone();
        expected.sort_unstable();
        introsort(&mut values);
        assert_eq!(values, expected);
        // At depth 0 heapsort does all the work.
        let mut values = killer(1_000);
        quicksort(&mut values, 0);
        assert!(values.is_sorted());
    }

    #[test]
    fn the_sequences_are_the_same_for_ever() {
        let mut values = [0; 3];
        sequence(0, &mut values);
        // The upper halves of splitmix64's published first outputs for the seed 0.
        assert_eq!(values, [0xe220_a839, 0x6e78_9e6a, 0x06c4_5d18]);
    }

    proptest! {
        #[test]
        fn introsort_gives_what_sorting_gives(mut values in proptest::collection::vec(prop_oneof![0_u32..9, any::<u32>()], 0..400)) {
            let mut expected = values.clone();
            expected.sort_unstable();
            introsort(&mut values);
            prop_assert_eq!(values, expected);
        }

        #[test]
        fn each_of_its_parts_sorts(values in proptest::collection::vec(0_u32..50, 0..100)) {
            let mut expected = values.clone();
            expected.sort_unstable();
            for sort in [heapsort, insertion_sort] {
                let mut values = values.clone();
                sort(&mut values);
                prop_assert_eq!(&values, &expected);
            }
        }

        #[test]
        fn a_partition_has_two_sides(mut values in proptest::collection::vec(0_u32..20, 17..100)) {
            let (left, right) = partition(&mut values);
            prop_assert!(!left.is_empty() && !right.is_empty());
            prop_assert!(left.iter().max() <= right.iter().min());
        }
    }
}
