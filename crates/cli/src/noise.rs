//! The noise that a command is given: a formula, the path of a run, or both.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use becalm_analyze::noise::{NoiseError, NoiseInput};
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_linux::file::read_regular_text;
use becalm_scale::ScaleError;
use becalm_scale::spec::NoiseSpec;

use crate::progress::ReadingProgress;

/// The largest file of lengths or of sources that is read.
const FILE_LIMIT: u64 = 64 << 20;

/// What was typed: a formula or the path of a run, or a run and a formula with a `+` between them.
#[derive(Clone, PartialEq, Debug)]
pub enum NoiseArg {
    /// A formula, such as `periodic:` or `poisson:`.
    Spec(NoiseSpec),
    /// The path of a bundle.
    Run(PathBuf),
    /// A bundle, and what comes to its noise.
    RunWith(PathBuf, NoiseSpec),
}

impl FromStr for NoiseArg {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        // A misspelled formula gets the error of formulas rather than that of a file that is not there.
        if NoiseSpec::is_meant(text) || (text.contains(',') && text.contains("detour=") && !text.contains('+')) {
            return text.parse().map(Self::Spec);
        }
        match NoiseSpec::further_causes(text).first() {
            Some(at) => Ok(Self::RunWith(PathBuf::from(&text[..at - 1]), text[*at..].parse()?)),
            None => Ok(Self::Run(PathBuf::from(text))),
        }
    }
}

/// Reads the noise of a run, with the books of its detours if `books` is set, and shows how far the reading is.
pub fn from_run(bundle: &Bundle, selection: &Selection, books: bool) -> Result<NoiseInput, NoiseError> {
    let _reading = ReadingProgress::begin(bundle, 1);
    NoiseInput::from_run(bundle, selection, books)
}

/// Reads a file that a formula names.
pub fn read_named(path: &Path) -> Result<String, String> {
    read_regular_text(path, FILE_LIMIT).map_err(|error| format!("cannot read {}: {error}", path.display()))
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
        let with: NoiseArg = "a+b.becalm+poisson:rate=1Hz,detour=1ms+periodic:interval=1s,detour=1ms".parse().unwrap();
        assert!(matches!(with, NoiseArg::RunWith(path, NoiseSpec::Sum(_)) if path == Path::new("a+b.becalm")));
        for wrong in ["periodc:interval=1ms,detour=5us", "poisson:", "poisson:rate=1,detour=5us"] {
            assert!(wrong.parse::<NoiseArg>().is_err(), "{wrong}");
        }
    }
}
