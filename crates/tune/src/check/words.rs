//! Words that the sentences of several checks are made of.

use becalm_units::CpuList;

/// `CPU 1` or `CPUs 1-3`.
pub(super) fn cpus(list: &CpuList) -> String {
    if list.len() == 1 { format!("CPU {list}") } else { format!("CPUs {list}") }
}

/// `CPU 1 is` or `CPUs 1-3 are`.
pub(super) fn are(list: &CpuList) -> String {
    format!("{} {}", cpus(list), if list.len() == 1 { "is" } else { "are" })
}

/// The first of some names, and how many more there are: `a, b, c and 4 more`.
pub(super) fn some<T: AsRef<str>>(names: &[T], shown: usize) -> String {
    let first: Vec<&str> = names.iter().take(shown).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(shown) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
