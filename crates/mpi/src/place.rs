//! Chooses the CPU of each rank of a node.
//!
//! Launchers bind ranks to cores, to sockets, or not at all; each rank knows its affinity mask. In their order on the node, each takes the
//! least used CPU of its mask, and of equals the first: ranks with separate masks keep their CPUs, and ranks with a common mask spread over
//! it.

use std::collections::BTreeMap;

use becalm_units::{CpuId, CpuList};

/// The CPU of every rank of a node, from the ranks' affinity masks; `None` for an empty mask.
pub fn places(allowed: &[CpuList]) -> Vec<Option<CpuId>> {
    let mut taken: BTreeMap<CpuId, usize> = BTreeMap::new();
    let place = |cpus: &CpuList| {
        let cpu = cpus.iter().min_by_key(|cpu| (taken.get(cpu).copied().unwrap_or(0), *cpu))?;
        *taken.entry(cpu).or_default() += 1;
        Some(cpu)
    };
    allowed.iter().map(place).collect()
}

/// The largest number of ranks that share a CPU.
pub fn crowd(places: &[Option<CpuId>]) -> usize {
    let mut taken: BTreeMap<CpuId, usize> = BTreeMap::new();
    places.iter().flatten().for_each(|cpu| *taken.entry(*cpu).or_default() += 1);
    taken.into_values().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn placed(allowed: &[&str]) -> Vec<u32> {
        let sets: Vec<CpuList> = allowed.iter().map(|text| text.parse().unwrap()).collect();
        places(&sets).into_iter().map(|cpu| cpu.unwrap().get()).collect()
    }

    #[test]
    fn ranks_spread_over_what_they_share_and_keep_what_is_theirs() {
        assert_eq!(placed(&["0-3"; 4]), [0, 1, 2, 3]);
        assert_eq!(placed(&["0-1"; 5]), [0, 1, 0, 1, 0]);
        assert_eq!(placed(&["3", "2", "0-3", "0-3"]), [3, 2, 0, 1]);
        assert_eq!(placed(&["0-1", "4-5", "0-1", "4-5"]), [0, 4, 1, 5]);
        assert_eq!(places(&[CpuList::default()]), [None]);
    }

    proptest! {
        #[test]
        fn nobody_shares_a_cpu_while_there_are_enough(cpus in 1_u32..40, ranks in 1_usize..60) {
            let set: CpuList = format!("0-{}", cpus - 1).parse().unwrap();
            let placed = places(&vec![set; ranks]);
            prop_assert_eq!(crowd(&placed), ranks.div_ceil(cpus as usize));
        }
    }
}
