//! Detours with their activities.

use std::collections::BTreeMap;

use becalm_account::{is_becalms, noise};
use becalm_bundle::{ActivityBatch, ActivityBatches, Bundle, BundleError, DetourBatch};
use becalm_model::node::{NodeDoc, Rung};
use becalm_model::{Activity, Detour, Labels};
use becalm_units::{CpuId, Nanos};

/// The number of names kept before they are forgotten: a long run has no end of details.
const NAMES: usize = 1 << 16;

/// A detour, as it is given to callers that want all of them.
#[derive(Clone, Copy, Debug)]
pub struct AttributedDetour<'a> {
    /// The detour as it was stored, including becalm's own time.
    pub detour: Detour,
    /// Its number on its CPU, in order of time over the whole run, from 0.
    pub number: u64,
    /// Its activities in order of their start; none if the kernel was not traced.
    pub activities: &'a [Activity],
    /// Their names. Handles are valid for this detour only.
    pub labels: &'a Labels,
}

impl AttributedDetour<'_> {
    /// The time of becalm's own threads in it, with everything charged to them: it is no noise of the machine.
    pub fn own_time(&self) -> Nanos {
        let owned = |activity: &&Activity| is_becalms(activity.kind, self.labels.text(activity.detail));
        let own = self.activities.iter().filter(owned);
        own.fold(Nanos::ZERO, |sum, activity| sum.saturating_add(activity.self_time))
    }

    /// The time without becalm's own; `None` if all of it was becalm's, because then it does not count.
    pub fn noise(&self) -> Option<Nanos> {
        noise(self.detour.duration.get(), self.own_time().get()).map(Nanos::new)
    }
}

/// Gives the detours of the document's CPUs in stored order: by segment, then by CPU, then by time. Returns the number of activities that
/// belong to no detour. These are left out, and so are those of a CPU whose rows are in another order among the CPUs than its detours.
///
/// In memory are 65,536 rows of each table, one detour's activities, and 65,536 names or those of one detour.
pub fn attributed_detours<E: From<BundleError>>(
    bundle: &Bundle,
    doc: &NodeDoc,
    show: &mut dyn FnMut(&AttributedDetour<'_>) -> Result<(), E>,
) -> Result<u64, E> {
    let traced = doc.rung == Rung::Tracepoints;
    let mut activities = if traced { Some(Activities::new(bundle.activities(&doc.node)?)) } else { None };
    let none = Labels::new();
    let mut numbers: BTreeMap<i32, u64> = BTreeMap::new();
    for batch in bundle.detours(&doc.node)? {
        let batch = batch?;
        for row in 0..batch.len() {
            let Some(detour) = detour(&batch, row) else { continue };
            let next = numbers.entry(batch.cpus()[row]).or_default();
            let number = *next;
            *next += 1;
            let place = (batch.segment(), batch.cpus()[row], number);
            if let Some(activities) = &mut activities {
                activities.pass_to(place)?;
            }
            if doc.cpus.binary_search_by_key(&detour.cpu, |listed| listed.cpu).is_err() {
                if let Some(activities) = &mut activities {
                    activities.skip(place)?;
                }
                continue;
            }
            let (rows, labels) = match &mut activities {
                Some(activities) => activities.take(place)?,
                None => (&[][..], &none),
            };
            show(&AttributedDetour { detour, number, activities: rows, labels })?;
        }
    }
    match activities {
        Some(activities) => Ok(activities.left_over()?),
        None => Ok(0),
    }
}

fn detour(batch: &DetourBatch, row: usize) -> Option<Detour> {
    Some(Detour {
        cpu: CpuId::new(u32::try_from(batch.cpus()[row]).ok()?),
        start: Nanos::new(batch.starts()[row]),
        duration: Nanos::new(batch.durations()[row]),
        incomplete: batch.incomplete(row),
    })
}

/// Segment, CPU and number of a detour.
type Place = (u32, i32, u64);

/// The activities of a node, detour by detour.
struct Activities {
    batches: ActivityBatches,
    batch: Option<ActivityBatch>,
    /// The next row of the batch.
    row: usize,
    /// The CPUs of the segment whose rows have been passed: each CPU comes once per segment.
    passed: Vec<i32>,
    segment: u32,
    /// The number of rows that belong to no detour.
    strays: u64,
    rows: Vec<Activity>,
    labels: Labels,
}

impl Activities {
    fn new(batches: ActivityBatches) -> Self {
        let (rows, passed) = (Vec::new(), Vec::new());
        Self { batches, batch: None, row: 0, passed, segment: 0, strays: 0, rows, labels: Labels::new() }
    }

    /// The place of the next row; `None` at the end.
    fn next_place(&mut self) -> Result<Option<Place>, BundleError> {
        loop {
            if let Some(batch) = &self.batch
                && self.row < batch.len()
            {
                let number = u64::try_from(batch.detours()[self.row]).unwrap_or(0);
                return Ok(Some((batch.segment(), batch.cpus()[self.row], number)));
            }
            self.batch = self.batches.next().transpose()?;
            self.row = 0;
            if self.batch.is_none() {
                return Ok(None);
            }
        }
    }

    /// Leaves out rows before the detour: those of an earlier segment, of a CPU without detours, or with a lower number.
    fn pass_to(&mut self, place: Place) -> Result<(), BundleError> {
        let (segment, cpu, number) = place;
        if self.segment != segment {
            self.segment = segment;
            self.passed.clear();
        }
        while let Some(next) = self.next_place()? {
            let is_before = next.0 < segment || (next.0 == segment && next.1 == cpu && next.2 < number);
            // Rows of another CPU are still to come, unless its detours were shown already.
            let is_over = next.0 == segment && next.1 != cpu && self.passed.contains(&next.1);
            if !is_before && !is_over {
                break;
            }
            self.row += 1;
            self.strays += 1;
        }
        if self.passed.last() != Some(&cpu) {
            self.passed.push(cpu);
        }
        Ok(())
    }

    /// Moves past the rows of the detour.
    fn skip(&mut self, place: Place) -> Result<(), BundleError> {
        while self.next_place()? == Some(place) {
            self.row += 1;
        }
        Ok(())
    }

    /// The number of rows that belong to no detour, once no further detour comes.
    fn left_over(mut self) -> Result<u64, BundleError> {
        while self.next_place()?.is_some() {
            self.row += 1;
            self.strays += 1;
        }
        Ok(self.strays)
    }

    /// Takes the rows of the detour and moves past them.
    fn take(&mut self, place: Place) -> Result<(&[Activity], &Labels), BundleError> {
        self.rows.clear();
        if self.labels.len() > NAMES {
            self.labels = Labels::new();
        }
        while self.next_place()? == Some(place) {
            let Some(batch) = &self.batch else { break };
            let row = self.row;
            self.rows.push(Activity {
                cpu: CpuId::new(place.1.unsigned_abs()),
                detour: place.2,
                start: Nanos::new(batch.starts()[row]),
                self_time: Nanos::new(batch.self_times()[row]),
                kind: batch.kind(row),
                source: self.labels.intern(batch.source(row)),
                detail: self.labels.intern(batch.detail(row)),
            });
            self.row += 1;
        }
        Ok((&self.rows, &self.labels))
    }
}
