use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::remedy::Known;

/// The kernels that have each symbol.
fn found() -> BTreeMap<&'static str, Vec<&'static str>> {
    let lines = include_str!("symbols.txt").lines().filter(|line| !line.starts_with('#'));
    let words = lines.map(str::split_whitespace);
    words.filter_map(|mut words| Some((words.next()?, words.collect()))).collect()
}

#[test]
fn every_function_exists_in_a_real_kernel() {
    let found = found();
    let names: BTreeSet<&str> = Function::all().flat_map(|row| row.names).copied().collect();
    for name in &names {
        assert!(found.get(name).is_some_and(|kernels| !kernels.is_empty()), "{name} is in no kernel of symbols.txt");
    }
    let others: Vec<_> = found.keys().filter(|name| !names.contains(**name)).collect();
    assert!(others.is_empty(), "symbols.txt has functions without a row: {others:?}");
}

#[test]
fn every_function_has_one_row() {
    let mut seen = BTreeSet::new();
    for row in Function::all() {
        for name in row.names {
            assert!(seen.insert((carried::prefix(row.carrier), name)), "{name} has two rows");
            assert_eq!(function(row.carrier, name), Some(row));
            assert_eq!(function(row.carrier, &format!("{name}.isra.0")), Some(row));
        }
    }
    assert!(seen.len() >= 60, "{}", seen.len());
    assert_eq!(function(Carrier::Call, "vmstat_update"), None, "it is a work item");
    assert_eq!(function(Carrier::Work, "a_work_of_a_module"), None);
    assert_eq!(function(Carrier::Wheel, "hrtimer_wakeup"), function(Carrier::Timer, "hrtimer_wakeup"));
}

#[test]
fn texts_are_short_clauses() {
    for row in Function::all() {
        for text in [Some(row.does), row.fix.advice].into_iter().flatten() {
            assert!(text.starts_with(|first: char| first.is_ascii_lowercase()) && !text.ends_with('.'), "{text}");
            assert!(text.split(' ').count() <= 25 && text.len() <= 150, "{} characters: {text}", text.len());
        }
        assert!(row.fix.advice.is_some() || row.fix.families.is_empty() && row.fix.needs.is_none(), "{:?}", row.names);
    }
}

/// Plans and checks name some functions as sources, by a pattern.
#[test]
fn sources_of_plans_have_the_fixes_of_their_functions() {
    for known in Known::ALL {
        let row = known.remedy();
        let functions = Function::all().filter(|function| {
            let prefix = carried::prefix(function.carrier);
            let beginning = row.source.strip_suffix('*').unwrap_or(row.source);
            // A pattern for all functions of a carrier is not the row of one of them.
            let is_rule = beginning.len() > prefix.len() && row.fix.advice.is_some();
            is_rule
                && function.names_kind(row.kind)
                && super::super::fits(row.source, &format!("{prefix}{}", function.names[0]))
        });
        for function in functions {
            assert_eq!(function.fix, row.fix, "{known:?} and {:?}", function.names);
        }
    }
}

#[test]
fn what_needs_a_machine_is_not_advised_elsewhere() {
    for row in Function::all() {
        let advice = row.fix.advice.unwrap_or_default();
        for (word, need) in
            [("nohz_full", Need::StoppableTick), ("rcu_nocbs", Need::StoppableTick), ("cpu.max", Need::NewGroups)]
        {
            assert!(!advice.contains(word) || row.fix.needs == Some(need), "{advice}");
        }
    }
}

/// The name of a carrier in the book.
const fn carrier_name(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Call => "IPI",
        Carrier::Work => "work item",
        Carrier::Timer | Carrier::Wheel => "timer",
        Carrier::Tasklet => "tasklet",
        Carrier::IrqWork => "irq_work",
    }
}

/// `FUNCTIONS=overwrite cargo test -p becalm-model the_book_lists` writes the book's table again.
#[test]
fn the_book_lists_all_functions() {
    const START: &str = "<!-- functions -->\n";
    const END: &str = "<!-- end -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/functions.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(START).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut table = "| function | run by | effect | fix | families |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for row in Function::all() {
        let names: Vec<String> = row.names.iter().map(|name| format!("`{name}`")).collect();
        let families: Vec<String> = row.fix.families.iter().map(|family| format!("`{family}`")).collect();
        let (carrier, advice) = (carrier_name(row.carrier), row.fix.advice.unwrap_or_default());
        table.push_str(&format!(
            "| {} | {carrier} | {} | {advice} | {} |\n",
            names.join(", "),
            row.does,
            families.join(", ")
        ));
    }
    let expected = format!("{before}{START}{table}{END}{after}");
    if std::env::var_os("FUNCTIONS").is_some_and(|wanted| wanted == "overwrite") {
        std::fs::write(path, &expected).unwrap();
        return;
    }
    assert!(page == expected, "docs/src/reference/functions.md differs; FUNCTIONS=overwrite writes it again");
}
