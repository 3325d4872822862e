//! Rate limit of log messages: each problem is reported once, until it has been absent for an hour.

use becalm_units::Nanos;

/// A problem that was absent for this long is reported again.
const AWAY: Nanos = Nanos::from_secs(3_600);

/// The maximum number of known problems.
const MOST: usize = 16;

/// The problems reported within the last hour.
#[derive(Clone, Debug, Default)]
pub struct LogThrottle {
    /// Each with the time of its last occurrence.
    known: Vec<(String, Nanos)>,
}

impl LogThrottle {
    /// Whether to report a problem that occurs now.
    pub fn is_new(&mut self, what: String, now: Nanos) -> bool {
        self.known.retain(|(_, last)| now - *last < AWAY);
        if let Some((_, last)) = self.known.iter_mut().find(|(known, _)| *known == what) {
            *last = now;
            return false;
        }
        if self.known.len() >= MOST {
            self.known.remove(0);
        }
        self.known.push((what, now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_said_once_until_it_was_away_for_long() {
        let mut throttle = LogThrottle::default();
        let mut is_new = |what: &str, seconds| throttle.is_new(what.to_owned(), Nanos::from_secs(seconds));
        assert!(is_new("full", 0) && is_new("denied", 1));
        // It continues for a day.
        assert!((1..1_000).all(|round| !is_new("full", round * 86)));
        assert!(!is_new("full", 999 * 86 + 3_599) && is_new("denied", 90_000) && is_new("full", 999 * 86 + 7_200));
        for number in 0..100 {
            is_new(&number.to_string(), 100_000);
        }
        assert_eq!(throttle.known.len(), MOST);
    }
}
