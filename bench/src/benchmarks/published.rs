//! Published figures that take too long for a test: each must equal the figure in the book, to its last digit.

#[path = "../../../crates/scale/tests/published/figures/mod.rs"]
mod figures;

use std::process::ExitCode;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use figures::page::{Page, Row};
use figures::{Answers, Unit};

/// A number in the book with its unit.
const fn in_unit(unit: Unit, value: f64) -> Figure {
    match unit {
        Unit::Times => Figure::times(value),
        Unit::Percent => Figure::percent(value),
        Unit::Micros => Figure { value, unit: "us" },
        Unit::Millis => Figure { value, unit: "ms" },
        Unit::Detours | Unit::Number => Figure { value, unit: "" },
    }
}

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("published: slow figures of papers, compared with the book's page", effort);
    let page = Page::new(include_str!("../../../docs/src/papers/figures.md").to_owned());
    let (mut answers, mut rows) = (Answers::default(), Vec::new());
    for (number, figure) in figures::numbered() {
        let Some(known) = page.number(&number) else {
            claims.fail(&format!("{number}: {}", figure.what), "it is not on the page");
            continue;
        };
        // A quick benchmark has a short one instead.
        let wanted = match effort {
            Effort::Full => figure.long,
            Effort::Quick => rows.is_empty(),
        };
        let ours = if wanted { figure.find(&mut answers) } else { known };
        let row = Row::new(figure, number, ours);
        if wanted {
            let what = format!("{}: {}", row.number, row.figure.what);
            let unit = row.figure.unit();
            claims.state_beside(&what, in_unit(unit, row.ours), in_unit(unit, known), "the page");
            if !row.is_in_band() {
                claims.fail(&what, &row.moved());
            }
        }
        rows.push(row);
    }
    claims.none("lines of the page that are not as they are found", u64::from(page.filled(&rows) != page.text()));
    claims.end()
}
