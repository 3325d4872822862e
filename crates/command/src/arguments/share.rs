//! Shares of a job's time.

use becalm_units::{ParseShareError, Share};

/// Parses a tolerable loss as a share of a job's time, less than all of it.
pub fn tolerable(text: &str) -> Result<Share, String> {
    let share: Share = text.parse().map_err(|error: ParseShareError| error.to_string())?;
    if share.ratio() < 1.0 { Ok(share) } else { Err(format!("{share} is all of the time: give less than 100%")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_all_of_the_time_can_be_lost() {
        assert_eq!(tolerable("5%").unwrap().ratio(), 0.05);
        assert!(tolerable("100%").unwrap_err().contains("less than 100%"));
        assert!(tolerable("5").unwrap_err().contains("has no unit"));
    }
}
