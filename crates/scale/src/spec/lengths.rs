//! The lengths of detours, or of the gaps between them: one length, or a law to draw lengths from.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use becalm_units::Nanos;

use crate::random::Stream;

/// A law of lengths, as written: `50us`, `uniform:10us:90us`, `exponential:50us`, `lognormal:50us:0.8`, `pareto:50us:1.5` or `pareto:50us:1.5:10ms`,
/// `empirical:FILE`.
#[derive(Clone, PartialEq, Debug)]
pub enum LengthLaw {
    /// All equal.
    Constant(Nanos),
    /// Each nanosecond between two lengths, both inclusive, has the same probability.
    Uniform {
        /// The shortest.
        least: Nanos,
        /// The longest.
        most: Nanos,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: Nanos,
    },
    /// The logarithm is normal.
    LogNormal {
        /// The median.
        median: Nanos,
        /// The standard deviation of the natural logarithm, 0 to 10.
        sigma: f64,
    },
    /// A power law: a length is above x with probability (least / x)^exponent.
    Pareto {
        /// The shortest.
        least: Nanos,
        /// The exponent, above 1 (else there is no mean) and at most 1,000.
        exponent: f64,
        /// The longest, at which the law is cut: longer ones are redrawn.
        most: Option<Nanos>,
    },
    /// One of the lengths in a file, with equal probability: one per line, with its unit, or as a number of nanoseconds.
    Empirical(PathBuf),
}

/// The error in a law, or in a file that it names.
pub type Why = String;

/// Reads the files that a specification names; provided by the caller.
pub type ReadText<'r> = &'r dyn Fn(&Path) -> Result<String, Why>;

/// A law that is ready for drawing.
#[derive(Clone, Debug)]
pub(crate) enum Drawable {
    Law(LengthLaw),
    /// Lengths in nanoseconds, at least one.
    Among(Vec<i64>),
}

/// Files are read once, however often they are named.
#[derive(Default)]
pub(crate) struct Files(HashMap<PathBuf, Vec<i64>>);

impl LengthLaw {
    pub(crate) fn parse(text: &str) -> Result<Self, Why> {
        let Some((name, rest)) = text.split_once(':') else {
            return Ok(Self::Constant(duration(text)?));
        };
        if name == "empirical" {
            return if rest.is_empty() {
                Err("empirical: names no file".to_owned())
            } else {
                Ok(Self::Empirical(rest.into()))
            };
        }
        let words: Vec<&str> = rest.split(':').collect();
        let law = match (name, words.as_slice()) {
            ("uniform", [least, most]) => Self::Uniform { least: duration(least)?, most: duration(most)? },
            ("exponential", [mean]) => Self::Exponential { mean: duration(mean)? },
            ("lognormal", [median, sigma]) => {
                Self::LogNormal { median: duration(median)?, sigma: number(sigma, "the deviation of the logarithm")? }
            }
            ("pareto", [least, exponent, most @ ..]) if most.len() < 2 => Self::Pareto {
                least: duration(least)?,
                exponent: number(exponent, "the exponent")?,
                most: most.first().map(|most| duration(most)).transpose()?,
            },
            ("uniform" | "exponential" | "lognormal" | "pareto", _) => {
                return Err(format!("'{text}' has not the parts of its law"));
            }
            _ => return Err(format!("'{name}' is no law of lengths")),
        };
        law.check()?;
        Ok(law)
    }

    fn check(&self) -> Result<(), Why> {
        let holds = match self {
            Self::Constant(_) | Self::Empirical(_) => true,
            Self::Uniform { least, most } => Nanos::ZERO <= *least && least <= most,
            Self::Exponential { mean } => *mean > Nanos::ZERO,
            Self::LogNormal { median, sigma } => *median > Nanos::ZERO && (0.0..=10.0).contains(sigma),
            Self::Pareto { least, exponent, most } => {
                *least > Nanos::ZERO && *exponent > 1.0 && *exponent <= 1e3 && most.is_none_or(|most| most > *least)
            }
        };
        if holds { Ok(()) } else { Err(format!("'{self}' is no law: {}", self.needs())) }
    }

    /// The requirements for the parts.
    fn needs(&self) -> &'static str {
        match self {
            Self::Constant(_) | Self::Empirical(_) => "",
            Self::Uniform { .. } => "the first length must not be negative, nor above the second",
            Self::Exponential { .. } => "the mean must be above 0",
            Self::LogNormal { .. } => "the median must be above 0, and the deviation of the logarithm 0 to 10",
            Self::Pareto { .. } => {
                "the shortest length must be above 0, the exponent above 1 and at most 1000, and the longest above the shortest"
            }
        }
    }

    /// The length, if it is constant.
    pub fn constant(&self) -> Option<Nanos> {
        match self {
            Self::Constant(length) => Some(*length),
            _ => None,
        }
    }

    /// Reads the file of the law, if it names one.
    pub(crate) fn ready(&self, files: &mut Files, read: ReadText<'_>) -> Result<Drawable, Why> {
        let Self::Empirical(path) = self else { return Ok(Drawable::Law(self.clone())) };
        if let Some(lengths) = files.0.get(path) {
            return Ok(Drawable::Among(lengths.clone()));
        }
        let lengths = lengths(path, &read(path)?)?;
        files.0.insert(path.clone(), lengths.clone());
        Ok(Drawable::Among(lengths))
    }
}

/// The lengths of a file, in nanoseconds.
fn lengths(path: &Path, text: &str) -> Result<Vec<i64>, Why> {
    let line = |(number, line): (usize, &str)| {
        let bad = |why: String| format!("line {} of {}: {why}", number + 1, path.display());
        let length = match line.parse::<i64>() {
            Ok(ns) => Nanos::new(ns),
            Err(_) => line.parse::<Nanos>().map_err(|error| bad(error.to_string()))?,
        };
        if length < Nanos::ZERO { Err(bad(format!("the length {length} is negative"))) } else { Ok(length.get()) }
    };
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let lengths: Vec<i64> = lines.map(line).collect::<Result<_, Why>>()?;
    if lengths.is_empty() { Err(format!("{} holds no length", path.display())) } else { Ok(lengths) }
}

impl Drawable {
    /// The mean in nanoseconds.
    pub(crate) fn mean_ns(&self) -> f64 {
        let ns = |length: &Nanos| length.get() as f64;
        match self {
            Self::Among(lengths) => lengths.iter().map(|length| *length as f64).sum::<f64>() / lengths.len() as f64,
            Self::Law(law) => match law {
                LengthLaw::Constant(length) => ns(length),
                LengthLaw::Uniform { least, most } => 0.5 * (ns(least) + ns(most)),
                LengthLaw::Exponential { mean } => ns(mean),
                LengthLaw::LogNormal { median, sigma } => ns(median) * libm::exp(0.5 * sigma * sigma),
                LengthLaw::Pareto { least, exponent, most } => {
                    let whole = ns(least) * exponent / (exponent - 1.0);
                    match most {
                        None => whole,
                        Some(most) => {
                            let ratio = ns(least) / ns(most);
                            whole * (1.0 - libm::pow(ratio, exponent - 1.0)) / (1.0 - libm::pow(ratio, *exponent))
                        }
                    }
                }
                LengthLaw::Empirical(_) => f64::NAN,
            },
        }
    }

    /// The length, if it is constant.
    pub(crate) fn constant_ns(&self) -> Option<i64> {
        match self {
            Self::Law(law) => law.constant().map(Nanos::get),
            Self::Among(_) => None,
        }
    }

    /// One length in nanoseconds. A constant one draws nothing from the stream.
    pub(crate) fn draw(&self, stream: &mut Stream) -> i64 {
        // A cast saturates, and a circle rejects lengths that are too long for it.
        match self {
            Self::Among(lengths) => lengths[stream.below(lengths.len() as u64) as usize],
            Self::Law(law) => match law {
                LengthLaw::Constant(length) => length.get(),
                LengthLaw::Uniform { least, most } => {
                    least.get() + stream.below((most.get() - least.get()) as u64 + 1) as i64
                }
                LengthLaw::Exponential { mean } => (mean.get() as f64 * stream.exponential()).round() as i64,
                LengthLaw::LogNormal { median, sigma } => {
                    (median.get() as f64 * libm::exp(sigma * normal(stream))).round() as i64
                }
                LengthLaw::Pareto { least, exponent, most } => {
                    let least = least.get() as f64;
                    // Redrawing lengths above the cut is the same as drawing below its probability.
                    let cut = most.map_or(0.0, |most| libm::pow(least / most.get() as f64, *exponent));
                    let above = cut + (1.0 - cut) * stream.unit();
                    (least * libm::pow(above, -1.0 / exponent)).round() as i64
                }
                LengthLaw::Empirical(_) => 0,
            },
        }
    }
}

/// A number of the standard normal distribution (Box and Muller 1958).
fn normal(stream: &mut Stream) -> f64 {
    let radius = libm::sqrt(2.0 * stream.exponential());
    radius * libm::cos(std::f64::consts::TAU * stream.unit())
}

fn duration(text: &str) -> Result<Nanos, Why> {
    text.parse::<Nanos>().map_err(|error| error.to_string())
}

fn number(text: &str, what: &str) -> Result<f64, Why> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("{what} '{text}' is not a number"))
}

impl fmt::Display for LengthLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(length) => write!(f, "{length}"),
            Self::Uniform { least, most } => write!(f, "uniform:{least}:{most}"),
            Self::Exponential { mean } => write!(f, "exponential:{mean}"),
            Self::LogNormal { median, sigma } => write!(f, "lognormal:{median}:{sigma}"),
            Self::Pareto { least, exponent, most: None } => write!(f, "pareto:{least}:{exponent}"),
            Self::Pareto { least, exponent, most: Some(most) } => write!(f, "pareto:{least}:{exponent}:{most}"),
            Self::Empirical(path) => write!(f, "empirical:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn ready(text: &str, file: &str) -> Result<Drawable, Why> {
        let read = |_: &Path| Ok(file.to_owned());
        LengthLaw::parse(text)?.ready(&mut Files::default(), &read)
    }

    /// Means within 1 %, and shares below a length within 0.01, of 200,000 draws; the shares are those of the distribution functions.
    #[test]
    fn draws_follow_their_laws() {
        let laws: [(&str, i64, f64); 6] = [
            ("uniform:10us:90us", 30_000, 0.25),
            ("exponential:50us", 50_000, 1.0 - (-1.0_f64).exp()),
            ("lognormal:50us:0.8", 50_000, 0.5),
            ("pareto:50us:2.5", 100_000, 1.0 - 0.5_f64.powf(2.5)),
            ("pareto:50us:1.5:5ms", 100_000, (1.0 - 0.5_f64.powf(1.5)) / (1.0 - 0.01_f64.powf(1.5))),
            ("empirical:f", 7_000, 0.75),
        ];
        for (text, below, share) in laws {
            let law = ready(text, "# measured\n5us\n6000\n\n7us\n1ms\n").unwrap();
            let mut stream = Stream::new(1, Purpose::Detours, 0);
            let drawn: Vec<i64> = (0..200_000).map(|_| law.draw(&mut stream)).collect();
            let mean = drawn.iter().map(|length| *length as f64).sum::<f64>() / drawn.len() as f64;
            assert!((mean / law.mean_ns() - 1.0).abs() < 0.02, "{text}: {mean} for {}", law.mean_ns());
            let found = drawn.iter().filter(|length| **length <= below).count() as f64 / drawn.len() as f64;
            assert!((found - share).abs() < 0.01, "{text}: {found} for {share}");
        }
    }

    #[test]
    fn nonsense_is_refused_and_said() {
        for (text, why) in [
            ("5", "no unit"),
            ("uniform:5us", "parts of its law"),
            ("uniform:5us:4us", "nor above the second"),
            ("exponential:0us", "above 0"),
            ("lognormal:5us:11", "0 to 10"),
            ("lognormal:5us:x", "not a number"),
            ("pareto:5us:1", "above 1"),
            ("pareto:5us:1.5:4us", "longest above"),
            ("gamma:5us", "no law"),
            ("empirical:", "no file"),
        ] {
            let error = LengthLaw::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        for (file, why) in [("", "no length"), ("5us\nx\n", "line 2 of f"), ("-5\n", "negative")] {
            let error = ready("empirical:f", file).unwrap_err();
            assert!(error.contains(why), "{file}: {error}");
        }
    }

    #[test]
    fn laws_are_written_as_they_are_read() {
        for text in [
            "50us",
            "uniform:10us:90us",
            "exponential:50us",
            "lognormal:50us:0.8",
            "pareto:50us:1.5",
            "pareto:50us:1.5:10ms",
        ] {
            assert_eq!(LengthLaw::parse(text).unwrap().to_string(), text);
        }
    }
}
