//! Is the acquisition loop as sharp as possible? Compared with a loop that only reads the counter, and with other loop meters if the
//! variables `HICCUPS` and `OSJITTER` name their programs.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::figures::Repetitions;
use crate::programs;
use becalm_linux::clock::{self, Counter, Native};
use becalm_linux::sched;
use becalm_measure::StepProfile;
use becalm_measure::loops::acquire::{Lengths, acquire};
use becalm_measure::loops::ring::Ring;
use becalm_units::{CpuId, Nanos, TickRate, Ticks};

/// The length of each side's turn: most turns contain no tick.
const TURN: Nanos = Nanos::from_micros(500);
/// The number of turns per side.
const TURNS: u64 = 4_000;
/// The number of calibrations of the threshold.
const PROFILES: u64 = 50;
/// The number of runs of each other program and the loop next to it.
const ROUNDS: usize = 5;

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Sharp: the acquisition loop", effort);
    match measure(&mut claims, effort) {
        Ok(()) => claims.end(),
        Err(error) => {
            claims.fail("the acquisition loop", &error);
            ExitCode::FAILURE
        }
    }
}

fn measure(claims: &mut Claims, effort: Effort) -> Result<(), String> {
    // The highest one, because the first ones get most device interrupts.
    let allowed = sched::allowed_cpus().map_err(|error| error.to_string())?;
    let cpu = allowed.iter().last().ok_or("there is no CPU to run on")?;
    sched::pin_current_thread(cpu).map_err(|error| error.to_string())?;
    let rate = clock::calibrate::<Native>(Nanos::from_millis(200)).map_err(|error| error.to_string())?.rate;
    let bench = Bench { effort, cpu, rate, ring: Ring::new(1 << 16).map_err(|error| error.to_string())? };

    let threshold = bench.threshold(claims);
    bench.against_reading(claims, threshold);
    sched::set_affinity(&allowed).map_err(|error| error.to_string())?;
    bench.against_hiccups(claims, threshold);
    bench.against_osjitter(claims, threshold);
    Ok(())
}

struct Bench {
    effort: Effort,
    cpu: CpuId,
    rate: TickRate,
    ring: Ring,
}

impl Bench {
    fn ns(&self, ticks: f64) -> f64 {
        ticks * self.rate.tick_ns()
    }

    /// The automatic threshold: the smallest of several calibrations, because other activity only raises it.
    fn threshold(&self, claims: &mut Claims) -> Ticks {
        let profiles: Vec<StepProfile> =
            (0..self.effort.share(PROFILES)).map(|_| StepProfile::measure::<Native>(self.rate)).collect();
        let thresholds = profiles.iter().map(|profile| self.ns(profile.auto_threshold().get() as f64)).collect();
        let thresholds = Repetitions::new(thresholds);
        claims.at_most(
            &format!("smallest automatic threshold on CPU {}", self.cpu),
            Figure::ns(thresholds.min()),
            150.0,
        );
        claims.remark(&format!("median {:.0}ns, {}", thresholds.median(), thresholds.range("ns")));
        profiles.iter().map(|profile| profile.auto_threshold()).min().unwrap_or(Ticks::new(u64::MAX))
    }

    /// The mean step of the acquisition loop over one turn, in ticks, without the steps kept as detours.
    fn acquire(&self, threshold: Ticks, ticks: u64) -> f64 {
        self.ring.clear();
        let start = Native::read();
        self.ring.set_deadline(Ticks::new(start + ticks));
        let tally = acquire::<Native>(&self.ring, self.cpu, Ticks::new(start), Lengths::new(threshold, self.rate));
        tally.below.get() as f64 / (tally.iterations - tally.kept_steps).max(1) as f64
    }

    fn against_reading(&self, claims: &mut Claims, threshold: Ticks) {
        let ticks = self.rate.ticks_in(TURN).get();
        // As many steps as fill a turn, determined by a first run.
        let trial = 1 << 14;
        let steps = (ticks as f64 / only_read(trial)).max(1.0) as u64;
        let (mut ours, mut reading) = (Vec::new(), Vec::new());
        for _ in 0..self.effort.share(TURNS) {
            ours.push(self.ns(self.acquire(threshold, ticks)));
            reading.push(self.ns(only_read(steps)));
        }
        let (ours, reading) = (Repetitions::new(ours), Repetitions::new(reading));
        let pair = |figure: fn(&Repetitions) -> f64| (Figure::ns(figure(&ours)), Figure::ns(figure(&reading)));
        let (a, b) = pair(Repetitions::median);
        claims.at_most_times("loop's median step, against only reading the counter", a, b, 1.25);
        let (a, b) = pair(Repetitions::middle_mean);
        claims.at_most_times("loop's mean step, against only reading the counter", a, b, 1.25);
        let (a, b) = pair(Repetitions::min);
        claims.state_beside("loop's step in the fastest turn, against only reading", a, b, "");
        claims.remark(&format!("ours {}, other {}", ours.range("ns"), reading.range("ns")));
    }

    /// The loop's mean step in the quieter turns during a round of another program.
    fn step_with_neighbor(&self, threshold: Ticks) -> f64 {
        let ticks = self.rate.ticks_in(TURN).get();
        std::thread::scope(|scope| {
            let measured = scope.spawn(|| {
                sched::pin_current_thread(self.cpu).ok()?;
                let turns = (0..self.effort.share(TURNS).div_ceil(10)).map(|_| self.ns(self.acquire(threshold, ticks)));
                Some(Repetitions::new(turns.collect()).middle_mean())
            });
            measured.join().ok().flatten().unwrap_or(f64::INFINITY)
        })
    }

    /// Compares our mean step with the shortest step reported by the other program: the comparison that favors the other one most.
    fn compare(&self, claims: &mut Claims, name: &str, threshold: Ticks, shortest: impl Fn() -> Result<f64, String>) {
        let what = format!("loop's mean step, against the shortest step of {name}");
        let (mut ours, mut other) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(self.step_with_neighbor(threshold));
            match shortest() {
                Ok(step) => other.push(step),
                Err(why) => return claims.fail(&what, &why),
            }
        }
        let (ours, other) = (Repetitions::new(ours), Repetitions::new(other));
        claims.at_most_times(&what, Figure::ns(ours.median()), Figure::ns(other.min()), 1.0);
        claims.remark(&format!("ours {}, other {}", ours.range("ns"), other.range("ns")));
    }

    fn against_hiccups(&self, claims: &mut Claims, threshold: Ticks) {
        let Some(program) = std::env::var_os("HICCUPS") else {
            return claims.skip("loop's mean step, against hiccups", "set HICCUPS to its program: rigtorp/hiccups");
        };
        self.compare(claims, "hiccups", threshold, || {
            // Its threshold is eight times the shortest difference of two readings at its start.
            let threshold = self.field(&program, &["-r", "1"], "threshold_ns")?;
            Ok(threshold / 8.0)
        });
    }

    fn against_osjitter(&self, claims: &mut Claims, threshold: Ticks) {
        let Some(program) = std::env::var_os("OSJITTER") else {
            return claims.skip("loop's mean step, against osjitter", "set OSJITTER to its program: gsauthof/osjitter");
        };
        let khz = format!("{:.0}", self.rate.hz() / 1e3);
        let cpu = self.cpu.to_string();
        let arguments = ["-t", "1", "--cpu", &cpu, "--khz", &khz];
        self.compare(claims, "osjitter", threshold, || self.field(&program, &arguments, "loop_ns"));
    }

    /// Runs a program that prints a table of one row, and returns one of its columns.
    fn field(&self, program: &std::ffi::OsStr, arguments: &[&str], column: &str) -> Result<f64, String> {
        let shown = Path::new(program).display();
        let output = programs::output(Command::new(program).args(arguments), self.cpu)
            .map_err(|error| format!("cannot run {shown}: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        field(&text, column).ok_or_else(|| format!("{shown} printed no column {column}"))
    }
}

/// The mean step of a loop that only reads the counter, in ticks.
#[inline(never)]
fn only_read(steps: u64) -> f64 {
    let first = Native::read();
    let mut last = first;
    for _ in 0..black_box(steps) {
        last = Native::read();
    }
    (last - first) as f64 / steps as f64
}

/// The value in the last line below a column title.
fn field(table: &str, title: &str) -> Option<f64> {
    let mut lines = table.lines().skip_while(|line| !line.split_whitespace().any(|word| word == title));
    let column = lines.next()?.split_whitespace().position(|word| word == title)?;
    lines.last()?.split_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_column_is_found_by_its_title() {
        let table = "a remark\n cpu threshold_ns hiccups\n1 160 430\n";
        assert_eq!(field(table, "threshold_ns"), Some(160.0));
        assert_eq!(field(table, "max_ns"), None);
        assert_eq!(field("cpu loop_ns\n", "loop_ns"), None);
    }
}
