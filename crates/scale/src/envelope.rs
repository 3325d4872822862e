//! The larger of two delay functions, again as pieces: a node is delayed as long as its latest rank.

/// A stretch of the circle on which the delay is `delay` for `flat`, and then falls by 1 ns per ns until `length`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub start: i64,
    /// The length of its flat part.
    pub flat: i64,
    /// Its length: at least `flat`.
    pub length: i64,
    /// The delay at its start, and its largest.
    pub delay: i64,
}

/// A stretch with one slope: the value is `delay` at `start` and falls by `slope` (0 or 1) per nanosecond.
#[derive(Clone, Copy)]
struct EnvelopeLine {
    start: i64,
    end: i64,
    delay: i64,
    slope: i64,
}

impl EnvelopeLine {
    fn delay(&self, position: i64) -> i64 {
        self.delay - self.slope * (position - self.start)
    }
}

/// The function as lines from 0 to the circle's length without gaps.
fn lines(length: i64, pieces: &[Piece]) -> Vec<EnvelopeLine> {
    let mut lines = Vec::with_capacity(3 * pieces.len() + 1);
    let mut add = |start: i64, end: i64, delay: i64, slope: i64| {
        if start >= end {
        } else if start >= length {
            lines.push(EnvelopeLine { start: start - length, end: end - length, delay, slope });
        } else {
            lines.push(EnvelopeLine { start, end: end.min(length), delay, slope });
            if end > length {
                lines.push(EnvelopeLine {
                    start: 0,
                    end: end - length,
                    delay: delay - slope * (length - start),
                    slope,
                });
            }
        }
    };
    for piece in pieces {
        let (fall, end) = (piece.start + piece.flat, piece.start + piece.length);
        add(piece.start, fall, piece.delay, 0);
        add(fall, end, piece.delay, 1);
    }
    lines.sort_unstable_by_key(|line| line.start);
    let mut full = Vec::with_capacity(2 * lines.len() + 1);
    let mut at = 0;
    for line in lines {
        if line.start > at {
            full.push(EnvelopeLine { start: at, end: line.start, delay: 0, slope: 0 });
        }
        at = line.end;
        full.push(line);
    }
    if at < length {
        full.push(EnvelopeLine { start: at, end: length, delay: 0, slope: 0 });
    }
    full
}

/// The larger of two functions on one circle, each given by its pieces with a positive delay, which do not overlap.
pub(crate) fn envelope(length: i64, one: &[Piece], other: &[Piece]) -> Vec<Piece> {
    let (one, other) = (lines(length, one), lines(length, other));
    let mut out = Pieces(Vec::with_capacity(one.len().max(other.len())));
    let (mut i, mut j, mut at) = (0, 0, 0);
    while at < length {
        let (a, b) = (one[i], other[j]);
        let end = a.end.min(b.end);
        let (at_a, at_b) = (a.delay(at), b.delay(at));
        let (high, low, above) =
            if (at_a, b.slope) >= (at_b, a.slope) { (a, b, at_a - at_b) } else { (b, a, at_b - at_a) };
        // The higher one falls below the other only if it alone falls, after as many nanoseconds as it is above.
        let cross = if high.slope > low.slope { end.min(at + above) } else { end };
        out.add(at, cross, high.delay(at), high.slope);
        out.add(cross, end, low.delay(cross), low.slope);
        at = end;
        i += usize::from(a.end == end);
        j += usize::from(b.end == end);
    }
    out.0
}

/// Pieces that are built from lines in rising order.
struct Pieces(Vec<Piece>);

impl Pieces {
    fn add(&mut self, start: i64, end: i64, delay: i64, slope: i64) {
        if start >= end || delay <= 0 {
            return;
        }
        if let Some(last) = self.0.last_mut() {
            let falls = last.length - last.flat;
            let goes_on = last.start + last.length == start && last.delay - falls == delay;
            if goes_on && (slope == 1 || falls == 0) {
                last.length += end - start;
                last.flat += if slope == 0 { end - start } else { 0 };
                return;
            }
        }
        let flat = if slope == 0 { end - start } else { 0 };
        self.0.push(Piece { start, flat, length: end - start, delay });
    }
}
