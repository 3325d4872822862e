//! Sections as text for a terminal.

use std::io::{self, Write};

use becalm_units::printable;

use crate::form::paragraph::{INDENT, heading, paragraph, title_line};
use crate::form::plot;
use crate::form::section::{Block, Finding, Opening, Section};
use crate::form::sheet::Sheet;

/// Writes sections one below the other. Fails if `out` cannot be written.
pub fn write(sections: &[Section], out: &mut Sheet<'_>) -> io::Result<()> {
    sections.iter().enumerate().try_for_each(|(at, section)| {
        match &section.opening {
            Opening::None => {}
            Opening::Gap => writeln!(out)?,
            Opening::Title(title) if at == 0 => title_line(out, title)?,
            Opening::Title(title) => heading(out, title)?,
        }
        write_blocks(&section.blocks, out)
    })
}

/// Writes blocks one below the other. Fails if `out` cannot be written.
pub fn write_blocks(blocks: &[Block], out: &mut Sheet<'_>) -> io::Result<()> {
    blocks.iter().try_for_each(|block| match block {
        Block::OnTerminal(blocks) => write_blocks(blocks, out),
        Block::Verdict { text, .. } | Block::Text(text) | Block::Note(text) => paragraph(out, "  ", text),
        Block::Lead(text) => paragraph(out, "", text),
        Block::Table(table) => table.print(out),
        Block::Heading(title) => heading(out, title),
        Block::Facts(facts) => {
            let widest = widest(facts.iter().map(|(name, _)| name));
            let width = if widest < INDENT - 2 { INDENT - 2 } else { widest + 2 };
            facts.iter().try_for_each(|(name, text)| paragraph(out, &format!("  {name:<width$}"), text))
        }
        Block::Findings(findings) => {
            let width = widest(findings.iter().map(|finding| &finding.name)) + 2;
            findings.iter().try_for_each(|Finding { name, verdict, text }| {
                paragraph(out, &format!("  {name:<width$}{verdict:<9}"), text)
            })
        }
        Block::Commands(commands) => {
            // Commands are never cut: on a narrow terminal the purpose is below.
            let width = widest(commands.iter().map(|step| &step.command)) + 3;
            commands.iter().try_for_each(|step| paragraph(out, &format!("  {:<width$}", step.command), &step.why))
        }
        Block::Warning { text, advice } => {
            paragraph(out, "  ! ", text)?;
            if advice.is_empty() { Ok(()) } else { paragraph(out, "    \u{2192} ", advice) }
        }
        Block::Remark(name, text) => paragraph(out, &format!("  {name}: "), text),
        Block::Item(text) => paragraph(out, "  - ", text),
        Block::Entry(first, text) => paragraph(out, first, text),
        Block::Plot(title, curves) => plot::draw(curves, title, out),
        Block::Lines(lines) => lines.iter().try_for_each(|line| writeln!(out, "{}", printable(line))),
        Block::OnPage(_) | Block::Tiles(_) | Block::Charts(_) | Block::Files(..) | Block::Detour => Ok(()),
    })
}

fn widest<'a>(names: impl Iterator<Item = &'a String>) -> usize {
    names.map(|name| printable(name).chars().count()).max().unwrap_or(0)
}
