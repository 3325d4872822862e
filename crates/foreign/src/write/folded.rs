//! Folded stacks for `flamegraph.pl`, inferno, speedscope and others: the frames joined by `;`, a blank, and nanoseconds.

use std::io::{self, Write};

use becalm_units::printable;

use crate::rows::Stack;

/// Writes a line for each stack that took any time. The node is a frame if there are several.
pub fn write(stacks: &[Stack], out: &mut dyn Write) -> io::Result<()> {
    let several = stacks.iter().any(|stack| stack.node != stacks[0].node);
    for stack in stacks.iter().filter(|stack| stack.ns > 0) {
        let frames: Vec<String> = stack.frames(several).iter().map(|frame| plain(frame)).collect();
        writeln!(out, "{} {}", frames.join(";"), stack.ns)?;
    }
    Ok(())
}

/// A frame that readers take for one: without separators, line breaks, and a number after a blank at its end, which they would take for
/// another count.
fn plain(frame: &str) -> String {
    let mut plain = printable(frame.trim()).replace(';', ":");
    let number = plain.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let before = number.trim_end_matches(char::is_whitespace);
    if before.len() < number.len() && number.len() < plain.len() {
        plain = format!("{before}_{}", &plain[number.len()..]);
    }
    if plain.is_empty() { "(no name)".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::Kind;
    use becalm_units::CpuId;
    use proptest::prelude::*;

    fn stack(node: &str, root: &str, part: Option<&str>, ns: i64) -> Stack {
        let part = part.map(|name| (Kind::Softirq, name.to_owned()));
        Stack {
            node: node.to_owned(),
            cpu: CpuId::new(3),
            root: Some((Kind::Irq, root.to_owned())),
            part,
            count: 1,
            ns,
        }
    }

    fn written(stacks: &[Stack]) -> String {
        let mut out = Vec::new();
        write(stacks, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_frames_and_a_number() {
        let stacks = [stack("a", "local_timer", None, 18_400), stack("a", "local_timer", Some("rcu"), 7)];
        assert_eq!(written(&stacks), "cpu3;irq;local_timer 18400\ncpu3;irq;local_timer;softirq rcu 7\n");
        let unknown = Stack { root: None, ..stack("b", "", None, 5) };
        assert_eq!(
            written(&[stack("a", "x", None, 1), unknown, stack("a", "none", None, 0)]),
            "a;cpu3;irq;x 1\nb;cpu3;not attributed 5\n"
        );
        assert_eq!(written(&[]), "");
    }

    #[test]
    fn names_that_would_be_read_otherwise_are_changed() {
        for (name, expected) in [
            ("a;b", "a:b"),
            ("eth0 41", "eth0_41"),
            ("eth0  4.5", "eth0_4.5"),
            ("eth0", "eth0"),
            (" eth0 7 ", "eth0_7"),
            ("a\nb 7 c", "a\u{fffd}b 7 c"),
            ("  ", "(no name)"),
            ("", "(no name)"),
            ("12", "12"),
            ("\u{1b}[2J", "\u{fffd}[2J"),
        ] {
            assert_eq!(plain(name), expected);
        }
    }

    /// Splits a line as `flamegraph.pl` does: at the last number after a blank, and once more if another number precedes it.
    fn split(line: &str) -> (Vec<&str>, Vec<&str>) {
        let number = |text: &str| {
            let mut parts = text.split('.');
            let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
            parts.next().is_some_and(|whole| !whole.is_empty() && digits(whole))
                && parts.next().is_none_or(digits)
                && parts.next().is_none()
        };
        let (mut stack, mut numbers) = (line, Vec::new());
        while let Some((before, last)) = stack.rsplit_once(char::is_whitespace)
            && number(last)
        {
            (stack, numbers) = (before, [vec![last], numbers].concat());
        }
        (stack.split(';').collect(), numbers)
    }

    proptest! {
        #[test]
        fn every_line_is_read_back(names in prop::collection::vec((".{0,20}|[ 0-9;.\t]{0,8}", prop::option::of("[a-z0-9 ;]{0,9}"), 1_i64..1 << 40), 1..9)) {
            let stacks: Vec<Stack> = names.iter().map(|(root, part, ns)| stack("n", root, part.as_deref(), *ns)).collect();
            let text = written(&stacks);
            prop_assert_eq!(text.lines().count(), stacks.len());
            for (line, stack) in text.lines().zip(&stacks) {
                let (frames, numbers) = split(line);
                prop_assert_eq!(numbers, vec![stack.ns.to_string()]);
                prop_assert_eq!(frames.len(), 3 + usize::from(stack.part.is_some()), "{}", line);
            }
        }
    }

    #[test]
    fn long_names_stay_whole() {
        let name = "x".repeat(100_000);
        assert!(written(&[stack("n", &name, None, 1)]).contains(&name));
    }
}
