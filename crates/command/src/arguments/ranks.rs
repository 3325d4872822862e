//! For how many ranks a report says what the noise costs.

use becalm_analyze::summary::{RANKS, Summary};
use becalm_scale::order::UNITS_LIMIT;
use becalm_units::Count;
use clap::Args;

/// The program of many ranks by which causes are ranked.
#[derive(Args, Clone, Copy, Debug)]
pub struct RanksArgs {
    /// Rank the causes by what a program of so many ranks gains without them, which wait for each other after every 1ms of work
    /// [default: 1024]
    #[arg(long, value_name = "N", value_parser = ranks, allow_hyphen_values = true)]
    ranks: Option<u64>,
}

impl RanksArgs {
    /// Whether the user named a number.
    pub const fn is_given(self) -> bool {
        self.ranks.is_some()
    }

    /// The number that the user named.
    pub const fn number(self) -> Option<u64> {
        self.ranks
    }

    /// Has the summary answer for this number.
    pub fn ask(self, summary: &mut Summary) {
        summary.ask_for_ranks(self.ranks.unwrap_or(RANKS));
    }
}

/// Parses a number of ranks that order statistics can answer for.
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
    fn ranks_are_counts_with_an_end() {
        assert_eq!((ranks("1"), ranks("16Ki"), ranks("1Ti")), (Ok(1), Ok(16 << 10), Ok(1 << 40)));
        for wrong in ["0", "-1", "2Ti", "many", ""] {
            assert!(ranks(wrong).is_err(), "{wrong}");
        }
    }
}
