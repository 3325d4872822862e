//! Chains of requests: from an activity to the thread, the device or the timer at their end.

use becalm_model::cause::Requester;
use becalm_model::{Kind, Label, Labels, Pid, Tasks};
use becalm_units::NumberMap;

/// The most links of a chain. A longer one has no known end.
pub const MOST_LINKS: u8 = 5;

/// The end of a chain, and the links to it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    pub requester: Requester,
    pub by: Label,
    pub thread: Pid,
    pub context: Label,
    links: u8,
}

impl Chain {
    /// A chain that starts at its end, which is no thread.
    pub const fn end(requester: Requester, by: Label) -> Self {
        Self { requester, by, thread: Pid::IDLE, context: Label::EMPTY, links: 0 }
    }

    pub const fn requester(&self) -> Requester {
        self.requester
    }
}

/// Makes chains, with cached labels.
#[derive(Debug)]
pub(super) struct Links {
    own: Vec<Pid>,
    idle: Label,
    interrupt: Label,
    before: Label,
    unknown: Label,
    /// The names of activities as links.
    names: NumberMap<(Kind, Label), Label>,
    /// Lists of links, by the first one and the rest.
    lists: NumberMap<(Label, Label), Label>,
    /// Functions by their names as sources.
    functions: NumberMap<Label, Label>,
}

impl Links {
    pub fn new(own: &[Pid], labels: &mut Labels) -> Self {
        Self {
            own: own.to_vec(),
            idle: labels.intern("idle"),
            interrupt: labels.intern("interrupt"),
            before: labels.intern("before the recording"),
            unknown: labels.intern("?"),
            names: NumberMap::default(),
            lists: NumberMap::default(),
            functions: NumberMap::default(),
        }
    }

    /// A request that a thread makes for itself. `name` is the one that it has since an event.
    pub fn thread(&self, pid: Pid, name: Option<Label>, tasks: &Tasks) -> Chain {
        if pid == Pid::IDLE {
            return Chain::end(Requester::Kernel, self.idle);
        }
        let task = tasks.get(pid);
        let requester = match task.map(|task| task.kind) {
            _ if self.own.contains(&pid) => Requester::Becalm,
            Some(Kind::Becalm) => Requester::Becalm,
            Some(Kind::Kthread) => Requester::Kernel,
            _ => Requester::Program,
        };
        let named = if requester == Requester::Program { name } else { None };
        let by = named.or(task.map(|task| task.source)).unwrap_or(self.unknown);
        Chain { thread: pid, ..Chain::end(requester, by) }
    }

    /// A request in an interrupt or a softirq that the trace does not show.
    pub const fn in_interrupt(&self) -> Chain {
        Chain { context: self.interrupt, links: 1, ..Chain::end(Requester::Unknown, Label::EMPTY) }
    }

    /// Something requested before the trace started.
    pub const fn before(&self) -> Chain {
        Chain { context: self.before, ..self.in_interrupt() }
    }

    /// The chain of requests that are made in an activity, from the activity's own chain.
    pub fn link(&mut self, chain: Chain, kind: Kind, source: Label, labels: &mut Labels) -> Chain {
        let link = *self.names.entry((kind, source)).or_insert_with(|| match kind {
            Kind::Softirq => {
                let text = format!("softirq {}", labels.text(source));
                labels.intern(&text)
            }
            _ => source,
        });
        let context = match chain.context {
            Label::EMPTY => link,
            rest => *self.lists.entry((link, rest)).or_insert_with(|| {
                let text = format!("{}, {}", labels.text(link), labels.text(rest));
                labels.intern(&text)
            }),
        };
        if chain.links >= MOST_LINKS {
            return Chain {
                context: chain.context,
                links: chain.links,
                ..Chain::end(Requester::Unknown, Label::EMPTY)
            };
        }
        Chain { context, links: chain.links + 1, ..chain }
    }

    /// The function of a timer: `timerfd_tmrproc` for `timer:timerfd_tmrproc`.
    pub fn plain_function(&mut self, source: Label, labels: &mut Labels) -> Label {
        *self.functions.entry(source).or_insert_with(|| {
            let name = labels.text(source);
            let plain = name.strip_prefix("timer:").unwrap_or(name).to_owned();
            labels.intern(&plain)
        })
    }
}
