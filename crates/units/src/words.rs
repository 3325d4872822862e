//! Numbers in sentences, with singular and plural.

use crate::CpuList;

/// Selects the word for this number: `one` for 1, else `many`.
pub const fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// A number with its noun: `1 detour`, `2 detours`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", plural(count, one, many))
}

/// CPUs in a sentence: `CPU 3`, `CPUs 1-3,8`.
pub fn cpus(list: &CpuList) -> String {
    format!("{} {list}", plural(list.len() as u64, "CPU", "CPUs"))
}

/// CPUs as the subject of a sentence: `CPU 3 is`, `CPUs 1-3,8 are`.
pub fn cpus_are(list: &CpuList) -> String {
    format!("{} {}", cpus(list), plural(list.len() as u64, "is", "are"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0, 1, 2].map(|count| plural(count, "rank", "ranks")), ["ranks", "rank", "ranks"]);
        assert_eq!([0, 1, 2].map(|count| counted(count, "rank", "ranks")), ["0 ranks", "1 rank", "2 ranks"]);
    }

    #[test]
    fn a_sentence_about_cpus_fits_their_number() {
        let said = |text: &str| cpus_are(&text.parse().unwrap());
        assert_eq!([said("3"), said("1-3,8")], ["CPU 3 is", "CPUs 1-3,8 are"]);
    }
}
