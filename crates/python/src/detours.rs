//! Detours in arrays of a Python program, as noise.

use becalm_analyze::noise::NoiseInput;
use becalm_units::Nanos;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::error::{exception, usage};

/// Detours of one or several CPUs: starts and durations for each, in nanoseconds, in buffers of `int64`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct GivenDetours {
    name: String,
    length_ns: i64,
    cpus: Vec<(PyBuffer<i64>, PyBuffer<i64>)>,
}

impl GivenDetours {
    /// The noise of a node with these CPUs. Fails if starts and durations are not in pairs, or are invalid as noise.
    pub fn noise(self, py: Python<'_>) -> PyResult<NoiseInput> {
        let mut cpus = Vec::with_capacity(self.cpus.len());
        for (number, (starts, durations)) in self.cpus.iter().enumerate() {
            if starts.item_count() != durations.item_count() {
                let (starts, durations) = (starts.item_count(), durations.item_count());
                return Err(usage(format!("CPU {number} has {starts} starts and {durations} durations of detours")));
            }
            cpus.push((starts.to_vec(py)?, durations.to_vec(py)?));
        }
        let pairs = |(starts, durations): (Vec<i64>, Vec<i64>)| {
            starts
                .into_iter()
                .zip(durations)
                .map(|(start, duration)| (Nanos::new(start), Nanos::new(duration)))
                .collect()
        };
        let (name, length) = (self.name, Nanos::new(self.length_ns));
        let noise = py.detach(|| NoiseInput::from_cpus(&name, length, cpus.into_iter().map(pairs).collect()));
        noise.map_err(exception)
    }
}
