//! Reads and writes specifications.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use becalm_units::{Nanos, Share};

use super::{LengthLaw, NoiseSpec, Why};
use crate::ScaleError;
use crate::noise::LENGTH_LIMIT;

/// The names of the causes with their parameters: the required ones first, and their number. A `ratio` replaces the first.
const CAUSES: [(&str, usize, &[&str]); 4] = [
    ("periodic", 2, &["interval", "detour", "jitter", RATIO]),
    ("poisson", 2, &["rate", "detour", RATIO]),
    ("renewal", 2, &["gap", "detour"]),
    ("sources", 1, &["length", "configuration"]),
];

/// The share of the time that is noise, which determines the rate of detours of one length.
const RATIO: &str = "ratio";

const FORM: &str = "write periodic:interval=1ms,detour=50us[,jitter=10us], poisson:rate=10Hz,detour=50us (both also with ratio=1% for how often), \
                    renewal:gap=100ms,detour=50us or sources:FILE,length=1h[,configuration=NAME]; several with + between them; and for a \
                    length also uniform:10us:90us, exponential:50us, lognormal:50us:0.8, pareto:50us:1.5[:10ms] or empirical:FILE";

impl NoiseSpec {
    /// Whether a text is meant as a specification rather than a path: it starts with a cause and a colon.
    pub fn is_meant(text: &str) -> bool {
        text.split_once(':').is_some_and(|(name, _)| CAUSES.iter().any(|(cause, ..)| *cause == name))
    }

    /// The positions in a text after a '+' where a cause starts; a '+' elsewhere belongs to a file name.
    pub fn further_causes(text: &str) -> Vec<usize> {
        text.match_indices('+').map(|(at, _)| at + 1).filter(|at| Self::is_meant(&text[*at..])).collect()
    }
}

impl FromStr for NoiseSpec {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        let err =
            |why: Why| ScaleError::Text { text: text.to_owned(), expected: "a noise specification", why, form: FORM };
        let mut parts = Vec::new();
        let mut begin = 0;
        for next in Self::further_causes(text) {
            parts.push(cause(&text[begin..next - 1]).map_err(err)?);
            begin = next;
        }
        let last = cause(&text[begin..]).map_err(err)?;
        if parts.is_empty() {
            return Ok(last);
        }
        parts.push(last);
        Ok(Self::Sum(parts))
    }
}

fn cause(text: &str) -> Result<NoiseSpec, Why> {
    let (name, rest) = text.split_once(':').ok_or_else(|| "it has no ':'".to_owned())?;
    let (_, needed, known) =
        CAUSES.iter().find(|(cause, ..)| *cause == name).ok_or_else(|| format!("'{name}' is unknown"))?;
    // The table of sources is named first.
    let (table, rest) = match (name, rest.split_once(',')) {
        ("sources", Some((table, rest))) => (table, rest),
        ("sources", None) => return Err("length is missing".to_owned()),
        _ => ("", rest),
    };
    let mut values: [Option<&str>; 4] = [None; 4];
    for part in rest.split(',') {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("'{part}' has no '='"))?;
        let at = known.iter().position(|name| *name == key);
        let slot = &mut values[at.ok_or_else(|| format!("'{key}' is not one of {}", known.join(", ")))?];
        if slot.replace(value).is_some() {
            return Err(format!("{key} is given twice"));
        }
    }
    let ratio = known.iter().position(|name| *name == RATIO).and_then(|at| values[at].take());
    if let (Some(_), Some(_)) = (ratio, values[0]) {
        return Err(format!("{} and ratio both say how often it comes: give one of them", known[0]));
    }
    if let Some(missing) = (0..*needed).find(|at| values[*at].is_none() && (*at > 0 || ratio.is_none())) {
        return Err(format!("{} is missing", known[missing]));
    }
    let [first, second, third, _] = values.map(Option::unwrap_or_default);
    let duration = |value: &str| value.parse::<Nanos>().map_err(|error| error.to_string());
    Ok(match name {
        "poisson" => {
            let detour = LengthLaw::parse(second)?;
            let interval = ratio.map_or_else(|| interval_of_rate(first), |ratio| interval_of_ratio(ratio, &detour))?;
            NoiseSpec::Poisson { interval, detour }
        }
        "renewal" => NoiseSpec::Renewal { gap: LengthLaw::parse(first)?, detour: LengthLaw::parse(second)? },
        "sources" if table.is_empty() => return Err("it names no file".to_owned()),
        "sources" => NoiseSpec::Sources {
            table: PathBuf::from(table),
            configuration: values[1].map(str::to_owned),
            length: duration(first)?,
        },
        _ => {
            let detour = LengthLaw::parse(second)?;
            let interval = ratio.map_or_else(|| duration(first), |ratio| interval_of_ratio(ratio, &detour))?;
            let jitter = if third.is_empty() { Nanos::ZERO } else { duration(third)? };
            NoiseSpec::Periodic { interval, detour, jitter }
        }
    })
}

/// The interval of detours that take this share of the time, to the nanosecond.
fn interval_of_ratio(text: &str, detour: &LengthLaw) -> Result<Nanos, Why> {
    let ratio = text.parse::<Share>().map_err(|error| error.to_string())?.ratio();
    let Some(detour) = detour.constant() else {
        return Err(format!("a ratio is for detours of one length, and {detour} is a law of lengths"));
    };
    let interval_ns = detour.get() as f64 / ratio;
    if ratio > 0.0 && ratio < 1.0 && interval_ns > 0.0 && interval_ns < LENGTH_LIMIT.get() as f64 {
        Ok(Nanos::new(interval_ns.round() as i64))
    } else {
        Err(format!("detours of {detour} cannot take the share {text} of the time"))
    }
}

/// 1 / rate, to the nanosecond.
fn interval_of_rate(text: &str) -> Result<Nanos, Why> {
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

/// As written, except for a rate that is not a whole fraction of a second.
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
            Self::Renewal { gap, detour } => write!(f, "renewal:gap={gap},detour={detour}"),
            Self::Sources { table, configuration, length } => {
                write!(f, "sources:{},length={length}", table.display())?;
                configuration.iter().try_for_each(|name| write!(f, ",configuration={name}"))
            }
            Self::Sum(parts) => {
                for (number, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if number > 0 { "+" } else { "" })?;
                }
                Ok(())
            }
        }
    }
}
