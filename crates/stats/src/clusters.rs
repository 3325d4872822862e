//! Independent clusters of detours over a threshold.
//!
//! One cause makes several long detours in a row, and a tail fitted to all of them would count each as a cause of its own. The runs method
//! starts a new cluster once nothing has exceeded the threshold for a while. The data determine that time: C. A. T. Ferro, J. Segers,
//! *Inference for clusters of extreme values*, J. R. Stat. Soc. B 65 (2003), estimate the share theta of exceedances that start a cluster
//! (the extremal index) from the times between exceedances, which are exponential between clusters and 0 within, and take the theta N
//! longest of those times for the gaps between clusters.

/// Detours over a threshold, in clusters.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Clusters {
    /// The excess of each cluster's longest detour over the threshold, in nanoseconds, in order of time.
    pub(super) excesses: Vec<f64>,
    /// The number of detours over the threshold.
    pub(super) exceedances: usize,
}

impl Clusters {
    /// Clusters detours, given as start and duration in order of time, over this threshold.
    pub(super) fn for_threshold(threshold: i64, detours: &[(i64, i64)]) -> Self {
        let over: Vec<(i64, i64)> = detours.iter().copied().filter(|(_, duration)| *duration > threshold).collect();
        let gaps: Vec<i64> = over.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect();
        let longest_within = longest_within(&gaps);
        let mut excesses: Vec<f64> = Vec::new();
        for (at, (_, duration)) in over.iter().enumerate() {
            let excess = (duration - threshold) as f64;
            match excesses.last_mut() {
                Some(last) if gaps[at - 1] <= longest_within => *last = last.max(excess),
                _ => excesses.push(excess),
            }
        }
        Self { excesses, exceedances: over.len() }
    }

    /// The share of exceedances that start a cluster.
    pub(super) fn extremal_index(&self) -> f64 {
        self.excesses.len() as f64 / self.exceedances.max(1) as f64
    }
}

/// The longest gap that does not separate two clusters.
fn longest_within(gaps: &[i64]) -> i64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for gap in gaps {
        sum += *gap as f64;
        squares += (*gap as f64).powi(2);
    }
    if squares <= 0.0 {
        return i64::MAX;
    }
    // Ferro and Segers 2003, equation 3, for times that are large against the unit of time.
    let index = (2.0 * sum * sum / (gaps.len() as f64 * squares)).min(1.0);
    let between = (index * gaps.len() as f64).round() as usize;
    if between >= gaps.len() {
        return -1;
    }
    let mut sorted = gaps.to_vec();
    // Equal gaps separate clusters either all or not at all.
    *sorted.select_nth_unstable_by(between, |a, b| b.cmp(a)).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_testing::noise::Source;

    #[test]
    fn trains_are_found_as_they_were_made() {
        let mut source = Source::seeded(5);
        let mut detours = Vec::new();
        let begins = source.poisson(10.0, 100e9);
        for begin in &begins {
            detours.extend((0..5).map(|k| (*begin as i64 + k * 1_000_000, 1_000 + k)));
        }
        let clusters = Clusters::for_threshold(0, &detours);
        let share = clusters.excesses.len() as f64 / begins.len() as f64;
        assert!((0.9..1.1).contains(&share), "{} clusters of {} trains", clusters.excesses.len(), begins.len());
        assert!((0.18..0.22).contains(&clusters.extremal_index()), "{}", clusters.extremal_index());
    }

    #[test]
    fn what_is_independent_or_regular_stays_apart() {
        let mut source = Source::seeded(6);
        let independent: Vec<(i64, i64)> = source.poisson(10.0, 100e9).into_iter().map(|t| (t as i64, 50)).collect();
        assert!(Clusters::for_threshold(0, &independent).extremal_index() > 0.9);
        let regular: Vec<(i64, i64)> = (0..1_000).map(|k| (k * 4_000_000, 50)).collect();
        assert_eq!(Clusters::for_threshold(10, &regular).excesses, vec![40.0; 1_000]);
    }

    #[test]
    fn few_or_damaged_times_do_not_panic() {
        assert_eq!(Clusters::for_threshold(0, &[]).excesses, [] as [f64; 0]);
        assert_eq!(Clusters::for_threshold(0, &[(5, 7)]).excesses, [7.0]);
        assert_eq!(Clusters::for_threshold(0, &[(5, 7), (5, 9)]).excesses, [9.0]);
        Clusters::for_threshold(0, &[(i64::MIN, 7), (i64::MAX, 9), (0, 8)]);
    }
}
