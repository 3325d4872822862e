//! Repeated attacks: number of tries, their random numbers, and number of failures.
//!
//! Each kind of attack is a row with a name and a number of tries; none may fail. Every run of the tests makes a few tries of each row, and
//! all of them if the variable `BECALM_ATTACK` is `full`.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Further failures are only counted.
const SHOWN: u32 = 20;

/// Numbers of tries of a row.
#[derive(Debug, Clone, Copy)]
pub struct Tries {
    /// With `BECALM_ATTACK=full`.
    pub all: u32,
    /// In every run of the tests.
    pub few: u32,
}

impl Tries {
    /// The number of tries in this run.
    fn wanted(self) -> u32 {
        if is_full() { self.all } else { self.few }
    }
}

/// Whether all tries of each row are requested.
pub fn is_full() -> bool {
    env::var("BECALM_ATTACK").is_ok_and(|wanted| wanted == "full")
}

/// Random numbers of one try: the same for the same seed, row and number.
#[derive(Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The numbers for one try of a row.
    pub fn for_try(seed: u64, row: &str, number: u32) -> Self {
        // FNV-1a, so no two rows have the same numbers.
        let row_hash = row
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(Xoshiro256PlusPlus::seed_from_u64(row_hash ^ seed.rotate_left(32) ^ u64::from(number)))
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        // The bias of a remainder does not matter here.
        (self.number() % limit as u64) as usize
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these items.
    pub fn one<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A time up to `longest`.
    pub fn time(&mut self, longest: Duration) -> Duration {
        longest.mul_f64((self.number() >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// Runs the tries of a row one after another.
///
/// # Panics
/// At the end, if a try panicked.
#[track_caller]
pub fn attack(row: &str, tries: Tries, mut attempt: impl FnMut(u32, &mut Random)) {
    let row = Row::new(row, tries);
    for number in 0..row.tries {
        row.make(number, &mut attempt);
    }
    row.end();
}

/// Runs the tries of a row in parallel, one per CPU.
///
/// # Panics
/// At the end, if a try panicked.
#[track_caller]
pub fn attack_side_by_side(row: &str, tries: Tries, attempt: impl Fn(u32, &mut Random) + Sync) {
    let row = Row::new(row, tries);
    let next = AtomicU32::new(0);
    let on_one_cpu = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= row.tries {
                return;
            }
            row.make(number, &attempt);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(on_one_cpu);
        }
    });
    row.end();
}

struct Row<'a> {
    name: &'a str,
    tries: u32,
    seed: u64,
    wrong: AtomicU32,
}

impl<'a> Row<'a> {
    fn new(name: &'a str, tries: Tries) -> Self {
        let seed = env::var("BECALM_ATTACK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        Self { name, tries: tries.wanted(), seed, wrong: AtomicU32::new(0) }
    }

    fn make(&self, number: u32, mut attempt: impl FnMut(u32, &mut Random)) {
        let mut random = Random::for_try(self.seed, self.name, number);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| attempt(number, &mut random)))
            && self.wrong.fetch_add(1, Ordering::Relaxed) < SHOWN
        {
            let why = panic.downcast_ref::<String>().map(String::as_str);
            let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            eprintln!("{}: try {number} of seed {} went wrong: {why}", self.name, self.seed);
        }
    }

    /// Prints the row, and appends it to the file named by `BECALM_ATTACK_TABLE`, for a table of all rows.
    #[track_caller]
    fn end(self) {
        let wrong = self.wrong.into_inner();
        let line = format!("{}\t{}\t{wrong}\n", self.name, self.tries);
        eprint!("row, tries, wrong (seed {}): {line}", self.seed);
        if let Some(path) = env::var_os("BECALM_ATTACK_TABLE") {
            let written = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .and_then(|mut table| table.write_all(line.as_bytes()));
            written.unwrap_or_else(|error| panic!("cannot append to {}: {error}", path.display()));
        }
        assert!(self.tries > 0, "{}: nothing was tried", self.name);
        assert!(wrong == 0, "{}: {wrong} of {} tries went wrong", self.name, self.tries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_try_is_made_and_has_numbers_of_its_own() {
        let mut seen = Vec::new();
        attack("a row", Tries { all: 3, few: 3 }, |number, random| seen.push((number, random.number())));
        assert_eq!(seen.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2]);
        let again = Random::for_try(1, "a row", 2).number();
        if env::var_os("BECALM_ATTACK_SEED").is_none() {
            assert_eq!(seen[2].1, again);
        }
        assert!(seen[0].1 != seen[1].1 && Random::for_try(1, "another row", 2).number() != again);
        let made = AtomicU32::new(0);
        attack_side_by_side("a row", Tries { all: 40, few: 40 }, |_, _| {
            made.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(made.into_inner(), 40);
    }

    #[test]
    #[should_panic(expected = "a row: 2 of 5 tries went wrong")]
    fn a_row_with_wrong_tries_fails_after_the_last() {
        attack("a row", Tries { all: 5, few: 5 }, |number, _| assert!(number % 2 == 0, "it is odd"));
    }
}
