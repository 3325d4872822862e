//! `becalm predict --law`: closed forms of the noise law, without a recording.

use becalm_answer::law::LawQuestion;
use becalm_report::LawOften;
use becalm_units::{Count, Nanos, ParseShareError, Share};
use clap::{ArgGroup, Args};

/// Options of replays, which the law does not take.
const REPLAYED: [&str; 19] = [
    "noise",
    "cpus",
    "node",
    "with_self",
    "phases",
    "collective",
    "network",
    "bytes",
    "ranks_per_node",
    "independent",
    "as_recorded",
    "sync",
    "coalesce",
    "without",
    "blame",
    "node_hours",
    "seed",
    "replicas",
    "allow_long",
];

/// Options of `becalm predict --law`.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("often").args(["probability", "rate"])))]
pub struct LawArgs {
    /// Answer by the noise law (Tsafrir 2007) for delays of one length, without NOISE
    #[arg(long, requires_all = ["delay", "often"], conflicts_with_all = REPLAYED)]
    pub law: bool,

    /// With --law: lengths of a rank's delays, e.g. 50us
    #[arg(long, value_name = "TIMES", value_delimiter = ',', requires = "law", allow_hyphen_values = true)]
    delay: Vec<Nanos>,

    /// With --law: shares of a rank's phases with a delay, e.g. 0.01% or 1e-4
    #[arg(long, value_name = "SHARES", value_delimiter = ',', requires = "law", value_parser = probability, allow_hyphen_values = true)]
    probability: Vec<Share>,

    /// With --law: rates of a rank's delays, e.g. 100Hz
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "law", value_parser = rate_hz, allow_hyphen_values = true)]
    rate: Vec<f64>,
}

impl LawArgs {
    /// The question about the law; it shares grains, ranks and tolerated loss with other predictions.
    pub fn question(&self, grains: &[Nanos], ranks: &[Count], tolerated: Option<Share>) -> LawQuestion {
        LawQuestion {
            grains: grains.to_vec(),
            delays: self.delay.clone(),
            often: match self.rate.as_slice() {
                [] => self.probability.iter().copied().map(LawOften::Probability).collect(),
                rates => rates.iter().copied().map(LawOften::Rate).collect(),
            },
            ranks: ranks.iter().map(|ranks| ranks.get()).collect(),
            tolerated,
        }
    }
}

/// Parses a probability; without `%` it is a part of 1.
fn probability(text: &str) -> Result<Share, String> {
    match text.parse().map(Share::from_ratio) {
        Ok(Some(share)) => Ok(share),
        Ok(None) => Err(format!("'{text}' is not a probability: write one like 0.01% or 1e-4")),
        Err(_) => text.parse().map_err(|error: ParseShareError| error.to_string()),
    }
}

/// A rate with its unit, Hz.
fn rate_hz(text: &str) -> Result<f64, String> {
    let err = || format!("'{text}' is not a rate: write a number of Hz or kHz, like 100Hz");
    let (number, unit) = match text.strip_suffix("kHz") {
        Some(number) => (number, 1e3),
        None => (text.strip_suffix("Hz").ok_or_else(err)?, 1.0),
    };
    let hz = number.parse::<f64>().map_err(|_| err())? * unit;
    if hz.is_finite() && hz >= 0.0 { Ok(hz) } else { Err(err()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units() {
        assert_eq!(rate_hz("100Hz"), Ok(100.0));
        assert_eq!(rate_hz("1.5kHz"), Ok(1_500.0));
        for text in ["", "Hz", "100", "-1Hz", "NaNHz", "infHz"] {
            assert!(rate_hz(text).is_err(), "{text}");
        }
    }
}
