//! Profiles of pprof: a gzipped `Profile` of `proto/profile.proto`.

use std::collections::HashMap;

use becalm_units::protobuf::Message;

use super::gzip::gzip;
use crate::rows::Stack;

/// Facts about the whole recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About<'a> {
    /// The earliest origin, in nanoseconds since 1970.
    pub time_ns: i64,
    /// The recorded time, in nanoseconds.
    pub duration_ns: i64,
    pub comment: &'a str,
}

/// The strings of a profile, each once; the first is empty.
struct Strings<'a> {
    list: Vec<std::borrow::Cow<'a, str>>,
    places: HashMap<std::borrow::Cow<'a, str>, u64>,
}

impl<'a> Strings<'a> {
    fn place(&mut self, text: impl Into<std::borrow::Cow<'a, str>>) -> u64 {
        let text = text.into();
        if let Some(place) = self.places.get(&text) {
            return *place;
        }
        let place = self.list.len() as u64;
        self.list.push(text.clone());
        self.places.insert(text, place);
        place
    }
}

/// The profile of these stacks: events and nanoseconds of each. The node is a frame if there are several.
pub fn encoded(stacks: &[Stack], about: About<'_>) -> Vec<u8> {
    let several = stacks.iter().any(|stack| stack.node != stacks[0].node);
    let mut strings = Strings { list: Vec::new(), places: HashMap::new() };
    strings.place("");
    let mut profile = Message::default();
    for (kind, unit) in [("events", "count"), ("noise", "nanoseconds")] {
        let (kind, unit) = (strings.place(kind), strings.place(unit));
        profile.message(1, |value_type| {
            value_type.number(1, kind).number(2, unit);
        });
    }
    let (cpu_key, node_key) = (strings.place("cpu"), strings.place("node"));
    // A function and a location for each frame, with the same number, from 1.
    let mut functions: HashMap<u64, u64> = HashMap::new();
    let mut names = Vec::new();
    for stack in stacks {
        let mut locations = Message::default();
        // The leaf is first.
        for frame in stack.frames(several).into_iter().rev() {
            let name = strings.place(frame);
            let number = *functions.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() as u64
            });
            locations.varint(number);
        }
        let mut values = Message::default();
        values.varint(stack.count);
        values.varint(stack.ns.max(0) as u64);
        // As text, because a number that is 0 would be none.
        let (cpu, node) = (strings.place(stack.cpu.to_string()), strings.place(stack.node.as_str()));
        profile.message(2, |sample| {
            sample.bytes(1, locations.as_bytes()).bytes(2, values.as_bytes());
            sample.message(3, |label| {
                label.number(1, cpu_key).number(2, cpu);
            });
            sample.message(3, |label| {
                label.number(1, node_key).number(2, node);
            });
        });
    }
    for (name, number) in names.into_iter().zip(1..) {
        profile.message(4, |location| {
            location.number(1, number).message(4, |line| {
                line.number(1, number);
            });
        });
        profile.message(5, |function| {
            function.number(1, number).number(2, name).number(3, name);
        });
    }
    let (comment, noise) = (strings.place(about.comment), strings.place("noise"));
    for text in &strings.list {
        profile.bytes(6, text.as_bytes());
    }
    profile.int(9, about.time_ns).int(10, about.duration_ns).number(13, comment).number(14, noise);
    gzip(profile.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::Kind;
    use becalm_units::CpuId;

    #[test]
    fn a_small_profile_byte_by_byte() {
        let root = Some((Kind::Irq, "t".to_owned()));
        let stack = Stack { node: "n".to_owned(), cpu: CpuId::new(3), root, part: None, count: 2, ns: 300 };
        let file = encoded(&[stack], About { time_ns: 5, duration_ns: 9, comment: "c" });
        let plain = miniz_oxide::inflate::decompress_to_vec(&file[10..file.len() - 8]).unwrap();
        let mut expected = Vec::new();
        // Types: strings 1 and 2, 3 and 4.
        expected.extend(b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04");
        // The sample: locations 1 to 3, values 2 and 300, the strings 10 and 11 of labels 5 and 6.
        expected.extend(
            b"\x12\x16\x0a\x03\x01\x02\x03\x12\x03\x02\xac\x02\x1a\x04\x08\x05\x10\x0a\x1a\x04\x08\x06\x10\x0b",
        );
        // Locations and functions, leaf first: strings 7, 8 and 9.
        for (number, name) in [(1, 7), (2, 8), (3, 9)] {
            expected.extend([0x22, 6, 8, number, 0x22, 2, 8, number]);
            expected.extend([0x2a, 6, 8, number, 0x10, name, 0x18, name]);
        }
        for text in ["", "events", "count", "noise", "nanoseconds", "cpu", "node", "t", "irq", "cpu3", "3", "n", "c"] {
            expected.extend([0x32, text.len() as u8]);
            expected.extend(text.as_bytes());
        }
        expected.extend(b"\x48\x05\x50\x09\x68\x0c\x70\x03");
        assert_eq!(plain, expected);
    }

    #[test]
    fn long_and_hostile_names_are_kept() {
        let name = format!("\u{1b}[2J;{}", "x".repeat(100_000));
        let root = Some((Kind::Task, name.clone()));
        let stack = Stack { node: "n".to_owned(), cpu: CpuId::new(0), root, part: None, count: 1, ns: 1 };
        let file = encoded(&[stack], About { time_ns: 0, duration_ns: 0, comment: "" });
        let plain = miniz_oxide::inflate::decompress_to_vec(&file[10..file.len() - 8]).unwrap();
        assert!(plain.windows(name.len()).any(|part| part == name.as_bytes()));
    }
}
