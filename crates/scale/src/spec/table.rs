//! A table of sources, as in papers: the count of each, and its time with mean, deviation, lowest and highest.

use std::path::Path;

use super::lengths::Why;
use crate::random::Stream;

/// One source of a table; times in microseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct TableSource {
    /// Its name.
    pub name: String,
    /// The number of its detours.
    pub count: usize,
    /// Its shortest time.
    pub lowest: f64,
    /// Its longest time.
    pub highest: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub stddev: f64,
}

/// The sources in a text with a header line, separated by commas: `source`, `count` and `mean_us`, and if known `stddev_us`, `lowest_us` and
/// `highest_us`. If the table has a column `configuration`, only the rows of the one named, which is then required.
pub fn sources(path: &Path, text: &str, configuration: Option<&str>) -> Result<Vec<TableSource>, Why> {
    let bad = |why: String| format!("{}: {why}", path.display());
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let header: Vec<&str> = lines.next().map(|(_, line)| line.split(',').map(str::trim).collect()).unwrap_or_default();
    let column = |name: &str| header.iter().position(|column| *column == name);
    let needed = |name: &'static str| column(name).ok_or_else(|| bad(format!("its first line names no column {name}")));
    let (source, count, mean) = (needed("source")?, needed("count")?, needed("mean_us")?);
    let (stddev, lowest, highest) = (column("stddev_us"), column("lowest_us"), column("highest_us"));
    let chosen = match (column("configuration"), configuration) {
        (Some(column), Some(wanted)) => Some((column, wanted)),
        (Some(_), None) => {
            return Err(bad("it has several configurations: choose one with configuration=NAME".to_owned()));
        }
        (None, Some(wanted)) => return Err(bad(format!("it has no column configuration to choose {wanted} from"))),
        (None, None) => None,
    };
    let mut sources = Vec::new();
    for (number, line) in lines {
        let bad = |why: String| bad(format!("line {}: {why}", number + 1));
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != header.len() {
            return Err(bad(format!("{} cells where the first line has {}", cells.len(), header.len())));
        }
        if chosen.is_some_and(|(column, wanted)| cells[column] != wanted) {
            continue;
        }
        let time = |column: usize| {
            let time = cells[column].parse::<f64>().ok().filter(|time| (0.0..1e15).contains(time));
            time.ok_or_else(|| bad(format!("'{}' is no number of microseconds", cells[column])))
        };
        let mean = time(mean)?;
        let source = TableSource {
            name: cells[source].to_owned(),
            count: cells[count].parse().map_err(|_| bad(format!("'{}' is no number of times", cells[count])))?,
            mean,
            stddev: stddev.map_or(Ok(0.0), time)?,
            lowest: lowest.map_or(Ok(0.0), time)?,
            highest: highest.map_or(Ok(f64::INFINITY), time)?,
        };
        if source.count > 0 && !(source.lowest <= mean && mean <= source.highest) {
            return Err(bad(format!("the mean of {mean} us is not between the lowest and the highest")));
        }
        sources.push(source);
    }
    let events: usize = sources.iter().map(|source| source.count).fold(0, usize::saturating_add);
    if events as u64 > super::DRAWN_LIMIT {
        return Err(bad(format!(
            "its {events} events are more than {}; give those of a shorter time",
            super::DRAWN_LIMIT
        )));
    }
    match (sources.is_empty(), configuration) {
        (false, _) => Ok(sources),
        (true, Some(wanted)) => Err(bad(format!("it has no source of the configuration {wanted}"))),
        (true, None) => Err(bad("it has no source".to_owned())),
    }
}

impl TableSource {
    /// Times in microseconds with the table's lowest, highest, count, mean and standard deviation: one is the highest, and the others are above the
    /// lowest by a power law. The moments alone do not determine the law.
    pub fn durations(&self) -> Vec<f64> {
        if self.count <= 1 {
            return vec![self.mean; self.count];
        }
        let highest = if self.highest.is_finite() { self.highest } else { self.mean + 3.0 * self.stddev };
        let count = self.count as f64;
        let others_mean = ((self.mean * count - highest) / (count - 1.0)).max(self.lowest);
        let squares = self.stddev.powi(2) * count - (highest - self.mean).powi(2);
        let others_variance = (squares / (count - 1.0) - (others_mean - self.mean).powi(2)).max(0.0);
        let (above, room) = (others_mean - self.lowest, highest - self.lowest);
        let others = if above > 0.0 && others_variance > 0.0 {
            power_law(self.count - 1, above, libm::sqrt(others_variance), room)
        } else {
            vec![above; self.count - 1]
        };
        others.into_iter().map(|above| self.lowest + above).chain([highest]).collect()
    }

    /// The same in nanoseconds and in an order drawn from the stream.
    pub(crate) fn drawn_ns(&self, stream: &mut Stream) -> Vec<i64> {
        let mut durations: Vec<i64> = self.durations().into_iter().map(|us| (us * 1e3).round() as i64).collect();
        for last in (1..durations.len()).rev() {
            durations.swap(last, stream.below(last as u64 + 1) as usize);
        }
        durations
    }
}

/// Numbers above 0 by a power law cut at `highest`, with the given mean and standard deviation: its quantiles at the middles of `count` equally
/// probable parts.
fn power_law(count: usize, mean: f64, stddev: f64, highest: f64) -> Vec<f64> {
    let mean_of = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count as f64;
    let with_exponent = |exponent: f64| -> Vec<f64> {
        let shape: Vec<f64> = (0..count).map(|part| libm::pow((part as f64 + 0.5) / count as f64, -exponent)).collect();
        // A larger scale compensates for the cut.
        let (mut low, mut high) = (-60.0_f64, 30.0_f64);
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            let scale = libm::exp(middle);
            let reached = mean_of(&mut shape.iter().map(|value| (value * scale).min(highest)));
            if reached < mean { low = middle } else { high = middle }
        }
        let scale = libm::exp(low);
        shape.iter().map(|value| (value * scale).min(highest)).collect()
    };
    let (mut low, mut high) = (0.0, 6.0);
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        let variance = mean_of(&mut with_exponent(middle).iter().map(|value| (value - mean) * (value - mean)));
        if variance < stddev * stddev { low = middle } else { high = middle }
    }
    with_exponent(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "configuration,source,lowest_us,highest_us,count,mean_us,stddev_us\n\
        baseline,timer,3.18,3459.55,167226,3.84,10.61\nbaseline,bash,2050,2050,1,2050,0\nisolated,timer,2.82,31.56,1000,3.08,0.25\n";

    #[test]
    fn a_table_is_read_and_its_moments_come_back() {
        let path = Path::new("t.csv");
        let sources = sources(path, TABLE, Some("baseline")).unwrap();
        assert_eq!((sources.len(), sources[1].durations()), (2, vec![2050.0]));
        let durations = sources[0].durations();
        let mean = durations.iter().sum::<f64>() / durations.len() as f64;
        assert!((mean / 3.84 - 1.0).abs() < 0.001 && durations.last() == Some(&3459.55), "{mean}");
        let plain = super::sources(path, "source,count,mean_us\nx,3,5\n", None).unwrap();
        assert_eq!(plain[0].durations(), [5.0; 3]);
    }

    #[test]
    fn bad_tables_are_refused_with_the_line() {
        for (text, configuration, why) in [
            ("", None, "no column source"),
            (TABLE, None, "several configurations"),
            (TABLE, Some("other"), "no source of the configuration other"),
            ("source,count,mean_us\n", None, "no source"),
            ("source,count,mean_us\nx,1,5\n", Some("a"), "no column configuration"),
            ("source,count,mean_us\nx,1\n", None, "line 2: 2 cells"),
            ("source,count,mean_us\nx,-1,5\n", None, "no number of times"),
            ("source,count,mean_us\nx,1,much\n", None, "no number of microseconds"),
            ("source,count,mean_us,lowest_us\nx,2,5,6\n", None, "not between"),
        ] {
            let error = sources(Path::new("t.csv"), text, configuration).unwrap_err();
            assert!(error.starts_with("t.csv: ") && error.contains(why), "{text}: {error}");
        }
    }
}
