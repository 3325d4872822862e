//! The noise that a command is given: a formula, or the path of a run.

use std::path::PathBuf;
use std::str::FromStr;

use becalm_analyze::noise::{NoiseError, NoiseInput};
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_scale::ScaleError;
use becalm_scale::spec::NoiseSpec;

use crate::progress::ReadingProgress;

/// What was typed: a formula or the path of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum NoiseArg {
    /// A formula: `periodic:` or `poisson:`.
    Spec(NoiseSpec),
    /// The path of a bundle.
    Run(PathBuf),
}

impl FromStr for NoiseArg {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        // A misspelled formula gets the error of formulas rather than that of a file that is not there.
        let name = text.split(':').next();
        if matches!(name, Some("periodic" | "poisson")) && text.contains(':') || text.contains(",detour=") {
            text.parse().map(Self::Spec)
        } else {
            Ok(Self::Run(PathBuf::from(text)))
        }
    }
}

/// Reads the noise of a run, with the books of its detours if `books` is set, and shows how far the reading is.
pub fn from_run(bundle: &Bundle, selection: &Selection, books: bool) -> Result<NoiseInput, NoiseError> {
    let _reading = ReadingProgress::begin(bundle, 1);
    NoiseInput::from_run(bundle, selection, books)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_told_from_paths() {
        let spec: NoiseArg = "periodic:interval=1ms,detour=50us".parse().unwrap();
        assert!(matches!(spec, NoiseArg::Spec(NoiseSpec::Periodic { .. })));
        for path in ["quiet", "a/b:c.becalm", "periodic"] {
            assert_eq!(path.parse(), Ok(NoiseArg::Run(PathBuf::from(path))));
        }
        for wrong in ["periodc:interval=1ms,detour=5us", "poisson:", "poisson:rate=1,detour=5us"] {
            assert!(wrong.parse::<NoiseArg>().is_err(), "{wrong}");
        }
    }
}
