//! Reads the noise of a run with a progress bar.

use becalm_analyze::noise::{NoiseError, NoiseInput};
use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;

use crate::progress::ReadingProgress;

/// Reads the noise of a run, with the accounts of its detours if `books` is set.
pub fn from_run(bundle: &Bundle, selection: &Selection, books: bool) -> Result<NoiseInput, NoiseError> {
    let _reading = ReadingProgress::begin(bundle, 1);
    NoiseInput::from_run(bundle, selection, books)
}
