//! The cost of a tick: the figures of Tsafrir 2007 from its published tables, and known costs found again.

use becalm_cost::analysis::tick::{
    Analysis, CampaignAnalysis, CampaignError, Direct, Processor, RatePoint, RateSeries, Rounds, TableFile, read_tables,
};
use becalm_cost::documents::tick::CellResult;
use becalm_fixtures::costs::campaign;
use proptest::prelude::*;

const SORT: TableFile<'_> = TableFile { name: "sort", text: include_str!("../../research/data/tsafrir2007_sort.csv") };
const DIRECT: TableFile<'_> =
    TableFile { name: "direct", text: include_str!("../../research/data/tsafrir2007_direct.csv") };

fn published() -> Vec<Analysis> {
    read_tables(SORT, DIRECT, None).unwrap().iter().map(Analysis::new).collect()
}

/// Table 2 as printed in the paper, in percent per 1,000 ticks.
const TABLE_2: &str = include_str!("../../research/data/tsafrir2007_table2.csv");

/// A line of table 2: trap, handler, indirect and sum with the interval timer, handler and sum with the time stamp counter.
fn printed() -> Vec<(&'static str, [f64; 6])> {
    let line = |line: &'static str| {
        let (name, numbers) = line.split_once(',').unwrap();
        let numbers: Vec<f64> = numbers.split(',').map(|number| number.parse().unwrap()).collect();
        (name, numbers.try_into().unwrap())
    };
    TABLE_2.lines().skip(1).map(line).collect()
}

/// Table 2 with both clocks. Tolerances, in points, and why:
/// - Trap and handlers are cycles by the clock's frequency, which are printed whole: half of the last digit, 0.005; 0.008 for the
///   handler with the time stamp counter, of which PPro-200 printed 200 MHz and had 198 by its own microseconds.
/// - The indirect cost, plain mean: 0.03, since times are printed to 0.01 ms (see the next test); but for P-90.
/// - The same, trimmed by a tenth at either end: 0.05 for all. The sums likewise, and the other rounding errors, 0.01.
#[test]
fn table_2_with_both_clocks() {
    let (found, printed) = (published(), printed());
    assert_eq!(found.len(), 6);
    for (found, (name, [trap, pit, indirect, sum_pit, tsc, sum_tsc])) in found.iter().zip(printed) {
        assert_eq!(found.name, name);
        assert_eq!(found.pairs.len(), 40, "{name}");
        let near = |what: &str, found: f64, printed: f64, by: f64| {
            assert!((found - printed).abs() <= by + 1e-9, "{name}: {what} {found}, not {printed}");
        };
        let [with_pit, with_tsc] = found.modes().try_into().unwrap();
        assert_eq!([with_pit.mode.as_str(), with_tsc.mode.as_str()], ["pit", "tsc"]);
        near("trap", with_pit.trap_percent, trap, 0.005);
        near("handler with the interval timer", with_pit.handler_percent, pit, 0.005);
        near("handler with the counter", with_tsc.handler_percent, tsc, 0.008);
        // The indirect cost is one for both.
        assert_eq!(with_pit.indirect_percent, with_tsc.indirect_percent);
        if name == "P-90" {
            // Three of its times at 1,000 Hz are below those at 100 Hz: the four pairs of both rates have costs of -3.4 to 0.3.
            near("indirect", found.indirect_percent, 0.39, 0.005);
        } else {
            near("indirect", found.indirect_percent, indirect, 0.031);
            near("sum with the interval timer", with_pit.sum_percent(), sum_pit, 0.04);
            near("sum with the counter", with_tsc.sum_percent(), sum_tsc, 0.04);
        }
        near("indirect, trimmed", found.indirect_trimmed_percent, indirect, 0.05);
        near("trimmed sum with the interval timer", with_pit.sum_trimmed_percent(), sum_pit, 0.06);
        near("trimmed sum with the counter", with_tsc.sum_trimmed_percent(), sum_tsc, 0.06);
    }
    // What is printed with the published precision, digit by digit.
    let digits = |analysis: &Analysis| {
        let sums = analysis.modes();
        let trimmed = analysis.indirect_trimmed_percent;
        let [pit, tsc] = [0, 1].map(|at| (sums[at].handler_percent, sums[at].sum_trimmed_percent()));
        format!("{trimmed:.2}: {:.2} {:.2}, {:.2} {:.2}", pit.0, pit.1, tsc.0, tsc.1)
    };
    let digits: Vec<String> = found.iter().map(digits).collect();
    let expected = [
        "0.59: 0.55 1.31, 0.90 1.66",
        "0.58: 0.23 1.00, 0.83 1.60",
        "0.49: 0.09 0.67, 0.67 1.25",
        "0.41: 0.05 0.51, 0.60 1.06",
        "0.36: 0.04 0.43, 0.56 0.95",
        "0.46: 0.02 0.56, 0.66 1.20",
    ];
    assert_eq!(digits, expected);
}

/// Figure 5: the parts are stacked over the rate, and are straight lines.
#[test]
fn contributions_grow_with_the_rate() {
    let found = published();
    let pentium = found.iter().find(|found| found.name == "PIII-664").unwrap();
    assert_eq!(pentium.rates_hz(), [100.0, 1_000.0, 5_000.0, 10_000.0, 20_000.0]);
    for mode in pentium.modes() {
        let at = mode.contribution(10_000.0);
        assert!((at.total_ratio() - mode.sum_percent() / 10.0).abs() < 1e-12, "{at:?}");
        assert!((at.trap_ratio - 0.0052).abs() < 1e-4 && (at.indirect_ratio - 0.0415).abs() < 1e-3, "{at:?}");
        assert!(mode.contribution(0.0).total_ratio() == 0.0);
    }
    // With the time stamp counter the handler is more than the indirect cost, with the interval timer a tenth of it.
    let [pit, tsc] = [0, 1].map(|mode| pentium.modes()[mode].contribution(1_000.0));
    assert!(tsc.handler_ratio > tsc.indirect_ratio && pit.handler_ratio < 0.2 * pit.indirect_ratio);
}

/// By the observations the loss grows with the rate for every number of processes, and is that of the model.
#[test]
fn the_loss_is_that_of_the_model() {
    for found in published() {
        for rows in found.comparisons.chunk_by(|a, b| a.processes == b.processes) {
            let [first, last] = [rows[0], rows[4]].map(|row| row.overhead_ratio().unwrap());
            assert!(first < last, "{}: {first} and {last}", found.name);
            let model = found.overhead_ratio(rows[4].rate_hz);
            assert!((last - model).abs() < 0.05, "{}: {last} and {model}", found.name);
        }
    }
}

/// The means that times within the rounding of the printed ones (5 us to both sides) can give: the indirect cost at its
/// least and at its most. It rises or falls with each time, nearly in a straight line, so that the signs of the slopes tell
/// which end of each time leads there.
fn within_rounding(processor: &Processor) -> (f64, f64) {
    let moved = |by: &dyn Fn(usize, usize) -> f64| {
        let series = processor.series.iter().enumerate().map(|(at, series)| {
            let points = series.points().iter().enumerate();
            let points = points.map(|(n, point)| RatePoint { work_ns: point.work_ns + by(at, n), ..*point });
            RateSeries::new(series.processes(), points.collect()).unwrap()
        });
        Analysis::new(&Processor { series: series.collect(), ..processor.clone() }).indirect_percent
    };
    let printed = moved(&|_, _| 0.0);
    let slope = |at, n| (moved(&|a, m| if (a, m) == (at, n) { 1.0 } else { 0.0 }) - printed).signum();
    let end = |sign: f64| moved(&|at, n| sign * 5_000.0 * slope(at, n));
    (end(-1.0), end(1.0))
}

/// Why PIV-2.2 has an indirect cost of 0.48 here and 0.51 in print: no times that round to the printed ones
/// give 0.51. Its other percentages follow from the cycles.
/// Those of P-90 give 0.39 and never the printed 0.60, which its median, 0.59, and its trimmed mean are close to.
#[test]
fn what_the_rounding_of_the_tables_explains_and_what_it_does_not() {
    let printed = [
        ("P-90", 0.60, false),
        ("PPro-200", 0.56, true),
        ("PII-350", 0.49, false),
        ("PIII-664", 0.41, true),
        ("PIII-1.133", 0.35, true),
        ("PIV-2.2", 0.51, false),
    ];
    for (processor, (name, indirect, follows)) in read_tables(SORT, DIRECT, None).unwrap().iter().zip(printed) {
        assert_eq!(processor.name, name);
        let (least, most) = within_rounding(processor);
        assert!(least < most && most - least < 0.04, "{name}: {least} to {most}");
        assert_eq!((least - 0.005..most + 0.005).contains(&indirect), follows, "{name}: {least} to {most}");
        // The plain mean is nearer than the median for three of them. Of the others, one has close rates that are the wrong way round.
        let found = Analysis::new(processor);
        let mut each: Vec<f64> = found.pairs.iter().map(|pair| pair.indirect_percent()).collect();
        each.sort_by(f64::total_cmp);
        let median = f64::midpoint(each[19], each[20]);
        let nearer = (median - indirect).abs() > (found.indirect_percent - indirect).abs();
        assert_eq!(nearer, ["PPro-200", "PIII-664", "PIV-2.2"].contains(&name), "{name}: median {median}");
    }
}

#[test]
fn the_linear_model_explains_the_published_times() {
    for found in published() {
        let name = &found.name;
        assert_eq!(found.comparisons.len(), 20, "{name}");
        assert!(found.r2_ratio().unwrap() > 0.95, "{name}: {:?}", found.r2_ratio());
        assert!(
            found.residual_max_ratio().unwrap() < if name == "P-90" { 0.05 } else { 0.02 },
            "{name}: {:?}",
            found.residual_max_ratio()
        );
        // The line gives close rates little weight, and so is not that far off where those are the wrong way round.
        let near = if name == "P-90" { 0.2 } else { 0.1 };
        assert!((found.line.sum_percent - found.sum_percent()).abs() < near, "{name}: {:?}", found.line);
        assert!(found.line.r2_ratio.unwrap() > 0.97, "{name}: {:?}", found.line);
        // A tickless system is faster than any measured one.
        for row in &found.comparisons {
            assert!(
                row.tickless_ns.unwrap() < row.observed_ns * if name == "P-90" { 1.03 } else { 1.005 },
                "{name}: {row:?}"
            );
        }
    }
}

/// The handler that reads the time stamp counter takes longer than the whole cost of a tick that the sorts show, so its
/// column cannot be the one that the percentages rest on.
#[test]
fn the_other_handler_column_leaves_nothing_for_the_indirect_cost() {
    for processor in read_tables(SORT, DIRECT, Some("handler_tsc_cycles")).unwrap() {
        let slow = ["P-90", "PPro-200"].contains(&processor.name.as_str());
        // On the slowest one something is left, but less than by half.
        let found = Analysis::new(&processor).indirect_percent;
        assert!(found < if slow { 0.1 } else { 0.0 }, "{}: {found}", processor.name);
    }
}

/// Work of `alone_ns` under interrupts that cost `cost_ns` each: t = alone / (1 - h c).
fn synthetic(processes: u32, alone_ns: f64, cost_ns: f64, rates: &[f64]) -> RateSeries {
    let point = |rate_hz: &f64| RatePoint { rate_hz: *rate_hz, work_ns: alone_ns / (1.0 - rate_hz * cost_ns / 1e9) };
    RateSeries::new(processes, rates.iter().map(point).collect()).unwrap()
}

proptest! {
    /// For exactly linear overhead, b - a = n c / (1 - h1 c): a pair overstates the cost by the share of the CPU that the
    /// interrupts of its lower rate take, and the mean of the pairs by the mean of those. The line through the throughput
    /// has no such bias, and the model that follows from a pair's own rates is exact.
    #[test]
    fn known_costs_are_found_again(
        alone_us in proptest::collection::vec(100.0_f64..50_000.0, 1..5),
        trap in 50.0_f64..2_000.0, handler in 50.0_f64..3_000.0, indirect in 0.0_f64..9_000.0,
        steps in proptest::collection::vec(50.0_f64..6_000.0, 2..6),
    ) {
        let rates: Vec<f64> = steps.iter().scan(0.0, |sum, step| { *sum += step; Some(*sum) }).collect();
        let cost = trap + handler + indirect;
        let series = (1..).zip(&alone_us).map(|(n, us)| synthetic(n, us * 1e3, cost, &rates)).collect();
        let direct = Direct { trap_ns: trap, handler_ns: handler };
        let found = Analysis::new(&Processor::new("synthetic", direct, series));

        prop_assert_eq!(found.pairs.len(), alone_us.len() * rates.len() * (rates.len() - 1) / 2);
        let mut plain = 0.0;
        for pair in &found.pairs {
            let expected = cost / (1.0 - pair.low_hz * cost / 1e9) / 1e4;
            prop_assert!((pair.sum_percent() - expected).abs() < 1e-6 * expected, "{:?}: {}", pair, expected);
            plain += expected / found.pairs.len() as f64;
        }
        prop_assert!((found.sum_percent() - plain).abs() < 1e-6 * plain);
        prop_assert!((found.line.sum_percent - cost / 1e4).abs() < 1e-6 * cost / 1e4, "{:?}", found.line);
        prop_assert!(found.line.r2_ratio.unwrap() > 1.0 - 1e-9);
        // Without much overhead at the lower rates, nothing is left of the bias.
        let bias = rates[rates.len() - 2] * cost / 1e9;
        prop_assert!((found.sum_percent() / (cost / 1e4) - 1.0) <= bias / (1.0 - bias) + 1e-9);
        if let Some(tickless) = found.comparisons[0].tickless_ns {
            // The overstated cost takes too much off.
            prop_assert!(tickless <= alone_us[0] * 1e3 * (1.0 + 1e-9));
        }
    }

    #[test]
    fn the_interval_holds_the_middle_and_shrinks_with_the_spread(
        noise in proptest::collection::vec(-1.0_f64..1.0, 3..12), small in 0.0001_f64..0.001,
    ) {
        let rounds = |scale: f64| {
            let round = |noise: &f64| vec![synthetic(1, 1e7, 5_000.0 * (1.0 + noise * scale), &[100.0, 1_000.0, 10_000.0])];
            let rounds: Vec<Vec<RateSeries>> = noise.iter().map(round).collect();
            Rounds::new("synthetic", Direct { trap_ns: 100.0, handler_ns: 1_000.0 }, &rounds).unwrap()
        };
        let (wide, narrow) = (rounds(small * 10.0), rounds(small));
        prop_assert_eq!(wide.count, noise.len());
        let [wide, narrow] = [&wide, &narrow].map(|rounds| {
            let bounds = rounds.sum_percent.unwrap();
            let middle = rounds.analysis.sum_percent();
            (bounds.low <= middle && middle <= bounds.high, bounds.high - bounds.low)
        });
        prop_assert!(wide.0 && narrow.0);
        prop_assert!((wide.1 / narrow.1 - 10.0).abs() < 0.5, "{} and {}", wide.1, narrow.1);
    }
}

#[test]
fn a_single_disturbed_cell_moves_the_interval_and_not_the_estimate() {
    let quiet = || vec![synthetic(1, 1e7, 5_000.0, &[100.0, 1_000.0, 10_000.0])];
    let mut rounds = vec![quiet(), quiet(), quiet(), quiet(), quiet()];
    let direct = Direct { trap_ns: 100.0, handler_ns: 1_000.0 };
    let calm = Rounds::new("calm", direct, &rounds).unwrap();
    let mut points = rounds[2][0].points().to_vec();
    points[1].work_ns *= 1.2;
    rounds[2][0] = RateSeries::new(1, points).unwrap();
    let disturbed = Rounds::new("calm", direct, &rounds).unwrap();
    assert_eq!(disturbed.analysis, calm.analysis);
    let width = |rounds: &Rounds| rounds.sum_percent.map(|bounds| bounds.high - bounds.low).unwrap();
    assert!(width(&calm) < 1e-9 && width(&disturbed) > 1.0, "{}", width(&disturbed));
}

#[test]
fn one_round_has_no_interval() {
    let round = vec![synthetic(1, 1e7, 5_000.0, &[100.0, 1_000.0])];
    let rounds = Rounds::new("one", Direct { trap_ns: 1.0, handler_ns: 1.0 }, &[round]).unwrap();
    assert_eq!((rounds.indirect_percent, rounds.sum_percent), (None, None));
    assert!(Rounds::new("none", Direct { trap_ns: 1.0, handler_ns: 1.0 }, &[]).is_err());
}

/// A model that leaves the CPU no time says so instead of predicting negative times: the pairs overstate the cost by the
/// share of the CPU that the lower rate takes, here nearly all of it.
#[test]
fn an_impossible_model_predicts_nothing() {
    let series = vec![synthetic(1, 1e6, 48_000.0, &[100.0, 18_000.0, 20_000.0])];
    let direct = Direct { trap_ns: 100.0, handler_ns: 1_000.0 };
    let found = Analysis::new(&Processor::new("busy", direct, series));
    assert!(found.overhead_ratio(20_000.0) >= 1.0, "{}", found.overhead_ratio(20_000.0));
    assert_eq!((found.residual_max_ratio(), found.r2_ratio()), (None, None));
    assert!(found.comparisons.iter().all(|row| row.predicted_ns.is_none() && row.tickless_ns.is_none()));
    assert!((found.line.sum_percent - 4.8).abs() < 1e-6, "{:?}", found.line);
}

#[test]
fn events_are_those_of_a_sort_by_rate() {
    let found = CampaignAnalysis::new(&campaign(3)).unwrap().events;
    assert_eq!(found.len(), 3 * 2);
    let near = |a: Option<f64>, b: f64| a.is_some_and(|a| (a / b - 1.0).abs() < 1e-9);
    for (rate, pair) in [250.0, 1_250.0, 10_250.0].into_iter().zip(found.chunks(2)) {
        let [cycles, misses] = pair else { panic!("{pair:?}") };
        assert!(near(Some(cycles.rate_hz), rate) && near(Some(misses.rate_hz), rate));
        let (cycles, misses) = (&cycles.rate, &misses.rate);
        // Counted for half of the time, in 100 sorts.
        assert!(cycles.event == "cycles" && near(cycles.user, 24e6), "{cycles:?}");
        assert!(near(cycles.kernel, rate * 180.0), "{cycles:?}");
        assert!(misses.event == "cache_misses" && near(misses.user, 800.0 + rate * 0.24), "{misses:?}");
        assert!(near(misses.kernel, rate * 0.6) && near(Some(misses.counted_ratio), 0.5), "{misses:?}");
    }
    let mut without = campaign(3);
    without.plan.events.clear();
    without.cells.retain(|cell| !matches!(cell.measured, CellResult::Events { .. }));
    let without = CampaignAnalysis::new(&without).unwrap();
    assert!(without.events.is_empty() && without.rounds.count == 3);
}

#[test]
fn a_campaign_gives_its_costs_back() {
    let found = CampaignAnalysis::new(&campaign(4)).unwrap();
    assert_eq!(found.direct, Direct { trap_ns: 100.0, handler_ns: 1_000.0 });
    let analysis = &found.rounds.analysis;
    assert_eq!((found.rounds.count, analysis.pairs.len(), analysis.name.as_str()), (4, 6, "Example CPU at 2.6 GHz"));
    assert!((analysis.line.sum_percent - 0.5).abs() < 1e-3, "{:?}", analysis.line);
    // The pairs overstate a little, see above.
    assert!((0.5..0.515).contains(&analysis.sum_percent()), "{}", analysis.sum_percent());
    assert!((analysis.trap_percent - 0.01).abs() < 1e-9 && (analysis.handler_percent - 0.1).abs() < 1e-9);
    assert!(analysis.r2_ratio().unwrap() > 0.999);
    assert!(found.handler_residual_max_ratio().unwrap() < 1e-9);
    assert_eq!(found.handlers.iter().map(|row| row.added_hz).collect::<Vec<_>>(), [0, 1_000, 10_000]);
    let bounds = found.rounds.sum_percent.unwrap();
    assert!(bounds.low <= analysis.sum_percent() && analysis.sum_percent() <= bounds.high);
}

#[test]
fn only_complete_rounds_count() {
    let mut half = campaign(2);
    half.cells.pop();
    assert_eq!(CampaignAnalysis::new(&half).unwrap().rounds.count, 1);
    half.cells.truncate(3);
    assert_eq!(CampaignAnalysis::new(&half), Err(CampaignError::NoRound { done: 3, planned: 26 }));
}

#[test]
fn a_rate_that_the_kernel_throttled_is_said() {
    let mut throttled = campaign(1);
    for cell in &mut throttled.cells {
        if let (10_000, CellResult::Sorts { interrupts, .. }) = (cell.added_hz, &mut cell.measured) {
            *interrupts = 900;
        }
    }
    let error = CampaignAnalysis::new(&throttled).unwrap_err().to_string();
    assert!(error.contains("with 1 copy ") && error.contains("must rise"), "{error}");
}
