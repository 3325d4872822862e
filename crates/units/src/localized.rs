//! Numbers in other notations: `1,5ms`, `10 000`, `10'000`, `１０`. They are refused, because a comma separates elements of a list here and
//! has two meanings elsewhere; this module suggests the accepted form.

/// The same number in becalm's notation; `None` if the text is not a number in another notation.
pub fn plain_number(text: &str) -> Option<String> {
    let unit_at =
        text.rfind(|c: char| digit(c).is_some()).map(|at| at + text[at..].chars().next().map_or(0, char::len_utf8))?;
    let (number, unit) = text.split_at(unit_at);
    if !unit.chars().all(|c| c.is_alphabetic() || c == '%' || c == ' ' || c == '\u{a0}' || c == '\u{202f}') {
        return None;
    }
    let mut groups = vec![String::new()];
    let mut marks = Vec::new();
    let mut is_foreign = false;
    for c in number.chars() {
        if let Some(digit) = digit(c) {
            is_foreign |= !c.is_ascii();
            groups.last_mut()?.push(digit);
        } else if matches!(c, '.' | ',' | '\'' | '_' | ' ' | '\u{2019}' | '\u{a0}' | '\u{202f}' | '\u{66b}' | '\u{66c}')
        {
            marks.push(c);
            groups.push(String::new());
        } else {
            return None;
        }
    }
    let unit = unit.trim();
    if marks.is_empty() {
        return (is_foreign || unit != &text[unit_at..]).then(|| groups.concat() + unit);
    }
    if groups.iter().any(String::is_empty) || (marks == ['.'] && !is_foreign) {
        return None;
    }
    // A mark before three digits separates thousands, unless it is the last one of several kinds.
    let last = *marks.last()?;
    let is_fraction = matches!(last, '.' | ',' | '\u{66b}')
        && marks.iter().filter(|mark| **mark == last).count() == 1
        && (marks.len() > 1 || groups.last()?.len() != 3 || groups[0] == "0");
    let fraction = if is_fraction { groups.pop() } else { None };
    let point = fraction.map_or_else(String::new, |fraction| format!(".{fraction}"));
    Some(groups.concat() + &point + unit)
}

/// The digit of a character, in the most common scripts with decimal numbers: Latin, full-width, Arabic, Persian, Devanagari.
fn digit(c: char) -> Option<char> {
    const ZEROS: [char; 5] = ['0', '\u{ff10}', '\u{660}', '\u{6f0}', '\u{966}'];
    let digit_after = |zero: char| (c as u32).checked_sub(zero as u32).filter(|digit| *digit < 10);
    ZEROS.into_iter().find_map(digit_after).and_then(|digit| char::from_digit(digit, 10))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn others_ways_of_writing_are_understood() {
        for (text, plain) in [
            ("1,5ms", "1.5ms"),
            ("0,001", "0.001"),
            ("10,000", "10000"),
            ("10.000,5us", "10000.5us"),
            ("1,234,567", "1234567"),
            ("1.234.567", "1234567"),
            ("10 000", "10000"),
            ("10\u{202f}000 ms", "10000ms"),
            ("10'000", "10000"),
            ("10_000k", "10000k"),
            ("\u{ff11}\u{ff10}", "10"),
            ("\u{661}\u{66b}\u{665}ms", "1.5ms"),
            ("0,1%", "0.1%"),
            ("10 ms", "10ms"),
        ] {
            assert_eq!(plain_number(text).as_deref(), Some(plain), "{text}");
        }
        for text in ["", "10", "1.5ms", "ms", "1,", ",5", "0-3,8", "fast", "1,5,x", "a,b", "-1,5"] {
            assert_eq!(plain_number(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic_and_what_is_advised_needs_no_advice(text: String) {
            if let Some(plain) = plain_number(&text) {
                prop_assert_eq!(plain_number(&plain), None);
            }
        }
    }
}
