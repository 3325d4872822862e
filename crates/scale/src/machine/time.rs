//! What the machine takes for a time: nanoseconds alone, or with the path of noise that led to them.
//!
//! A rank's time is that of another one, later by some nanoseconds, or the later one of two. Whoever follows that back from the end of
//! a job goes along its critical path. All that is of interest there is where noise held work up, so that a time with a path names
//! the last place where that happened, and each such place the one before. Every rank has a list of its own places; those that no
//! time leads to any more are used again.

use std::fmt::Debug;

use super::JobMachine;

/// A time since the start of a job.
pub trait Time: Copy + Debug + Default + Send + Sync + 'static {
    /// What a rank writes down of where noise held it up.
    type Notes: Clone + Debug + Send + Sync;

    /// For a rank with a number.
    fn notes(rank: usize) -> Self::Notes;

    /// In nanoseconds.
    fn ns(self) -> i64;

    /// So much later.
    fn plus(self, ns: i64) -> Self;

    /// This or the other, whichever is later; this one of equals.
    fn later(self, other: Self) -> Self;

    /// At a limit if it is later.
    fn at_most(self, limit: i64) -> Self;

    /// The end of work that began at this time and met noise.
    fn held_up(self, end: i64, work: i64, notes: &mut Self::Notes) -> Self;
}

impl Time for i64 {
    type Notes = ();

    fn notes(_: usize) {}

    #[inline]
    fn ns(self) -> i64 {
        self
    }

    #[inline]
    fn plus(self, ns: i64) -> Self {
        self + ns
    }

    #[inline]
    fn later(self, other: Self) -> Self {
        self.max(other)
    }

    #[inline]
    fn at_most(self, limit: i64) -> Self {
        self.min(limit)
    }

    #[inline]
    fn held_up(self, end: i64, _: i64, (): &mut ()) -> Self {
        end
    }
}

/// A time with the path that led to it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Traced {
    ns: i64,
    last: Option<Place>,
}

/// A note of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    rank: u32,
    note: u32,
}

/// Work that noise held up, on the critical path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeldUp {
    /// Whose work it was.
    pub rank: usize,
    /// When it began, in nanoseconds since the start of the job.
    pub start: i64,
    /// How long it would have taken, in nanoseconds.
    pub work: i64,
}

#[derive(Clone, Copy, Debug)]
struct Note {
    before: Option<Place>,
    start: i64,
    /// 0 once the note is forgotten.
    work: i64,
}

/// Where noise held a rank up.
#[derive(Clone, Debug)]
pub(crate) struct RankNotes {
    rank: u32,
    notes: Vec<Note>,
    /// Those that may be used again.
    free: Vec<u32>,
}

impl Time for Traced {
    type Notes = RankNotes;

    fn notes(rank: usize) -> RankNotes {
        RankNotes { rank: rank as u32, notes: Vec::new(), free: Vec::new() }
    }

    fn ns(self) -> i64 {
        self.ns
    }

    fn plus(self, ns: i64) -> Self {
        Self { ns: self.ns + ns, ..self }
    }

    fn later(self, other: Self) -> Self {
        if other.ns > self.ns { other } else { self }
    }

    fn at_most(self, limit: i64) -> Self {
        Self { ns: self.ns.min(limit), ..self }
    }

    fn held_up(self, end: i64, work: i64, notes: &mut RankNotes) -> Self {
        if end == self.ns + work {
            return self.plus(work);
        }
        let new = Note { before: self.last, start: self.ns, work };
        let note = match notes.free.pop() {
            Some(note) => {
                notes.notes[note as usize] = new;
                note
            }
            None => {
                notes.notes.push(new);
                notes.notes.len() as u32 - 1
            }
        };
        Self { ns: end, last: Some(Place { rank: notes.rank, note }) }
    }
}

impl JobMachine<'_, Traced> {
    /// Where noise held up the work on the path that led to the end of the rank that is last, in the order of time. Of ranks that
    /// are equally late, that of the first.
    pub(crate) fn critical_path(&self) -> Vec<HeldUp> {
        let mut path = Vec::new();
        let mut last = self.latest_time().last;
        while let Some(place) = last {
            let Note { before, start, work } = self.note(place);
            path.push(HeldUp { rank: place.rank as usize, start, work });
            last = before;
        }
        path.reverse();
        path
    }

    fn note(&self, place: Place) -> Note {
        let note = self.cursors[place.rank as usize].notes.notes[place.note as usize];
        debug_assert!(note.work > 0, "a path leads over what was forgotten");
        note
    }

    /// How many notes are kept.
    pub(crate) fn noted(&self) -> usize {
        self.cursors.iter().map(|cursor| cursor.notes.notes.len() - cursor.notes.free.len()).sum()
    }

    /// Lets notes be used again that no time leads to. Not between the steps of a collective, which may know times of their own.
    pub(crate) fn forget_paths(&mut self) {
        let mut kept: Vec<Vec<bool>> =
            self.cursors.iter().map(|cursor| vec![false; cursor.notes.notes.len()]).collect();
        let ranks = self.ranks.iter().flat_map(|rank| [rank.clock, rank.send_free, rank.receive_free]);
        let lanes = self.cards.iter().flat_map(|card| [&card.sends, &card.receives]);
        // When messages left is noted anew before anybody reads it.
        for time in ranks.chain(lanes.flat_map(|lane| lane.times())) {
            let mut last = time.last;
            while let Some(place) = last
                && !std::mem::replace(&mut kept[place.rank as usize][place.note as usize], true)
            {
                last = self.note(place).before;
            }
        }
        for (cursor, kept) in self.cursors.iter_mut().zip(kept) {
            let RankNotes { notes, free, .. } = &mut cursor.notes;
            free.clear();
            for (number, (note, _)) in notes.iter_mut().zip(kept).enumerate().filter(|(_, (_, kept))| !kept) {
                note.work = 0;
                free.push(number as u32);
            }
        }
    }
}
