//! The 32-bit Mersenne twister (Matsumoto and Nishimura 1998), `mt19937` in the C++ library: reproduces the random choices of another
//! program. Our own code does not use it.

const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// The generator's stream of numbers.
#[derive(Clone, Debug)]
pub struct Mersenne {
    state: [u32; WORDS],
    next: usize,
}

impl Mersenne {
    /// Creates a generator from a seed, like the authors' `init_genrand`.
    pub fn new(seed: u32) -> Self {
        let mut state = [seed; WORDS];
        for at in 1..WORDS {
            let last = state[at - 1];
            state[at] = (last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(at as u32);
        }
        Self { state, next: WORDS }
    }

    fn twist(&mut self) {
        for at in 0..WORDS {
            let bits = (self.state[at] & 0x8000_0000) | (self.state[(at + 1) % WORDS] & 0x7fff_ffff);
            let matrix = if bits & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[at] = self.state[(at + MIDDLE) % WORDS] ^ (bits >> 1) ^ matrix;
        }
        self.next = 0;
    }
}

impl Iterator for Mersenne {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.next == WORDS {
            self.twist();
        }
        let mut number = self.state[self.next];
        self.next += 1;
        number ^= number >> 11;
        number ^= (number << 7) & 0x9d2c_5680;
        number ^= (number << 15) & 0xefc6_0000;
        Some(number ^ (number >> 18))
    }
}

#[cfg(test)]
mod tests {
    use super::Mersenne;

    /// The C++ standard: the 10,000th number of a generator with the default seed 5489.
    #[test]
    fn the_ten_thousandth_number_is_that_of_the_standard() {
        assert_eq!(Mersenne::new(5_489).nth(9_999), Some(4_123_659_995));
    }
}
