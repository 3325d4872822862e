//! Sorted offsets with a first guess for each look-up.

/// The distinct offsets of one kind of unit, in rising order.
#[derive(Clone, Debug)]
pub(crate) struct OffsetIndex {
    length: i64,
    offsets: Vec<i64>,
    /// The circle is cut into buckets of 2^shift ns; `first[b]` is the first offset in bucket b or later.
    first: Vec<u32>,
    shift: u32,
}

/// The number of offsets in one bucket up to which they are searched one by one.
const SCAN: u32 = 8;

impl OffsetIndex {
    pub(crate) fn new(length: i64, offsets: &[i64]) -> Self {
        let mut offsets = offsets.to_vec();
        offsets.sort_unstable();
        offsets.dedup();
        let mut shift = 0;
        while length >> shift > 2 * offsets.len().max(1) as i64 {
            shift += 1;
        }
        let buckets = ((length - 1) >> shift) as usize + 1;
        let mut first = vec![0_u32; buckets + 1];
        for offset in &offsets {
            first[(offset >> shift) as usize + 1] += 1;
        }
        for bucket in 1..first.len() {
            first[bucket] += first[bucket - 1];
        }
        Self { length, offsets, first, shift }
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    pub(crate) fn length(&self) -> i64 {
        self.length
    }

    pub(crate) fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// The number of offsets below a position on the circle.
    #[inline]
    pub(crate) fn below(&self, position: i64) -> usize {
        let bucket = (position >> self.shift) as usize;
        let (from, to) = (self.first[bucket], self.first[bucket + 1]);
        if to - from > SCAN {
            return from as usize
                + self.offsets[from as usize..to as usize].partition_point(|offset| *offset < position);
        }
        let mut at = from as usize;
        while at < to as usize && self.offsets[at] < position {
            at += 1;
        }
        at
    }

    /// The distance from a position up to the next offset, going round. Requires at least one offset.
    #[inline]
    pub(crate) fn distance_up(&self, position: i64) -> i64 {
        let at = self.below(position);
        match self.offsets.get(at) {
            Some(offset) => offset - position,
            None => self.offsets[0] + self.length - position,
        }
    }
}
