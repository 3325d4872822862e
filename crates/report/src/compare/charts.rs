//! The tiles and charts of a comparison.

use becalm_analyze::compare::{ComparedFigure, Verdict};

use super::figures::interval;
use super::{change, figure, said, title};
use crate::form::figure::Figure;
use crate::form::section::{Grade, Tile};
use crate::form::words::capital;
use crate::html::{Axis, AxisScale, AxisUnit, BarPair, Chart, Forest, ForestRow, PairedBars, Spec};

/// The number of sources, nodes and CPUs drawn at most.
pub(super) const DRAWN: usize = 16;

/// The ends of an axis of ratios. Labels beyond them would be unreadable.
const RATIOS: [f64; 2] = [0.001, 1000.0];

/// How good a difference is.
pub const fn tone(verdict: Verdict) -> Grade {
    match verdict {
        Verdict::Worse => Grade::Bad,
        Verdict::Better => Grade::Good,
        Verdict::NoDifferenceShown => Grade::Plain,
        // A difference between two recordings is neither good nor bad for the machine.
        Verdict::NotEnoughData | Verdict::Higher | Verdict::Lower => Grade::Fair,
    }
}

pub(super) fn tile(row: &ComparedFigure) -> Tile {
    let figure = |number| super::figure(row, number).value().cell();
    let detail = match (row.effect.and_then(|effect| effect.ratio), interval(row)) {
        (Some(ratio), Some(interval)) => {
            format!("{} (95 % CI {interval}), {}", change(Some(ratio)).value().cell(), said(row.verdict))
        }
        (Some(ratio), None) => format!("{}, {}", change(Some(ratio)).value().cell(), said(row.verdict)),
        (None, _) => said(row.verdict).to_owned(),
    };
    let tone = match row.verdict {
        // Too little data about a single figure is no cause for concern.
        Verdict::NotEnoughData => Grade::Plain,
        verdict => tone(verdict),
    };
    let name = capital(&title(row));
    Tile { name, figure: format!("{} \u{2192} {}", figure(row.a), figure(row.b)), detail, tone }
}

/// The figures of both sides, next to each other.
pub(super) fn pairs<'a>(
    id: &'static str,
    title: &str,
    rows: impl Iterator<Item = (String, &'a ComparedFigure)>,
) -> Chart {
    let pair = |(name, row): (String, &ComparedFigure)| BarPair {
        name,
        values: [row.a.unwrap_or(0.0), row.b.unwrap_or(0.0)],
        texts: [row.a, row.b].map(|number| figure(row, number).value().cell()),
    };
    let pairs: Vec<BarPair> = rows.take(DRAWN).map(pair).collect();
    let texts: Vec<String> =
        pairs.iter().map(|pair| format!("{} {} to {}", pair.name, pair.texts[0], pair.texts[1])).collect();
    Chart {
        id,
        title: title.to_owned(),
        label: format!("{title}: {}.", texts.join("; ")),
        height: 74 + 34 * pairs.len() as u32,
        spec: Spec::Pairs(PairedBars {
            x: Axis::new("", AxisScale::Linear, AxisUnit::Ratio).between(Some(0.0), None),
            names: ["A, before", "B, after"].map(str::to_owned),
            pairs,
        }),
        figures: None,
    }
}

/// The changes that have a ratio, with the names of the rows; `None` without any.
pub fn forest_chart<'a>(
    id: &'static str,
    title: &str,
    rows: impl Iterator<Item = (String, &'a ComparedFigure)>,
) -> Option<Chart> {
    let row = |(name, row): (String, &ComparedFigure)| {
        let effect = row.effect?;
        // A figure that fell to 0 has no place on a logarithmic axis.
        let ratio = effect.ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0)?;
        let change = change(Some(ratio)).value().cell();
        let text = interval(row).map_or_else(|| change.clone(), |interval| format!("{change} ({interval})"));
        Some(ForestRow {
            name,
            ratio: ratio.clamp(RATIOS[0], RATIOS[1]),
            // An interval from 0 is drawn to the edge and does not widen the axis.
            low: effect.ratio_low.filter(|low| low.is_finite()).map(|low| if low < RATIOS[0] { 0.0 } else { low }),
            high: effect.ratio_high.filter(|high| high.is_finite()).map(|high| high.min(RATIOS[1])),
            text,
            verdict: said(row.verdict),
            tone: tone(row.verdict).class(),
        })
    };
    let rows: Vec<ForestRow> = rows.take(DRAWN).filter_map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let texts: Vec<String> = rows.iter().map(|row| format!("{} {}, {}", row.name, row.text, row.verdict)).collect();
    Some(Chart {
        id,
        title: title.to_owned(),
        label: format!("By how much the figures changed: {}.", texts.join("; ")),
        height: 74 + 34 * rows.len() as u32,
        spec: Spec::Forest(Forest { title: "ratio of B to A (1: no change)".to_owned(), rows }),
        figures: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_the_tone_of_what_they_say() {
        assert_eq!([Verdict::Worse, Verdict::Better].map(tone), [Grade::Bad, Grade::Good]);
        assert_eq!([Verdict::NoDifferenceShown, Verdict::NotEnoughData].map(tone), [Grade::Plain, Grade::Fair]);
    }
}
