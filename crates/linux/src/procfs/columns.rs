//! Tables with a column per CPU, the format of /proc/interrupts and /proc/softirqs.

use std::collections::HashMap;

use becalm_units::CpuId;

use crate::file::FormatError;

/// The growth of one of the kernel's counters, which are 32 bits wide in the kernel and wrap.
///
/// A counter that decreased has wrapped if the distance across the wrap is below 2^31. Otherwise it was reset to zero, as when an interrupt is freed
/// and requested again, and has grown by its current value.
pub fn growth(earlier: u64, later: u64) -> u64 {
    if later >= earlier {
        return later - earlier;
    }
    match (u32::try_from(earlier), u32::try_from(later)) {
        (Ok(earlier), Ok(now)) if now.wrapping_sub(earlier) < 1 << 31 => u64::from(now.wrapping_sub(earlier)),
        _ => later,
    }
}

/// The CPUs of the header, `CPU0 CPU1 CPU4`, in order. It has no offline CPUs.
pub(super) fn header(line: &str) -> Result<Vec<CpuId>, FormatError> {
    if line.trim().is_empty() {
        return Err(FormatError::new("a header of CPU columns was expected", ""));
    }
    let cpu = |word: &str| {
        let id = word.strip_prefix("CPU").and_then(|id| id.parse().ok());
        id.map(CpuId::new).ok_or_else(|| FormatError::new("a header of CPU columns was expected", line.trim()))
    };
    let cpus: Vec<CpuId> = line.split_whitespace().map(cpu).collect::<Result<_, _>>()?;
    Ok(cpus)
}

/// The columns of the CPUs that two snapshots have in common: in the later one, in the earlier one.
pub(super) fn common(later: &[CpuId], earlier: &[CpuId]) -> Vec<(usize, usize)> {
    let then: HashMap<CpuId, usize> = earlier.iter().enumerate().map(|(column, cpu)| (*cpu, column)).collect();
    later.iter().enumerate().filter_map(|(now, cpu)| Some((now, *then.get(cpu)?))).collect()
}

/// The error that nothing follows the header.
pub(super) fn no_counts() -> FormatError {
    FormatError::new("counts below the header of CPU columns were expected", "")
}

/// The name before the colon, and the text after it.
pub(super) fn name(line: &str) -> Result<(&str, &str), FormatError> {
    let (name, rest) =
        line.split_once(':').ok_or_else(|| FormatError::new("'NAME: counts' was expected", line.trim()))?;
    Ok((name.trim(), rest))
}

/// At most `limit` leading numbers, and the text after them.
pub(super) fn counts(text: &str, limit: usize) -> (Vec<u64>, &str) {
    let mut rest = text.trim_start();
    let mut counts = Vec::with_capacity(limit);
    while counts.len() < limit {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let Ok(count) = rest[..end].parse() else { break };
        counts.push(count);
        rest = rest[end..].trim_start();
    }
    (counts, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_counter_started_again_is_no_wrap() {
        assert_eq!(growth(u64::from(u32::MAX), 4), 5);
        assert_eq!(growth(1_000_000, 3), 3);
        assert_eq!(growth(1 << 40, 7), 7);
    }

    proptest! {
        #[test]
        fn growth_across_the_wrap_is_the_growth(start: u32, grown in 0_u32..1 << 31) {
            prop_assert_eq!(growth(u64::from(start), u64::from(start.wrapping_add(grown))), u64::from(grown));
        }
    }
}
