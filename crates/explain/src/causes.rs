//! Causes: what the time of a thread goes to.

use std::collections::HashMap;

use becalm_account::is_becalms;
use becalm_model::Kind;
use becalm_model::observed::{Owner, own_work};
use becalm_model::unseen::{PREEMPTED_BY_HOST, STOLEN};
use serde::{Deserialize, Serialize};

/// How a cause takes time.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Class {
    /// The program ran, in user mode or in the kernel.
    Ran,
    /// It ran in this system call.
    Call,
    /// The kernel worked on its behalf: reclaim, compaction, locks, throttling of writes.
    OwnWork,
    /// An interrupt or a softirq ran on top of it.
    OnTop,
    /// It was on a run queue, and this had the CPU.
    Queued,
    /// It was woken, and not on a run queue yet.
    OnTheWay,
    /// Its control group had used up its CPU time.
    Quota,
    /// The hypervisor had the CPU.
    Host,
    /// becalm's measuring loop ran, because the program slept or waited for the CPU.
    Loop,
    /// It slept.
    Asleep,
    /// A signal or a debugger stopped it.
    Stopped,
    /// The recording does not show it.
    Unknown,
}

/// The side to which a cause belongs.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Side {
    /// The program computed.
    Program,
    /// The system: other programs, the kernel, interrupts, a quota, the hypervisor.
    System,
    /// Other threads of the program: they had the CPU, or it waited for them while they computed.
    Threads,
    /// It slept: it waited for other threads, other machines, a disk, or time to pass.
    Waiting,
    /// Not known.
    Unknown,
}

/// A cause.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cause {
    /// How it takes time.
    pub class: Class,
    /// The owner, relative to the observed threads.
    pub owner: Owner,
    /// The kind, of one that had the CPU.
    pub kind: Option<Kind>,
    /// The name: of who had the CPU, of the system call, of the state of sleep.
    pub source: String,
    /// The observed thread that ended such a sleep; empty if it is not known. For other causes, it had this cause while the span slept.
    pub waker: String,
    /// The process, if it is one process.
    pub process: Option<i32>,
}

impl Cause {
    /// A cause with only a class and a name.
    pub fn new(class: Class, owner: Owner, source: &str) -> Self {
        Self { class, owner, kind: None, source: source.to_owned(), waker: String::new(), process: None }
    }

    /// What runs in this context of the kernel: the program itself if it is empty.
    pub fn running(context: &str) -> Self {
        let class = if context.is_empty() {
            Class::Ran
        } else if own_work::ALL.contains(&context) {
            Class::OwnWork
        } else {
            Class::Call
        };
        Self::new(class, if class == Class::OwnWork { Owner::Kernel } else { Owner::Process }, context)
    }

    /// An activity of this kind, with the source and the detail of a recording.
    pub fn of_interruption(kind: Kind, source: &str, detail: &str) -> Self {
        let (class, owner) = match kind {
            _ if is_becalms(kind, detail) => (Class::Queued, Owner::Becalm),
            Kind::Nmi | Kind::Irq | Kind::Softirq => (Class::OnTop, Owner::Interrupt),
            Kind::Edge | Kind::Fault => (Class::OnTop, Owner::Kernel),
            Kind::Workqueue | Kind::Kthread | Kind::Becalm => (Class::Queued, Owner::Kernel),
            Kind::Task => (Class::Queued, Owner::Others),
            Kind::Throttling => (Class::Quota, Owner::Quota),
            Kind::Unseen if matches!(source, PREEMPTED_BY_HOST | STOLEN) => (Class::Host, Owner::Host),
            // Firmware, hardware or the hypervisor.
            Kind::Unseen => (Class::OnTop, Owner::Unknown),
            Kind::NotTraced => (Class::Unknown, Owner::Unknown),
        };
        // The name of such a source says nothing without its kind.
        let source = if kind.is_rest() { format!("{kind} {source}") } else { source.to_owned() };
        let process = detail.parse().ok().filter(|_| kind == Kind::Task);
        Self { kind: Some(kind), process, ..Self::new(class, owner, &source) }
    }

    /// Sleep in this context, or in this state if there is none.
    pub fn asleep(context: &str, state: &str, waker: &str) -> Self {
        if own_work::ALL.contains(&context) {
            return Self::new(Class::OwnWork, Owner::Kernel, context);
        }
        let source = if context.is_empty() { state } else { context };
        Self { waker: waker.to_owned(), ..Self::new(Class::Asleep, Owner::Unknown, source) }
    }

    /// The cause of a thread that slept while its waker, called `name`, had this one; `None` if that says nothing.
    pub fn of_waker(&self, name: &str) -> Option<Self> {
        let is_telling = !matches!(self.class, Class::Asleep | Class::Stopped | Class::Loop | Class::Unknown);
        is_telling.then(|| Self { waker: name.to_owned(), ..self.clone() })
    }

    /// The side to which it belongs.
    pub const fn side(&self) -> Side {
        match (self.class, self.owner) {
            (Class::Ran | Class::Call, _) if !self.waker.is_empty() => Side::Threads,
            (Class::Ran | Class::Call, _) => Side::Program,
            (Class::Queued, Owner::Process | Owner::Chosen) => Side::Threads,
            (Class::Queued, Owner::Unknown) | (Class::Loop | Class::Unknown, _) => Side::Unknown,
            (Class::Asleep | Class::Stopped, _) => Side::Waiting,
            _ => Side::System,
        }
    }
}

/// Causes by number.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    all: Vec<Cause>,
    numbers: HashMap<Cause, u32>,
}

impl Causes {
    /// The number of a cause. Threads with the same name, owner and kind are one cause, of no single process if they belong to several.
    pub fn number(&mut self, cause: Cause) -> u32 {
        let process = cause.process;
        let key = Cause { process: None, ..cause };
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => {
                let number = self.all.len() as u32;
                self.all.push(Cause { process, ..key.clone() });
                self.numbers.insert(key, number);
                number
            }
        };
        let known = &mut self.all[number as usize];
        if known.process != process {
            known.process = None;
        }
        number
    }

    /// The cause with a number.
    pub fn get(&self, number: u32) -> &Cause {
        &self.all[number as usize]
    }

    /// The number of causes.
    pub const fn count(&self) -> usize {
        self.all.len()
    }
}

/// The time of a cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CauseTime {
    /// The number of the cause.
    pub cause: u32,
    /// Its time, in nanoseconds.
    pub ns: i64,
}
