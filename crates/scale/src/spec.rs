//! Noise from a line of text: `periodic:interval=1ms,detour=50us[,jitter=10us]` and `poisson:rate=10Hz,detour=50us`.

use std::fmt;
use std::str::FromStr;

use becalm_units::Nanos;

use crate::ScaleError;
use crate::noise::{LENGTH_LIMIT, NoiseTrace, TraceError};
use crate::random::{Purpose, Stream};

/// Detours on the circle of a specification that draws them: enough that a job of a million ranks meets different ones.
const DRAWN: u64 = 1 << 16;

/// A formula for noise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NoiseSpec {
    /// One detour in each interval.
    Periodic {
        /// From one start to the next, before jitter.
        interval: Nanos,
        /// How long each detour is.
        detour: Nanos,
        /// Each start is later than its turn by 0 to this, every nanosecond as likely.
        jitter: Nanos,
    },
    /// Detours that come independently of each other, at a mean rate. One that comes while another lasts follows it.
    Poisson {
        /// Mean time from one to the next: 1 / rate.
        interval: Nanos,
        /// How long each detour is.
        detour: Nanos,
    },
}

const FORM: &str = "write periodic:interval=1ms,detour=50us[,jitter=10us] or poisson:rate=10Hz,detour=50us";

impl NoiseSpec {
    /// The noise as a circle.
    ///
    /// Without jitter it is one interval long. With jitter, or Poisson, it holds 65,536 detours drawn from the seed:
    /// uniform positions, which is the Poisson process given its count, and needs no logarithm that could differ
    /// between machines.
    ///
    /// # Errors
    /// [`ScaleError::Formula`] for an empty interval, negative durations, overlapping detours (jitter that lets one
    /// interval's reach the next one's), 100 % noise.
    pub fn trace(&self, seed: u64) -> Result<NoiseTrace, ScaleError> {
        self.draw(seed).map_err(|problem| ScaleError::Formula { formula: *self, problem })
    }

    fn draw(&self, seed: u64) -> Result<NoiseTrace, TraceError> {
        let mut stream = Stream::new(seed, Purpose::Detours, 0);
        match *self {
            Self::Periodic { interval, detour, jitter } if jitter == Nanos::ZERO => {
                NoiseTrace::new(interval, [(Nanos::ZERO, detour)])
            }
            Self::Periodic { interval, detour, jitter } => {
                let length = circle(interval)?;
                if jitter < Nanos::ZERO {
                    return Err(TraceError::Negative { index: 0, start: Nanos::ZERO, duration: jitter });
                }
                let starts = (0..DRAWN as i64)
                    .map(|turn| (turn * interval.get()).saturating_add(stream.below(jitter.get() as u64 + 1) as i64))
                    .map(|start| (Nanos::new(start), detour));
                NoiseTrace::new(length, starts)
            }
            Self::Poisson { interval, detour } => poisson(circle(interval)?, detour, &mut stream),
        }
    }
}

/// The length of a circle of drawn detours.
fn circle(interval: Nanos) -> Result<Nanos, TraceError> {
    let length = interval.get().checked_mul(DRAWN as i64).map_or(Nanos::MAX, Nanos::new);
    if length <= Nanos::ZERO || length > LENGTH_LIMIT { Err(TraceError::Length { length }) } else { Ok(length) }
}

/// Detours of one length at random instants of a circle, each delayed until the ones before it are over.
fn poisson(length: Nanos, detour: Nanos, stream: &mut Stream) -> Result<NoiseTrace, TraceError> {
    if detour < Nanos::ZERO {
        return Err(TraceError::Negative { index: 0, start: Nanos::ZERO, duration: detour });
    }
    let noise = detour.get().checked_mul(DRAWN as i64).map_or(Nanos::MAX, Nanos::new);
    if noise >= length {
        return Err(TraceError::Full { noise, length });
    }
    let mut arrivals: Vec<i64> = (0..DRAWN).map(|_| stream.below(length.get() as u64) as i64).collect();
    arrivals.sort_unstable();
    // A first lap finds how far the queue at its end reaches into the next one.
    let mut end = i64::MIN;
    for arrival in &arrivals {
        end = end.max(*arrival) + detour.get();
    }
    let mut end = (end - length.get()).max(0);
    let mut starts: Vec<i64> = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        let start = end.max(arrival);
        end = start + detour.get();
        starts.push(start % length.get());
    }
    // Those that had to wait until after the end of the circle come first in it.
    starts.sort_unstable();
    NoiseTrace::new(length, starts.into_iter().map(|start| (Nanos::new(start), detour)))
}

impl FromStr for NoiseSpec {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        let err = |why: String| ScaleError::Text {
            text: text.to_owned(),
            expected: "a noise specification",
            why,
            form: FORM,
        };
        let (name, rest) = text.split_once(':').ok_or_else(|| err("it has no ':'".to_owned()))?;
        let known: &[&str] = match name {
            "periodic" => &["interval", "detour", "jitter"],
            "poisson" => &["rate", "detour"],
            _ => return Err(err(format!("'{name}' is unknown"))),
        };
        let mut values: [Option<&str>; 3] = [None; 3];
        for part in rest.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(|| err(format!("'{part}' has no '='")))?;
            let at = known.iter().position(|name| *name == key);
            let slot = &mut values[at.ok_or_else(|| err(format!("'{key}' is not one of {}", known.join(", "))))?];
            if slot.replace(value).is_some() {
                return Err(err(format!("{key} is given twice")));
            }
        }
        let needed = |at: usize| values[at].ok_or_else(|| err(format!("{} is missing", known[at])));
        let duration = |value: &str| value.parse::<Nanos>().map_err(|error| err(error.to_string()));
        let detour = duration(needed(1)?)?;
        if name == "poisson" {
            return Ok(Self::Poisson { interval: interval_of_rate(needed(0)?).map_err(err)?, detour });
        }
        let jitter = values[2].map_or(Ok(Nanos::ZERO), duration)?;
        Ok(Self::Periodic { interval: duration(needed(0)?)?, detour, jitter })
    }
}

/// 1 / rate, to the nanosecond.
fn interval_of_rate(text: &str) -> Result<Nanos, String> {
    let (number, unit_hz) = match text.strip_suffix("kHz") {
        Some(number) => (number, 1e3),
        None => (text.strip_suffix("Hz").ok_or_else(|| format!("the rate '{text}' has no unit Hz or kHz"))?, 1.0),
    };
    let rate: f64 = number.parse().map_err(|_| format!("the rate '{text}' is not a number of Hz"))?;
    let interval_ns = 1e9 / (rate * unit_hz);
    if rate > 0.0 && (1.0..LENGTH_LIMIT.get() as f64).contains(&interval_ns) {
        Ok(Nanos::new(interval_ns.round() as i64))
    } else {
        Err(format!("the rate '{text}' is not between once in 36 years and once a nanosecond"))
    }
}

/// As it is written, apart from a rate that is not a whole fraction of a second.
impl fmt::Display for NoiseSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Periodic { interval, detour, jitter } if *jitter == Nanos::ZERO => {
                write!(f, "periodic:interval={interval},detour={detour}")
            }
            Self::Periodic { interval, detour, jitter } => {
                write!(f, "periodic:interval={interval},detour={detour},jitter={jitter}")
            }
            Self::Poisson { interval, detour } => {
                write!(f, "poisson:rate={}Hz,detour={detour}", 1e9 / interval.get() as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_forms_of_the_manual() {
        let spec: NoiseSpec = "periodic:interval=1ms,detour=50us".parse().unwrap();
        let trace = spec.trace(1).unwrap();
        assert_eq!((trace.length(), trace.noise(), trace.len()), (Nanos::from_millis(1), Nanos::from_micros(50), 1));
        let spec: NoiseSpec = "periodic:interval=1ms,detour=50us,jitter=10us".parse().unwrap();
        let jittered = spec.trace(1).unwrap();
        assert_eq!(jittered.len() as u64, DRAWN);
        assert!((jittered.noise_ratio() - 0.05).abs() < 1e-12);
        let spec: NoiseSpec = "poisson:rate=10Hz,detour=50us".parse().unwrap();
        let trace = spec.trace(1).unwrap();
        assert!((trace.noise_ratio() - 10.0 * 50e-6).abs() < 1e-12);
        assert_eq!(trace, spec.trace(1).unwrap());
        assert_ne!(trace, spec.trace(2).unwrap());
        // Busy: the detours queue up, none is lost, and some go over the end.
        let busy: NoiseSpec = "poisson:rate=18kHz,detour=50us".parse().unwrap();
        assert!((busy.trace(1).unwrap().noise_ratio() - 0.9).abs() < 1e-4);
    }

    #[test]
    fn refuses_the_rest_and_says_why() {
        for (text, why) in [
            ("periodic", "no ':'"),
            ("steady:interval=1ms", "unknown"),
            ("periodic:interval=1ms", "detour is missing"),
            ("periodic:interval=1ms,detour=5", "no unit"),
            ("periodic:interval=1ms,detour=5us,detour=6us", "twice"),
            ("periodic:interval=1ms,delay=5us", "not one of"),
            ("poisson:rate=10,detour=5us", "no unit Hz"),
            ("poisson:rate=0Hz,detour=5us", "not between"),
            ("poisson:rate=-1Hz,detour=5us", "not between"),
        ] {
            let error = text.parse::<NoiseSpec>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("write periodic:"), "{text}: {error}");
        }
        for text in [
            "periodic:interval=0s,detour=0s",
            "periodic:interval=1ms,detour=1ms",
            "periodic:interval=1ms,detour=500us,jitter=900us",
            "poisson:rate=1kHz,detour=1ms",
            "periodic:interval=100000h,detour=1us,jitter=1us",
            "periodic:interval=1h,detour=1us,jitter=2562047h",
        ] {
            assert!(text.parse::<NoiseSpec>().unwrap().trace(1).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "(periodic|poisson):[a-z0-9=,.]*") {
            if let Ok(spec) = text.parse::<NoiseSpec>() {
                let _ = spec.trace(1);
            }
        }
    }
}
