//! CPUs as they are typed.

use becalm_units::{CpuId, CpuList};

/// A list of CPUs that is not empty.
///
/// # Errors
/// If it is no list, or names none.
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
