//! Inputs that are edits of a valid value. Raw bytes would rarely pass the first check of a reader; these reach the code after it, and are
//! readable:
//!
//! ```text
//! recording page
//! /files/runs~1node=node1.json/cpus/0/duration_ns 6
//! /rows/detours/- [0,1,2,false]
//! /files/runs~1node=node1.json/warnings/0
//! ```
//!
//! The first line has words for the target: the valid value, and what to do with it. Each other line is a JSON pointer (RFC 6901) to a
//! place in it, and its new JSON value. Without a value, the place is removed; a pointer that ends in `/-` appends to a list. Invalid lines
//! are ignored.

use becalm_stats::splitmix::SplitMix64;
use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Number, Value};

/// A parsed input.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Edits {
    words: Vec<String>,
    edits: Vec<(String, Option<Value>)>,
}

impl Edits {
    /// Parses the text of an input.
    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let words = lines.next().unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        let edits = lines.filter(|line| line.starts_with('/')).filter_map(|line| match line.split_once(' ') {
            None => Some((line.to_owned(), None)),
            Some((pointer, value)) => Some((pointer.to_owned(), Some(serde_json::from_str(value).ok()?))),
        });
        Self { words, edits: edits.collect() }
    }

    /// Formats the text of an input.
    fn print(&self) -> String {
        let mut text = self.words.join(" ");
        for (pointer, value) in &self.edits {
            text += "\n";
            text += pointer;
            if let Some(value) = value {
                text += " ";
                text += &value.to_string();
            }
        }
        text + "\n"
    }

    /// The first word; empty without words.
    pub fn subject(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Whether the first line contains a word.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|other| other == word)
    }

    /// The valid value with these edits.
    pub fn applied_to(&self, valid: &Value) -> Value {
        let mut edited = valid.clone();
        for (pointer, value) in &self.edits {
            apply(&mut edited, pointer, value.as_ref());
        }
        edited
    }
}

/// Applies one edit, if the place exists.
fn apply(document: &mut Value, pointer: &str, value: Option<&Value>) {
    if let (Some(place), Some(value)) = (document.pointer_mut(pointer), value) {
        *place = value.clone();
        return;
    }
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    let key = key.replace("~1", "/").replace("~0", "~");
    match (document.pointer_mut(parent), value) {
        (Some(Value::Array(items)), Some(value)) if key == "-" => items.push(value.clone()),
        (Some(Value::Object(fields)), Some(value)) => drop(fields.insert(key, value.clone())),
        (Some(Value::Array(items)), None) => {
            if let Some(at) = key.parse().ok().filter(|at| *at < items.len()) {
                items.remove(at);
            }
        }
        (Some(Value::Object(fields)), None) => drop(fields.remove(&key)),
        _ => {}
    }
}

/// Texts that have caused errors before. [`truths`](crate::truths) looks for the marks in outputs.
const TEXTS: [&str; 14] = [
    "",
    "x",
    "0",
    "0-1",
    "a\nFORGED",
    "\u{1b}[2J\u{9b}1m\u{7}",
    "\u{202e}turned\u{2028}",
    "</script><becalm-fuzz>",
    "\"},{\"'&lt;",
    "..",
    "/etc/passwd",
    "node1",
    "2026-01-02T03:04:05Z",
    "Z\u{342}\u{1f980}\u{fffd}\u{0}",
];

/// Mutates an input: a custom mutator of libFuzzer. `valid` gives the value named by the first word, and `words` are possible further words
/// of the first line.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    valid: impl Fn(&str) -> Option<&'static Value>,
    words: &[&str],
) -> usize {
    let mut random = SplitMix64::new(seed.into());
    // Mutate bytes sometimes: the reader of edits is itself under test.
    let as_bytes = random.below(16) == 0;
    let text = std::str::from_utf8(&data[..size]).ok().filter(|_| !as_bytes);
    let Some(text) = text else { return fuzzer_mutate(data, size, max_size) };
    let mut edits = Edits::parse(text);
    let Some(valid) = valid(edits.subject()) else { return fuzzer_mutate(data, size, max_size) };
    for _ in 0..=random.below(3) {
        mutate_once(&mut edits, &mut random, valid, words);
    }
    let text = edits.print();
    if text.len() > max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    data[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

fn mutate_once(edits: &mut Edits, random: &mut SplitMix64, valid: &Value, words: &[&str]) {
    let count = edits.edits.len() as u64;
    match random.below(12) {
        0 if !words.is_empty() => {
            let word = words[random.below(words.len() as u64) as usize];
            match edits.words.iter().skip(1).position(|other| other == word) {
                Some(at) => drop(edits.words.remove(at + 1)),
                None => edits.words.push(word.to_owned()),
            }
        }
        1 if count > 0 => drop(edits.edits.remove(random.below(count) as usize)),
        2 | 3 if count > 0 => {
            let (_, value) = &mut edits.edits[random.below(count) as usize];
            if let Some(value) = value {
                *value = another(value, random);
            }
        }
        4 if count > 1 => {
            let to = random.below(count) as usize;
            let edit = edits.edits.remove(random.below(count) as usize);
            edits.edits.insert(to, edit);
        }
        _ => {
            let edited = edits.applied_to(valid);
            let (mut pointer, found) = any_place(&edited, random);
            let value = match random.below(10) {
                0 => None,
                // Another value from the same document.
                1 => Some(any_place(&edited, random).1.clone()),
                2 => {
                    // Append it again to its list.
                    if let Some((list, _)) = pointer.rsplit_once('/') {
                        pointer = format!("{list}/-");
                    }
                    Some(found.clone())
                }
                _ => Some(another(found, random)),
            };
            // A whole document as value would dominate the input.
            if !pointer.is_empty() && value.as_ref().is_none_or(|value| value.to_string().len() < 2_000) {
                edits.edits.push((pointer, value));
            }
        }
    }
}

/// A random place in a document with its value: at each level, one of the entries.
fn any_place<'a>(document: &'a Value, random: &mut SplitMix64) -> (String, &'a Value) {
    let (mut pointer, mut place) = (String::new(), document);
    loop {
        let (key, next) = match place {
            Value::Object(fields) if !fields.is_empty() => {
                let (key, next) = fields.iter().nth(random.below(fields.len() as u64) as usize).expect("one of them");
                (key.replace('~', "~0").replace('/', "~1"), next)
            }
            Value::Array(items) if !items.is_empty() => {
                let at = random.below(items.len() as u64) as usize;
                (at.to_string(), &items[at])
            }
            _ => return (pointer, place),
        };
        // Sometimes take whole lists and objects.
        if !pointer.is_empty() && random.below(12) == 0 {
            return (pointer, place);
        }
        pointer = format!("{pointer}/{key}");
        place = next;
    }
}

/// A replacement for this value: close to it, of the same kind at the end of its range, or of another kind.
fn another(value: &Value, random: &mut SplitMix64) -> Value {
    match value {
        _ if random.below(12) == 0 => {
            let others = [
                Value::Null,
                true.into(),
                0.into(),
                "".into(),
                Value::Array(Vec::new()),
                Map::new().into(),
                (-1).into(),
            ];
            others[random.below(others.len() as u64) as usize].clone()
        }
        Value::Bool(flag) => (!flag).into(),
        Value::Number(number) => another_number(number, random),
        Value::String(text) => another_text(text, random).into(),
        Value::Array(items) if !items.is_empty() => {
            let mut items = items.clone();
            match random.below(3) {
                0 => items.truncate(random.below(items.len() as u64) as usize),
                1 => items.reverse(),
                _ => items.extend(items.clone()),
            }
            items.into()
        }
        Value::Null => [Value::from(0), Value::from("x"), Value::from(0.5)][random.below(3) as usize].clone(),
        other => other.clone(),
    }
}

fn another_number(number: &Number, random: &mut SplitMix64) -> Value {
    let integer = number.as_i64();
    match random.below(8) {
        0 => [i64::MAX, i64::MIN, i64::MAX / 2, 1 << 53, 1 << 32, 1 << 31, -1, 0][random.below(8) as usize].into(),
        1 => u64::MAX.into(),
        2 => [1e308, -1e308, 5e-324, 0.1, 1.0, 1e18][random.below(6) as usize].into(),
        3 => {
            let shift = random.below(64);
            (random.next_u64() >> shift).into()
        }
        4 => number.as_f64().map_or(Value::Null, |number| (number * (random.uniform() * 4.0 - 1.0)).into()),
        5 => integer.map_or(0, |number| number.wrapping_mul(2)).into(),
        _ => integer.map_or(1, |number| number.wrapping_add(random.below(7) as i64 - 3)).into(),
    }
}

fn another_text(text: &str, random: &mut SplitMix64) -> String {
    let known = TEXTS[random.below(TEXTS.len() as u64) as usize];
    match random.below(6) {
        0 => known.to_owned(),
        1 => format!("{text}{known}"),
        2 => "long ".repeat(1 + random.below(2_000) as usize),
        3 => text.chars().rev().collect(),
        _ => {
            let mut bytes = text.as_bytes().to_vec();
            let size = bytes.len();
            bytes.resize(size + 32, 0);
            let size = fuzzer_mutate(&mut bytes, size, size + 32);
            String::from_utf8_lossy(&bytes[..size]).into_owned()
        }
    }
}
