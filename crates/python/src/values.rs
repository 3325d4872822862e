//! Converts Python values to becalm's.

use std::str::FromStr;

use becalm_analyze::summary::Selection;
use becalm_units::{CpuId, CpuList, Nanos, Share};
use pyo3::prelude::*;

use crate::error::usage;

/// Times in nanoseconds.
pub fn times(values: Vec<i64>) -> Vec<Nanos> {
    values.into_iter().map(Nanos::new).collect()
}

/// Parses a text or a number as the command line does.
pub fn parsed<T: FromStr>(text: &str) -> PyResult<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(usage)
}

/// A share from 0 to 1. Fails for other numbers.
pub fn share(ratio: f64) -> PyResult<Share> {
    Share::from_ratio(ratio).ok_or_else(|| usage(format!("{ratio} is not a share: give a number from 0 to 1")))
}

/// The share of its time that a job may lose, less than all of it. Fails otherwise.
pub fn tolerated(ratio: f64) -> PyResult<Share> {
    let share = share(ratio)?;
    if share.ratio() < 1.0 { Ok(share) } else { Err(usage(format!("{share} is all of the time: give less than 100%"))) }
}

/// The selected part of a run. Fails if the list of CPUs is empty, or contains an impossible one.
pub fn selection(node: Option<String>, cpus: Option<Vec<u32>>, with_self: bool) -> PyResult<Selection> {
    Ok(Selection { node, cpus: cpus.map(cpu_list).transpose()?, with_self, ..Selection::default() })
}

fn cpu_list(cpus: Vec<u32>) -> PyResult<CpuList> {
    if cpus.is_empty() {
        return Err(usage("it names no CPU"));
    }
    match cpus.iter().find(|cpu| **cpu >= CpuId::LIMIT) {
        Some(cpu) => Err(usage(format!("'{cpu}' is not a CPU: write its number, from 0 to {}", CpuId::LIMIT - 1))),
        None => Ok(cpus.into_iter().map(CpuId::new).collect()),
    }
}
