//! Several recordings in one table, next to the five platforms of Beckman et al. 2007 (tables 3 and 4): t_min, noise ratio, and the
//! longest, mean and median detour of 1 us and more.

mod command;
mod modes;

use becalm_analyze::summary::Summary;
use becalm_report::form::field::{Field, Object, fields};
use becalm_report::form::figure::{Rate, Ratio, Share, Time};
use becalm_report::form::section::{Block, Page, Section};
use becalm_report::form::sheet::Form;
use becalm_report::form::table::Table;
use becalm_report::{Report, catalogue};
use serde::Serialize;

use self::modes::LengthMode;

pub use command::run;

/// The published figures, with a line of titles.
const PUBLISHED: &str = include_str!("../../data/beckman2007_platforms.csv");

/// Recordings next to each other.
#[derive(Clone, Debug)]
struct PlatformsReport {
    rows: Vec<PlatformRow>,
    modes: Vec<ModeRow>,
}

/// A mode of the lengths of one run.
#[derive(Clone, PartialEq, Debug)]
struct ModeRow {
    platform: String,
    mode: LengthMode,
}

/// The detours of 1 us and more of one platform; times in nanoseconds.
#[derive(Clone, PartialEq, Debug)]
struct PlatformRow {
    platform: String,
    published: bool,
    observed_ns: Option<i64>,
    t_min_ns: Option<f64>,
    noise_ratio: Option<f64>,
    rate_hz: Option<f64>,
    max_ns: Option<f64>,
    mean_ns: Option<f64>,
    median_ns: Option<f64>,
}

fields! {
    ROW, row: PlatformRow {
        PLATFORM = "platform", "platform", |row| row.platform.clone();
        PUBLISHED = "published", "published", |row| row.published;
        OBSERVED_NS = catalogue::OBSERVED_NS, |row| row.observed_ns.map(Time);
        T_MIN_NS = "t_min_ns", "t_min", |row| row.t_min_ns.and_then(Time::rounded);
        NOISE_RATIO = "noise_1us_ratio", "noise", |row| row.noise_ratio.map(Ratio);
        RATE_HZ = "rate_1us_hz", "rate", |row| row.rate_hz.map(Rate);
        MAX_NS = "max_ns", "max", |row| row.max_ns.and_then(Time::rounded);
        MEAN_NS = "mean_1us_ns", "mean", |row| row.mean_ns.and_then(Time::rounded);
        MEDIAN_NS = "median_1us_ns", "median", |row| row.median_ns.and_then(Time::rounded);
    }
}

fields! {
    MODE, mode: ModeRow {
        PLATFORM = "platform", "platform", |row| row.platform.clone();
        SHARE = "share_ratio", "share", |row| Share(row.mode.share);
        COUNT = catalogue::COUNT, |row| row.mode.lengths.count;
        MEDIAN_NS = catalogue::MEDIAN_NS, |row| Time(row.mode.lengths.median);
        SHORTEST_NS = "shortest_ns", "from", |row| Time(row.mode.lengths.shortest);
        LONGEST_NS = "longest_ns", "to", |row| Time(row.mode.lengths.longest);
        EVERY_NS = "every_ns", "every", |row| row.mode.every_ns.map(Time);
    }
}

impl PlatformsReport {
    /// The published platforms.
    fn published() -> Self {
        Self { rows: published().collect(), modes: Vec::new() }
    }

    /// Adds a run with the modes of its lengths.
    fn add(&mut self, name: &str, summary: &Summary, modes: Vec<LengthMode>) {
        self.rows.push(recorded(name, summary));
        self.modes.extend(modes.into_iter().map(|mode| ModeRow { platform: name.to_owned(), mode }));
    }
}

/// The figures that the paper prints.
fn published() -> impl Iterator<Item = PlatformRow> {
    PUBLISHED.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| {
        let (platform, figures) = line.split_once(',').expect("a line has a name");
        let figures: Vec<f64> = figures.split(',').map(|figure| figure.parse().expect("a number")).collect();
        PlatformRow {
            platform: platform.to_owned(),
            published: true,
            observed_ns: None,
            t_min_ns: Some(figures[0]),
            noise_ratio: Some(figures[1]),
            rate_hz: None,
            max_ns: Some(figures[2]),
            mean_ns: Some(figures[3]),
            median_ns: Some(figures[4]),
        }
    })
}

fn recorded(name: &str, summary: &Summary) -> PlatformRow {
    let total = &summary.total;
    PlatformRow {
        platform: name.to_owned(),
        published: false,
        observed_ns: total.duration_ns,
        t_min_ns: total.t_min_ns.map(|ns| ns as f64),
        noise_ratio: total.long_noise_ratio(),
        rate_hz: total.long_rate_hz(),
        max_ns: total.long.max().map(|ns| ns as f64),
        mean_ns: total.long.mean(),
        median_ns: total.long_median_ns.map(|ns| ns as f64),
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct PlatformsDocument {
    platforms: Vec<Object<PlatformRow>>,
    modes: Vec<Object<ModeRow>>,
}

impl Report for PlatformsReport {
    fn schema(&self) -> &'static str {
        "becalm.platforms/1"
    }

    fn document(&self) -> impl Serialize {
        PlatformsDocument {
            platforms: self.rows.iter().map(Object::new).collect(),
            modes: self.modes.iter().map(Object::new).collect(),
        }
    }

    fn view(&self, _: Form) -> Page {
        let mut sections = vec![self.platforms()];
        sections.extend((!self.modes.is_empty()).then(|| self.modes()));
        let subtitle = "Recordings and the platforms of Beckman et al. 2007".to_owned();
        Page { title: "Platforms".to_owned(), subtitle, sections, foot: Vec::new() }
    }
}

impl PlatformsReport {
    fn platforms(&self) -> Section {
        let shown = [
            &row::PLATFORM,
            &row::T_MIN_NS,
            &row::NOISE_RATIO,
            &row::RATE_HZ,
            &row::MAX_NS,
            &row::MEAN_NS,
            &row::MEDIAN_NS,
            &row::OBSERVED_NS,
        ];
        let table = grouped(&shown, self.rows.chunk_by(|a, b| a.published == b.published)).captioned("Platforms");
        let text = "detours of 1 us and more, as published; above the line the platforms of Beckman et al. 2007 (tables 3 and 4), below it \
                    the runs, all CPUs of each together";
        let blocks = vec![Block::Table(table), Block::Text(text.to_owned())];
        Section::new("platforms", "Platforms", "The platforms", blocks)
    }

    fn modes(&self) -> Section {
        let title = "Modes: lengths that gather, and the time from one of them to the next (median)";
        let shown: Vec<_> = MODE.iter().collect();
        let table = grouped(&shown, self.modes.chunk_by(|a, b| a.platform == b.platform)).captioned("Modes");
        Section::new("modes", "Modes", title, vec![Block::Table(table)]).titled()
    }
}

/// A table with a line between groups of rows.
fn grouped<'a, R: 'a>(fields: &[&Field<R>], groups: impl Iterator<Item = &'a [R]>) -> Table {
    let mut table = Table::new(fields);
    for group in groups {
        table.rule();
        group.iter().for_each(|row| table.row(fields, row));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_row_for_each_platform() {
        let mut page = Vec::new();
        PlatformsReport::published().page("becalm 0.0.0").unwrap().write(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        let (_, table) = page.split_once("<caption>Platforms</caption>").unwrap();
        assert_eq!(table.matches("</tr>").count(), 1 + 5);
    }

    /// Tables 3 and 4, as the paper prints them: ns, percent and us.
    #[test]
    fn the_published_tables_are_whole() {
        let rows: Vec<PlatformRow> = published().collect();
        assert_eq!(rows.iter().map(|row| row.t_min_ns.unwrap()).collect::<Vec<_>>(), [185.0, 137.0, 62.0, 39.0, 7.0]);
        let percents: Vec<String> = rows.iter().map(|row| (row::NOISE_RATIO.get)(row).cell()).collect();
        assert_eq!(percents, ["0.0000290%", "0.0200%", "0.120%", "1.02%", "0.00200%"]);
        for row in &rows {
            assert!(row.median_ns <= row.max_ns && row.mean_ns <= row.max_ns && row.published, "{}", row.platform);
        }
    }
}
