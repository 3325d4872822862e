//! The grid of noises: every length at every interval, and every length at the intervals for constant ratios; each once synchronized over
//! all CPUs, and once not.

use becalm_units::Nanos;

/// The requested noises.
#[derive(Clone, PartialEq, Debug)]
pub struct NoiseGrid {
    /// The intervals between starts of detours.
    pub intervals: Vec<Nanos>,
    /// The lengths of detours.
    pub detours: Vec<Nanos>,
    /// The shares of the time that detours take, between 0 and 1.
    pub ratios: Vec<f64>,
}

/// One of these noises.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GridCell {
    /// The interval between starts of detours.
    pub interval: Nanos,
    /// The length of a detour.
    pub detour: Nanos,
    /// Whether all CPUs are interrupted at the same instants.
    pub synchronized: bool,
    /// The requested share of the time, which determines the interval; `None` if the interval was requested.
    pub ratio: Option<f64>,
}

/// The maximum interval, because a cell takes two of them.
const INTERVAL_MAX: Nanos = Nanos::from_secs(10);

impl NoiseGrid {
    /// Checks that every cell is possible. The error names the cell that is not.
    pub fn check(&self) -> Result<(), String> {
        let cells = self.cells();
        for GridCell { interval, detour, .. } in &cells {
            if *detour <= Nanos::ZERO || interval <= detour {
                return Err(format!("detours of {detour} every {interval} leave no time"));
            }
            if *interval > INTERVAL_MAX {
                return Err(format!("detours every {interval} are rarer than the {INTERVAL_MAX} that a cell may take"));
            }
        }
        if cells.is_empty() { Err("the lists leave no noise to inject".to_owned()) } else { Ok(()) }
    }

    /// All cells: first those without synchronization.
    pub fn cells(&self) -> Vec<GridCell> {
        let mut cells = Vec::new();
        for synchronized in [false, true] {
            for &interval in &self.intervals {
                let cell = |&detour: &Nanos| GridCell { interval, detour, synchronized, ratio: None };
                cells.extend(self.detours.iter().map(cell));
            }
            for &ratio in &self.ratios {
                let cell = |&detour: &Nanos| GridCell {
                    interval: Nanos::new((detour.get() as f64 / ratio).round().min(1e18) as i64),
                    detour,
                    synchronized,
                    ratio: Some(ratio),
                };
                cells.extend(self.detours.iter().map(cell));
            }
        }
        cells
    }
}

impl GridCell {
    /// The length of the cell's run: a whole number of intervals, at least two, and at least `least`.
    pub fn lasts(&self, least: Nanos) -> Nanos {
        self.lasts_once(least).max(Nanos::new(2 * self.interval.get()))
    }

    /// The shortest whole number of intervals that takes at least `least`.
    pub fn lasts_once(&self, least: Nanos) -> Nanos {
        let laps = (least.get() as u64).div_ceil(self.interval.get().max(1) as u64).max(1);
        Nanos::new(self.interval.get() * laps as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> NoiseGrid {
        NoiseGrid {
            intervals: vec![Nanos::from_millis(1), Nanos::from_millis(100)],
            detours: vec![Nanos::from_micros(50), Nanos::from_micros(200)],
            ratios: vec![0.01],
        }
    }

    #[test]
    fn constant_ratios_are_constant() {
        let cells = grid().cells();
        assert_eq!(cells.len(), 2 * (4 + 2));
        assert_eq!(cells.iter().filter(|cell| cell.synchronized).count(), 6);
        for cell in cells.iter().filter(|cell| cell.ratio.is_some()) {
            assert_eq!(cell.detour.get() * 100, cell.interval.get());
        }
        assert_eq!(grid().check(), Ok(()));
        assert!(
            NoiseGrid { intervals: vec![Nanos::from_micros(50)], ..grid() }
                .check()
                .unwrap_err()
                .contains("leave no time")
        );
        assert!(NoiseGrid { ratios: vec![1e-9], ..grid() }.check().unwrap_err().contains("rarer"));
        assert!(NoiseGrid { detours: Vec::new(), ..grid() }.check().is_err());
    }

    #[test]
    fn cells_last_whole_intervals() {
        let cell = |interval| GridCell { interval, detour: Nanos::new(1), synchronized: true, ratio: None };
        let least = Nanos::from_millis(400);
        assert_eq!(cell(Nanos::from_millis(1)).lasts(least), least);
        assert_eq!(cell(Nanos::from_millis(300)).lasts(least), Nanos::from_millis(600));
        assert_eq!(cell(Nanos::from_secs(1)).lasts(least), Nanos::from_secs(2));
        assert_eq!(cell(Nanos::from_secs(1)).lasts_once(least), Nanos::from_secs(1));
    }
}
