//! Sections as a text for a terminal.

use std::io::{self, Write};

use becalm_units::printable;

use crate::form::paragraph::{heading, line, paragraph};
use crate::form::plot;
use crate::form::section::{Block, Opening, Section};
use crate::form::sheet::Sheet;

/// Writes sections one below the other.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(sections: &[Section], out: &mut Sheet<'_>) -> io::Result<()> {
    sections.iter().try_for_each(|section| {
        match &section.opening {
            Opening::None => {}
            Opening::Gap => writeln!(out)?,
            Opening::Title(title) => heading(out, title)?,
        }
        write_blocks(&section.blocks, out)
    })
}

fn write_blocks(blocks: &[Block], out: &mut Sheet<'_>) -> io::Result<()> {
    blocks.iter().try_for_each(|block| match block {
        Block::OnTerminal(blocks) => write_blocks(blocks, out),
        Block::Verdict { text, .. } | Block::Text(text) | Block::Note(text) => paragraph(out, "  ", text),
        Block::Table(table) => table.print(out),
        Block::Heading(title) => heading(out, title),
        Block::Facts(facts) => facts.iter().try_for_each(|(name, text)| line(out, name, text)),
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
