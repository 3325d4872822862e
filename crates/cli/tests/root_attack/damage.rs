//! How a bundle is damaged: by an accident of the disk, or by somebody who knows what is in it.

use std::fs;
use std::path::{Path, PathBuf};

use becalm_testing::attack::Random;
use serde_json::{Number, Value, json};

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The files below a folder, in order, with this ending; all without one.
pub fn files(folder: &Path, ending: Option<&str>) -> Vec<PathBuf> {
    let (mut left, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if ending.is_none_or(|ending| path.extension().is_some_and(|own| own == ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A file of a bundle with this ending, if it has one.
fn file(bundle: &Path, ending: Option<&str>, random: &mut Random) -> PathBuf {
    let with_ending = files(bundle, ending);
    let any = if with_ending.is_empty() { files(bundle, None) } else { with_ending };
    random.one(&any).clone()
}

/// Another value in the place of one, or none.
pub fn replace_a_value(bundle: &Path, random: &mut Random) {
    edit(bundle, random, |document, random| {
        let places = places(document, &|_| true);
        let place = random.one(&places).clone();
        if random.once_in(3) {
            remove(document, &place);
        } else {
            let values = [
                json!(null),
                json!(true),
                json!(0),
                json!(-1),
                json!(1.5),
                json!(1e308),
                json!(-1e-300),
                json!(i64::MIN),
                json!(i64::MAX),
                json!(u64::MAX),
                json!(""),
                json!("x"),
                json!("\u{1b}[2J\n"),
                json!("9".repeat(5_000)),
                json!([]),
                json!({}),
                json!([[]]),
                json!([1, 2, 3]),
                json!({"a": 1}),
            ];
            *document.pointer_mut(&place).unwrap() = random.one(&values).clone();
        }
    });
}

/// Other numbers in the places of two to seven.
pub fn replace_several_numbers(bundle: &Path, random: &mut Random) {
    edit(bundle, random, |document, random| {
        let places = places(document, &Value::is_number);
        for _ in 0..2 + random.below(6) {
            let Some(place) = (!places.is_empty()).then(|| random.one(&places)) else { return };
            let value = match random.below(4) {
                0 => json!(random.below(1_000)),
                1 => json!(random.number()),
                2 => json!(random.number() as i64),
                _ => json!(f64::from_bits(random.number())),
            };
            *document.pointer_mut(place).unwrap() = value;
        }
    });
}

/// A number of the same type, such as no machine gives, in the place of one.
pub fn replace_by_an_extreme(bundle: &Path, random: &mut Random) {
    edit(bundle, random, |document, random| {
        let places = places(document, &Value::is_number);
        let Some(place) = (!places.is_empty()).then(|| random.one(&places)) else { return };
        let value = document.pointer_mut(place).unwrap();
        let was = value.as_f64().unwrap_or_default();
        let extreme = if value.is_f64() {
            let reals =
                [0.0, -0.0, 5e-324, 1e-12, 1.0, -1.0, 1e9, 1e18, f64::MAX, f64::MIN, was * 1e6, was / 1e6, -was];
            Number::from_f64(*random.one(&reals)).unwrap_or_else(|| Number::from(0))
        } else {
            let scaled = (was * 1000.0).min(9e18) as i64;
            let wholes = [
                0,
                1,
                -1,
                2,
                1_023,
                1_024,
                65_536,
                i64::from(i32::MAX),
                i64::from(u32::MAX),
                1 << 53,
                i64::MAX / 2,
                i64::MAX - 1,
                i64::MAX,
                i64::MIN,
                scaled,
                (was / 1000.0) as i64,
                (was as i64).saturating_add(1),
            ];
            if random.once_in(18) { Number::from(u64::MAX) } else { Number::from(*random.one(&wholes)) }
        };
        *value = Value::Number(extreme);
    });
}

/// Flips one to eight bits of a table.
pub fn flip_in_a_table(bundle: &Path, random: &mut Random) {
    flip(&file(bundle, Some("parquet"), random), random);
}

/// Flips one to eight bits of any file.
pub fn flip_anywhere(bundle: &Path, random: &mut Random) {
    flip(&file(bundle, None, random), random);
}

fn flip(path: &Path, random: &mut Random) {
    let mut bytes = fs::read(path).unwrap();
    if bytes.is_empty() {
        return;
    }
    for _ in 0..1 + random.below(8) {
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
    }
    fs::write(path, bytes).unwrap();
}

/// Cuts a file off.
pub fn truncate(bundle: &Path, random: &mut Random) {
    let path = file(bundle, None, random);
    let bytes = fs::read(&path).unwrap();
    fs::write(path, &bytes[..random.below(bytes.len().max(1))]).unwrap();
}

/// Puts a part of one file into another of the same kind, over what is there or between it.
pub fn splice(bundle: &Path, other: &Path, random: &mut Random) {
    let ending = *random.one(&["parquet", "parquet", "json"]);
    let (to, from) = (file(bundle, Some(ending), random), file(other, Some(ending), random));
    let (mut bytes, part) = (fs::read(&to).unwrap(), fs::read(from).unwrap());
    let (begin, at) = (random.below(part.len().max(1)), random.below(bytes.len().max(1)));
    let part = &part[begin..begin + random.below(part.len() - begin + 1)];
    let end = if random.once_in(2) { (at + part.len()).min(bytes.len()) } else { at };
    bytes.splice(at..end, part.iter().copied());
    fs::write(to, bytes).unwrap();
}

/// One of all these.
pub fn in_any_way(bundle: &Path, other: &Path, random: &mut Random) {
    match random.below(8) {
        0 => replace_a_value(bundle, random),
        1 => replace_several_numbers(bundle, random),
        2 | 3 => replace_by_an_extreme(bundle, random),
        4 => flip_in_a_table(bundle, random),
        5 => flip_anywhere(bundle, random),
        6 => truncate(bundle, random),
        _ => splice(bundle, other, random),
    }
}

fn edit(bundle: &Path, random: &mut Random, change: impl FnOnce(&mut Value, &mut Random)) {
    let path = file(bundle, Some("json"), random);
    let mut document = serde_json::from_slice(&fs::read(&path).unwrap()).expect("it is not damaged yet");
    change(&mut document, random);
    fs::write(path, document.to_string()).unwrap();
}

/// The pointers to the values of a document that are `wanted`, but for the whole.
fn places(document: &Value, wanted: &dyn Fn(&Value) -> bool) -> Vec<String> {
    let (mut left, mut found) = (vec![(String::new(), document)], Vec::new());
    while let Some((place, value)) = left.pop() {
        if !place.is_empty() && wanted(value) {
            found.push(place.clone());
        }
        match value {
            Value::Array(values) => {
                left.extend(values.iter().enumerate().map(|(at, value)| (format!("{place}/{at}"), value)));
            }
            Value::Object(fields) => {
                let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
                left.extend(fields.iter().map(|(name, value)| (format!("{place}/{}", escaped(name)), value)));
            }
            _ => {}
        }
    }
    found
}

fn remove(document: &mut Value, place: &str) {
    let (parent, name) = place.rsplit_once('/').expect("it is no whole document");
    match document.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(values)) => {
            values.remove(name.parse().expect("a place in an array is a number"));
        }
        _ => {}
    }
}
