//! The errors of predictions compared with measurements under injected noise.

use becalm_model::Estimate;
use becalm_model::validation::{ValidationCell, ValidationErrors};

/// The noise of a cell is called visible if it adds at least this share of a phase.
const VISIBLE: f64 = 0.02;

/// The measured and predicted slowdown of phases; `None` if one is missing.
pub fn means(cell: &ValidationCell) -> Option<(f64, f64)> {
    Some((cell.measured?.mean, cell.predicted?.mean))
}

/// The relative error of the prediction; positive if it is too high.
pub fn error_ratio(cell: &ValidationCell) -> Option<f64> {
    means(cell).map(|(measured, predicted)| predicted / measured - 1.0)
}

/// The same for the added time alone; `None` if that is not visible.
pub fn added_error_ratio(cell: &ValidationCell) -> Option<f64> {
    let (measured, predicted) = means(cell).filter(|(measured, _)| measured - 1.0 >= VISIBLE)?;
    Some((predicted - 1.0) / (measured - 1.0) - 1.0)
}

/// Whether the intervals of both overlap; `None` if one is missing.
fn agrees(cell: &ValidationCell) -> Option<bool> {
    let (measured, predicted) = (cell.measured?, cell.predicted?);
    Some(measured.low <= predicted.high && predicted.low <= measured.high)
}

/// An effect is called large if it is at least this many times its error.
const LARGE: f64 = 3.0;

/// Whether the added time is large compared with its error: half the width of its interval.
pub fn stands_out(slowdown: &Estimate) -> bool {
    let error = slowdown.high - slowdown.mean;
    slowdown.mean - 1.0 >= LARGE * error && slowdown.mean > 1.0
}

/// Whether agreement of a cell is meaningful: if both intervals range from no effect to twice the effect, nearly all agree.
fn tells(cell: &ValidationCell) -> bool {
    cell.measured
        .zip(cell.predicted)
        .is_some_and(|(measured, predicted)| stands_out(&measured) && stands_out(&predicted))
}

/// The errors of these cells.
pub fn errors<'a>(cells: impl IntoIterator<Item = &'a ValidationCell>) -> ValidationErrors {
    let cells: Vec<&ValidationCell> = cells.into_iter().collect();
    let mean = |errors: &[f64]| (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64);
    let absolute = |error: fn(&ValidationCell) -> Option<f64>| -> Vec<f64> {
        cells.iter().filter_map(|cell| error(cell).map(f64::abs)).collect()
    };
    let (errors, added) = (absolute(error_ratio), absolute(added_error_ratio));
    ValidationErrors {
        cells: errors.len(),
        mean_error_ratio: mean(&errors),
        max_error_ratio: errors.iter().copied().reduce(f64::max),
        visible: added.len(),
        mean_added_error_ratio: mean(&added),
        overlapping: cells.iter().filter(|cell| agrees(cell) == Some(true)).count(),
        telling: cells.iter().filter(|cell| tells(cell)).count(),
        telling_overlapping: cells.iter().filter(|cell| tells(cell) && agrees(cell) == Some(true)).count(),
    }
}

#[cfg(test)]
mod tests {
    use becalm_units::Nanos;

    use super::*;

    fn cell(measured: f64, predicted: f64) -> ValidationCell {
        let estimate = |mean: f64| Estimate { mean, low: mean * 0.98, high: mean * 1.02 };
        ValidationCell {
            interval_ns: Nanos::from_millis(1),
            detour_ns: Nanos::from_micros(200),
            synchronized: false,
            constant_ratio: None,
            requested_ratio: 0.2,
            delivered_ratio: Some(0.2),
            measured: Some(estimate(measured)),
            predicted: Some(estimate(predicted)),
            why_not: None,
        }
    }

    #[test]
    fn errors_are_means_over_cells() {
        let apart = [cell(1.5, 1.65), cell(1.01, 1.01)];
        let together = [cell(1.25, 1.25), ValidationCell { measured: None, predicted: None, ..cell(1.25, 1.25) }];
        let some = errors(&apart);
        assert_eq!((some.cells, some.visible, some.overlapping), (2, 1, 1));
        assert!((some.mean_error_ratio.unwrap() - 0.05).abs() < 1e-9);
        assert!((some.max_error_ratio.unwrap() - 0.1).abs() < 1e-9);
        assert!((some.mean_added_error_ratio.unwrap() - 0.3).abs() < 1e-9);
        let all = errors(apart.iter().chain(&together));
        assert_eq!((all.cells, all.visible, all.overlapping), (3, 2, 2));
        assert!((all.mean_error_ratio.unwrap() - 0.1 / 3.0).abs() < 1e-9);
        assert_eq!(errors(&[]).mean_error_ratio, None);
        // An effect of 1 % with an error of 2 % says nothing.
        assert_eq!((all.telling, all.telling_overlapping), (2, 1));
    }

    #[test]
    fn an_effect_stands_out_from_its_error() {
        let estimate = |mean: f64, half: f64| Estimate { mean, low: mean - half, high: mean + half };
        assert!(stands_out(&estimate(1.3, 0.09)) && !stands_out(&estimate(1.3, 0.11)));
        assert!(!stands_out(&estimate(0.9, 0.01)) && !stands_out(&estimate(1.0, 0.0)));
    }
}
