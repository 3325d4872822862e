//! Measurements from two CSV tables, such as published ones.
//!
//! The times: `processor,processes,ms_100hz,ms_1000hz,...`, one line per processor and number of processes, milliseconds per piece of work
//! at each interrupt rate. The direct costs: one line per processor, `processor,trap_us,handler_us` in microseconds, or
//! `processor,mhz,trap_cycles,handler_cycles` in cycles of a clock of that many MHz; with both, the cycles are used, because microseconds
//! are rounded. The name of a handler may be inserted, as in `handler_pit_us`; other columns are ignored, and so are empty lines and
//! comments (`#`). Fields may be quoted to contain commas (RFC 4180).

use becalm_units::counted;
use csv::{Position, ReaderBuilder, StringRecord, Trim};

use super::direct::direct_costs;
use super::{Processor, RatePoint, RateSeries};

/// The name and the text of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableFile<'a> {
    /// The name of the table in messages: its path.
    pub name: &'a str,
    /// The whole text of the table.
    pub text: &'a str,
}

/// A table that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct TableError {
    /// The name of the table's file.
    pub file: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// The fault, with its column if it is in one.
    pub what: String,
}

becalm_units::fault::faultless!(TableError);

/// The non-empty lines of a table.
pub(super) struct CsvTable<'a> {
    name: &'a str,
    pub(super) header: CsvRow,
    pub(super) rows: Vec<CsvRow>,
}

pub(super) struct CsvRow {
    /// The number of its first line, from 1.
    pub(super) line: usize,
    pub(super) fields: StringRecord,
}

impl<'a> CsvTable<'a> {
    fn parse(file: TableFile<'a>) -> Result<Self, TableError> {
        let fail = |line, what: String| TableError { file: file.name.to_owned(), line, what };
        let mut rows = lines(file)?.into_iter();
        let header =
            rows.next().ok_or_else(|| fail(1, "the table is empty: a line of column names was expected".into()))?;
        let rows: Vec<CsvRow> = rows.collect();
        for (at, name) in header.fields.iter().enumerate() {
            if header.fields.iter().take(at).any(|before| before == name) {
                return Err(fail(header.line, format!("there are two columns {name}")));
            }
        }
        if let Some(row) = rows.iter().find(|row| row.fields.len() != header.fields.len()) {
            let (got, wanted) = (row.fields.len(), header.fields.len());
            return Err(fail(row.line, format!("{got} fields, where the line of column names has {wanted}")));
        }
        if rows.is_empty() {
            return Err(fail(header.line, "no line follows the column names".into()));
        }
        Ok(Self { name: file.name, header, rows })
    }

    pub(super) fn fail(&self, line: usize, what: String) -> TableError {
        TableError { file: self.name.to_owned(), line, what }
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.header.fields.iter().position(|field| field == name)
    }

    pub(super) fn column(&self, name: &str) -> Result<usize, TableError> {
        self.find(name).ok_or_else(|| self.no_column(name))
    }

    pub(super) fn no_column(&self, name: &str) -> TableError {
        let there: Vec<&str> = self.header.fields.iter().collect();
        self.fail(self.header.line, format!("it has no column {name}; its columns are {}", there.join(", ")))
    }

    pub(super) fn name_of<'r>(&self, row: &'r CsvRow, column: usize) -> Result<&'r str, TableError> {
        match &row.fields[column] {
            "" => Err(self.fail(row.line, format!("column {} is empty", &self.header.fields[column]))),
            name => Ok(name),
        }
    }

    /// Parses a time, which must be above 0, or at least 0 with `zero`.
    pub(super) fn time(&self, row: &CsvRow, column: usize, unit: &str, zero: bool) -> Result<f64, TableError> {
        let (text, name) = (&row.fields[column], &self.header.fields[column]);
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && (number > 0.0 || zero && number == 0.0) => Ok(number),
            _ => {
                let range = if zero { "of 0 or more" } else { "above 0" };
                Err(self.fail(row.line, format!("column {name}: '{text}' is not a number of {unit} {range}")))
            }
        }
    }
}

/// The non-empty lines of a text.
fn lines(file: TableFile<'_>) -> Result<Vec<CsvRow>, TableError> {
    let text = file.text.strip_prefix('\u{feff}').unwrap_or(file.text);
    let passed_over = |line: &&str| line.trim_start().is_empty() || line.trim_start().starts_with('#');
    // The first line of a record: its reported position is before the lines skipped to find it.
    let line_of = |position: &Position| {
        let from = text.get(position.byte() as usize..).unwrap_or_default();
        position.line() as usize + from.lines().take_while(passed_over).count()
    };
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).comment(Some(b'#')).trim(Trim::All);
    let mut rows = Vec::new();
    for record in builder.from_reader(text.as_bytes()).into_records() {
        let fields = record.map_err(|error| {
            let line = error.position().map_or(1, line_of);
            TableError { file: file.name.to_owned(), line, what: error.to_string() }
        })?;
        let first = fields.get(0).unwrap_or_default();
        // A line of spaces, and an indented comment.
        if first.starts_with('#') || fields.len() == 1 && first.is_empty() {
            continue;
        }
        rows.push(CsvRow { line: fields.position().map_or(1, line_of), fields });
    }
    Ok(rows)
}

/// Reads the measurements of all processors from a table of times and one of direct costs, in the order of the first. The column for the
/// time of the handler that ran meanwhile may be named; the default is the one without a name, or `pit`, the programmable interval timer
/// behind the percentages of Tsafrir 2007. All others are other handlers. Fails if a table is malformed, with line and column.
pub fn read_tables(
    times: TableFile<'_>,
    direct: TableFile<'_>,
    handler: Option<&str>,
) -> Result<Vec<Processor>, TableError> {
    let direct_costs = direct_costs(&CsvTable::parse(direct)?, handler)?;
    let table = CsvTable::parse(times)?;
    let (processor, processes) = (table.column("processor")?, table.column("processes")?);
    let rates = rates(&table, [processor, processes])?;
    let mut processors: Vec<Processor> = Vec::new();
    for row in &table.rows {
        let name = table.name_of(row, processor)?;
        let count = row.fields[processes].parse::<u32>().ok().filter(|count| *count > 0).ok_or_else(|| {
            let text = &row.fields[processes];
            table.fail(row.line, format!("column processes: '{text}' is not a number of processes above 0"))
        })?;
        let points = rates.iter().map(|(rate_hz, column)| {
            let ms = table.time(row, *column, "milliseconds", false)?;
            Ok(RatePoint { rate_hz: *rate_hz, work_ns: ms * 1e6 })
        });
        let points = points.collect::<Result<Vec<_>, TableError>>()?;
        let series = RateSeries::new(count, points).map_err(|error| table.fail(row.line, error.to_string()))?;
        let at = match processors.iter().position(|known| known.name == name) {
            Some(at) => at,
            None => {
                let known = direct_costs.iter().find(|known| known.name == name);
                let known = known.ok_or_else(|| {
                    let file = direct.name;
                    table.fail(row.line, format!("column processor: {file} has no direct cost of '{name}'"))
                })?;
                processors.push(known.clone());
                processors.len() - 1
            }
        };
        if processors[at].series.iter().any(|known| known.processes() == count) {
            return Err(table.fail(
                row.line,
                format!("'{name}' with {} has a second line", counted(count.into(), "process", "processes")),
            ));
        }
        processors[at].series.push(series);
    }
    Ok(processors)
}

/// The rates in the column names, each with its column, in ascending order.
fn rates(table: &CsvTable<'_>, others: [usize; 2]) -> Result<Vec<(f64, usize)>, TableError> {
    let line = table.header.line;
    let mut rates: Vec<(f64, usize)> = Vec::new();
    for (column, name) in table.header.fields.iter().enumerate() {
        if others.contains(&column) {
            continue;
        }
        let rate = name.strip_prefix("ms_").and_then(|rest| rest.strip_suffix("hz")).and_then(|hz| hz.parse().ok());
        match rate.filter(|rate: &f64| rate.is_finite() && *rate >= 0.0) {
            Some(rate) => rates.push((rate, column)),
            None => {
                let what = format!("column '{name}' is not named after an interrupt rate, like ms_1000hz");
                return Err(table.fail(line, what));
            }
        }
    }
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let Some(pair) = rates.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(table.fail(line, format!("two columns of {} Hz", pair[0].0)));
    }
    if rates.len() < 2 {
        let what = format!(
            "at least 2 columns of interrupt rates are needed, not {}: a cost is the difference between two",
            rates.len()
        );
        return Err(table.fail(line, what));
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tick::Direct;
    use proptest::prelude::*;

    const DIRECT: &str = "processor,trap_us,handler_us\nA,1,2\n";
    const SORT: &str = "processor,processes,ms_100hz,ms_1000hz\nA,1,10,11\n";

    fn read(sort: &str, direct: &str) -> Result<Vec<Processor>, TableError> {
        read_tables(TableFile { name: "s.csv", text: sort }, TableFile { name: "d.csv", text: direct }, None)
    }

    /// Tables of times and of direct costs, and what each pair is refused with.
    fn refuses(cases: &[(&str, &str, &str)]) {
        for (sort, direct, message) in cases {
            assert_eq!(read(sort, direct).unwrap_err().to_string(), *message);
        }
    }

    #[test]
    fn columns_may_stand_in_any_order() {
        let sort = "\u{feff}# remark\r\n\r\nms_1000hz,processes,ms_100hz,processor\r\n11, 2 ,10,A\r\n";
        let read = read(sort, "handler_us,color,processor,trap_us\n0,red,A,1\n").unwrap();
        let series = RateSeries::new(
            2,
            vec![RatePoint { rate_hz: 100.0, work_ns: 10e6 }, RatePoint { rate_hz: 1_000.0, work_ns: 11e6 }],
        );
        let direct = Direct { trap_ns: 1_000.0, handler_ns: 0.0 };
        assert_eq!(read, [Processor::new("A", direct, vec![series.unwrap()])]);
    }

    #[test]
    fn quoted_fields_hold_commas_and_line_ends() {
        let sort = "processor,processes,ms_100hz,ms_1000hz\r\n\"A, the \"\"old\"\"\none\",1,10,11\r\n  # remark\r\n \r\nB,0,1,2\r\n";
        let direct = "processor,trap_us,handler_us\n\"A, the \"\"old\"\"\none\",1,2\n";
        assert_eq!(
            read(sort, direct).unwrap_err().to_string(),
            "s.csv:6: column processes: '0' is not a number of processes above 0"
        );
        let good: String = sort.lines().take(3).map(|line| format!("{line}\n")).collect();
        assert_eq!(read(&good, direct).unwrap()[0].name, "A, the \"old\"\none");
        // A quote that nothing closes takes in the rest.
        let open = read("processor,processes,ms_1hz,ms_2hz\n#\n\"A,1,1,2\nB,1,1,2\n", DIRECT);
        assert_eq!(open.unwrap_err().to_string(), "s.csv:3: 1 fields, where the line of column names has 4");
    }

    #[test]
    fn bad_columns_are_refused_by_name() {
        refuses(&[
            ("", DIRECT, "s.csv:1: the table is empty: a line of column names was expected"),
            ("processor,processes,ms_1hz,ms_2hz\n", DIRECT, "s.csv:1: no line follows the column names"),
            (
                "processor,ms_1hz,ms_2hz\nA,1,2\n",
                DIRECT,
                "s.csv:1: it has no column processes; its columns are processor, ms_1hz, ms_2hz",
            ),
            (
                "processor,processes,ms_1hz\nA,1,2\n",
                DIRECT,
                "s.csv:1: at least 2 columns of interrupt rates are needed, not 1: a cost is the difference between two",
            ),
            ("processor,processes,ms_1hz,ms_1.0hz\nA,1,2,2\n", DIRECT, "s.csv:1: two columns of 1 Hz"),
            ("processor,processes,ms_1hz,ms_1hz\nA,1,2,2\n", DIRECT, "s.csv:1: there are two columns ms_1hz"),
            (
                "processor,processes,fast,ms_1hz\nA,1,2,2\n",
                DIRECT,
                "s.csv:1: column 'fast' is not named after an interrupt rate, like ms_1000hz",
            ),
            (
                "processor,processes,ms_nanhz,ms_1hz\nA,1,2,2\n",
                DIRECT,
                "s.csv:1: column 'ms_nanhz' is not named after an interrupt rate, like ms_1000hz",
            ),
        ]);
    }

    #[test]
    fn bad_lines_are_refused_by_line_and_column() {
        refuses(&[
            (
                "processor,processes,ms_1hz,ms_2hz\n\nA,1,2\n",
                DIRECT,
                "s.csv:3: 3 fields, where the line of column names has 4",
            ),
            (
                "processor,processes,ms_1hz,ms_2hz\nA,1,2,fast\n",
                DIRECT,
                "s.csv:2: column ms_2hz: 'fast' is not a number of milliseconds above 0",
            ),
            (
                "processor,processes,ms_1hz,ms_2hz\nA,1,0,2\n",
                DIRECT,
                "s.csv:2: column ms_1hz: '0' is not a number of milliseconds above 0",
            ),
            (
                "processor,processes,ms_1hz,ms_2hz\nA,0,1,2\n",
                DIRECT,
                "s.csv:2: column processes: '0' is not a number of processes above 0",
            ),
            (
                "processor,processes,ms_1hz,ms_2hz\nA,1,1,2\nA,1,1,2\n",
                DIRECT,
                "s.csv:3: 'A' with 1 process has a second line",
            ),
            (
                "processor,processes,ms_1hz,ms_2hz\nB,1,1,2\n",
                DIRECT,
                "s.csv:2: column processor: d.csv has no direct cost of 'B'",
            ),
            ("processor,processes,ms_1hz,ms_2hz\n,1,1,2\n", DIRECT, "s.csv:2: column processor is empty"),
        ]);
    }

    #[test]
    fn bad_direct_costs_are_refused() {
        refuses(&[
            (
                SORT,
                "processor,trap_us\nA,1\n",
                "d.csv:1: it has no column handler_us or handler_cycles; its columns are processor, trap_us",
            ),
            (
                SORT,
                "processor,trap_us,handler_us\nA,-1,1\n",
                "d.csv:2: column trap_us: '-1' is not a number of microseconds of 0 or more",
            ),
            (
                SORT,
                "processor,trap_us,handler_us\nA,1,inf\n",
                "d.csv:2: column handler_us: 'inf' is not a number of microseconds of 0 or more",
            ),
            (SORT, "processor,trap_us,handler_us\nA,1,1\nA,1,1\n", "d.csv:3: 'A' has a second line"),
        ]);
        let named = read_tables(
            TableFile { name: "s.csv", text: SORT },
            TableFile { name: "d.csv", text: DIRECT },
            Some("handler_tsc_us"),
        );
        assert!(named.unwrap_err().what.starts_with("it has no column handler_tsc_us"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(sort: String, direct: String, at in 0_usize..60) {
            let _ = read(&sort, &direct);
            // Also close to a good table.
            let mut damaged: Vec<char> = SORT.chars().collect();
            damaged.splice(at.min(damaged.len())..(at + 1).min(damaged.len()), sort.chars().take(2));
            let _ = read(&damaged.into_iter().collect::<String>(), DIRECT);
        }
    }
}
