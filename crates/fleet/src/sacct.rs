//! The jobs of a site from Slurm's accounting: the output of `sacct --parsable2`.
//!
//! The first line names the columns. Required are `JobID`, `ElapsedRaw` (seconds) or `Elapsed` (`DAYS-HH:MM:SS`), `NNodes` or `AllocNodes`, `Start`
//! and `End`; `NCPUS` or `AllocCPUS` distinguish ranks from nodes. Other columns are ignored, and so are job steps, which have a dot in their number,
//! and unfinished jobs. An invalid line is skipped and counted without affecting others.

use std::collections::BTreeMap;

/// The hours of a year.
const YEAR_HOURS: f64 = 365.25 * 24.0;

/// The jobs of a site, by size.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Accounting {
    /// The jobs of each size: the ranks, rounded down to a power of two.
    pub sizes: Vec<JobSize>,
    /// The number of jobs read.
    pub jobs: u64,
    /// The time from the first start to the last end, in hours.
    pub span_hours: f64,
    /// Lines skipped because their jobs have not ended or took no time.
    pub left_out: u64,
    /// Lines skipped because they are truncated or invalid; `None` if there are none.
    pub unreadable: Option<Unreadable>,
}

/// Invalid lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreadable {
    /// How many there are.
    pub lines: u64,
    /// The first of them, and the error.
    pub first: String,
}

/// The jobs of one size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobSize {
    /// Their number of ranks, one per CPU: a power of two.
    pub ranks: u64,
    /// How many there are.
    pub jobs: u64,
    /// The node-hours used.
    pub node_hours: f64,
}

impl Accounting {
    /// The factor from the accounted time to a year.
    pub fn per_year(&self) -> f64 {
        if self.span_hours > 0.0 { YEAR_HOURS / self.span_hours } else { 0.0 }
    }
}

/// The indices of the columns.
struct Columns {
    job: usize,
    elapsed: usize,
    nodes: usize,
    cpus: Option<usize>,
    start: usize,
    end: usize,
}

impl Columns {
    fn from_header(header: &str) -> Result<Self, String> {
        let names: Vec<&str> = header.split('|').collect();
        let find = |wanted: &[&str]| wanted.iter().find_map(|name| names.iter().position(|known| known == name));
        let needed = |wanted: &[&str]| {
            find(wanted).ok_or_else(|| {
                format!(
                    "it has no column {}: make it with sacct --allocations --parsable2 --format=JobID,NNodes,NCPUS,ElapsedRaw,Start,End",
                    wanted.join(" or ")
                )
            })
        };
        Ok(Self {
            job: needed(&["JobID"])?,
            elapsed: needed(&["ElapsedRaw", "Elapsed"])?,
            nodes: needed(&["NNodes", "AllocNodes"])?,
            cpus: find(&["NCPUS", "AllocCPUS"]),
            start: needed(&["Start"])?,
            end: needed(&["End"])?,
        })
    }
}

/// Parses the accounting. A job without a number of CPUs has `cpus_a_node` per node. Fails if columns are missing, or no line has a finished job. If
/// lines are invalid, the error describes the first.
pub fn parse(text: &str, cpus_a_node: u64) -> Result<Accounting, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    let (_, header) = lines.next().ok_or("it is empty")?;
    let mut columns = Columns::from_header(header)?;
    let mut accounting = Accounting::default();
    let mut sizes: BTreeMap<u64, (u64, f64)> = BTreeMap::new();
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    let is_cut = !text.ends_with('\n');
    let mut unreadable = |number: usize, why: &str| {
        let first = || Unreadable { lines: 0, first: format!("line {}: {why}", number + 1) };
        accounting.unreadable.get_or_insert_with(first).lines += 1;
    };
    while let Some((number, line)) = lines.next() {
        // The last line may be truncated within a field.
        if is_cut && lines.peek().is_none() {
            unreadable(number, "it has no end");
            break;
        }
        // Files with several periods may have several headers, with different columns.
        if let Ok(again) = Columns::from_header(line) {
            columns = again;
            continue;
        }
        let fields: Vec<&str> = line.split('|').collect();
        if fields.get(columns.job).is_some_and(|job| job.contains('.')) {
            continue;
        }
        match job(&fields, &columns, cpus_a_node) {
            Ok(Some(job)) => {
                (first, last) = (first.min(job.start), last.max(job.end));
                let size = sizes.entry(1 << job.ranks.ilog2()).or_default();
                size.0 += 1;
                size.1 += job.node_hours;
                accounting.jobs += 1;
            }
            Ok(None) => accounting.left_out += 1,
            Err(why) => unreadable(number, &why),
        }
    }
    if accounting.jobs == 0 {
        let why = accounting.unreadable.map(|unreadable| format!("; {}", unreadable.first)).unwrap_or_default();
        return Err(format!("it has no job that ended{why}"));
    }
    accounting.sizes =
        sizes.into_iter().map(|(ranks, (jobs, node_hours))| JobSize { ranks, jobs, node_hours }).collect();
    accounting.span_hours = if last > first { last.saturating_sub(first) as f64 / 3_600.0 } else { 0.0 };
    Ok(accounting)
}

/// A finished job.
struct Job {
    ranks: u64,
    node_hours: f64,
    /// Seconds since 1970.
    start: i64,
    end: i64,
}

/// The job of a line; `None` if it has not ended or took no time.
fn job(fields: &[&str], columns: &Columns, cpus_a_node: u64) -> Result<Option<Job>, String> {
    let field = |at: usize| fields.get(at).copied().ok_or_else(|| format!("it has only {} fields", fields.len()));
    let wrong = |what: &str, text: &str| format!("'{text}' is not {what}");
    let [elapsed, nodes, start, end] = [columns.elapsed, columns.nodes, columns.start, columns.end].map(field);
    let (elapsed, nodes, start, end) = (elapsed?, nodes?, start?, end?);
    let open = |text: &str| ["Unknown", "None", ""].contains(&text);
    if open(start) || open(end) {
        return Ok(None);
    }
    let seconds = seconds(elapsed).ok_or_else(|| wrong("a time like 3600 or 1-02:03:04", elapsed))?;
    let nodes = abbreviated(nodes).ok_or_else(|| wrong("a number of nodes", nodes))?;
    if seconds == 0 || nodes == 0 {
        return Ok(None);
    }
    let instant = |text: &str| instant(text).ok_or_else(|| wrong("an instant like 2026-01-31T12:00:00", text));
    let told = columns.cpus.map(field).transpose()?.filter(|text| !text.is_empty());
    let cpus = told.map(|text| abbreviated(text).ok_or_else(|| wrong("a number of CPUs", text))).transpose()?;
    Ok(Some(Job {
        ranks: cpus.filter(|cpus| *cpus > 0).unwrap_or_else(|| nodes.saturating_mul(cpus_a_node)).max(1),
        node_hours: nodes as f64 * seconds as f64 / 3_600.0,
        start: instant(start)?,
        end: instant(end)?,
    }))
}

/// A number as printed by Slurm: large ones may be `1.50K`, `12K` or `2M`. A K is 1024 (`convert_num_unit` in `slurm_protocol_api.c`), also for
/// nodes. By default, Slurm abbreviates only numbers that need no rounding.
fn abbreviated(text: &str) -> Option<u64> {
    let Some((power, number)) =
        (1..).zip(["K", "M", "G", "T", "P"]).find_map(|(power, unit)| Some((power, text.strip_suffix(unit)?)))
    else {
        return text.parse().ok();
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().ok().filter(|_| plain)?;
    Some((number * 1_024_f64.powi(power)).round() as u64)
}

/// Seconds, or `[DAYS-]HH:MM:SS`, or `MM:SS`.
fn seconds(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let (days, time) = text.split_once('-').unwrap_or(("0", text));
    let days: u64 = days.parse().ok()?;
    let mut sum = 0_u64;
    for part in time.split(':') {
        // Some versions write fractions of seconds.
        let part: u64 = part.split('.').next()?.parse().ok()?;
        sum = sum.checked_mul(60)?.checked_add(part)?;
    }
    days.checked_mul(86_400)?.checked_add(sum)
}

/// Seconds since 1970 for `YYYY-MM-DDTHH:MM:SS`, in the common time zone of all lines.
fn instant(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let mut date = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if !(1_970..=9_999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // "Days from civil" by H. Hinnant: years start in March.
    let shifted = if month > 2 { year } else { year - 1 };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + of_year - 719_468;
    let mut clock = time.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let fits = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    fits.then(|| days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "JobID|NNodes|NCPUS|ElapsedRaw|State|Start|End\n\
                        7|4|256|3600|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00\n\
                        7.batch|1|64|3600|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00\n\
                        8|2||7200|TIMEOUT|2026-01-01T10:00:00|2026-01-01T12:00:00\n\
                        9|1|64|0|CANCELLED|2026-01-01T10:00:00|2026-01-01T10:00:00\n\
                        10|5|300|50|RUNNING|2026-01-01T10:00:00|Unknown\n\
                        11|5|300|3600|FAILED|2026-01-01T23:00:00|2026-01-02T00:00:00\n";

    #[test]
    fn jobs_are_summed_up_by_their_ranks() {
        let accounting = parse(TEXT, 64).unwrap();
        assert_eq!((accounting.jobs, accounting.left_out, accounting.span_hours), (3, 2, 24.0));
        let sizes: Vec<(u64, u64, f64)> =
            accounting.sizes.iter().map(|size| (size.ranks, size.jobs, size.node_hours)).collect();
        assert_eq!(sizes, [(128, 1, 4.0), (256, 2, 9.0)]);
        assert!((accounting.per_year() - 365.25).abs() < 1e-9);
    }

    #[test]
    fn numbers_may_be_abbreviated_and_the_last_line_cut() {
        let text = "JobID|NNodes|NCPUS|ElapsedRaw|Start|End\n\
                    7|1.50K|96K|3600|2026-01-01T00:00:00|2026-01-01T01:00:00\n\
                    8|2|2M|3600|2026-01-01T00:00:00|2026-01-01T01:00:00\n";
        let accounting = parse(text, 1).unwrap();
        let sizes: Vec<(u64, f64)> = accounting.sizes.iter().map(|size| (size.ranks, size.node_hours)).collect();
        assert_eq!(sizes, [(1 << 16, 1_536.0), (1 << 21, 2.0)]);
        for (text, number) in [("1T", 1 << 40), ("2P", 1 << 51), ("1.5K", 1_536), ("1024", 1_024)] {
            assert_eq!(abbreviated(text), Some(number), "{text}");
        }
        for text in ["K", "1e3K", "-1K", "1KK", ""] {
            assert_eq!(abbreviated(text), None, "{text}");
        }
        let cut = parse(&text[..text.len() - 3], 1).unwrap();
        assert_eq!((cut.jobs, cut.unreadable.unwrap().lines), (1, 1));
    }

    /// Each of these lines could come from a site's script, a job's name or a truncated field.
    #[test]
    fn a_line_that_cannot_be_read_is_left_out_and_counted() {
        let whole = parse(TEXT, 64).unwrap();
        for line in [
            "12|many|64|60|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00",
            "12|1|64|6y|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00",
            "12|1|x|60|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00",
            "12|1|64|60|COMPLETED|today|2026-01-01T01:00:00",
            "12|1|64|60|COMPLETED|2025-01-01T00:00:00|2027-13-01T01:00:00",
            "12|1|64",
            "sacct: error: slurmdbd is not there",
            "12|1|64|60|COMPLETED|2026-01-01T00:00:00",
        ] {
            for at in [1, 3] {
                let mut lines: Vec<&str> = TEXT.lines().collect();
                lines.insert(at, line);
                let found = parse(&(lines.join("\n") + "\n"), 64).unwrap_or_else(|why| panic!("{line}: {why}"));
                let unreadable = found.unreadable.clone().unwrap();
                assert!(
                    unreadable.lines == 1 && unreadable.first.starts_with(&format!("line {}: ", at + 1)),
                    "{unreadable:?}"
                );
                assert_eq!(Accounting { unreadable: None, ..found }, whole, "{line}");
            }
        }
    }

    #[test]
    fn each_period_has_columns_of_its_own() {
        let february =
            "NNodes|JobID|End|Start|Elapsed|NCPUS\n4|12|2026-02-01T02:00:00|2026-02-01T00:00:00|02:00:00|256\n";
        let both = parse(&format!("{TEXT}{february}"), 1).unwrap();
        let [january, february] = [TEXT, february].map(|text| parse(text, 1).unwrap());
        assert_eq!((both.jobs, &both.unreadable), (january.jobs + february.jobs, &None));
        let hours = |accounting: &Accounting| accounting.sizes.iter().map(|size| size.node_hours).sum::<f64>();
        assert_eq!(hours(&both), hours(&january) + hours(&february));
    }

    #[test]
    fn times_and_instants_are_as_sacct_writes_them() {
        assert_eq!(
            ["90", "01:30", "1-02:03:04", "00:00:05.123"].map(seconds),
            [Some(90), Some(90), Some(93_784), Some(5)]
        );
        assert_eq!(seconds("1-x"), None);
        assert_eq!(instant("1970-01-01T00:00:00"), Some(0));
        assert_eq!(instant("2024-02-29T12:00:01"), Some(1_709_208_001));
        assert_eq!((instant("2024-13-29T12:00:01"), instant("2024-02-29")), (None, None));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, why) in [
            ("", "it is empty"),
            ("JobID|Elapsed|NNodes|Start\n", "no column End"),
            (
                "JobID|NNodes|Elapsed|Start|End\n1|x|60|2026-01-01T00:00:00|2026-01-01T00:00:00\n",
                "line 2: 'x' is not a number of nodes",
            ),
            (
                "JobID|NNodes|Elapsed|Start|End\n1|1|6y|2026-01-01T00:00:00|2026-01-01T00:00:00\n",
                "line 2: '6y' is not a time",
            ),
            ("JobID|NNodes|Elapsed|Start|End\n1|1|60|today|2026-01-01T00:00:00\n", "line 2: 'today' is not an instant"),
            ("JobID|NNodes|Elapsed|Start|End\n1|1|60\n", "line 2: it has only 3 fields"),
            ("JobID|NNodes|Elapsed|Start|End\n", "it has no job that ended"),
        ] {
            let error = parse(text, 1).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
