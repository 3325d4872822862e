//! The metrics as length-delimited protobuf messages, `io.prometheus.client.MetricFamily`, which Prometheus requests for native histograms. See
//! `io/prometheus/client/metrics.proto` of `prometheus/client_model`.

use becalm_units::protobuf::{Message, zigzag};

use crate::exposition::{Family, Sample, Type, Value};
use crate::histogram::{BUCKETS, Lengths, SCHEMA};

/// Values closer to zero are in the zero bucket: the default of other clients, far below a nanosecond.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

/// All families, concatenated.
pub fn delimited(families: &[Family]) -> Vec<u8> {
    let mut out = Message::default();
    for family in families {
        let mut message = Message::default();
        // `MetricType`.
        let kind = match family.kind {
            Type::Counter | Type::SinceBoot => 0,
            Type::Gauge => 1,
            Type::Histogram => 4,
        };
        message.bytes(1, family.sample_name().as_bytes()).bytes(2, family.help.as_bytes()).number(3, kind);
        for sample in &family.samples {
            message.message(4, |metric| write_metric(metric, sample, family.kind));
        }
        out.delimited(message.as_bytes());
    }
    out.into_bytes()
}

/// `Metric`.
fn write_metric(metric: &mut Message, sample: &Sample, kind: Type) {
    for (name, text) in &sample.labels {
        metric.message(1, |pair| {
            pair.bytes(1, name.as_bytes()).bytes(2, text.as_bytes());
        });
    }
    // `gauge` or `counter`, both with their value in field 1.
    let field = if kind == Type::Gauge { 2 } else { 3 };
    let number = match &sample.value {
        Value::Count(count) => *count as f64,
        Value::Time(time) => time.get() as f64 / 1e9,
        Value::Number(number) => *number,
        Value::Lengths(lengths) => {
            metric.message(7, |histogram| write_histogram(histogram, lengths));
            return;
        }
    };
    metric.message(field, |value| {
        value.double(1, number);
    });
}

/// `Histogram`, both classic and native.
fn write_histogram(histogram: &mut Message, lengths: &Lengths) {
    histogram.number(1, lengths.count()).double(2, lengths.total().get() as f64 / 1e9);
    let mut below = 0;
    // Values above all bounds are in the total count.
    for (count, (ns, _)) in lengths.classic().iter().zip(BUCKETS) {
        below += count;
        histogram.message(3, |bucket| {
            bucket.number(1, below).double(2, ns as f64 / 1e9);
        });
    }
    histogram.signed(5, SCHEMA.into()).double(6, ZERO_THRESHOLD).number(7, lengths.zero());
    // Consecutive buckets form a span, given by the number of skipped buckets before it; counts are deltas.
    let mut spans: Vec<(i32, u32)> = Vec::new();
    let mut next = 0;
    for class in lengths.native().keys() {
        match spans.last_mut() {
            Some((_, length)) if *class == next => *length += 1,
            _ => spans.push((class - next, 1)),
        }
        next = class + 1;
    }
    for (offset, length) in spans {
        histogram.message(12, |span| {
            span.signed(1, offset.into()).number(2, length.into());
        });
    }
    let mut deltas = Message::default();
    let mut before = 0;
    for count in lengths.native().values() {
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        deltas.varint(zigzag(count - before));
        before = count;
    }
    if !deltas.as_bytes().is_empty() {
        histogram.bytes(13, deltas.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::Exposition;
    use becalm_units::Nanos;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A field of a message: its number, and its value or its bytes.
    #[derive(Clone, PartialEq, Debug)]
    enum Field {
        Number(u64),
        Double(f64),
        Bytes(Vec<u8>),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        unreachable!()
    }

    fn cut<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
        let (cut, rest) = bytes.split_at(length);
        *bytes = rest;
        cut
    }

    /// Reads a message by the format's definition, independent of its writer.
    fn read(mut bytes: &[u8]) -> Vec<(u64, Field)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Double(f64::from_le_bytes(cut(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    Field::Bytes(cut(&mut bytes, length).to_vec())
                }
                other => panic!("nothing is written as {other}"),
            };
            fields.push((key >> 3, field));
        }
        fields
    }

    fn inner(fields: &[(u64, Field)], number: u64) -> Vec<Vec<(u64, Field)>> {
        let matching = fields.iter().filter(|(found, _)| *found == number);
        matching
            .map(|(_, field)| if let Field::Bytes(bytes) = field { read(bytes) } else { panic!("{field:?}") })
            .collect()
    }

    const fn unzigzag(value: u64) -> i64 {
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    /// The native buckets of a histogram's message, read like Prometheus does.
    fn native(histogram: &[(u64, Field)]) -> BTreeMap<i32, u64> {
        let mut deltas = Vec::new();
        for (_, field) in histogram.iter().filter(|(number, _)| *number == 13) {
            let Field::Bytes(bytes) = field else { panic!("{field:?}") };
            let mut bytes = bytes.as_slice();
            while !bytes.is_empty() {
                deltas.push(unzigzag(varint(&mut bytes)));
            }
        }
        let (mut classes, mut class, mut count) = (BTreeMap::new(), 0, 0);
        let mut deltas = deltas.into_iter();
        for span in inner(histogram, 12) {
            let [(1, Field::Number(offset)), (2, Field::Number(length))] = span[..] else { panic!("{span:?}") };
            class += unzigzag(offset) as i32;
            for _ in 0..length {
                count += deltas.next().unwrap();
                classes.insert(class, count as u64);
                class += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        classes
    }

    #[test]
    fn families_are_read_back() {
        let mut list = Exposition::default();
        list.family("a", Type::Counter, "Says what.");
        list.sample(&[("b", "c\"d")], Value::Time(Nanos::new(1_500_000_000)));
        list.gauge("g", "Goes.", Value::Number(-1.0));
        let bytes = delimited(&list.end());
        let (mut rest, mut families) = (bytes.as_slice(), Vec::new());
        while !rest.is_empty() {
            let length = varint(&mut rest) as usize;
            families.push(read(cut(&mut rest, length)));
        }
        assert_eq!(families.len(), 2);
        assert_eq!(families[0][0], (1, Field::Bytes(b"a_total".to_vec())));
        assert_eq!(families[0][2], (3, Field::Number(0)));
        let metric = &inner(&families[0], 4)[0];
        assert_eq!(inner(metric, 1)[0][1], (2, Field::Bytes(b"c\"d".to_vec())));
        assert_eq!(inner(metric, 3)[0], [(1, Field::Double(1.5))]);
        assert_eq!(families[1][2], (3, Field::Number(1)));
        assert_eq!(inner(&inner(&families[1], 4)[0], 2)[0], [(1, Field::Double(-1.0))]);
    }

    proptest! {
        #[test]
        fn a_histogram_is_read_back(lengths in prop::collection::vec(prop_oneof![0_i64..9, 0_i64..1 << 40], 0..200)) {
            let mut all = Lengths::default();
            lengths.iter().for_each(|ns| all.add(Nanos::new(*ns)));
            let mut message = Message::default();
            write_histogram(&mut message, &all);
            let fields = read(message.as_bytes());
            prop_assert_eq!(&native(&fields), all.native());
            prop_assert!(fields.contains(&(1, Field::Number(lengths.len() as u64))));
            prop_assert!(fields.contains(&(5, Field::Number(6))), "schema 3");
            prop_assert!(fields.contains(&(7, Field::Number(all.zero()))));
            let buckets = inner(&fields, 3);
            prop_assert_eq!(buckets.len(), BUCKETS.len());
            for bucket in buckets {
                let [(1, Field::Number(below)), (2, Field::Double(bound))] = bucket[..] else { panic!("{bucket:?}") };
                prop_assert_eq!(below, lengths.iter().filter(|ns| **ns as f64 / 1e9 <= bound).count() as u64);
            }
        }

        #[test]
        fn signed_numbers_come_back(value in any::<i64>()) {
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }
    }
}
