//! The table of direct costs: the trap, the handler that ran while the work was timed, and handlers that did not.

use super::csv::{CsvRow, CsvTable, TableError};
use super::{Direct, MEASURED, OtherHandler, Processor};

/// The handlers to look for, in this order, if the user names no column. Tsafrir 2007 has two: the programmable interval timer, behind the
/// published percentages, and the time stamp counter.
const FIRST: [&str; 2] = [MEASURED, "pit"];

/// A column of times: its number, and whether it is in cycles.
#[derive(Clone, Copy)]
struct TimeColumn {
    column: usize,
    cycles: bool,
}

/// The columns to read.
struct Columns {
    processor: usize,
    /// The clock's frequency, in MHz.
    mhz: Option<usize>,
    trap: TimeColumn,
    /// The handlers by name, first the one that ran while the work was timed.
    handlers: Vec<(String, TimeColumn)>,
}

/// The processors of a table of direct costs, without times of work.
pub(super) fn direct_costs(table: &CsvTable<'_>, handler: Option<&str>) -> Result<Vec<Processor>, TableError> {
    let columns = Columns::find(table, handler)?;
    let mut costs: Vec<Processor> = Vec::new();
    for row in &table.rows {
        let name = table.name_of(row, columns.processor)?;
        if costs.iter().any(|known| known.name == name) {
            return Err(table.fail(row.line, format!("'{name}' has a second line")));
        }
        let trap_ns = columns.time_ns(table, row, columns.trap)?;
        let mut handlers = Vec::new();
        for (name, column) in &columns.handlers {
            handlers.push(OtherHandler { name: name.clone(), handler_ns: columns.time_ns(table, row, *column)? });
        }
        // Without a handler no columns are found.
        let measured = handlers.remove(0);
        let direct = Direct { trap_ns, handler_ns: measured.handler_ns };
        let mut processor = Processor::new(name, direct, Vec::new());
        processor.handler = measured.name;
        processor.other_handlers = handlers;
        costs.push(processor);
    }
    Ok(costs)
}

impl Columns {
    fn find(table: &CsvTable<'_>, handler: Option<&str>) -> Result<Self, TableError> {
        let processor = table.column("processor")?;
        let mhz = table.find("mhz");
        // Cycles are useless without the clock.
        let cycles = mhz.and_then(|_| table.find("trap_cycles")).map(|column| TimeColumn { column, cycles: true });
        let trap = match cycles {
            Some(cycles) => cycles,
            None => TimeColumn { column: table.column("trap_us")?, cycles: false },
        };
        let mut handlers: Vec<(String, TimeColumn)> = Vec::new();
        for (column, title) in table.header.fields.iter().enumerate() {
            let Some((name, cycles)) = handler_name(title) else { continue };
            if cycles && mhz.is_none() {
                continue;
            }
            let found = TimeColumn { column, cycles };
            match handlers.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) if cycles => *known = found,
                Some(_) => {}
                None => handlers.push((name.to_owned(), found)),
            }
        }
        let first = match handler {
            Some(title) => {
                let column = table.column(title)?;
                let (name, cycles) = handler_name(title).unwrap_or((title, false));
                if cycles && mhz.is_none() {
                    table.column("mhz")?;
                }
                handlers.retain(|(known, _)| known != name);
                (name.to_owned(), TimeColumn { column, cycles })
            }
            None => {
                let named = |name: &&str| handlers.iter().position(|(known, _)| known == name);
                let at = FIRST.iter().find_map(named).ok_or_else(|| table.no_column("handler_us or handler_cycles"))?;
                handlers.remove(at)
            }
        };
        handlers.insert(0, first);
        Ok(Self { processor, mhz, trap, handlers })
    }

    /// The time in a row, in nanoseconds.
    fn time_ns(&self, table: &CsvTable<'_>, row: &CsvRow, time: TimeColumn) -> Result<f64, TableError> {
        match (time.cycles, self.mhz) {
            (true, Some(mhz)) => {
                Ok(table.time(row, time.column, "cycles", true)? * 1e3 / table.time(row, mhz, "MHz", false)?)
            }
            _ => Ok(table.time(row, time.column, "microseconds", true)? * 1e3),
        }
    }
}

/// The handler that a column is named after, and whether it is in cycles; `None` for other columns, such as the standard deviation of a
/// handler.
fn handler_name(title: &str) -> Option<(&str, bool)> {
    let rest = title.strip_prefix("handler_")?;
    let (name, cycles) = match rest.strip_suffix("cycles") {
        Some(name) => (name, true),
        None => (rest.strip_suffix("us")?, false),
    };
    match name.strip_suffix('_') {
        None if name.is_empty() => Some((MEASURED, cycles)),
        Some(name) if !name.is_empty() && !name.ends_with("_sd") && name != "sd" => Some((name, cycles)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tick::{TableFile, read_tables};

    fn read(direct: &str, handler: Option<&str>) -> Result<Processor, String> {
        let sort = "processor,processes,ms_100hz,ms_1000hz\nA,1,10,11\n";
        let tables = (TableFile { name: "s.csv", text: sort }, TableFile { name: "d.csv", text: direct });
        let read = read_tables(tables.0, tables.1, handler).map_err(|error| error.to_string())?;
        Ok(read[0].clone())
    }

    #[test]
    fn cycles_go_before_the_microseconds_that_are_rounded_from_them() {
        let table = "processor,mhz,trap_cycles,trap_sd_cycles,handler_tsc_cycles,handler_tsc_sd_cycles,handler_pit_us,trap_us\n\
                     A,2000,1500,9,9000,7,0.5,0.8\n";
        let found = read(table, None).unwrap();
        assert_eq!(found.direct, Direct { trap_ns: 750.0, handler_ns: 500.0 });
        assert_eq!(found.handler, "pit");
        assert_eq!(found.other_handlers, [OtherHandler { name: "tsc".to_owned(), handler_ns: 4_500.0 }]);
        // That which is named ran; the others did not.
        let found = read(table, Some("handler_tsc_cycles")).unwrap();
        assert_eq!((found.handler.as_str(), found.direct.handler_ns), ("tsc", 4_500.0));
        assert_eq!(found.other_handlers, [OtherHandler { name: "pit".to_owned(), handler_ns: 500.0 }]);
    }

    #[test]
    fn cycles_need_a_clock() {
        let without = "processor,trap_us,trap_cycles,handler_cycles,handler_us\nA,1,9,9,2\n";
        assert_eq!(read(without, None).unwrap().direct, Direct { trap_ns: 1_000.0, handler_ns: 2_000.0 });
        let error = read(without, Some("handler_cycles")).unwrap_err();
        assert!(error.starts_with("d.csv:1: it has no column mhz; its columns are "), "{error}");
        let error = read("processor,mhz,trap_cycles,handler_cycles\nA,0,9,9\n", None).unwrap_err();
        assert_eq!(error, "d.csv:2: column mhz: '0' is not a number of MHz above 0");
    }
}
