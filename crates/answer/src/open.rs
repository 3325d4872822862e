//! Opens the stored run for a question. Reports unreadable nodes and reads the others.

use std::fmt;
use std::path::Path;

use becalm_bundle::{Bundle, BundleError, LeftOut, SummaryBundle};

/// Opens a recording, of detours or of work. Fails if no node of it can be read.
pub fn recording(path: &Path, tell: impl Fn(fmt::Arguments<'_>)) -> Result<Bundle, BundleError> {
    let (bundle, left_out) = Bundle::open_readable(path)?;
    tell_of(&left_out, tell);
    Ok(bundle)
}

/// Opens a recording in summary form. Fails if no node of it can be read.
pub fn summary(path: &Path, tell: impl Fn(fmt::Arguments<'_>)) -> Result<SummaryBundle, BundleError> {
    let (bundle, left_out) = SummaryBundle::open_readable(path)?;
    tell_of(&left_out, tell);
    Ok(bundle)
}

fn tell_of(left_out: &LeftOut, tell: impl Fn(fmt::Arguments<'_>)) {
    for (node, error) in left_out {
        tell(format_args!("{node} is left out: {error}"));
    }
}
