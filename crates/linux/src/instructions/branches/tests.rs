use super::*;

#[test]
fn each_branch_goes_by_the_next_bit() {
    let mut branches = RandomBranches::new();
    let mut state = SEED;
    for passes in [1_u64, 0, 3, 40] {
        let mut not_taken = 0;
        for _ in 0..passes * 8 {
            state = xorshift(state);
            not_taken += u64::from(state.count_zeros());
        }
        assert_eq!(branches.run(passes), Some(not_taken), "{passes} passes");
        assert_eq!(branches.state, state);
    }
}

#[test]
fn half_of_them_are_taken_and_neighbors_tell_nothing() {
    let mut state = SEED;
    let bits: Vec<bool> = (0..2_000)
        .flat_map(|_| {
            state = xorshift(state);
            (0..64).rev().map(move |bit| state >> bit & 1 == 1)
        })
        .collect();
    let share = |hits: usize, all: usize| hits as f64 / all as f64;
    let taken = share(bits.iter().filter(|bit| **bit).count(), bits.len());
    // Of 128,000 fair bits, the share is within 0.006 of a half: four standard deviations.
    assert!((taken - 0.5).abs() < 0.006, "{taken}");
    for lag in [1, 2, 63, 64, 65] {
        let same = bits.windows(lag + 1).filter(|window| window[0] == window[lag]).count();
        let same = share(same, bits.len() - lag);
        assert!((same - 0.5).abs() < 0.006, "lag {lag}: {same}");
    }
}
