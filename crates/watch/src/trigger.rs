//! The conditions for an alert, such as `detour>1ms` or `noise>1%`.

use std::fmt;
use std::str::FromStr;

use becalm_units::{Nanos, Share};

/// A condition that is checked for each window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Trigger {
    /// A detour of the window was longer than this.
    Detour(Nanos),
    /// The window lost more than this share of its time.
    Noise(Share),
}

impl Trigger {
    /// Whether a window with this longest detour and this noise raises it. `noise` is a share between 0 and 1.
    pub fn is_raised(&self, longest: Nanos, noise: f64) -> bool {
        match self {
            Self::Detour(limit) => longest > *limit,
            Self::Noise(limit) => noise > limit.ratio(),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Detour(limit) => write!(f, "detour>{limit}"),
            Self::Noise(limit) => write!(f, "noise>{limit}"),
        }
    }
}

/// A text that is no trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a trigger: {why}; write detour>TIME like detour>1ms, or noise>SHARE like noise>1%")]
pub struct ParseTriggerError {
    text: String,
    why: String,
}

impl FromStr for Trigger {
    type Err = ParseTriggerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = |why: String| ParseTriggerError { text: text.to_owned(), why };
        let (what, limit) = text.split_once('>').ok_or_else(|| err("it has no >".to_owned()))?;
        let limit = limit.trim();
        match what.trim() {
            "detour" => match limit.parse::<Nanos>() {
                Ok(limit) if limit < Nanos::ZERO => Err(err("no detour is shorter than nothing".to_owned())),
                Ok(limit) => Ok(Self::Detour(limit)),
                Err(error) => Err(err(error.to_string())),
            },
            "noise" => {
                limit.parse().map(Self::Noise).map_err(|error: becalm_units::ParseShareError| err(error.to_string()))
            }
            _ => Err(err("the word before > is neither detour nor noise".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_kinds_are_read_and_asked() {
        let detour: Trigger = " detour > 1ms".parse().unwrap();
        assert!(detour.is_raised(Nanos::from_micros(1_001), 0.0) && !detour.is_raised(Nanos::from_millis(1), 1.0));
        let noise: Trigger = "noise>1%".parse().unwrap();
        assert!(noise.is_raised(Nanos::ZERO, 0.011) && !noise.is_raised(Nanos::MAX, 0.01));
    }

    #[test]
    fn nonsense_is_refused_with_what_to_write() {
        for text in
            ["", "detour", "detour<1ms", "steal>1%", "detour>", "detour>-1ms", "noise>200%", "noise>x", "detour>1e400s"]
        {
            let error = text.parse::<Trigger>().unwrap_err().to_string();
            assert!(error.contains("is not a trigger") && error.ends_with("noise>SHARE like noise>1%"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(micros in 0_i64..1 << 40) {
            let trigger = Trigger::Detour(Nanos::from_micros(micros));
            let printed = trigger.to_string();
            prop_assert_eq!(printed.parse::<Trigger>().unwrap().to_string(), printed);
        }

        #[test]
        fn no_text_is_a_panic(text in ".{0,40}") {
            let _ = text.parse::<Trigger>();
        }
    }
}
