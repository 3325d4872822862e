//! Time by source, as stacks from the node down to what took it: what flame graphs and profiles are made of.

use becalm_model::Kind;
use becalm_units::CpuId;

/// A stack, and what was counted of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stack<'a> {
    /// The node that lost the time.
    pub node: &'a str,
    /// The CPU that lost it.
    pub cpu: CpuId,
    /// The kind and the name of the source that goes with all of it; `None` of time of which nothing is booked.
    pub root: Option<(Kind, &'a str)>,
    /// The kind and the name of what took it, where that is not the root itself.
    pub part: Option<(Kind, &'a str)>,
    /// How many activities these were.
    pub count: u64,
    /// Their own time, in nanoseconds.
    pub ns: i64,
}

/// What stands for a root of which nothing is known.
const NOT_BOOKED: &str = "not attributed";

impl Stack<'_> {
    /// Its frames from the outermost on: the node where `with_node`, the CPU, kind and name of the root, the part.
    #[must_use]
    pub fn frames(&self, with_node: bool) -> Vec<String> {
        let mut frames = Vec::with_capacity(5);
        if with_node {
            frames.push(self.node.to_owned());
        }
        frames.push(format!("cpu{}", self.cpu));
        match self.root {
            Some((kind, name)) => frames.extend([kind.name().to_owned(), name.to_owned()]),
            None => frames.push(NOT_BOOKED.to_owned()),
        }
        frames.extend(self.part.map(|(kind, name)| format!("{kind} {name}")));
        frames
    }
}
