//! The machine's representation of a time: nanoseconds alone, or with the path of noise that led to them.
//!
//! A rank's time is that of another one plus some nanoseconds, or the later of two. Following that back from the end of a job gives its critical
//! path. Only the places where noise delayed work matter, so a time with a path refers to the last such place, and each place to the one before.
//! Every rank has a list of its own places; those that no time refers to any more are reused.

use std::fmt::Debug;

use super::JobMachine;

/// A time since the start of a job.
pub trait Time: Copy + Debug + Default + Send + Sync + 'static {
    /// A rank's record of its delays by noise.
    type Notes: Clone + Debug + Send + Sync;

    /// For a rank with a number.
    fn notes(rank: usize) -> Self::Notes;

    /// In nanoseconds.
    fn ns(self) -> i64;

    /// Plus some nanoseconds.
    fn plus(self, ns: i64) -> Self;

    /// The later one of this and the other; this one on ties.
    fn later(self, other: Self) -> Self;

    /// Limits it.
    fn at_most(self, limit: i64) -> Self;

    /// The end of work that started at this time and met noise.
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

/// The position of a note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    rank: u32,
    note: u32,
}

/// Work that was delayed by noise, on the critical path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeldUp {
    pub rank: usize,
    /// Its start, in nanoseconds since the start of the job.
    pub start: i64,
    /// Its duration without noise, in nanoseconds.
    pub work: i64,
}

#[derive(Clone, Copy, Debug)]
struct Note {
    before: Option<Place>,
    start: i64,
    /// 0 once the note is dropped.
    work: i64,
}

/// Where noise delayed a rank.
#[derive(Clone, Debug)]
pub(crate) struct RankNotes {
    rank: u32,
    notes: Vec<Note>,
    /// Those that may be reused.
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
    /// The work delayed by noise on the path that led to the end of the latest rank, in order of time. If several ranks are equally late, that of the
    /// first.
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

    /// The number of kept notes.
    pub(crate) fn noted(&self) -> usize {
        self.cursors.iter().map(|cursor| cursor.notes.notes.len() - cursor.notes.free.len()).sum()
    }

    /// Frees notes that no time refers to. Not between the steps of a collective, which may hold times of their own.
    pub(crate) fn forget_paths(&mut self) {
        let mut kept: Vec<Vec<bool>> =
            self.cursors.iter().map(|cursor| vec![false; cursor.notes.notes.len()]).collect();
        let ranks = self.ranks.iter().flat_map(|rank| [rank.clock, rank.send_free, rank.receive_free]);
        let lanes = self.cards.iter().flat_map(|card| [&card.sends, &card.receives]);
        // The times when messages left are overwritten before they are read again.
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
