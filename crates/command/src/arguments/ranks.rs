//! Numbers of ranks, for reports with the cost of noise.

use std::env;

use becalm_analyze::summary::Detail;
use becalm_scale::order::UNITS_LIMIT;
use becalm_units::Count;
use clap::Args;

/// The parallel program whose slowdown is shown.
#[derive(Args, Clone, Copy, Debug)]
pub struct RanksArgs {
    /// Show the cost to N processes (ranks) that synchronize every 1 ms [default: of the job]
    #[arg(long, value_name = "N", value_parser = ranks, allow_hyphen_values = true)]
    ranks: Option<u64>,
}

impl RanksArgs {
    /// Whether the user gave a number.
    pub const fn is_given(self) -> bool {
        self.ranks.is_some()
    }

    /// The user's number, or that of the parallel job around becalm.
    pub fn number(self) -> Option<u64> {
        self.ranks.or_else(|| ranks_of_job(|name| env::var(name).ok()))
    }

    /// The detail of a summary for it.
    pub fn detail(self) -> Detail {
        if self.number().is_some() { Detail::Scale } else { Detail::Figures }
    }
}

/// The variables of Open MPI, MPICH and Slurm with the number of ranks.
const JOBS: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"];

/// The number of ranks of a parallel job; `None` outside of one.
fn ranks_of_job(variable: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let number = JOBS.iter().find_map(|name| variable(name)?.parse::<u64>().ok())?;
    (2..=UNITS_LIMIT).contains(&number).then_some(number)
}

/// Parses a number of ranks that order statistics support.
fn ranks(text: &str) -> Result<u64, String> {
    let ranks = text.parse::<Count>().map_err(|error| error.to_string())?.get();
    if (1..=UNITS_LIMIT).contains(&ranks) {
        return Ok(ranks);
    }
    Err(format!("a program has 1 to {} ranks", Count::new(UNITS_LIMIT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_says_how_many_ranks_it_has() {
        let job =
            |name: &'static str, value: &'static str| ranks_of_job(|asked| (asked == name).then(|| value.to_owned()));
        assert_eq!((job("SLURM_NTASKS", "512"), job("OMPI_COMM_WORLD_SIZE", "2")), (Some(512), Some(2)));
        assert_eq!((job("PMI_SIZE", "1"), job("PMI_SIZE", "many"), job("OTHER", "8")), (None, None, None));
    }

    #[test]
    fn ranks_are_counts_with_an_end() {
        assert_eq!((ranks("1"), ranks("16Ki"), ranks("1Ti")), (Ok(1), Ok(16 << 10), Ok(1 << 40)));
        for wrong in ["0", "-1", "2Ti", "many", ""] {
            assert!(ranks(wrong).is_err(), "{wrong}");
        }
    }
}
