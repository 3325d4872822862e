//! The body `stream`: the triad `a[i] = b[i] + 3 c[i]` over arrays larger than the caches, like McCalpin's STREAM.

use std::hint::black_box;

/// Elements per iteration: 4 KiB of each array.
const CHUNK: usize = 512;

/// Each of the three arrays is this many times the last-level cache, so nothing from the previous round is still cached.
const TIMES_CACHE: u64 = 2;

/// The arrays, and the position of the next iteration.
#[derive(Debug)]
pub(super) struct StreamArrays {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    next: usize,
}

impl StreamArrays {
    /// Arrays for a machine with a last-level cache of this size.
    pub fn new(cache_bytes: u64) -> Self {
        let elements = usize::try_from(cache_bytes * TIMES_CACHE / 8).unwrap_or(usize::MAX);
        let elements = elements.next_multiple_of(CHUNK).max(CHUNK);
        // Nonzero values, because the allocator provides zeros without touching memory.
        Self { a: vec![1.0; elements], b: vec![2.0; elements], c: vec![0.5; elements], next: 0 }
    }

    pub const fn bytes(&self) -> u64 {
        (self.a.len() + self.b.len() + self.c.len()) as u64 * 8
    }

    /// Processes this many chunks from where the previous call ended. Returns the bits of the last element.
    pub fn run(&mut self, iterations: u64) -> u64 {
        let mut last = 0.0;
        for _ in 0..iterations {
            let range = self.next..self.next + CHUNK;
            let sources = self.b[range.clone()].iter().zip(&self.c[range.clone()]);
            for (a, (b, c)) in self.a[range.clone()].iter_mut().zip(sources) {
                *a = b + 3.0 * c;
            }
            last = black_box(&self.a)[range.end - 1];
            self.next = if range.end == self.a.len() { 0 } else { range.end };
        }
        last.to_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_go_around_the_arrays() {
        let mut stream = StreamArrays::new(8 << 10);
        assert_eq!((stream.a.len(), stream.bytes()), (2048, 3 * 2048 * 8));
        assert_eq!(f64::from_bits(stream.run(1)), 3.5);
        assert_eq!(stream.a.iter().filter(|a| **a == 3.5).count(), CHUNK);
        assert_eq!(f64::from_bits(stream.run(3)), 3.5);
        assert!(stream.a.iter().all(|a| *a == 3.5));
        assert_eq!(stream.next, 0);
        assert_eq!(stream.run(0), 0);
    }
}
