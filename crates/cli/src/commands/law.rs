//! `becalm law`: closed forms of the noise law, without a recording.

use std::io::Write;

use becalm_answer::law::LawQuestion;
use becalm_command::Exit;
use becalm_command::arguments::{FormArgs, tolerable};
use becalm_command::reader::Reader;
use becalm_command::reading_task;
use becalm_report::LawOften;
use becalm_units::{Count, Nanos, ParseShareError, Share, fault};
use clap::{ArgGroup, Args};

/// Say what delays of one length do to a job of any size, by the noise law (Tsafrir 2007)
///
/// A rank is delayed by D in a phase of G with probability p. Of the phases of n ranks a share of 1 - (1-p)^n is then
/// delayed, and the slowdown is 1 + (1 - (1-p)^n) D/G. While n is below 1/(10 p) that is 1 + p n D/G, the linear law.
///
/// Of several grains, delays, rates or probabilities each is held against each other one.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("often").required(true).args(["probability", "rate"])))]
pub struct LawArgs {
    /// G: useful CPU time of a phase, like 1ms, or several such times
    #[arg(long, value_name = "TIMES", value_delimiter = ',', required = true, allow_hyphen_values = true)]
    grain: Vec<Nanos>,

    /// D: how long a rank is delayed, or several such times
    #[arg(long, value_name = "TIMES", value_delimiter = ',', required = true, allow_hyphen_values = true)]
    delay: Vec<Nanos>,

    /// p: in which share of its phases a rank is delayed, like 0.01% or 1e-4, or several such shares
    #[arg(long, value_name = "SHARES", value_delimiter = ',', value_parser = probability, allow_hyphen_values = true)]
    probability: Vec<Share>,

    /// How often a rank is delayed, like 100Hz, or several such rates; p is then rate times grain
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = rate_hz, allow_hyphen_values = true)]
    rate: Vec<f64>,

    /// Numbers of ranks, like 64,16Ki
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64,1Ki,16Ki", allow_hyphen_values = true)]
    ranks: Vec<Count>,

    /// Say what a job stands that may lose this share of its time, like 5%: up to how many ranks, and at each of --ranks up to
    /// which D and which p
    #[arg(long, value_name = "SHARE", value_parser = tolerable, allow_hyphen_values = true)]
    tolerate: Option<Share>,

    #[command(flatten)]
    form: FormArgs,
}

/// A probability; without `%`, as a part of 1.
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

reading_task!(LawArgs);

/// Prints the law.
fn run(args: &LawArgs, out: &mut dyn Write) -> fault::Result<Exit> {
    let question = LawQuestion {
        grains: args.grain.clone(),
        delays: args.delay.clone(),
        often: match args.rate.as_slice() {
            [] => args.probability.iter().copied().map(LawOften::Probability).collect(),
            rates => rates.iter().copied().map(LawOften::Rate).collect(),
        },
        ranks: args.ranks.iter().map(|ranks| ranks.get()).collect(),
        tolerated: args.tolerate,
    };
    let output = args.form.output(false)?;
    question.answer(&mut Reader::new(output, out))?;
    Ok(Exit::Done)
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
