//! How wide the page is on which texts are laid out.
//!
//! It is one setting of the process, as a printer's paper is, so that it reaches every table through whatever calls lie
//! between. Unless it is set, texts are as wide as their authors made them.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Narrower than this nothing is laid out; a terminal cuts or wraps it.
const NARROWEST: usize = 40;

static WIDTH: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Sets the width, in characters; texts become no narrower than 40.
pub fn set_width(columns: usize) {
    WIDTH.store(columns.max(NARROWEST), Ordering::Relaxed);
}

/// The width, in characters.
pub(crate) fn width() -> usize {
    WIDTH.load(Ordering::Relaxed)
}
