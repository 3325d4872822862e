//! The main body of a distribution, and the samples outside of it: fasties and slowies (Tsafrir 2007, section 4).

use becalm_stats::median_low;

/// The rule, as it is printed.
pub const RULE: &str = "the main body is the median, give or take five robust standard deviations (1.4826 times the median distance from \
     the median), but at least 1 % of the median; what is shorter is a fastie, what is longer a slowie";

/// The main body extends this many robust standard deviations to either side.
const DEVIATIONS: f64 = 5.0;
/// The standard deviation of a normal distribution is this many times its median absolute deviation.
const NORMAL: f64 = 1.4826;
/// The main body extends at least this share of the median to either side.
const LEAST: f64 = 0.01;

/// The range of most samples, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MainBody {
    /// The shortest value that belongs to it.
    pub low_ns: i64,
    /// The longest value that belongs to it.
    pub high_ns: i64,
    /// Its middle: the median.
    pub middle_ns: i64,
    /// The number of values below it.
    pub fasties: u64,
    /// The number of values above it.
    pub slowies: u64,
}

impl MainBody {
    /// From values, by [`RULE`]; everything is 0 without values.
    pub fn from_values(values: &[i64]) -> Self {
        let middle_ns = median(values.to_vec());
        let deviation = median(values.iter().map(|value| (value - middle_ns).abs()).collect());
        let reach = (DEVIATIONS * NORMAL * deviation as f64).max(LEAST * middle_ns.abs() as f64).round() as i64;
        let mut body = Self {
            low_ns: middle_ns.saturating_sub(reach),
            high_ns: middle_ns.saturating_add(reach),
            middle_ns,
            fasties: 0,
            slowies: 0,
        };
        (body.fasties, body.slowies) = body.outside(values);
        body
    }

    /// The numbers of these values below and above it.
    pub fn outside(&self, values: &[i64]) -> (u64, u64) {
        let fasties = values.iter().filter(|value| **value < self.low_ns).count();
        let slowies = values.iter().filter(|value| **value > self.high_ns).count();
        (fasties as u64, slowies as u64)
    }
}

/// The lower median, which is one of the values; 0 without values.
fn median(mut values: Vec<i64>) -> i64 {
    median_low(&mut values).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tight_body_reaches_one_percent() {
        let mut values = vec![1_000_000; 90];
        values.extend([990_000, 989_999, 1_010_000, 1_010_001, 5_000_000, 1]);
        let body = MainBody::from_values(&values);
        assert_eq!((body.low_ns, body.middle_ns, body.high_ns), (990_000, 1_000_000, 1_010_000));
        assert_eq!((body.fasties, body.slowies), (2, 2));
    }

    #[test]
    fn a_wide_body_reaches_five_deviations() {
        // -100 .. 100 around 1,000: the median distance is 50 (or 51, counting from either side).
        let values: Vec<i64> = (900..=1100).collect();
        let body = MainBody::from_values(&values);
        assert_eq!((body.middle_ns, body.high_ns), (1_000, 1_000 + 371));
        assert_eq!((body.fasties, body.slowies), (0, 0));
        assert_eq!(MainBody::from_values(&[]).middle_ns, 0);
    }
}
