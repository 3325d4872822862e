//! Random numbers that are the same on every machine (SplitMix64: Steele et al. 2014). The crate `stats` has the same; this
//! library uses no other crate.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number below a limit, from a seed and two more numbers that distinguish users of the same seed.
pub fn below(limit: u64, seed: u64, node: u64, order: u64) -> u64 {
    let mut state = seed;
    for part in [node, order] {
        state = mixed(state.wrapping_add(STEP)) ^ part;
    }
    let random = mixed(state.wrapping_add(STEP));
    ((u128::from(random) * u128::from(limit)) >> 64) as u64
}

fn mixed(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The first output of the published generator for a seed of 0.
        assert_eq!(mixed(STEP), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn numbers_stay_below_their_limit_and_differ_by_node_and_order() {
        let mut numbers: Vec<u64> =
            (0..8).flat_map(|node| (0..8).map(move |order| below(1_000_000_007, 1, node, order))).collect();
        assert!(numbers.iter().all(|number| *number < 1_000_000_007));
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 64);
        assert_eq!(below(1, 5, 6, 7), 0);
    }
}
