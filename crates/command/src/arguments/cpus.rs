//! Parsers for CPUs.

use becalm_units::{CpuId, CpuList};

/// A list of CPUs that is not empty. Fails if it is invalid or empty.
pub fn some_cpus(text: &str) -> Result<CpuList, String> {
    match text.parse::<CpuList>() {
        Ok(cpus) if cpus.is_empty() => Err("it names no CPU".to_owned()),
        Ok(cpus) => Ok(cpus),
        Err(error) => Err(error.to_string()),
    }
}

/// The number of one CPU.
pub fn cpu_id(text: &str) -> Result<CpuId, String> {
    let err = || format!("'{text}' is not a CPU: write its number, from 0 to {}", CpuId::LIMIT - 1);
    text.parse().ok().filter(|id| *id < CpuId::LIMIT).map(CpuId::new).ok_or_else(err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_a_number() {
        assert_eq!(cpu_id("4095"), Ok(CpuId::new(4095)));
        for text in ["", "-1", "0-3", "all", "4294967296", "1048576"] {
            assert!(cpu_id(text).unwrap_err().contains("is not a CPU"), "{text}");
        }
    }
}
