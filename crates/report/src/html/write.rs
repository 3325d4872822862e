//! Pages to bytes: the template, with every text escaped.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::vec::IntoIter;

use becalm_model::audit::FirstStep;
use becalm_units::counted;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde::Serialize;

use super::Chart;
use crate::form::section::{Block, Finding, Page, Section, sentence};
use crate::form::table::{Cell, Row, Table};
use crate::form::value::grouped;

const TEMPLATE: &str = include_str!("../../assets/template.html");
const STYLE: &str = include_str!("../../assets/page.css");
const SCRIPT: &str = include_str!("../../assets/page.js");
/// ECharts, as packed by `build.rs`.
const PACKED_CHARTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/echarts.deflate"));
/// Upper bound of its unpacked size, which is about 1 MiB.
const LARGEST_CHARTS: usize = 4 << 20;
const CHARTS_LICENSE: &str = include_str!("../../assets/echarts/LICENSE");
const CHARTS_NOTICE: &str = include_str!("../../assets/echarts/NOTICE");
const ZRENDER_LICENSE: &str = include_str!("../../assets/echarts/LICENSE-zrender");
const D3_LICENSE: &str = include_str!("../../assets/echarts/LICENSE-d3");

/// The browser may only run the two scripts and apply the one style sheet whose hashes `build.rs` computed.
const POLICY: &str = concat!(
    "default-src 'none'; script-src '",
    env!("CHARTS_HASH"),
    "' '",
    env!("SCRIPT_HASH"),
    "'; style-src '",
    env!("STYLE_HASH"),
    "'; img-src data:; base-uri 'none'; form-action 'none'"
);

/// More rows in a table would make a page too large.
const ROWS: usize = 2_000;

/// The logo: a flat line with one beat.
const MARK: &str = "M2 12h4l2-6 4 12 3-9 2 3h5";

impl Page {
    /// Writes the page as one HTML document. Fails if `out` cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let charts = charts();
        let mut rest = TEMPLATE;
        while let Some((before, after)) = rest.split_once("{{") {
            let (slot, after) = after.split_once("}}").unwrap_or((after, ""));
            out.write_all(before.as_bytes())?;
            self.slot(slot, &charts, out)?;
            rest = after;
        }
        out.write_all(rest.as_bytes())
    }

    fn slot(&self, name: &str, charts: &str, out: &mut dyn Write) -> io::Result<()> {
        match name {
            "policy" => out.write_all(POLICY.as_bytes()),
            "title" => write!(out, "{}", Escaped(&self.title)),
            "subtitle" => write!(out, "{}", Escaped(&self.subtitle)),
            "icon" => write!(out, "{MARK}"),
            "style" => out.write_all(STYLE.as_bytes()),
            "charts" => out.write_all(charts.as_bytes()),
            "script" => out.write_all(SCRIPT.as_bytes()),
            "links" => self
                .sections_on_page()
                .try_for_each(|section| writeln!(out, "<a href=\"#{}\">{}</a>", section.id, Escaped(section.short))),
            "sections" => {
                let mut names = self.chart_names().into_iter();
                self.sections_on_page().try_for_each(|section| section.write(&mut names, out))
            }
            "foot" => self.foot.iter().try_for_each(|line| writeln!(out, "<p>{}</p>", Escaped(line))),
            "licenses" => {
                let texts = [CHARTS_NOTICE, CHARTS_LICENSE, ZRENDER_LICENSE, D3_LICENSE];
                write!(out, "{}", Escaped(&texts.join("\n\n")))
            }
            "data" => self.data(out),
            _ => unreachable!("the template has no slot '{name}'"),
        }
    }

    fn sections_on_page(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|section| section.is_on_page())
    }

    fn charts(&self) -> Vec<&Chart> {
        self.sections_on_page().flat_map(|section| &section.blocks).flat_map(Block::charts).collect()
    }

    /// The name of each chart.
    fn chart_names(&self) -> Vec<String> {
        let mut counts = HashMap::new();
        let name = |chart: &Chart| {
            let number = counts.entry(chart.id).and_modify(|count| *count += 1).or_insert(1);
            if chart.id.ends_with('-') { format!("{}{number}", chart.id) } else { chart.id.to_owned() }
        };
        self.charts().into_iter().map(name).collect()
    }

    /// The charts by their names, as JSON.
    fn data(&self, out: &mut dyn Write) -> io::Result<()> {
        let charts = ById(self.chart_names().into_iter().zip(self.charts()).collect());
        serde_json::to_writer(InScript(out), &charts).map_err(io::Error::from)
    }
}

struct ById<'a>(Vec<(String, &'a Chart)>);

impl Serialize for ById<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, chart)| (name, &chart.spec)))
    }
}

/// JSON within a page: `<` is escaped, so nothing can end the surrounding element. It occurs only in strings, where the escape means the same.
struct InScript<'a>(&'a mut dyn Write);

impl Write for InScript<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (at, part) in bytes.split(|byte| *byte == b'<').enumerate() {
            if at > 0 {
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The script that draws charts.
fn charts() -> String {
    let script = decompress_to_vec_with_limit(PACKED_CHARTS, LARGEST_CHARTS).ok();
    script.and_then(|script| String::from_utf8(script).ok()).expect("the build packed a text of less than the limit")
}

/// Text within an element or a quoted attribute.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['<', '>', '&', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'&' => "&amp;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// Text that may be a long name: lines break only after parts of `rt_throttling` or `kworker:vmstat_update`, not within them.
struct Breakable<'a>(&'a str);

impl fmt::Display for Breakable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.split_inclusive(['_', ':', '/']).enumerate().try_for_each(|(at, part)| {
            f.write_str(if at > 0 { "<wbr>" } else { "" })?;
            Escaped(part).fmt(f)
        })
    }
}

impl Section {
    fn write(&self, names: &mut IntoIter<String>, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<section class=\"card\" id=\"{}\" aria-labelledby=\"{}-title\">", self.id, self.id)?;
        writeln!(out, "<h2 id=\"{}-title\">{}</h2>", self.id, Escaped(&self.title))?;
        if !self.reading.is_empty() {
            writeln!(out, "<p class=\"reading\">{}</p>", Escaped(&self.reading))?;
        }
        self.blocks.iter().try_for_each(|block| block.write(&self.title, names, out))?;
        writeln!(out, "</section>")
    }
}

impl Block {
    /// The charts in this block.
    fn charts(&self) -> Vec<&Chart> {
        match self {
            Self::Charts(charts) => charts.iter().collect(),
            Self::OnPage(blocks) => blocks.iter().flat_map(Self::charts).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether these are warnings alone, which a page folds: those that every reader must see are together with a verdict.
    fn is_notes(&self) -> bool {
        matches!(self, Self::OnPage(blocks) if !blocks.is_empty() && blocks.iter().all(|block| matches!(block, Self::Warning { .. })))
    }

    /// Writes the block into a section with this title, taking chart names from `names`.
    fn write(&self, section: &str, names: &mut IntoIter<String>, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Verdict { tone, text, basis } => {
                write!(out, "<div class=\"verdict {}\"><p class=\"answer\">{}</p>", tone.class(), Escaped(text))?;
                if !basis.is_empty() {
                    write!(out, "<p class=\"basis\">{}</p>", Escaped(basis))?;
                }
                writeln!(out, "</div>")
            }
            Self::Tiles(tiles) => {
                writeln!(out, "<dl class=\"tiles\">")?;
                for tile in tiles {
                    writeln!(
                        out,
                        "<div class=\"tile {}\"><dt>{}</dt><dd><strong>{}</strong><span>{}</span></dd></div>",
                        tile.tone.class(),
                        Escaped(&tile.name),
                        Breakable(&tile.figure),
                        Escaped(&tile.detail)
                    )?;
                }
                writeln!(out, "</dl>")
            }
            Self::Charts(charts) => {
                writeln!(out, "<div class=\"charts\">")?;
                charts.iter().zip(names).try_for_each(|(chart, name)| write_chart(chart, &name, out))?;
                writeln!(out, "</div>")
            }
            Self::OnPage(blocks) if self.is_notes() => {
                let count = counted(blocks.len() as u64, "note", "notes");
                writeln!(out, "<details class=\"notes\"><summary>{count} on these numbers</summary>")?;
                blocks.iter().try_for_each(|block| block.write(section, names, out))?;
                writeln!(out, "</details>")
            }
            Self::OnPage(blocks) => blocks.iter().try_for_each(|block| block.write(section, names, out)),
            Self::OnTerminal(_) | Self::Plot(..) | Self::Lines(_) => Ok(()),
            Self::Table(table) => write_table(table, section, out),
            Self::Lead(text) | Self::Text(text) => writeln!(out, "<p>{}</p>", Escaped(&sentence(text))),
            Self::Note(text) => writeln!(out, "<p class=\"note\">{}</p>", Escaped(&sentence(text))),
            Self::Facts(facts) => write_facts(facts.iter().map(|(name, text)| [escaped(name), escaped(text)]), out),
            Self::Findings(findings) => {
                let said = |found: &Finding| format!("<strong>{}</strong> {}", found.verdict, Escaped(&found.text));
                write_facts(findings.iter().map(|found| [escaped(&found.name), said(found)]), out)
            }
            Self::Commands(commands) => {
                let typed = |step: &FirstStep| format!("<code>{}</code>", Escaped(&step.command));
                write_facts(commands.iter().map(|step| [typed(step), escaped(&step.why)]), out)
            }
            Self::Remark(name, text) => {
                writeln!(out, "<p class=\"note\"><strong>{}</strong>: {}</p>", Escaped(name), Escaped(text))
            }
            Self::Item(text) => writeln!(out, "<p>{}</p>", Escaped(&sentence(text))),
            Self::Entry(first, text) if first.trim().is_empty() => writeln!(out, "<p>{}</p>", Escaped(text)),
            Self::Entry(first, text) => {
                writeln!(out, "<p><strong>{}</strong> {}</p>", Escaped(first.trim()), Escaped(text))
            }
            Self::Heading(title) => writeln!(out, "<h3>{}</h3>", Escaped(title)),
            Self::Files(name, files) => {
                write!(out, "<dl class=\"facts\"><dt>{}</dt><dd>", Escaped(name))?;
                for (at, file) in files.iter().enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(out, "{comma}<a href=\"./{0}\">{0}</a>", Escaped(file))?;
                }
                writeln!(out, "</dd></dl>")
            }
            Self::Warning { text, advice } => {
                write!(out, "<div class=\"warning\" role=\"note\"><p>{}</p>", Escaped(text))?;
                if !advice.is_empty() {
                    write!(out, "<p class=\"advice\">{}</p>", Escaped(advice))?;
                }
                writeln!(out, "</div>")
            }
            Self::Detour => writeln!(out, "<div id=\"detour\" class=\"detour\" aria-live=\"polite\" hidden></div>"),
        }
    }
}

fn escaped(text: &str) -> String {
    Escaped(text).to_string()
}

/// Writes names with their texts, both already marked up.
fn write_facts(facts: impl Iterator<Item = [String; 2]>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<dl class=\"facts\">")?;
    for [name, text] in facts {
        writeln!(out, "<dt>{name}</dt><dd>{text}</dd>")?;
    }
    writeln!(out, "</dl>")
}

fn write_chart(chart: &Chart, name: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<figure>")?;
    if !chart.title.is_empty() {
        writeln!(out, "<figcaption>{}</figcaption>", Escaped(&chart.title))?;
    }
    writeln!(
        out,
        "<div class=\"tools\" id=\"{0}-tools\"></div>\n\
         <div class=\"chart\" id=\"{0}-chart\" data-height=\"{1}\" role=\"img\" aria-label=\"{2}\"></div>",
        name,
        chart.height,
        Escaped(&chart.label)
    )?;
    if let Some(figures) = chart.figures.as_ref().filter(|figures| !figures.is_empty()) {
        writeln!(out, "<details><summary>{}</summary>", Escaped(&figures.caption))?;
        write_table(figures, &chart.title, out)?;
        writeln!(out, "</details>")?;
    }
    writeln!(out, "</figure>")
}

/// Writes a table; without a caption it gets the title of its section.
fn write_table(table: &Table, section: &str, out: &mut dyn Write) -> io::Result<()> {
    let caption = Escaped(if table.caption.is_empty() { section } else { &table.caption });
    // Tables wider than the screen scroll by themselves, also by keyboard.
    writeln!(out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">")?;
    let class = if table.sorts { " class=\"sorts\"" } else { "" };
    writeln!(out, "<table{class}><caption>{caption}</caption><thead><tr>")?;
    for column in &table.columns {
        let title = &column.title;
        let class = if column.is_text { " class=\"text\"" } else { "" };
        match table.sorts {
            true => write!(out, "<th scope=\"col\"{class}><button type=\"button\">{}</button></th>", Escaped(title))?,
            false => write!(out, "<th scope=\"col\"{class}>{}</th>", Escaped(title))?,
        }
    }
    writeln!(out, "</tr></thead><tbody>")?;
    let rows = table.rows.iter().enumerate().filter(|(at, row)| *at < ROWS || row.is_total);
    rows.map(|(_, row)| row).try_for_each(|row| write_row(table, row, out))?;
    writeln!(out, "</tbody></table></div>")?;
    let count = table.rows.iter().filter(|row| !row.is_total).count() as u64;
    if count > ROWS as u64 {
        writeln!(out, "<p class=\"note\">The first {} of {} rows.</p>", grouped(ROWS as u64), grouped(count))?;
    }
    if !table.note.is_empty() {
        writeln!(out, "<p class=\"note\">{}</p>", Escaped(&table.note))?;
    }
    Ok(())
}

fn write_row(table: &Table, row: &Row, out: &mut dyn Write) -> io::Result<()> {
    match (row.is_total, row.opens) {
        (true, _) => write!(out, "<tr class=\"total\">")?,
        (false, Some(detour)) => write!(out, "<tr data-opens=\"{detour}\">")?,
        (false, None) => write!(out, "<tr>")?,
    }
    for (at, (cell, column)) in row.cells.iter().zip(&table.columns).enumerate() {
        let opens = row.opens.filter(|_| at == 0);
        write_cell(cell, column.is_text, opens.is_some(), out)?;
    }
    writeln!(out, "</tr>")
}

fn write_cell(cell: &Cell, is_text: bool, opens: bool, out: &mut dyn Write) -> io::Result<()> {
    let class = if is_text { " class=\"text\"" } else { "" };
    match cell.key.filter(|_| !is_text) {
        Some(key) => write!(out, "<td{class} data-key=\"{key}\">")?,
        None => write!(out, "<td{class}>")?,
    }
    match (opens, cell.kind) {
        (true, _) => write!(out, "<button type=\"button\" class=\"open\">{}</button>", Escaped(&cell.text))?,
        (false, Some(kind)) => write!(out, "<i class=\"kind\" data-kind=\"{kind}\"></i>{}", Escaped(&cell.text))?,
        (false, None) => write!(out, "{}", Escaped(&cell.text))?,
    }
    write!(out, "</td>")
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, AxisScale, AxisUnit, ChartSeries, Grade, Lines, Spec, Tile};
    use super::*;
    use crate::form::field::field;
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    const ENEMY: &str = "</script><img src=x onerror=\"alert('1')\">&{{data}}";

    fn page(text: &str) -> Page {
        let text = text.to_owned();
        let tile = Tile { name: text.clone(), figure: text.clone(), detail: text.clone(), tone: Grade::Bad };
        let axis = Axis::new(&text, AxisScale::Log, AxisUnit::Time);
        let series = vec![ChartSeries { name: text.clone(), ..ChartSeries::default() }];
        let chart = Chart {
            id: "one",
            title: text.clone(),
            label: text.clone(),
            height: 100,
            spec: Spec::Lines(Lines { x: axis.clone(), y: axis, series, marks: Vec::new() }),
            figures: None,
        };
        let blocks = vec![
            Block::Verdict { tone: Grade::Good, text: text.clone(), basis: text.clone() },
            Block::Tiles(vec![tile]),
            Block::Charts(vec![chart]),
            Block::Heading(text.clone()),
            Block::Text(text.clone()),
            Block::Note(text.clone()),
            Block::Facts(vec![(text.clone(), text.clone())]),
            Block::entry(&text, &text),
            Block::Files("files", vec![text.clone()]),
            Block::Warning { text: text.clone(), advice: text.clone() },
            Block::Detour,
        ];
        let section = Section {
            opening: crate::html::Opening::None,
            id: "first",
            title: text.clone(),
            short: "First",
            reading: text.clone(),
            blocks,
        };
        Page { title: text.clone(), subtitle: text.clone(), sections: vec![section], foot: vec![text] }
    }

    fn written(page: &Page) -> String {
        let mut out = Vec::new();
        page.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The text between two markers.
    fn element<'a>(html: &'a str, begin: &str, end: &str) -> &'a str {
        html.split_once(begin).and_then(|(_, rest)| rest.split_once(end)).map(|(inside, _)| inside).expect(begin)
    }

    #[test]
    fn no_text_becomes_markup() {
        let (harmless, hostile) = (written(&page("harmless")), written(&page(ENEMY)));
        for tag in ["<img", "<script", "</script", "<style", "<b", "onerror=\""] {
            assert_eq!(harmless.matches(tag).count(), hostile.matches(tag).count(), "{tag}");
        }
        let data = element(&hostile, "id=\"data\">", "</script>");
        let charts: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(charts["one"]["series"][0]["name"], ENEMY);
        assert_eq!(charts["one"]["draws"], "lines");
    }

    #[test]
    fn charts_of_one_name_are_numbered() {
        let mut page = page("x");
        let blocks = &mut page.sections[0].blocks;
        let mut chart = blocks.iter().flat_map(Block::charts).next().unwrap().clone();
        chart.id = "curve-";
        blocks.push(Block::OnPage(vec![Block::Charts(vec![chart.clone()])]));
        blocks.push(Block::Charts(vec![chart]));
        assert_eq!(page.chart_names(), ["one", "curve-1", "curve-2"]);
        let html = written(&page);
        let at = |name: &str| html.find(&format!("id=\"{name}-chart\"")).expect(name);
        assert!(at("one") < at("curve-1") && at("curve-1") < at("curve-2"));
    }

    #[test]
    fn warnings_alone_are_folded() {
        let html = |blocks: Vec<Block>| {
            let mut page = page("x");
            page.sections[0].blocks = vec![Block::OnPage(blocks)];
            written(&page)
        };
        let warnings = || vec![Block::warning("one"), Block::warning("two")];
        assert!(html(warnings()).contains("<summary>2 notes on these numbers</summary>\n<div class=\"warning\""));
        let verdict = Block::Verdict { tone: Grade::Good, text: "quiet".to_owned(), basis: String::new() };
        let shown = html([vec![verdict], warnings()].concat());
        assert!(shown.contains("class=\"warning\"") && !shown.contains("class=\"notes\""));
    }

    #[test]
    fn long_tables_keep_their_first_rows_and_the_total() {
        let fields = [&field!("number", "number", |row: &u64| *row)];
        let mut table = Table::filled(&fields, &(0..ROWS as u64 + 5).collect::<Vec<_>>());
        table.total(&fields, &7, "all");
        let mut out = Vec::new();
        write_table(&table, "Numbers", &mut out).unwrap();
        let html = String::from_utf8(out).unwrap();
        assert_eq!(html.matches("<tr").count(), 1 + ROWS + 1);
        assert!(html.contains(">all<") && html.contains("The first 2,000 of 2,005 rows."), "{html}");
        assert!(html.contains("<caption>Numbers</caption>"));
    }

    #[test]
    fn long_names_end_a_line_between_their_parts() {
        assert_eq!(Breakable("rt_throttling").to_string(), "rt_<wbr>throttling");
        assert_eq!(Breakable("kworker:a_<b>").to_string(), "kworker:<wbr>a_<wbr>&lt;b&gt;");
        assert_eq!(Breakable("0.693%").to_string(), "0.693%");
    }

    #[test]
    fn the_policy_names_what_is_in_the_page() {
        let html = written(&page("x"));
        let policy = element(&html, "Content-Security-Policy\" content=\"", "\"");
        let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
        let scripts: Vec<&str> =
            html.split("<script>").skip(1).map(|rest| &rest[..rest.find("</script>").unwrap()]).collect();
        assert_eq!(scripts.len(), 2);
        assert!(scripts.iter().all(|script| policy.contains(&hash(script))), "{policy}");
        assert!(policy.contains(&hash(element(&html, "<style>", "</style>"))), "{policy}");
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn the_library_is_the_one_that_is_named() {
        let charts = charts();
        assert_eq!(charts, include_str!("../../assets/echarts/echarts.min.js"));
        assert!(charts.contains("version=\"6.1.0\"") || charts.contains("version:\"6.1.0\""));
        // Template slots in an asset are not expanded, but an end tag would end its element.
        assert!(!charts.contains("</script") && !SCRIPT.contains("</script") && !STYLE.contains("</style"));
        assert!(written(&page("x")).contains("Apache License"));
    }

    proptest! {
        #[test]
        fn escaped_texts_read_back(text in "\\PC*|[<>&\"']*") {
            let escaped = Escaped(&text).to_string();
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            let read = escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
            prop_assert_eq!(read.replace("&amp;", "&"), text);
        }

        #[test]
        fn json_reads_back_however_it_is_cut(text in "(<|a|/|\\\\|script)*", cut in 1_usize..8) {
            let json = serde_json::to_string(&text).unwrap();
            let mut out = Vec::new();
            for part in json.as_bytes().chunks(cut) {
                InScript(&mut out).write_all(part).unwrap();
            }
            prop_assert!(!out.contains(&b'<'));
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
