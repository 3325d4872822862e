//! The sources in the books of a run, numbered as they come.

use std::collections::HashMap;

use becalm_model::Kind;

/// Sources by kind and name.
#[derive(Clone, Default, Debug)]
pub struct SourceNames {
    list: Vec<(String, String)>,
    numbers: HashMap<(String, String), u32>,
}

impl SourceNames {
    /// The number of a source, which gets the next one if it is new.
    pub fn number(&mut self, kind: &str, name: &str) -> u32 {
        let key = (kind.to_owned(), name.to_owned());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(key.clone());
        self.numbers.insert(key, number);
        number
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The kind and the name of each, in the order of the numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list.iter().map(|(kind, name)| (kind.as_str(), name.as_str()))
    }

    /// What each is called in an answer: its name, with its kind in front where another kind has the same one, and where the
    /// name alone says nothing (`unseen:long`).
    pub fn shown(&self) -> Vec<String> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        self.iter().for_each(|(_, name)| *counts.entry(name).or_default() += 1);
        self.iter()
            .map(|(kind, name)| {
                let says_nothing = kind.parse().is_ok_and(Kind::is_rest);
                if counts[name] == 1 && !says_nothing { name.to_owned() } else { format!("{kind}:{name}") }
            })
            .collect()
    }

    /// The numbers of the sources that a text names: by name, whatever the kind, by `kind:name`, or else by kind alone.
    pub fn numbers_of(&self, text: &str) -> Vec<usize> {
        let meant = |kind: &str, name: &str| {
            name == text || text.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':')) == Some(name)
        };
        let numbers = |meant: &dyn Fn(&str, &str) -> bool| -> Vec<usize> {
            let sources = self.iter().enumerate();
            sources.filter(|(_, (kind, name))| meant(kind, name)).map(|(number, _)| number).collect()
        };
        let named = numbers(&meant);
        if named.is_empty() { numbers(&|kind, _| kind == text) } else { named }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_of_two_kinds_is_told_apart() {
        let mut names = SourceNames::default();
        let numbers = [("irq", "timer"), ("softirq", "timer"), ("task", "a:b"), ("irq", "timer")];
        assert_eq!(numbers.map(|(kind, name)| names.number(kind, name)), [0, 1, 2, 0]);
        assert_eq!(names.shown(), ["irq:timer", "softirq:timer", "a:b"]);
        assert_eq!((names.number("unseen", "long"), names.number("unseen", "short")), (3, 4));
        assert_eq!(names.shown()[3..], ["unseen:long", "unseen:short"]);
        assert_eq!(names.numbers_of("unseen"), [3, 4]);
        assert_eq!((names.numbers_of("timer"), names.numbers_of("irq")), (vec![0, 1], vec![0]));
    }
}
