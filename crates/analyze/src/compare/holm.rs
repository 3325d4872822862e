//! Many tests at once: S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics 6 (1979). However the
//! tests depend on each other, the probability of any false positive stays below the level that the adjusted values are compared with.

/// The adjusted p-values, in the order of the input: each is the lowest level at which Holm's procedure over all of them rejects it.
pub fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut floor = 0.0_f64;
    for (at, index) in order.into_iter().enumerate() {
        floor = floor.max((p_values.len() - at) as f64 * p_values[index]).min(1.0);
        adjusted[index] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_the_paper_in_small() {
        assert_eq!(adjusted(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
        assert_eq!(adjusted(&[]), [] as [f64; 0]);
        assert_eq!(adjusted(&[0.7, 0.6]), [1.0, 1.0]);
    }

    proptest! {
        /// The procedure as published: go up from the smallest; stop at the first above level / (tests left).
        #[test]
        fn equals_the_procedure(p in proptest::collection::vec(0.0_f64..0.2, 0..12), level in 0.001_f64..0.5) {
            let mut order: Vec<usize> = (0..p.len()).collect();
            order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
            let mut rejected = vec![false; p.len()];
            for (at, index) in order.iter().enumerate() {
                if p[*index] * (p.len() - at) as f64 > level {
                    break;
                }
                rejected[*index] = true;
            }
            let found: Vec<bool> = adjusted(&p).iter().map(|p| *p <= level).collect();
            prop_assert_eq!(found, rejected);
        }
    }
}
