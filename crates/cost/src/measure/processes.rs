//! Joins the measurements of several processes into one.

use becalm_stats::median_low;

use crate::documents::{
    BY_SYSCALL, ClockCosts, ClockWayDoc, CostSamples, Costs, CrossDoc, InstrumentDoc, ProbeCosts, ProbeDoc, SeriesDoc,
};

/// The measurement of the processes so far.
#[derive(Clone, PartialEq, Debug)]
pub struct JoinedCosts {
    /// Number of processes in it.
    processes: usize,
    /// The instrument of each process.
    instruments: Vec<InstrumentDoc>,
    costs: Costs,
    samples: CostSamples,
}

impl JoinedCosts {
    /// A measurement without processes; `nothing` determines its kind.
    pub const fn new(nothing: Costs) -> Self {
        Self { processes: 0, instruments: Vec::new(), costs: nothing, samples: CostSamples::new() }
    }

    /// Adds the measurement of another process. Fails if its kind differs because another program made it.
    pub fn add(&mut self, part: Costs, mut samples: CostSamples) -> Result<(), String> {
        let before = self.processes;
        match (&mut self.costs, part) {
            (Costs::Trap(all), Costs::Trap(part)) | (Costs::Detours(all), Costs::Detours(part)) => {
                self.instruments.extend(part.instrument.clone());
                add_probes(all, &mut self.samples, part, &mut samples, before);
                all.instrument = joined_instrument(&self.instruments);
            }
            (Costs::Clock(all), Costs::Clock(part)) => {
                self.instruments.extend(part.instrument.clone());
                add_clocks(all, &mut self.samples, part, &mut samples, before);
                all.instrument = joined_instrument(&self.instruments);
            }
            (all, part) => return Err(format!("it measured {} instead of {}", part.command(), all.command())),
        }
        self.processes += 1;
        Ok(())
    }

    /// The measurement of all processes so far: the document, and the samples.
    pub fn get(&self) -> (Costs, CostSamples) {
        (self.costs.clone(), self.samples.clone())
    }

    /// The same, after the last process.
    #[must_use]
    pub fn into_parts(self) -> (Costs, CostSamples) {
        (self.costs, self.samples)
    }
}

/// The median rate and the median overhead of readings; the largest error. Reasons for missing counts are those of the first.
fn joined_instrument(each: &[InstrumentDoc]) -> Option<InstrumentDoc> {
    let mut rates: Vec<f64> = each.iter().map(|instrument| instrument.rate_hz).collect();
    rates.sort_by(f64::total_cmp);
    let mut overheads: Vec<i64> = each.iter().map(|instrument| instrument.overhead_ps).collect();
    Some(InstrumentDoc {
        rate_hz: rates[rates.len().checked_sub(1)? / 2],
        rate_error_ratio: each.iter().map(|instrument| instrument.rate_error_ratio).fold(0.0, f64::max),
        overhead_ps: median_low(&mut overheads)?,
        ..each.first()?.clone()
    })
}

/// Appends the series of a process after those of `before` others. If it is missing in this process, or in all before it, it has no rounds
/// of those.
fn add_series(all: &mut Option<SeriesDoc>, part: Option<SeriesDoc>, rounds: usize, before: usize) {
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    match (all.as_mut(), part) {
        (None, None) => {}
        (None, Some(mut part)) => {
            part.rounds_by_process = vec![0; before];
            part.rounds_by_process.push(rounds);
            *all = Some(part);
        }
        (Some(all), None) => all.rounds_by_process.push(0),
        (Some(all), Some(part)) => {
            all.rounds_by_process.push(rounds);
            all.samples += part.samples;
            all.interrupts = all.interrupts.zip(part.interrupts).map(|(all, part)| all.saturating_add(part));
            all.preempted = all.preempted.saturating_add(part.preempted);
            all.counted = all.counted.saturating_add(part.counted);
            for count in part.counts {
                let same = |known: &&mut becalm_model::event_count::EventCount| {
                    (&known.event, known.space) == (&count.event, count.space)
                };
                match all.counts.iter_mut().find(same) {
                    Some(known) => known.add(&count),
                    None => all.counts.push(count),
                }
            }
        }
    }
}

/// Inserts a row of a process into those of others, after its predecessor in its own process; returns its index.
fn place_of<T>(rows: &mut Vec<T>, last: Option<usize>, name: impl Fn(&T) -> bool, row: impl FnOnce() -> T) -> usize {
    match rows.iter().position(name) {
        Some(at) => at,
        None => {
            let at = last.map_or(0, |last| last + 1);
            rows.insert(at, row());
            at
        }
    }
}

fn add_probes(
    all: &mut ProbeCosts,
    samples: &mut CostSamples,
    part: ProbeCosts,
    part_samples: &mut CostSamples,
    before: usize,
) {
    let mut last = None;
    let mut seen = Vec::with_capacity(part.probes.len());
    for mut probe in part.probes {
        let unknown = || ProbeDoc { series: None, ..probe.clone() };
        let at = place_of(&mut all.probes, last, |known| known.name == probe.name, unknown);
        last = Some(at);
        seen.push(probe.name.clone());
        let known = &mut all.probes[at];
        let mut rounds = part_samples.remove(&probe.name).unwrap_or_default();
        if probe.series.is_some() && known.series.is_some() && probe.what != known.what {
            // The row is the most frequent device interrupt: in this process another one.
            probe.not_measured = Some(format!("another one came most often: {}", probe.what));
            (probe.series, rounds) = (None, Vec::new());
        }
        if probe.series.is_some() && known.series.is_none() {
            (known.what, known.method) = (probe.what, probe.method);
            known.not_in_all = known.not_measured.take();
        } else if probe.series.is_none() && known.series.is_some() && known.not_in_all.is_none() {
            known.not_in_all = probe.not_measured;
        } else if known.series.is_none() {
            known.not_measured = known.not_measured.take().or(probe.not_measured);
        }
        add_series(&mut known.series, probe.series, rounds.len(), before);
        if !rounds.is_empty() {
            samples.entry(probe.name).or_default().append(&mut rounds);
        }
    }
    // A process that a signal ended lacks these.
    for probe in all.probes.iter_mut().filter(|probe| !seen.contains(&probe.name)) {
        add_series(&mut probe.series, None, 0, before);
    }
}

fn add_clocks(
    all: &mut ClockCosts,
    samples: &mut CostSamples,
    part: ClockCosts,
    part_samples: &mut CostSamples,
    before: usize,
) {
    if before == 0 {
        all.not_counted = part.not_counted;
    }
    // The counter's steps do not depend on the process.
    all.successive = all.successive.take().or(part.successive);
    let mut last = None;
    let mut seen = Vec::with_capacity(part.clocks.len());
    for way in part.clocks {
        let mut is_new = false;
        let at = place_of(
            &mut all.clocks,
            last,
            |known| known.name == way.name,
            || {
                is_new = true;
                way.clone()
            },
        );
        last = Some(at);
        seen.push(way.name.clone());
        let by_syscall = format!("{}{BY_SYSCALL}", way.name);
        let mut rounds = part_samples.remove(&way.name).unwrap_or_default();
        let mut raw_rounds = part_samples.remove(&by_syscall).unwrap_or_default();
        let known = &mut all.clocks[at];
        let mut series = (!is_new).then(|| known.series.clone());
        let mut raw = known.by_syscall.take().filter(|_| !is_new);
        add_series(&mut series, Some(way.series.clone()), rounds.len(), before);
        add_series(&mut raw, way.by_syscall.clone(), raw_rounds.len(), before);
        if !is_new {
            add_readings(known, &way);
        }
        known.series = series.expect("a series was added");
        known.by_syscall = raw;
        samples.entry(way.name).or_default().append(&mut rounds);
        if !raw_rounds.is_empty() {
            samples.entry(by_syscall).or_default().append(&mut raw_rounds);
        }
    }
    for way in all.clocks.iter_mut().filter(|way| !seen.contains(&way.name)) {
        way.series.rounds_by_process.push(0);
        add_series(&mut way.by_syscall, None, 0, before);
    }
}

/// Joins a clock's steps with those of another process. The median step is that of the first process with moving clock.
fn add_readings(all: &mut ClockWayDoc, part: &ClockWayDoc) {
    all.readings = all.readings.saturating_add(part.readings);
    all.backwards = all.backwards.saturating_add(part.backwards);
    all.smallest_step_ps = all.smallest_step_ps.into_iter().chain(part.smallest_step_ps).min();
    all.median_step_ps = all.median_step_ps.or(part.median_step_ps);
    all.cross = match (all.cross, part.cross) {
        (Some(all), Some(part)) => Some(CrossDoc {
            compared: all.compared.saturating_add(part.compared),
            backwards: all.backwards.saturating_add(part.backwards),
            largest_ps: all.largest_ps.max(part.largest_ps),
        }),
        (all, part) => all.or(part),
    };
}

#[cfg(test)]
mod tests {
    use crate::documents::{Probe, ProbeSamples, ReadBy};

    use super::*;

    fn instrument(overhead_ps: i64) -> InstrumentDoc {
        let rate_hz = 1e9 + overhead_ps as f64;
        InstrumentDoc {
            counter: "tsc".to_owned(),
            rate_hz,
            rate_error_ratio: 1e-9,
            overhead_ps,
            not_counted: Vec::new(),
        }
    }

    /// A probe's name, what it is, and its rounds, or why there are none.
    type ProbeOutcome<'a> = (&'a str, &'a str, Result<Vec<Vec<i64>>, &'a str>);

    /// The measurement of a process: of each probe its rounds, or the reason if there are none.
    fn traps(overhead_ps: i64, probes: &[ProbeOutcome<'_>]) -> (Costs, CostSamples) {
        let (mut costs, mut samples) = (ProbeCosts::default(), CostSamples::new());
        costs.instrument = Some(instrument(overhead_ps));
        let probe = |(name, what, outcome): &ProbeOutcome<'_>| {
            let outcome = outcome.clone().map(|rounds| ProbeSamples::new(1, rounds)).map_err(str::to_owned);
            Probe::new(name, what, "by hand", outcome)
        };
        costs.add(probes.iter().map(probe), &mut samples);
        (Costs::Trap(costs), samples)
    }

    fn join(parts: impl IntoIterator<Item = (Costs, CostSamples)>, nothing: Costs) -> (Costs, CostSamples) {
        let mut joined = JoinedCosts::new(nothing);
        parts.into_iter().for_each(|(costs, samples)| joined.add(costs, samples).unwrap());
        assert_eq!(joined.get(), joined.clone().into_parts());
        joined.into_parts()
    }

    #[test]
    fn rounds_stand_in_the_order_of_processes_and_keep_which_took_them() {
        let parts = [
            traps(30, &[("a", "a", Ok(vec![vec![1], vec![2, 3]])), ("b", "b", Err("no"))]),
            traps(10, &[("a", "a", Err("none of them came")), ("b", "b", Ok(vec![vec![7]]))]),
            // A signal ended this one.
            traps(20, &[("a", "a", Ok(vec![vec![4]]))]),
        ];
        let (Costs::Trap(costs), samples) = join(parts, Costs::Trap(ProbeCosts::default())) else { panic!() };
        assert_eq!(samples["a"], [vec![1], vec![2, 3], vec![4]]);
        assert_eq!(samples["b"], [vec![7]]);
        let [a, b] = costs.probes.as_slice() else { panic!("{costs:?}") };
        let rounds = |probe: &ProbeDoc| probe.series.clone().unwrap().rounds_by_process;
        assert_eq!((rounds(a), rounds(b)), (vec![2, 0, 1], vec![0, 1, 0]));
        assert_eq!((a.series.as_ref().unwrap().samples, &a.not_measured), (4, &None));
        assert_eq!((a.not_in_all.as_deref(), b.not_in_all.as_deref()), (Some("none of them came"), Some("no")));
        let timer = costs.instrument.unwrap();
        assert_eq!((timer.overhead_ps, timer.rate_hz), (20, 1e9 + 20.0));
    }

    #[test]
    fn what_no_process_measured_has_the_first_reason_and_new_rows_stand_where_they_came() {
        let parts = [
            traps(1, &[("a", "a", Ok(vec![vec![1]])), ("swap", "swap", Err("no swap")), ("c", "c", Ok(vec![vec![2]]))]),
            traps(
                1,
                &[("a", "a", Ok(vec![vec![1]])), ("new", "new", Ok(vec![vec![9]])), ("swap", "swap", Err("none"))],
            ),
        ];
        let (Costs::Trap(costs), _) = join(parts, Costs::Trap(ProbeCosts::default())) else { panic!() };
        let names: Vec<&str> = costs.probes.iter().map(|probe| probe.name.as_str()).collect();
        assert_eq!(names, ["a", "new", "swap", "c"]);
        let swap = &costs.probes[2];
        assert_eq!((&swap.series, swap.not_measured.as_deref(), &swap.not_in_all), (&None, Some("no swap"), &None));
        assert_eq!(costs.probes[1].series.as_ref().unwrap().rounds_by_process, [0, 1]);
        assert_eq!(costs.probes[3].series.as_ref().unwrap().rounds_by_process, [1, 0]);
    }

    /// Interrupts of two devices are not one cost, though each came most often in a process.
    #[test]
    fn only_the_same_is_joined() {
        let parts = [
            traps(1, &[("device", "interrupt", Err("none came"))]),
            traps(1, &[("device", "interrupt: eth0", Ok(vec![vec![5]]))]),
            traps(1, &[("device", "interrupt: nvme", Ok(vec![vec![9]]))]),
        ];
        let (Costs::Trap(costs), samples) = join(parts, Costs::Trap(ProbeCosts::default())) else { panic!() };
        assert_eq!(samples["device"], [vec![5]]);
        let [device] = costs.probes.as_slice() else { panic!("{costs:?}") };
        assert_eq!((device.what.as_str(), device.not_in_all.as_deref()), ("interrupt: eth0", Some("none came")));
        assert_eq!(device.series.as_ref().unwrap().rounds_by_process, [0, 1, 0]);
        let mut clocks = JoinedCosts::new(Costs::Clock(ClockCosts::default()));
        let (traps, samples) = traps(1, &[]);
        assert_eq!(clocks.add(traps, samples), Err("it measured trap instead of clock".to_owned()));
    }

    #[test]
    fn clocks_are_joined_with_their_steps() {
        let part = |ps: i64, step: Option<i64>, raw: bool, names: &[&str]| {
            let series = || ProbeSamples::new(64, vec![vec![ps]]).series;
            let way = |name: &&str| ClockWayDoc {
                name: (*name).to_owned(),
                path: ReadBy::Vdso,
                series: series(),
                by_syscall: raw.then(series),
                stated_ns: Some(1),
                readings: 10,
                smallest_step_ps: step,
                median_step_ps: step,
                backwards: 1,
                cross: Some(CrossDoc { compared: 5, backwards: 1, largest_ps: ps }),
            };
            let samples = names.iter().flat_map(|name| {
                let raw = raw.then(|| (format!("{name}{BY_SYSCALL}"), vec![vec![ps * 9]]));
                [((*name).to_owned(), vec![vec![ps]])].into_iter().chain(raw)
            });
            let costs = ClockCosts {
                instrument: Some(instrument(ps)),
                not_counted: None,
                clocks: names.iter().map(way).collect(),
                successive: None,
            };
            (Costs::Clock(costs), samples.collect())
        };
        let parts =
            [part(20, None, true, &["x", "y"]), part(30, Some(7), true, &["x", "y"]), part(25, Some(3), true, &["x"])];
        let (Costs::Clock(costs), samples) = join(parts, Costs::Clock(ClockCosts::default())) else { panic!() };
        assert_eq!(samples["x"], [vec![20], vec![30], vec![25]]);
        assert_eq!(samples["y:syscall"], [vec![180], vec![270]]);
        let [x, y] = costs.clocks.as_slice() else { panic!("{costs:?}") };
        assert_eq!((x.series.samples, &x.series.rounds_by_process[..]), (3, &[1, 1, 1][..]));
        assert_eq!(y.series.rounds_by_process, [1, 1, 0]);
        assert_eq!(y.by_syscall.as_ref().unwrap().rounds_by_process, [1, 1, 0]);
        assert_eq!((x.readings, x.backwards, x.smallest_step_ps, x.median_step_ps), (30, 3, Some(3), Some(7)));
        assert_eq!(x.cross, Some(CrossDoc { compared: 15, backwards: 3, largest_ps: 30 }));
    }
}
