//! Single interruptions: over time, and by length.

use std::collections::BTreeMap;

use becalm_analyze::picture::{PER_DETOUR, Picture, PlacedDetour};
use becalm_analyze::summary::Summary;
use becalm_model::Kind;
use becalm_units::CpuId;

use crate::catalogue;
use crate::form::field::{Field, field, fields};
use crate::form::figure::{Number, Time};
use crate::form::section::{Block, Section};
use crate::form::table::Table;
use crate::form::value::{grouped, time};
use crate::form::words::quoted;
use crate::html::{Axis, AxisScale, AxisUnit, Chart, ChartSeries, Lines, Points, Spec};
use crate::record::figures::cpu;

/// The number of longest detours in the list.
const LISTED: usize = 50;

pub(super) fn section(summary: &Summary, picture: &Picture) -> Section {
    if picture.shown.detours.is_empty() {
        let blocks = vec![Block::Text("There is nothing to draw: no interruption was seen.".to_owned())];
        return Section::new("detours", "Interruptions", "Interruptions", vec![Block::OnPage(blocks)]);
    }
    over_time(summary, picture)
}

fn over_time(summary: &Summary, picture: &Picture) -> Section {
    let shown = &picture.shown;
    let longest = &shown.detours[0];
    let label = format!(
        "{} interruptions in {}. The longest takes {} on {}, {:.6} s after the start.",
        grouped(shown.recorded),
        time(picture.length_ns),
        time(longest.duration),
        place_of(summary, longest),
        longest.start as f64 / 1e9,
    );
    let chart = Chart {
        id: "detours",
        title: String::new(),
        label,
        height: 440,
        spec: Spec::Points(points(summary, picture)),
        figures: None,
    };
    let reading = "Each point is an interruption (a detour of the measuring loop): the higher, the longer. Color and shape show the kind of \
                   source that took most of it. Zoom with the bar below, and click a point to see what happened in it.";
    let charts = [Block::Charts(vec![chart]), Block::Detour, Block::Note(reduction(picture))];
    let blocks = charts.into_iter().chain([Block::Table(list(summary, picture))]).collect();
    Section::new("detours", "Interruptions", "Interruptions over time", vec![Block::OnPage(blocks)]).explained(reading)
}

/// How the chart was reduced, in a sentence or two.
fn reduction(picture: &Picture) -> String {
    let shown = &picture.shown;
    let mut text = match shown.cell_ns {
        None => format!("All {} interruptions are drawn.", grouped(shown.recorded)),
        Some(cell) => format!(
            "{} of {} interruptions are drawn: the {} longest, and the longest of each {} and quarter of an octave of length. \
             The others are close below a longer one.",
            grouped(shown.detours.len() as u64),
            grouped(shown.recorded),
            grouped(shown.top as u64),
            time(cell),
        ),
    };
    let kept = picture.embedded.len();
    match (kept, picture.embedded.last_key_value()) {
        (0, _) => text.push_str(" What happened in them was not recorded."),
        (_, Some((last, _))) if *last + 1 < shown.detours.len() => {
            let shortest = time(shown.detours[*last].duration);
            text.push_str(&format!(
                " The page contains what happened in the {} longest, down to {shortest}. For the others it names the command.",
                grouped(*last as u64 + 1),
            ));
        }
        _ => text.push_str(" The page contains what happened in each."),
    }
    let cut = picture.embedded.values().filter(|embedded| embedded.more > 0).count();
    if cut > 0 {
        text.push_str(&format!(
            " {cut} of them show only the {} activities that took most.",
            grouped(PER_DETOUR as u64)
        ));
    }
    text
}

fn points(summary: &Summary, picture: &Picture) -> Points {
    let places = &picture.shown.detours;
    let mut kinds: Vec<&'static str> = Vec::new();
    let mut sources = Vec::new();
    for (kind, source) in &picture.names {
        let at = kinds.iter().position(|name| *name == kind.name()).unwrap_or_else(|| {
            kinds.push(kind.name());
            kinds.len() - 1
        });
        sources.push((at as u32, source.clone()));
    }
    let mut strings = Strings::default();
    let mut activities = Vec::new();
    let mut more = Vec::new();
    for (at, embedded) in &picture.embedded {
        activities.resize(*at, Vec::new());
        let timeline = &embedded.timeline;
        let mut numbers = Vec::with_capacity(timeline.entries.len() * 6);
        for entry in &timeline.entries {
            let kind = Kind::ALL.iter().position(|kind| *kind == entry.kind).unwrap_or(0);
            let offset = entry.start.get().saturating_sub(timeline.start.get());
            let (source, detail) = (strings.number(&entry.source), strings.number(&entry.detail));
            numbers.extend([offset, entry.self_time.get(), kind as i64, source, detail, entry.depth as i64]);
        }
        activities.push(numbers);
        if embedded.more > 0 {
            more.push((*at as u32, embedded.more, embedded.more_time.get()));
        }
    }
    let several = summary.nodes.len() > 1;
    let incomplete = places.iter().enumerate().filter(|(_, place)| place.incomplete);
    Points {
        begin_ns: picture.start_ns,
        end_ns: picture.start_ns.saturating_add(picture.length_ns),
        nodes: summary.nodes.iter().map(|node| node.doc.node.clone()).collect(),
        kinds,
        sources,
        starts: places.iter().map(|place| place.start).collect(),
        durations: places.iter().map(|place| place.duration).collect(),
        node: if several { places.iter().map(|place| place.node).collect() } else { Vec::new() },
        cpu: places.iter().map(|place| place.cpu).collect(),
        number: places.iter().map(|place| place.number).collect(),
        source: picture.owners.iter().map(|owner| owner.map_or(-1, |number| number as i32)).collect(),
        incomplete: incomplete.map(|(at, _)| at as u32).collect(),
        strings: strings.list,
        activities,
        all_kinds: Kind::ALL.iter().map(|kind| kind.name()).collect(),
        more,
        run: quoted(&summary.path.to_string_lossy()),
    }
}

/// Texts by number, in order of appearance.
#[derive(Default)]
struct Strings {
    list: Vec<String>,
    numbers: BTreeMap<String, i64>,
}

impl Strings {
    fn number(&mut self, text: &str) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as i64;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// One of the longest detours.
struct LongestDetour {
    place: PlacedDetour,
    node: String,
    owner: Option<(Kind, String)>,
}

const NODE: Field<LongestDetour> = field!(catalogue::NODE, |row| row.node.clone());

fields! {
    LONGEST, longest: LongestDetour {
        DURATION_NS = catalogue::DURATION_NS, |row| Time(row.place.duration);
        CPU = catalogue::CPU, |row| Number(u64::from(row.place.cpu));
        DETOUR = catalogue::DETOUR, |row| Number(row.place.number);
        START_NS = catalogue::START_NS, |row| instant(row.place.start);
        KIND = catalogue::KIND,
            |row| row.owner.as_ref().map(|(kind, _)| kind.name());
        SOURCE = "source", "most of it",
            |row| row.owner.as_ref().map(|(_, source)| source.clone());
        INCOMPLETE = "incomplete", "incomplete", |row| row.place.incomplete;
    }
}

/// The start of an activity, to the microsecond.
fn instant(ns: i64) -> String {
    format!("{:.6}s", ns as f64 / 1e9)
}

fn list(summary: &Summary, picture: &Picture) -> Table {
    let mut fields: Vec<&Field<LongestDetour>> = LONGEST.iter().collect();
    if summary.nodes.len() > 1 {
        fields.insert(1, &NODE);
    }
    if summary.total.incomplete == 0 {
        fields.retain(|field| field.name != "incomplete");
    }
    let mut table = Table::new(&fields).captioned("The longest interruptions");
    for (at, (place, owner)) in picture.shown.detours.iter().zip(&picture.owners).take(LISTED).enumerate() {
        let node = node_of(summary, place).to_owned();
        let owner = owner.and_then(|number| picture.names.get(number as usize).cloned());
        table.opening_row(&fields, &LongestDetour { place: *place, node, owner }, at as u32);
    }
    let all = picture.shown.recorded;
    if all > LISTED as u64 {
        table.note = format!("The {LISTED} longest of {}. Click one to see what happened in it.", grouped(all));
    }
    table
}

/// The lengths from the longest to the shortest; a click on one of the longest opens it.
pub(super) fn by_length(summary: &Summary, picture: &Picture) -> Chart {
    let shown = &picture.shown;
    // The longest detours one by one, each a point that can be opened; then the steps of the distribution, each an actual detour.
    let known = shown.top.min(shown.detours.len());
    let longest: Vec<i64> = shown.detours[..known].iter().map(|place| place.duration).collect();
    let mut points: Vec<[f64; 2]> = Vec::new();
    let mut opens: Vec<Option<u32>> = Vec::new();
    for (at, length) in longest.iter().enumerate().filter(|(_, length)| **length > 0) {
        points.push([at as f64 + 1.0, *length as f64]);
        opens.push(Some(at as u32));
    }
    let all = picture.lengths.count();
    for step in picture.lengths.steps(&longest).iter().rev() {
        // One more than the number of longer ones: the first of its length.
        let rank = all - step.at_most + 1;
        if rank > known as u64 && step.length > 0 {
            points.push([rank as f64, step.length as f64]);
            opens.push(None);
        }
    }
    let (points, opens) = thinned(points, opens);
    let row = crate::record::figures::CpuRow::total(summary);
    let label = format!(
        "Of {} interruptions the longest takes {}, and half of them take at most {}.",
        cpu::DETOURS.cell(&row),
        cpu::MAX_NS.cell(&row),
        cpu::MEDIAN_NS.cell(&row)
    );
    Chart {
        id: "by-length",
        title: "From the longest to the shortest".to_owned(),
        label,
        height: 320,
        spec: Spec::Lines(Lines {
            x: Axis::new("rank, the longest first", AxisScale::Log, AxisUnit::Count),
            y: Axis::new("length", AxisScale::Log, AxisUnit::Time),
            series: vec![ChartSeries { name: String::new(), points, dots: true, opens, ..ChartSeries::default() }],
            marks: Vec::new(),
        }),
        figures: None,
    }
}

/// At most about 200 points per decade of ranks, always including the first.
fn thinned(points: Vec<[f64; 2]>, opens: Vec<Option<u32>>) -> (Vec<[f64; 2]>, Vec<Option<u32>>) {
    let mut last = f64::NEG_INFINITY;
    let kept = points.into_iter().zip(opens).filter(|(point, _)| {
        let at = point[0].log10();
        let keep = at - last >= 0.005;
        if keep {
            last = at;
        }
        keep
    });
    kept.unzip()
}

fn place_of(summary: &Summary, place: &PlacedDetour) -> String {
    super::place(summary, node_of(summary, place), CpuId::new(place.cpu))
}

fn node_of<'a>(summary: &'a Summary, place: &PlacedDetour) -> &'a str {
    summary.nodes.get(place.node as usize).map_or("", |node| node.doc.node.as_str())
}
