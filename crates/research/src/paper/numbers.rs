//! Every published number of the catalogue is printed in the section, table or figure that the catalogue names.
//!
//! The files `*_numbers.csv` list the numbers of each section, also those in words (*twice*, *half*), and the section of each table and figure. A
//! script that does not know the catalogue took them from the papers' texts.

use super::catalogue::{self, Figure};
use super::verdict::Published;

const NUMBERS: [(&str, &str); 4] = [
    ("beckman2007", include_str!("../../data/beckman2007_numbers.csv")),
    ("tsafrir2007", include_str!("../../data/tsafrir2007_numbers.csv")),
    ("radojkovic2008", include_str!("../../data/radojkovic2008_numbers.csv")),
    ("de2009", include_str!("../../data/de2009_numbers.csv")),
];

/// Numbers that follow from printed ones, and bounds that becalm derives from words of the paper: names of figures, and why.
const NOT_PRINTED: [(&str, &str); 9] = [
    ("B29", "53 ms by 34 %"),
    ("B34", "that it levels off"),
    ("B36", "that it levels off"),
    ("B38", "that it levels off"),
    ("B40", "that it levels off"),
    ("share of interrupts", "85.483 and 1.062 %"),
    ("share of work queue threads", "1.97 and 0.007 %"),
    ("share of other kernel threads", "1.716, 0.565, 0.326, 0.029 and 0.008 %"),
    ("share of user level processes", "7.295 and 1.538 %"),
];

/// The largest relative difference from a printed number: a third is printed as a word, and given as 33.3 %.
const ROUNDED: f64 = 0.002;

fn published(figure: &Figure) -> Vec<f64> {
    match figure.published {
        Published::Is(value)
        | Published::About(value)
        | Published::ByConstruction(value)
        | Published::AtMost(value)
        | Published::AtLeast(value) => vec![value],
        Published::Between(low, high) => vec![low, high],
        Published::Unknown => Vec::new(),
    }
}

/// The entry for a place in the file of a paper: its second column.
fn at<'a>(text: &'a str, place: &str) -> Option<&'a str> {
    text.lines().filter_map(|line| line.split_once(',')).find(|(name, _)| *name == place).map(|(_, rest)| rest)
}

/// The sections in a place: by their numbers, or by tables and figures in them.
fn sections(text: &str, place: &str) -> Vec<String> {
    let words: Vec<&str> = place.split([' ', ',', ';', ':']).filter(|word| !word.is_empty()).collect();
    let named = words.windows(2).filter_map(|pair| match pair {
        ["section", number] => Some(format!("section {number}")),
        ["Fig.", number] => at(text, &format!("Figure {number}")).map(str::to_owned),
        ["Table", number] => at(text, &format!("Table {number}")).map(str::to_owned),
        _ => None,
    });
    named.collect()
}

/// True if a section prints a number in any unit of time, in percent or as a factor.
fn prints(text: &str, section: &str, value: f64) -> bool {
    let printed = at(text, section).into_iter().flat_map(str::split_whitespace);
    let mut printed = printed.map(|number| number.parse::<f64>().expect("numbers alone"));
    let units = [1.0, 1e3, 1e-3, 1e6, 1e-6, 1e-2];
    printed.any(|number| units.iter().any(|unit| (value.abs() * unit - number).abs() <= ROUNDED * number))
}

#[test]
fn published_numbers_are_printed_where_the_catalogue_says() {
    let mut checked = 0;
    for (name, text) in NUMBERS {
        let paper = catalogue::paper(name).unwrap();
        for figure in paper.items.iter().flat_map(|item| &item.figures) {
            if NOT_PRINTED.iter().any(|(name, _)| [&figure.id, &figure.what].iter().any(|own| own == name)) {
                continue;
            }
            let sections = sections(text, &figure.place);
            for value in published(figure) {
                let is_printed = sections.iter().any(|section| prints(text, section, value));
                assert!(is_printed, "{name}: {} of '{}' is not in {sections:?}", value, figure.what);
                checked += 1;
            }
        }
    }
    assert!(checked > 250, "{checked}");
}

/// The numbers in published tables are printed, too.
#[test]
fn published_tables_are_printed() {
    for (name, text) in NUMBERS {
        let paper = catalogue::paper(name).unwrap();
        for item in &paper.items {
            let place = item.name().replace("Figure", "Fig.");
            let sections = sections(text, &place);
            for cell in item.published().into_iter().flat_map(|table| table.rows).flatten() {
                let Ok(value) = cell.parse::<f64>() else { continue };
                let is_printed = value == 0.0 || sections.iter().any(|section| prints(text, section, value));
                assert!(is_printed, "{name}, {}: {cell} is not in {sections:?}", item.name());
            }
        }
    }
}

/// Missing numbers are not found, nor those of another section.
#[test]
fn other_numbers_are_not_found() {
    let (_, text) = NUMBERS[0];
    assert!(prints(text, "section 4", 268.0) && !prints(text, "section 4", 267.0));
    assert!(!prints(text, "section 5", 268.0));
    assert_eq!(sections(text, "section 6, after Tsafrir et al. 2005"), ["section 6"]);
    assert_eq!(sections(text, "Fig. 7, at every size"), ["section 4"]);
    assert!(sections(text, "text").is_empty());
}
