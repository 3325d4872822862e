//! The result of checking the accounting ([`becalm_account::Balance`]). Only if it is inexact are the files read again, to find the first detour
//! whose activities do not add up to it.

use becalm_bundle::{Bundle, BundleError};
use becalm_units::CpuId;

/// Whether the activities add up to the detours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Books {
    /// They add up in every detour.
    Closed,
    /// They do not. The first such detour of each CPU.
    Open(Vec<OpenBook>),
    /// There are no activities: no kernel event was seen, or none was requested.
    NoActivities,
}

/// A detour whose activities do not add up to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenBook {
    /// The host of the recording.
    pub node: String,
    /// The CPU of the recording.
    pub cpu: CpuId,
    /// The detour's number on that CPU.
    pub detour: u64,
    /// Its length, in nanoseconds; `None` if the number is beyond the last detour.
    pub duration_ns: Option<i64>,
    /// The sum of its activities, in nanoseconds.
    pub activities_ns: i64,
}

/// The first detour of a CPU whose activities do not add up to it, found by rereading the CPU's rows.
pub(super) fn first_open(bundle: &Bundle, node: &str, cpu: CpuId) -> Result<Option<OpenBook>, BundleError> {
    let mut activities = BookRows::new(bundle.activities(node)?, |batch, rows: &mut Vec<(u64, i64)>| {
        for row in rows_of(batch.cpus(), cpu) {
            rows.push((batch.detours()[row] as u64, batch.self_times()[row]));
        }
    });
    let mut detours = BookRows::new(bundle.detours(node)?, |batch, rows: &mut Vec<i64>| {
        rows.extend(rows_of(batch.cpus(), cpu).map(|row| batch.durations()[row]));
    });
    let open = |detour, duration_ns, activities_ns| {
        Ok(Some(OpenBook { node: node.to_owned(), cpu, detour, duration_ns, activities_ns }))
    };
    let mut next = activities.next()?;
    let mut number = 0;
    while let Some(duration) = detours.next()? {
        let mut sum = 0_i64;
        while let Some((detour, self_time)) = next
            && detour <= number
        {
            if detour < number {
                return open(detour, None, self_time);
            }
            sum = sum.saturating_add(self_time);
            next = activities.next()?;
        }
        if sum != duration {
            return open(number, Some(duration), sum);
        }
        number += 1;
    }
    match next {
        Some((detour, self_time)) => open(detour, None, self_time),
        None => Ok(None),
    }
}

fn rows_of(cpus: &[i32], cpu: CpuId) -> impl Iterator<Item = usize> {
    cpus.iter().enumerate().filter(move |(_, at)| **at as u32 == cpu.get()).map(|(row, _)| row)
}

/// The rows of one CPU, one by one, out of batches of all.
struct BookRows<B, T, F> {
    batches: B,
    take: F,
    rows: std::vec::IntoIter<T>,
}

impl<T, I, B: Iterator<Item = Result<I, BundleError>>, F: Fn(&I, &mut Vec<T>)> BookRows<B, T, F> {
    fn new(batches: B, take: F) -> Self {
        Self { batches, take, rows: Vec::new().into_iter() }
    }

    fn next(&mut self) -> Result<Option<T>, BundleError> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            let Some(batch) = self.batches.next().transpose()? else { return Ok(None) };
            let mut rows = Vec::new();
            (self.take)(&batch, &mut rows);
            self.rows = rows.into_iter();
        }
    }
}
