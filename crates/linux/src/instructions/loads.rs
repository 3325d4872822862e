//! A chain of pointers through memory of a given size: each load needs the previous one, and no prefetcher can predict the order.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::native;

/// The first word of a separate cache line, with the address of the next.
#[derive(Debug)]
#[repr(C, align(64))]
struct Line {
    next: usize,
}

/// The bytes of a line. If a processor's lines are longer, two neighbors share one.
const LINE_BYTES: usize = size_of::<Line>();

/// The seed of the order; must not be 0.
const SEED: u64 = 0x0123_4567_89ab_cdef;

/// The chain: a cycle through all lines of its memory in a random order, the same each time.
#[derive(Debug)]
pub struct PointerChain {
    lines: Vec<Line>,
    /// The line whose address is loaded from next.
    at: usize,
}

impl PointerChain {
    /// A chain through this many bytes, at least two lines. All of it is written, and so touched.
    pub fn new(bytes: u64) -> Self {
        let count = usize::try_from(bytes).unwrap_or(usize::MAX) / LINE_BYTES;
        let order = circle(count.max(2));
        let mut lines: Vec<Line> = order.iter().map(|_| Line { next: 0 }).collect();
        // The vector never grows or moves, so its lines stay where they are.
        let base = lines.as_ptr().expose_provenance();
        for (line, next) in lines.iter_mut().zip(order) {
            line.next = base + next * LINE_BYTES;
        }
        Self { lines, at: 0 }
    }

    /// The memory that the chain goes through.
    pub const fn bytes(&self) -> u64 {
        (self.lines.len() * LINE_BYTES) as u64
    }

    /// Loads 512 times per pass, from where the last call ended. Returns the number of the line that the last load led to; `None` on an architecture
    /// without these loops.
    pub fn run(&mut self, passes: u64) -> Option<u64> {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        {
            let base = self.lines.as_ptr().expose_provenance();
            if passes > 0 {
                // SAFETY: each line holds the address of a line of the same vector, which is borrowed for the call.
                let address = unsafe { native::load(passes, base + self.at * LINE_BYTES) };
                self.at = (address - base) / LINE_BYTES;
            }
            Some(self.at as u64)
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            let _ = passes;
            None
        }
    }
}

/// The next place for each place, all in a single cycle (Sattolo 1986).
fn circle(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = SEED;
    for last in (1..count).rev() {
        state = super::branches::xorshift(state);
        order.swap(last, (state % last as u64) as usize);
    }
    order
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;
