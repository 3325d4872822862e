//! `becalm law`: the closed forms of the noise law, without any recording.

use std::io::Write;

use becalm_report::{LawReport, LawRow};
use becalm_scale::law::Law;
use becalm_units::{Count, Nanos, Share};
use clap::{ArgGroup, Args};

use crate::arguments::tolerable;
use crate::exit::Exit;
use crate::output::{Output, emit};

/// Say what delays of one length do to a job of any size, by the noise law (Tsafrir 2007)
///
/// A rank is delayed by D in a phase of G with probability p. Of the phases of n ranks a share of 1 - (1-p)^n is then
/// delayed, and the slowdown is 1 + (1 - (1-p)^n) D/G. While n is below 1/(10 p) that is 1 + p n D/G, the linear law.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("often").required(true).args(["probability", "rate"])))]
pub struct LawArgs {
    /// G: useful CPU time of a phase, like 1ms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    grain: Nanos,

    /// D: how long a rank is delayed
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    delay: Nanos,

    /// p: in which share of its phases a rank is delayed, like 0.01% or 1e-4
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    probability: Option<Share>,

    /// How often a rank is delayed, like 100Hz; p is then rate times grain
    #[arg(long, value_name = "HZ", value_parser = rate_hz, allow_hyphen_values = true)]
    rate: Option<f64>,

    /// Numbers of ranks, where k is 1,024
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64,1k,16k", allow_hyphen_values = true)]
    ranks: Vec<Count>,

    /// Say what a job stands that may lose this share of its time, like 5%: up to how many ranks, and at each of --ranks up to
    /// which D and which p
    #[arg(long, value_name = "SHARE", value_parser = tolerable, allow_hyphen_values = true)]
    tolerate: Option<Share>,

    /// Print one JSON document (becalm.law/1)
    #[arg(long)]
    json: bool,
}

/// A number of Hz, with its unit.
fn rate_hz(text: &str) -> Result<f64, String> {
    let err = || format!("'{text}' is not a rate: write a number of Hz or kHz, like 100Hz");
    let (number, unit) = match text.strip_suffix("kHz") {
        Some(number) => (number, 1e3),
        None => (text.strip_suffix("Hz").ok_or_else(err)?, 1.0),
    };
    let hz = number.parse::<f64>().map_err(|_| err())? * unit;
    if hz.is_finite() && hz >= 0.0 { Ok(hz) } else { Err(err()) }
}

/// Prints the law.
///
/// # Errors
/// If the numbers make no sense, or `out` cannot be written.
pub fn run(args: &LawArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let report = report(args)?;
    emit(&report, Output::new(args.json, false), out)?;
    Ok(Exit::Done)
}

fn report(args: &LawArgs) -> Result<LawReport, becalm_scale::ScaleError> {
    let law = match args.rate {
        Some(rate) => Law::from_rate(args.grain, args.delay, rate)?,
        None => Law::new(args.grain, args.delay, args.probability.map_or(0.0, Share::ratio))?,
    };
    let row = |ranks: &Count| {
        let tolerable = args.tolerate.map(|lost| law.tolerable(ranks.get(), lost.ratio())).transpose()?;
        Ok(LawRow { point: law.at(ranks.get())?, tolerable })
    };
    let rows = args.ranks.iter().map(row).collect::<Result<_, becalm_scale::ScaleError>>()?;
    Ok(LawReport { law, grain: args.grain, tolerated: args.tolerate, rows })
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
