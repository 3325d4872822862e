//! The format of a line in the file: the record with the number of its line and a checksum.
//!
//! `{"line":7,"sum":"0f1e2d3c4b5a6978","record":...}`. The checksum is XXH64 of everything after it, with the number as seed. A line is valid only if
//! writing it again yields the same text: damage is never read as another value, and the number of a valid line is right, so missing, duplicate or
//! reordered lines are detected.

use twox_hash::XxHash64;

/// The line of a journal for a record (a JSON object), without line end.
pub fn sealed(number: usize, record: &str) -> String {
    let rest = record.strip_prefix('{').unwrap_or(record);
    let sum = XxHash64::oneshot(number as u64, rest.as_bytes());
    format!("{{\"line\":{number},\"sum\":\"{sum:016x}\",{rest}")
}

/// The number and the record of a line.
pub(super) fn opened(line: &[u8]) -> Result<(usize, String), &'static str> {
    let parts = || {
        let text = std::str::from_utf8(line).ok()?;
        let (number, rest) = text.strip_prefix("{\"line\":")?.split_once(",\"sum\":\"")?;
        let (_, rest) = rest.split_once("\",")?;
        Some((number.parse().ok()?, format!("{{{rest}")))
    };
    let (number, record) = parts().ok_or("it has no number and checksum")?;
    if sealed(number, &record).as_bytes() != line {
        return Err("its checksum does not match");
    }
    Ok((number, record))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_other_byte_is_noticed() {
        let record = r#"{"record":"original","step":12,"value":"0-1"}"#;
        let line = sealed(7, record);
        assert_eq!(opened(line.as_bytes()), Ok((7, record.to_owned())));
        // From the specification of XXH64, for seed 0.
        assert_eq!(sealed(0, "{abc"), r#"{"line":0,"sum":"44bc2cf5ad770999",abc"#);
        for at in 0..line.len() {
            for other in 0..=u8::MAX {
                let mut bytes = line.clone().into_bytes();
                if std::mem::replace(&mut bytes[at], other) != other {
                    assert!(opened(&bytes).is_err(), "byte {at} is {other}");
                }
            }
        }
        assert!(opened(line.replacen("7", "8", 1).as_bytes()).is_err());
    }
}
