//! Assigns CPUs: from the user, from the files, or one after another.

use std::collections::BTreeSet;

use becalm_units::fault::UsageError;
use becalm_units::{CpuId, CpuList, counted};

/// The CPU of each imported part; some parts name it themselves. The others get the lowest free numbers, in order. Fails if the number
/// of chosen CPUs differs from the number of parts, or two parts have the same CPU.
pub fn assigned(chosen: Option<&CpuList>, said: &[Option<CpuId>]) -> Result<Vec<CpuId>, UsageError> {
    if let Some(chosen) = chosen {
        if chosen.len() != said.len() {
            let (given, needed) =
                (counted(chosen.len() as u64, "CPU", "CPUs"), counted(said.len() as u64, "CPU", "CPUs"));
            return Err(UsageError::new(format!("--cpu names {given}, and the files hold {needed}")));
        }
        return Ok(chosen.iter().collect());
    }
    let mut taken: BTreeSet<CpuId> = BTreeSet::new();
    for cpu in said.iter().flatten() {
        if cpu.get() >= CpuId::LIMIT {
            return Err(UsageError::new(format!(
                "the files tell of CPU {cpu}, which is above the limit of {}; say which it is with --cpu",
                CpuId::LIMIT - 1
            )));
        }
        if !taken.insert(*cpu) {
            return Err(UsageError::new(format!(
                "two of the files are of CPU {cpu}; say which CPUs they are of with --cpu, or import them as several \
                 nodes with --node"
            )));
        }
    }
    let mut free = (0..).map(CpuId::new).filter(|cpu| !taken.contains(cpu));
    Ok(said.iter().map(|cpu| cpu.or_else(|| free.next()).unwrap_or(CpuId::new(0))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(chosen: Option<&str>, said: &[Option<u32>]) -> Result<Vec<u32>, String> {
        let chosen: Option<CpuList> = chosen.map(|list| list.parse().unwrap());
        let said: Vec<Option<CpuId>> = said.iter().map(|cpu| cpu.map(CpuId::new)).collect();
        let cpus = assigned(chosen.as_ref(), &said).map_err(|error| error.to_string())?;
        Ok(cpus.into_iter().map(CpuId::get).collect())
    }

    #[test]
    fn who_says_nothing_gets_the_next_that_is_free() {
        assert_eq!(numbers(None, &[None, Some(0), None, Some(2)]), Ok(vec![1, 0, 3, 2]));
        assert_eq!(numbers(Some("4,7"), &[None, Some(0)]), Ok(vec![4, 7]));
        assert!(numbers(Some("4-6"), &[None, None]).is_err_and(|why| why.contains("names 3 CPUs")));
        assert!(numbers(None, &[Some(3), Some(3)]).is_err_and(|why| why.contains("two of the files are of CPU 3")));
        assert!(numbers(None, &[Some(u32::MAX)]).is_err_and(|why| why.contains("above the limit")));
    }
}
