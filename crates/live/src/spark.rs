//! Noise over time as a line of bars.

/// The smallest width of such a line, including the gap before it.
pub const LEAST: usize = 26;

/// The largest width, with one character per second.
pub const MOST: usize = 120;

/// The characters of a bar by height, from no noise to the most.
const BARS: [char; 9] =
    [' ', '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];

/// One character per value: a full one for `top`, a blank only for zero.
pub fn line(values: &[f64], top: f64) -> String {
    let bar = |value: &f64| {
        let eighths = if top > 0.0 { (value / top * 8.0).ceil().clamp(0.0, 8.0) } else { 0.0 };
        BARS[eighths as usize]
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_is_not_nothing() {
        assert_eq!(line(&[0.0, 0.001, 0.5, 1.0], 1.0), " \u{2581}\u{2584}\u{2588}");
        assert_eq!(line(&[0.0, 0.0], 0.0), "  ");
        assert_eq!(line(&[], 1.0), "");
    }
}
