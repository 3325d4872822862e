//! Parts of sentences of several checks.

pub(super) use becalm_units::{cpus, cpus_are as are};

/// The first of some names, and how many more there are: `a, b, c and 4 more`.
pub(super) fn some<T: AsRef<str>>(names: &[T], shown: usize) -> String {
    let first: Vec<&str> = names.iter().take(shown).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(shown) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
