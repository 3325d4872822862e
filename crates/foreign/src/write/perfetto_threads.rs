//! Lives of threads as a trace of Perfetto: the kernel's scheduling events, from which its viewer shows the states of threads, and slices below each
//! thread with who had the CPU and with spans.
//!
//! Times are those of `CLOCK_BOOTTIME`, the clock that the viewer expects of such events.

use std::collections::BTreeMap;
use std::io::{self, Write};

use becalm_bundle::ThreadRow;
use becalm_model::observed::{LifePart, Stay, StayReason};
use becalm_model::{Labels, ThreadState};
use becalm_units::protobuf::Message;

// Fields of `TracePacket`.
const FTRACE_EVENTS: u64 = 1;
const PROCESS_TREE: u64 = 2;
const CLOCK_SNAPSHOT: u64 = 6;
const TIMESTAMP: u64 = 8;
const SEQUENCE: u64 = 10;
const TRACK_EVENT: u64 = 11;
const SEQUENCE_FLAGS: u64 = 13;
const TRACK_DESCRIPTOR: u64 = 60;

// Fields of `FtraceEvent`.
const SCHED_SWITCH: u64 = 4;
const SCHED_WAKING: u64 = 20;

/// Clocks by `BuiltinClock`.
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// The number of the only sequence of track events.
const ONLY: u64 = 1;
/// The events of a packet.
const EVENTS: usize = 1_000;
/// The tracks of a thread: itself, who had its CPU, and spans.
const TRACKS: u64 = 3;

/// The priority of an ordinary thread: the recording does not have those of threads.
const PRIORITY: i64 = 120;

/// The state of a thread that has ended.
const DEAD: i64 = 0x10;

/// Slices below a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadTrack {
    /// The takers of its CPU while it waited, and interrupts on top of it.
    Takers,
    /// Spans of the program.
    Spans,
}

/// The clocks at the origin of a recording, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClocksAtOrigin {
    /// `CLOCK_BOOTTIME`.
    pub boottime: i64,
    /// `CLOCK_MONOTONIC`.
    pub monotonic: i64,
    /// `CLOCK_REALTIME`.
    pub realtime: i64,
}

/// A trace being written.
#[derive(Debug)]
pub struct ThreadsTrace<'a, W> {
    out: W,
    clocks: ClocksAtOrigin,
    threads: &'a [ThreadRow],
    labels: &'a Labels,
    /// The events of each CPU that are not written yet.
    events: BTreeMap<u32, Vec<Vec<u8>>>,
    packet: Message,
}

impl<'a, W: Write> ThreadsTrace<'a, W> {
    /// Starts a trace with the names of the threads.
    pub fn begin(out: W, clocks: ClocksAtOrigin, threads: &'a [ThreadRow], labels: &'a Labels) -> io::Result<Self> {
        let mut trace = Self { out, clocks, threads, labels, events: BTreeMap::new(), packet: Message::default() };
        let ClocksAtOrigin { boottime, monotonic, realtime } = clocks;
        trace.packet.message(CLOCK_SNAPSHOT, |snapshot| {
            for (id, at) in [(BOOTTIME, boottime), (MONOTONIC, monotonic), (REALTIME, realtime)] {
                snapshot.message(1, |clock| {
                    clock.number(1, id).number(2, stamp(at));
                });
            }
            snapshot.number(2, BOOTTIME);
        });
        // There is no interned data.
        trace.packet.number(SEQUENCE_FLAGS, 1);
        trace.end_packet()?;
        trace.packet.message(PROCESS_TREE, |tree| {
            let number = |number: i32| u64::try_from(number).unwrap_or(0);
            for row in threads {
                if row.tid == row.process {
                    tree.message(1, |process| {
                        process.number(1, number(row.tid));
                        let command = labels.text(row.command);
                        process.bytes(3, if command.is_empty() { labels.text(row.name) } else { command }.as_bytes());
                    });
                }
                tree.message(2, |thread| {
                    let name = labels.text(row.name).as_bytes();
                    thread.number(1, number(row.tid)).bytes(2, name).number(3, number(row.process));
                });
            }
        });
        trace.end_packet()?;
        Ok(trace)
    }

    /// Writes the stays of a thread, in order of time.
    pub fn life(&mut self, stays: &[Stay]) -> io::Result<()> {
        let mut stays = stays.iter().peekable();
        let mut is_on_the_way = false;
        while let Some(stay) = stays.next() {
            let was_on_the_way = std::mem::replace(&mut is_on_the_way, stay.part == LifePart::OnTheWay);
            let row = self.threads.get(stay.thread.0 as usize);
            let Some(row) = row else { continue };
            let mut end = stay.start + stay.duration;
            match stay.part {
                LifePart::Ran => {
                    // A change of context is no change of its state.
                    while let Some(more) = stays.next_if(|next| next.part == LifePart::Ran && next.cpu == stay.cpu) {
                        end += more.duration;
                    }
                    let state = stays.peek().map_or(DEAD, |next| left_state(next));
                    let name = self.labels.text(row.name);
                    self.switch(stay.cpu.get(), stay.start.get(), (0, 0), row.tid, name)?;
                    self.switch(stay.cpu.get(), end.get(), (row.tid, state), 0, name)?;
                }
                LifePart::OnTheWay => self.waking(stay, row.tid)?,
                LifePart::Queued if matches!(stay.reason, StayReason::Woken | StayReason::New) && !was_on_the_way => {
                    self.waking(stay, row.tid)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Declares the tracks of slices below a thread.
    pub fn tracks(&mut self, thread: usize) -> io::Result<()> {
        let Some(row) = self.threads.get(thread) else { return Ok(()) };
        let (own, name) = (track(thread, None), self.labels.text(row.name));
        let numbers = [row.process, row.tid].map(|number| u64::try_from(number).unwrap_or(0));
        self.packet.message(TRACK_DESCRIPTOR, |track| {
            track.number(1, own).message(4, |descriptor| {
                descriptor.number(1, numbers[0]).number(2, numbers[1]).bytes(5, name.as_bytes());
            });
        });
        self.end_packet()?;
        for (below, title) in [(ThreadTrack::Takers, "who had the CPU"), (ThreadTrack::Spans, "spans")] {
            self.packet.message(TRACK_DESCRIPTOR, |descriptor| {
                descriptor.number(1, track(thread, Some(below))).bytes(2, title.as_bytes()).number(5, own);
            });
            self.end_packet()?;
        }
        Ok(())
    }

    /// Writes a slice below a thread. Slices of a track follow or contain each other.
    pub fn slice(&mut self, thread: usize, below: ThreadTrack, (start, end): (i64, i64), name: &str) -> io::Result<()> {
        for (time, kind) in [(start, 1), (end, 2)] {
            let time = self.time(time);
            self.packet.number(TIMESTAMP, time).message(TRACK_EVENT, |event| {
                event.number(9, kind).number(11, track(thread, Some(below)));
                if kind == 1 {
                    event.bytes(23, name.as_bytes());
                }
            });
            self.end_packet()?;
        }
        Ok(())
    }

    /// Writes what is left, and returns the writer.
    pub fn end(mut self) -> io::Result<W> {
        let cpus: Vec<u32> = self.events.keys().copied().collect();
        cpus.into_iter().try_for_each(|cpu| self.flush(cpu))?;
        Ok(self.out)
    }

    /// A switch between the idle task and the thread with this name.
    fn switch(&mut self, cpu: u32, time: i64, (prev, state): (i32, i64), next: i32, name: &str) -> io::Result<()> {
        let mut event = Message::default();
        let time = self.time(time);
        let idle = format!("swapper/{cpu}");
        let names = [prev, next].map(|tid| if tid == 0 { idle.as_bytes() } else { name.as_bytes() });
        event.number(1, time).int(2, i64::from(prev)).message(SCHED_SWITCH, |switch| {
            switch.bytes(1, names[0]).int(2, i64::from(prev)).int(3, PRIORITY).int(4, state);
            switch.bytes(5, names[1]).int(6, i64::from(next)).int(7, PRIORITY);
        });
        self.event(cpu, event)
    }

    fn waking(&mut self, stay: &Stay, tid: i32) -> io::Result<()> {
        let mut event = Message::default();
        let waker = stay.by.and_then(|by| self.threads.get(by.0 as usize)).map_or(0, |row| row.tid);
        let time = self.time(stay.start.get());
        event.number(1, time).int(2, i64::from(waker)).message(SCHED_WAKING, |waking| {
            waking.int(2, i64::from(tid)).int(4, 1).number(5, u64::from(stay.cpu.get()));
        });
        self.event(stay.cpu.get(), event)
    }

    fn event(&mut self, cpu: u32, event: Message) -> io::Result<()> {
        let events = self.events.entry(cpu).or_default();
        events.push(event.into_bytes());
        if events.len() >= EVENTS { self.flush(cpu) } else { Ok(()) }
    }

    fn flush(&mut self, cpu: u32) -> io::Result<()> {
        let events = self.events.remove(&cpu).unwrap_or_default();
        self.packet.message(FTRACE_EVENTS, |bundle| {
            bundle.number(1, u64::from(cpu));
            events.iter().for_each(|event| _ = bundle.bytes(2, event));
        });
        self.end_packet()
    }

    /// The time on the trace's clock.
    const fn time(&self, time: i64) -> u64 {
        stamp(time.saturating_add(self.clocks.boottime))
    }

    fn end_packet(&mut self) -> io::Result<()> {
        self.packet.number(SEQUENCE, ONLY);
        let mut head = Message::default();
        // `Trace.packet`.
        head.bytes(1, self.packet.as_bytes());
        self.packet.clear();
        self.out.write_all(head.as_bytes())
    }
}

/// The track of a thread, or one below it.
const fn track(thread: usize, below: Option<ThreadTrack>) -> u64 {
    let place = match below {
        None => 0,
        Some(ThreadTrack::Takers) => 1,
        Some(ThreadTrack::Spans) => 2,
    };
    1 + thread as u64 * TRACKS + place
}

/// The format has no negative times.
const fn stamp(time: i64) -> u64 {
    if time > 0 { time.cast_unsigned() } else { 0 }
}

/// The kernel's state of a thread when it left the CPU, from its next stay.
fn left_state(next: &Stay) -> i64 {
    match (next.part, next.reason) {
        (LifePart::Asleep | LifePart::Stopped, StayReason::Left(state)) if state != ThreadState::UNKNOWN => {
            i64::from(state.0)
        }
        (LifePart::Queued | LifePart::Quota, _) => 0,
        // Woken before it had left, or unknown.
        _ => i64::from(ThreadState::SLEEPING.0),
    }
}
