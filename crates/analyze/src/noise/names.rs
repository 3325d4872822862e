//! Display names of the sources in the books of a run.

use std::collections::HashMap;

use becalm_account::SourceIds;

/// The display name of each source: prefixed with its kind if another kind has the same name, or if the name alone is meaningless (`unseen:long`).
pub fn shown(sources: &SourceIds) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    sources.names().iter().for_each(|(_, name)| *counts.entry(name).or_default() += 1);
    let shown = sources.names().iter().map(|(kind, name)| {
        if counts[name.as_str()] == 1 && !kind.is_rest() { name.clone() } else { format!("{kind}:{name}") }
    });
    shown.collect()
}

/// The numbers of the sources that a text refers to: by name, whatever the kind, by `kind:name`, or else by kind alone.
pub fn source_numbers(sources: &SourceIds, text: &str) -> Vec<usize> {
    let meant = |kind: &str, name: &str| {
        name == text || text.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':')) == Some(name)
    };
    let numbers = |meant: &dyn Fn(&str, &str) -> bool| -> Vec<usize> {
        let sources = sources.names().iter().enumerate();
        sources.filter(|(_, (kind, name))| meant(kind.name(), name)).map(|(number, _)| number).collect()
    };
    let named = numbers(&meant);
    if named.is_empty() { numbers(&|kind, _| kind == text) } else { named }
}

#[cfg(test)]
mod tests {
    use becalm_model::Kind;

    use super::*;

    #[test]
    fn one_name_of_two_kinds_is_shown_with_both() {
        let mut names = SourceIds::default();
        let sources = [(Kind::Irq, "timer"), (Kind::Softirq, "timer"), (Kind::Task, "a:b")];
        sources.into_iter().for_each(|(kind, name)| _ = names.id(kind, name));
        assert_eq!(shown(&names), ["irq:timer", "softirq:timer", "a:b"]);
        ["long", "short"].into_iter().for_each(|name| _ = names.id(Kind::Unseen, name));
        assert_eq!(shown(&names)[3..], ["unseen:long", "unseen:short"]);
        assert_eq!(source_numbers(&names, "unseen"), [3, 4]);
        assert_eq!((source_numbers(&names, "timer"), source_numbers(&names, "irq")), (vec![0, 1], vec![0]));
    }
}
