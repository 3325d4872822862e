//! Time that the host takes from a guest within a kernel activity, without an event.
//!
//! An interrupt handler, a softirq, or kernel entry or exit takes about as long as last time. The host is held responsible if one takes at
//! least 100 us and ten times the 90th percentile of its kind, with nothing nested in it. The activity then keeps the median of its kind,
//! and the host gets the rest.

use becalm_model::{Activity, Kind, Label, Labels, unseen};
use becalm_units::{Nanos, NumberMap};

/// The kernel's own work varies by up to this much, so shorter excesses are never charged to the host.
const LEAST: Nanos = Nanos::new(100_000);
/// The minimum ratio to the 90th percentile of its kind.
const FACTOR: i64 = 10;
/// The minimum number of previous activities of the kind.
const ENOUGH: u32 = 50;

/// The lengths of a CPU's activities so far, by kind and source, and of edges by their cause.
#[derive(Debug)]
pub(super) struct Host {
    source: Label,
    usual: NumberMap<(Kind, Label, Label), Lengths>,
}

impl Host {
    /// Starts without any lengths; interns the source of host time.
    pub fn new(labels: &mut Labels) -> Self {
        Self { source: labels.intern(unseen::PREEMPTED_BY_HOST), usual: NumberMap::default() }
    }

    /// Moves the host's time from the rows of a detour, in order of their start, into rows of its own. `cause` makes the label of a row's
    /// root. Returns the number of new rows.
    pub fn take_out(&mut self, rows: &mut Vec<Activity>, mut cause: impl FnMut(&Activity) -> Label) -> u64 {
        let mut taken = 0;
        let mut place = 0;
        while place < rows.len() {
            let row = rows[place];
            place += 1;
            let Some(excess) = self.excess(&row, rows.get(place)) else { continue };
            let usual = row.self_time - excess;
            rows[place - 1].self_time = usual;
            let detail = cause(&row);
            let start = row.start + usual;
            let preempted =
                Activity { start, self_time: excess, kind: Kind::Unseen, source: self.source, detail, ..row };
            rows.insert(place, preempted);
            place += 1;
            taken += 1;
        }
        taken
    }

    /// How much longer a row is than its kind; `None` after adding it to the lengths of its kind.
    fn excess(&mut self, row: &Activity, next: Option<&Activity>) -> Option<Nanos> {
        let detail = match row.kind {
            Kind::Edge => row.detail,
            Kind::Irq | Kind::Nmi | Kind::Softirq => Label::EMPTY,
            // The length of threads and of their activities depends on their work.
            _ => return None,
        };
        let usual = self.usual.entry((row.kind, row.source, detail)).or_default();
        let in_one_piece = next.is_none_or(|next| next.start >= row.start + row.self_time);
        if in_one_piece
            && row.self_time >= LEAST
            && usual.count >= ENOUGH
            && row.self_time.get() / FACTOR >= usual.quantile(0.9).get()
        {
            return Some(row.self_time - usual.quantile(0.5));
        }
        usual.add(row.self_time);
        None
    }
}

/// A histogram of lengths: eight cells per octave give a quantile to 12 %.
#[derive(Debug)]
struct Lengths {
    cells: [u32; CELLS],
    count: u32,
}

/// Cells from 2^3 ns to 2^36 ns, over a minute.
const CELLS: usize = 33 * 8;

impl Default for Lengths {
    fn default() -> Self {
        Self { cells: [0; CELLS], count: 0 }
    }
}

impl Lengths {
    fn add(&mut self, length: Nanos) {
        if self.count < u32::MAX {
            self.count += 1;
            self.cells[cell(length)] += 1;
        }
    }

    /// The lower end of the cell that contains the quantile.
    fn quantile(&self, share: f64) -> Nanos {
        let rank = (f64::from(self.count) * share).ceil().max(1.0) as u64;
        let mut sum = 0;
        let place = self.cells.iter().position(|cell| {
            sum += u64::from(*cell);
            sum >= rank
        });
        Nanos::new(place.map_or(0, lower_end))
    }
}

fn cell(length: Nanos) -> usize {
    let length = length.get().max(8);
    let octave = length.ilog2() as usize;
    let eighth = (length >> (octave - 3)) as usize & 7;
    ((octave - 3) * 8 + eighth).min(CELLS - 1)
}

const fn lower_end(cell: usize) -> i64 {
    let (octave, eighth) = (cell / 8, cell % 8);
    (8 + eighth as i64) << octave
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_units::CpuId;
    use proptest::prelude::*;

    fn row(kind: Kind, start: i64, self_time: i64) -> Activity {
        let (source, detail) = (Label::EMPTY, Label::EMPTY);
        let (start, self_time) = (Nanos::new(start), Nanos::new(self_time));
        Activity { cpu: CpuId::new(0), detour: 0, start, self_time, kind, source, detail }
    }

    /// A host that has seen a hundred of each kind take 10 to 12 us.
    fn experienced() -> Host {
        let mut host = Host::new(&mut Labels::new());
        for kind in [Kind::Irq, Kind::Edge, Kind::Task] {
            for n in 0..100 {
                assert_eq!(host.take_out(&mut vec![row(kind, 0, 10_000 + 20 * n)], |row| row.source), 0);
            }
        }
        host
    }

    #[test]
    fn what_takes_far_longer_than_its_like_keeps_the_usual() {
        let mut host = experienced();
        let mut rows = vec![row(Kind::Irq, 1_000, 4_000_000), row(Kind::Edge, 4_001_000, 700)];
        assert_eq!(host.take_out(&mut rows, |row| row.source), 1);
        let usual = rows[0].self_time.get();
        assert!((9_000..=11_000).contains(&usual), "{usual}");
        assert_eq!(
            (rows[1].kind, rows[1].start.get(), rows[1].self_time.get()),
            (Kind::Unseen, 1_000 + usual, 4_000_000 - usual)
        );
        assert_eq!((rows.len(), rows[2].kind), (3, Kind::Edge));
    }

    #[test]
    fn what_may_be_its_own_stays() {
        // A thread, one not much longer, one with an activity inside, and one of a kind never seen.
        for (kind, length, next) in [
            (Kind::Task, 4_000_000, 5_000_000),
            (Kind::Irq, 99_000, 5_000_000),
            (Kind::Irq, 4_000_000, 2_000),
            (Kind::Nmi, 4_000_000, 5_000_000),
        ] {
            let mut rows = vec![row(kind, 1_000, length), row(Kind::Softirq, next, 500)];
            assert_eq!(experienced().take_out(&mut rows, |row| row.source), 0, "{kind} of {length} ns");
            assert_eq!((rows.len(), rows[0].self_time.get()), (2, length));
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_right_to_an_eighth(mut lengths in prop::collection::vec(8_i64..1 << 36, 1..200), share in 0.01_f64..1.0) {
            let mut cells = Lengths::default();
            lengths.iter().for_each(|length| cells.add(Nanos::new(*length)));
            lengths.sort_unstable();
            let rank = (lengths.len() as f64 * share).ceil() as usize;
            let exact: i64 = lengths[rank.max(1) - 1];
            let found = cells.quantile(share).get();
            prop_assert!(found <= exact && exact - found <= found / 8, "{found} for {exact}");
        }
    }
}
